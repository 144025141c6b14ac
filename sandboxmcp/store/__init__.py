"""What was captured, indexed and can be cited: captures on disk, passages in SQLite, search over both."""

__all__ = ["captures", "index", "salvage", "search", "store", "web"]
