"""Arguments that several tools share, with the other names and words that agents use for them."""

from __future__ import annotations

from sandboxmcp.tools.toolspec import BUDGET, Alias, Argument

QUERIES = Argument("queries", "strings", aliases=(Alias("query"),))
INTENT = Argument("intent", "string", is_hidden=True)
TIMEOUT = Argument("timeout_s", "number", above=0, aliases=(Alias("timeout", divide_by=1000),))
KERNEL = Argument("kernel", "string")
IMAGES = Argument("images", "boolean", is_hidden=True)
CODE = Argument("code", "string", required=True)
SOURCE = Argument("source", "string", help="Only sources whose label contains this.")
BUDGET_TOKENS = Argument(BUDGET, "integer", minimum=50, help="Tokens of the answer; default 2,000.", flags=("--budget",))

LANGUAGE = Argument(
    "language",
    "string",
    synonyms={
        "bash": "shell",
        "sh": "shell",
        "python3": "python",
        "py": "python",
        "js": "javascript",
        "node": "javascript",
        "ts": "typescript",
        "rb": "ruby",
        "golang": "go",
        "rs": "rust",
        "pl": "perl",
        "R": "r",
        "ex": "elixir",
        "exs": "elixir",
        "cs": "csharp",
        "c#": "csharp",
    },
)
LANGUAGES = ("python", "shell", "javascript", "typescript", "ruby", "go", "rust", "php", "perl", "r", "elixir", "csharp")
"""Listed by one tool alone: each word in the list of tools costs tokens."""


def scope(*choices: str) -> Argument:
    """What of the store a tool looks at."""
    return Argument("scope", "string", choices=choices, synonyms={"global": "all"})
