"""Programs: their options, what they run, what they do to files, and which command lines the broker takes. Pure."""

__all__ = ["argv", "effects", "knowledge"]
