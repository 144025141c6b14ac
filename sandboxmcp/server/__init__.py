"""The tools as an MCP server. With `gateway` the only place that imports the SDK."""

__all__ = ["stdio"]
