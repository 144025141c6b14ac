"""Web pages for the store: fetched through the gate, read, and remembered under their labels."""

__all__ = ["fetch", "page_reader", "pages"]
