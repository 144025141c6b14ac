"""The broker: named programs with named argument shapes, run for a session outside its sandbox, each in a sandbox of its own."""

__all__ = ["broker", "gate", "service"]
