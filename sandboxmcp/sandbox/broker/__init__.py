"""The broker: named programs with named argument shapes, run for a session outside its wall, each in a sandbox of its own."""

__all__ = ["addresses", "gate", "options", "order", "programs", "service", "session", "shapes", "treatments", "urls"]
