"""What may run: packs of rules as data, and the analyses that turn code into facts for the rules to match."""

__all__ = ["credential_files", "engine", "judge", "prefilter", "reports", "secrets", "showing", "sources", "trials"]
