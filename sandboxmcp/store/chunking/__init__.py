"""Texts in chunks by their structure, and chunks in the small passages that are searched: one module per kind of structure."""

__all__ = ["cutting", "forms", "kinds", "markup", "parts", "steps"]
