"""What was run: sessions, their runs, and the items of each, in the store's database."""

__all__ = ["journal"]
