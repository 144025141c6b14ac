"""Captured bytes on disk: on their way in, compressed by content, read back by line."""

__all__ = ["captures", "content", "disk", "incoming", "numbered_lines"]
