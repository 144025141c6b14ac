"""What may run: packs of rules as data, and the analyses that turn code into facts for the rules to match."""

__all__ = ["engine", "judge", "packs", "prefilter", "programs", "reports", "secrets", "sources", "trials"]
