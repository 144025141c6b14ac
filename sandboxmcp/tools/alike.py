"""Passages that say the same are told once: copies of one content, and equal texts. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from sandboxmcp.core.model import Hit
from sandboxmcp.tools.items import Others


def told_once(hits: Iterable[Hit], digest_of: Callable[[str], str]) -> tuple[list[Hit], dict[tuple[str, int], Others]]:
    """The hits in their order without those that repeat an earlier one; by handle and first line what the earlier one stands for.

    The same lines of another source with the same content are a copy; an equal text elsewhere is told by its citation.
    `digest_of` gives a handle's digest.
    """
    first: dict[tuple[str, bool], Hit] = {}
    others: dict[tuple[str, int], Others] = {}
    for hit in map(without_blank_edges, hits):
        known = first.setdefault((hit.text, hit.partial), hit)
        if known is hit:
            continue
        place = known.handle, known.first_line
        so_far = others.get(place, Others())
        if _is_copy(known, hit, digest_of):
            others[place] = replace(so_far, copies=so_far.copies + 1)
        else:
            others[place] = replace(so_far, citations=(*so_far.citations, hit.citation))
    return list(first.values()), others


def _is_copy(one: Hit, other: Hit, digest_of: Callable[[str], str]) -> bool:
    if one.handle == other.handle or (one.first_line, one.last_line) != (other.first_line, other.last_line):
        return False
    return digest_of(one.handle) == digest_of(other.handle)


def without_blank_edges(hit: Hit) -> Hit:
    """The hit from its first to its last line with something on it."""
    lines = hit.text.split("\n")
    filled = [index for index, line in enumerate(lines) if line.strip()]
    if hit.partial or not filled or (filled[0], filled[-1]) == (0, len(lines) - 1):
        return hit
    first, last = hit.first_line + filled[0], hit.first_line + filled[-1]
    return replace(hit, text="\n".join(lines[filled[0] : filled[-1] + 1]), first_line=first, last_line=last)
