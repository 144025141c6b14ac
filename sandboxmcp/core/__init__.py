"""What every other room uses: the nouns, the errors, the settings, the counting of tokens."""

__all__ = [
    "audit",
    "database",
    "errors",
    "folders",
    "misspelt",
    "model",
    "processes",
    "regular",
    "resources",
    "settings",
    "text",
    "tokens",
    "words",
]
