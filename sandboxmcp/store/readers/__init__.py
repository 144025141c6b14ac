"""Readers of content that may be slow or hostile: the worker process, and what it reads."""

__all__ = ["cutter", "page_text", "worker"]
