"""Search in the index: query, candidates, ranking, snippets."""

__all__ = ["rank", "scope", "search", "semantic", "snippets", "stems", "vocabulary"]
