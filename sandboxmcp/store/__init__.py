"""What was captured, indexed and can be cited: captures on disk, passages in SQLite, search over both."""

__all__ = ["catalogue", "content", "fetch", "pagereader", "pages", "salvage", "snippets", "store", "together", "words"]
