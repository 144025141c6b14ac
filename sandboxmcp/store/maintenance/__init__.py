"""Maintenance of a store: recovery after a killed process, the index cut anew."""

__all__ = ["rebuild", "recovery", "reindex"]
