"""The specifications of the tools, a module each: `SPEC`. The list in `tools/registry.py` says which there are."""

__all__ = ["common"]
