"""Passages that say the same are told once: copies of one content, and equal texts. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from sandboxmcp.core.model import Hit
from sandboxmcp.render.items import Others


def told_once(hits: Iterable[Hit], digests: Mapping[str, str]) -> tuple[list[Hit], dict[tuple[str, int], Others]]:
    """The hits in their order without those that repeat an earlier one; by handle and first line what the earlier one stands for.

    Lines of another source with the same content are a copy; an equal text elsewhere is told by its citation, once for all
    copies. `digests`: by handle.
    """
    told: list[Hit] = []
    by_digest: dict[str, dict[str, list[Hit]]] = defaultdict(lambda: defaultdict(list))
    by_text: dict[tuple[str, bool], Hit] = {}
    copies: dict[tuple[str, int], set[str]] = defaultdict(set)
    equals: dict[tuple[str, int], dict[tuple[str, int], str]] = defaultdict(dict)
    for hit in map(without_blank_edges, hits):
        digest = digests[hit.handle]
        others = (one for handle, those in by_digest[digest].items() if handle != hit.handle for one in those)
        original = next((one for one in others if _is_copy(one, hit)), None)
        equal = by_text.get((hit.text, hit.partial))
        if original is not None:
            copies[original.handle, original.first_line].add(hit.handle)
        elif equal is not None:
            here = replace(hit, handle=equal.handle) if digest == digests[equal.handle] else hit
            equals[equal.handle, equal.first_line].setdefault((digest, hit.first_line), here.citation)
        else:
            told.append(hit)
            by_digest[digest][hit.handle].append(hit)
            by_text[hit.text, hit.partial] = hit
    return told, {place: Others(len(copies[place]), tuple(equals[place].values())) for place in {**copies, **equals}}


def _is_copy(one: Hit, other: Hit) -> bool:
    """Are these lines among those of a source with the same content? Parts of very long lines are not lines."""
    whole = not one.partial and not other.partial
    return (whole and one.first_line <= other.first_line and other.last_line <= one.last_line) or _place(one) == _place(other)


def _place(hit: Hit) -> tuple[int, int, str]:
    return hit.first_line, hit.last_line, hit.text


def without_blank_edges(hit: Hit) -> Hit:
    """The hit from its first to its last line with something on it."""
    if hit.text and not (hit.text[0].isspace() or hit.text[-1].isspace()):
        return hit
    lines = hit.text.split("\n")
    filled = [index for index, line in enumerate(lines) if line.strip()]
    if hit.partial or not filled or (filled[0], filled[-1]) == (0, len(lines) - 1):
        return hit
    first, last = hit.first_line + filled[0], hit.first_line + filled[-1]
    text, best = "\n".join(lines[filled[0] : filled[-1] + 1]), max(hit.best_line - filled[0], -1)
    return replace(hit, text=text, first_line=first, last_line=last, best_line=best)
