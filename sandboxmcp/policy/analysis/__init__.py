"""Analysis of code: shell, Python and other languages become facts for the rules to match. Pure."""

__all__ = ["analyse", "made"]
