"""Overlay mode: scripts write to a layer over the workspace; a person applies the layer or discards it."""

__all__ = ["apply", "changes", "layer"]
