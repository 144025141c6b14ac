"""Rendering within a token budget: receipts, passages, pages and excerpts become text that cannot be taken for ours. Pure."""

__all__ = [
    "answer",
    "budget",
    "extract",
    "fence",
    "items",
    "layout",
    "paging",
    "passages",
    "reasons",
    "receipt",
    "structured_budget",
]
