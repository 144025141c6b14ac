"""What every other room uses: the nouns, the errors, the settings, the counting of tokens."""

__all__ = [
    "audit",
    "database",
    "errors",
    "folders",
    "loops",
    "model",
    "processes",
    "resources",
    "safe_open",
    "settings",
    "text",
    "tokens",
    "words",
]
