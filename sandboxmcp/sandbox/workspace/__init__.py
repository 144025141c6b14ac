"""The workspace inside the sandbox: its folder, its protected paths, the quarantine, and masked copies of files of secrets."""

__all__ = ["git_masks", "location", "masked_copies", "masked_paths", "pinned", "protected_paths", "quarantine", "secret_names"]
