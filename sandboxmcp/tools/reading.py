"""`ctx_read`: a stored text verbatim, a page at a time; around a citation; or only the lines that hold a text. Blocking."""

from __future__ import annotations

from collections.abc import Sequence

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.model import Source
from sandboxmcp.core.surface import argument, call, quoted
from sandboxmcp.render.answer import Answer, answer
from sandboxmcp.render.budget import Page, checked_budget, cost, cut
from sandboxmcp.render.fence import numbered, one_line
from sandboxmcp.render.paging import Cursor, Shown, page_around, page_from, parse_citation, parse_cursor
from sandboxmcp.render.receipt import counted
from sandboxmcp.session import Session

_MATCHES = 2_000
"""Matching lines that are fetched at a time; more are reached by the cursor."""
_LINE_TOKENS = 200
_LABEL_SHARE = 0.15


def read(
    session: Session,
    *,
    handle: str | None = None,
    from_line: int | None = None,
    to_line: int | None = None,
    around: str | None = None,
    grep: str | None = None,
    cursor: str | None = None,
    scope: str = "project",
    budget_tokens: int,
) -> Answer:
    """Lines of one source, numbered from 1. `handle` may be a citation, which then gives the lines.

    A `cursor` goes on where a page ended, whatever else is given with it. Sources of other projects exist only for `scope="all"`.

    Raises:
        UsageError: the handle, citation, cursor or range is not one that exists. StoreError.
    """
    budget_tokens = checked_budget(budget_tokens)
    cited = (0, 0)
    if around:
        named, *span = parse_citation(around)
        handle, cited = handle or named, (span[0], span[1])
    if not handle:
        what = (
            f"{one_line(around, 40)!r} names no source"
            if around
            else f"{call('ctx_read')} wants a {quoted('handle')} or {quoted('around')}"
        )
        raise UsageError(what, f"Take a {quoted('handle')} from a receipt, a citation or {call('ctx_sources')}.")
    if ":" in handle:
        handle, first, last = parse_citation(handle)
        from_line, to_line = from_line or first, to_line or last
    source = session.store.get(handle, project=None if scope == "all" else session.project)
    if around and not cursor:
        return _around(session, source, *cited, budget_tokens)
    start = parse_cursor(cursor) if cursor else Cursor(from_line or 1)
    last = min(to_line or source.lines, source.lines)
    _require(source, start.line, last)
    if grep:
        return _grep(session, source, grep, start.line, last, budget_tokens)
    room = _room(source, budget_tokens)
    shown = page_from(lambda first, last: session.store.read_lines(source.handle, first, last), start, last, room)
    return _page(source, shown, budget_tokens)


def _room(source: Source, budget_tokens: int) -> int:
    """What is left for the text beside the title and the cursor."""
    title = _title(source, source.lines, source.lines, budget_tokens)
    return budget_tokens - cost(title) - cost(_next(Cursor(source.lines, 10**9)))


def _require(source: Source, first: int, last: int) -> None:
    if source.lines and not 1 <= first <= source.lines:
        raise UsageError(f"{source.handle} has {counted(source.lines, 'line')}, so none numbered {first}", "Ask for lines within.")
    if source.lines and last < first:
        raise UsageError(f"lines {first} to {last} are none", f"{argument('to_line')} must not be before {argument('from_line')}.")


def _around(session: Session, source: Source, first: int, last: int, budget_tokens: int) -> Answer:
    _require(source, first, max(first, last))
    fetch = lambda low, high: session.store.read_lines(source.handle, low, high)  # noqa: E731
    last = min(max(first, last), source.lines)
    return _page(source, page_around(fetch, first, last, source.lines, _room(source, budget_tokens)), budget_tokens)


def _page(source: Source, shown: Shown, budget_tokens: int) -> Answer:
    following = [_next(shown.following)] if shown.following else []
    facts = {
        "handle": source.handle,
        "from_line": shown.first,
        "to_line": shown.last,
        "lines": source.lines,
        "cursor": str(shown.following) if shown.following else None,
    }
    return answer([_title(source, shown.first, shown.last, budget_tokens), *shown.lines, *following], budget_tokens, facts)


def _title(source: Source, first: int, last: int, budget_tokens: int) -> str:
    """The label takes a small part of the budget at most: what is read is the text."""
    label = cut(one_line(source.label, 60), int(_LABEL_SHARE * budget_tokens))
    return f"{source.handle}:{first}-{last} of {source.lines} {label}".rstrip()


def _next(cursor: Cursor) -> str:
    return f"more: {argument('cursor', cursor)}"


def _grep(session: Session, source: Source, needle: str, first: int, last: int, budget_tokens: int) -> Answer:
    matches = session.store.grep(source.handle, needle, first=first, last=last, limit=_MATCHES)
    page = Page(budget_tokens - cost(_next(Cursor(source.lines))) - 1)
    title = f'{source.handle}: lines with "{one_line(needle, 60)}"'
    page.add_cut(title if matches else f"{title}: none", page.room // 2)
    shown = _add_matches(page, matches)
    cursor = Cursor(matches[shown][0]) if shown < len(matches) else None
    if cursor is None and len(matches) == _MATCHES:
        cursor = Cursor(matches[-1][0] + 1)
    facts = {"handle": source.handle, "lines": [number for number, _ in matches[:shown]], "cursor": str(cursor) if cursor else None}
    return answer([*page.lines, *([_next(cursor)] if cursor else [])], budget_tokens, facts)


def _add_matches(page: Page, matches: Sequence[tuple[int, str]]) -> int:
    """How many were added: at least the first, cut to fit."""
    for done, line in enumerate(numbered(matches)):
        if not (page.add(cut(line, _LINE_TOKENS)) or (not done and page.add_cut(line))):
            return done
    return len(matches)
