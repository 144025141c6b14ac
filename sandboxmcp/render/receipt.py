"""Receipts: one line for the reader and one row for the program about what became of an item, and where its output lies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sandboxmcp.core.model import Outcome, Source, StreamCapture
from sandboxmcp.core.reasons import Reason
from sandboxmcp.render.fence import one_line
from sandboxmcp.render.items import Item
from sandboxmcp.render.reasons import said

_REASON_LENGTH = 400


def receipt(item: Item, *, whole: bool) -> str:
    """`label: exit 1, 0.4s, s12 104231 B 1500 lines`.

    `whole`: the output follows in full, so that its size is there to see and is left out.
    """
    parts = [_ending(item.outcome)]
    if item.outcome.status not in ("denied", "skipped"):
        parts.append(_times(item))
        parts += [_place(item.stdout.source, item.outcome.stdout, whole)] if item.stdout else []
        lost = _lost(item.outcome)
        parts += [f"{lost} B of output lost"] * (lost > 0)
        parts += ["no output"] * (not item.streams and not item.artifacts and not lost)
    parts += [f"{artifact.mime} {artifact.handle} {artifact.bytes} B" for artifact in item.artifacts]
    line = ", ".join(parts)
    return f"{item.label}: {line}" if item.label else line


def reason(outcome: Outcome) -> str:
    """Why the item was denied, killed or skipped and what to do instead; "" when the status says it all."""
    return one_line(said(reasons_of(outcome)), _REASON_LENGTH)


def reasons_of(outcome: Outcome) -> tuple[Reason, ...]:
    """All reasons of an outcome; a denial's is what its verdict says."""
    verdict = outcome.verdict
    if outcome.status != "denied" or verdict is None:
        return outcome.reasons
    facts = {"because": verdict.because, "rule": verdict.rule, "line": verdict.line, "instead": verdict.instead}
    return (Reason("denied", facts),)


def row(item: Item) -> dict[str, Any]:
    """The item as structured content: facts and handles, no output."""
    out = item.stdout.source if item.stdout else None
    facts: dict[str, Any] = {
        "label": item.label,
        "status": item.outcome.status,
        "exit_code": item.outcome.exit_code,
        "wall_s": round(item.outcome.wall_s, 3),
        "stored_s": round(item.stored_s, 3),
        "bytes": out.total_bytes if out else item.outcome.stdout.total if item.outcome.stdout else 0,
        "lines": out.lines if out else 0,
        "handle": out.handle if out else None,
    }
    optional = {
        "stderr": item.stderr.source.handle if item.stderr else None,
        "lost_bytes": _lost(item.outcome),
        "reason": reason(item.outcome),
        "reason_codes": [one.code for one in reasons_of(item.outcome)],
        "artifacts": [{"handle": a.handle, "mime": a.mime, "bytes": a.bytes} for a in item.artifacts],
    }
    return facts | {name: value for name, value in optional.items() if value}


def record(item: Item) -> dict[str, Any]:
    """The same with its reasons as data: for another process, which words them for its own surface."""
    return row(item) | {"reasons": [one.as_json() for one in reasons_of(item.outcome)]}


def tally(items: Sequence[Item]) -> str:
    """`200 items: 195 ok, 3 failed, 2 denied`."""
    counts: Mapping[str, int] = Counter(item.outcome.status for item in items)
    return f"{len(items)} items: " + ", ".join(f"{number} {status}" for status, number in counts.items())


def duration(seconds: float) -> str:
    return f"{seconds:.1f}s" if seconds >= 1 else f"{seconds * 1000:.0f}ms"


def age_of(seconds: float) -> str:
    """`3 h old`; `new` within the first minute."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit} old"
    return "new"


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 line`, `2 lines`; `plural` where no s makes it."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"


def size(source: Source, lost: int = 0) -> str:
    """Bytes and lines of a stored text, what of it was not kept, indexed or understood. `lost` bytes are told elsewhere."""
    parts = [f"{source.bytes} B {counted(source.lines, 'line')}"]
    if source.total_bytes - lost > source.bytes:
        parts.append(f"{source.total_bytes - lost - source.bytes} B beyond the cap not kept")
    if source.indexed_bytes < source.bytes:
        parts.append(f"indexed {source.indexed_bytes} B of head and tail")
    if source.plain:
        parts.append("indexed as plain lines, since its structure takes too long to read")
    return ", ".join(parts)


def _times(item: Item) -> str:
    """How long the script ran and, when that took longer, how long its output was on the way into the store and the index."""
    wall_s, stored_s = item.outcome.wall_s, item.stored_s
    return f"{duration(wall_s)} + {duration(stored_s)} indexing" if stored_s > max(wall_s, 1) else duration(wall_s)


def _ending(outcome: Outcome) -> str:
    """`failed` with exit code 0 is a run of which something was lost: `exit 0` would be taken for a success."""
    return f"exit {outcome.exit_code}" if outcome.status == "failed" and outcome.exit_code else outcome.status


def _place(source: Source, capture: StreamCapture | None, whole: bool) -> str:
    complete = source.total_bytes == source.bytes
    return source.handle if whole and complete else f"{source.handle} {size(source, capture.lost if capture else 0)}"


def _lost(outcome: Outcome) -> int:
    """Bytes of its output that could not be kept."""
    return sum(stream.lost for stream in (outcome.stdout, outcome.stderr) if stream is not None)
