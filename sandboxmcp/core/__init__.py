"""What every other room uses: the nouns, the errors, the settings, the counting of tokens."""

__all__ = [
    "audit",
    "database",
    "errors",
    "folders",
    "loops",
    "migrations",
    "model",
    "processes",
    "reasons",
    "resources",
    "safe_open",
    "settings",
    "surface",
    "text",
    "tokens",
    "words",
]
