"""What `sandboxmcp log` shows of the journal: a list of runs, or one run with its code."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.reasons import from_json
from sandboxmcp.core.surface import argument
from sandboxmcp.journal.journal import Wanted, run_of, runs
from sandboxmcp.render.answer import Answer, answer
from sandboxmcp.render.budget import checked_budget, cost, first_fitting
from sandboxmcp.render.fence import fenced, one_line
from sandboxmcp.render.reasons import said
from sandboxmcp.render.receipt import counted, duration
from sandboxmcp.session import Session

_NUMBER = re.compile(r"#?(\d{1,11})")
_SESSION = re.compile(r"[0-9a-f]{1,12}")
_SINCE = re.compile(r"(\d{1,6})\s*(s|min|h|d)")
_UNITS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}
_MOST = 10_000


def run_log(
    session: Session,
    *,
    which: str | None = None,
    tool: str | None = None,
    status: str | None = None,
    since: str | None = None,
    limit: int = 20,
    all_projects: bool = False,
    budget_tokens: int,
) -> Answer:
    """Runs, newest first; `which` names a session by the beginning of its id, or one run by its number, shown with its code.

    Raises:
        UsageError: there is no such run or session, or an argument is wrong. StoreError.
    """
    budget_tokens = checked_budget(budget_tokens)
    if not 1 <= limit <= _MOST:
        raise UsageError(f"{argument('limit')} is {limit}", f"It is 1 to {_MOST:,}.")
    project, which = None if all_projects else session.project, which or ""
    number = _NUMBER.fullmatch(which)
    if number is not None and (found := run_of(session.store.database, int(number[1]), project)) is not None:
        return _one(found, budget_tokens)
    if which and number is None and not _SESSION.fullmatch(which):
        raise UsageError(f"{which[:40]!r} is no session and no run", "A session is the beginning of its id, a run its number.")
    wanted = Wanted(project, which.removeprefix("#") or None, tool, status, _since(since))
    listed = runs(session.store.database, wanted, limit + 1)
    if which and not listed:
        raise UsageError(f"there is no run or session {which!r}", "sandboxmcp log lists them; --all-projects those of others too.")
    return _list(listed, limit, budget_tokens)


def _since(text: str | None) -> float:
    if text is None:
        return 0.0
    found = _SINCE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text[:40]!r} is no time", "Write 30min, 2h or 7d.")
    return time.time() - int(found[1]) * _UNITS[found[2]]


def _list(listed: list[dict[str, Any]], limit: int, budget_tokens: int) -> Answer:
    shown = listed[:limit]
    lines = [_line(run) for run in shown]
    more = [f"earlier runs are not shown: raise {argument('limit')}"] if len(listed) > limit else []
    fitting = first_fitting(lines, budget_tokens - cost("+1000 more runs: raise --budget") - sum(map(cost, more)))
    left = len(lines) - len(fitting)
    notes = [f"+{counted(left, 'more run')}: raise {argument('budget_tokens')}"] if left else more
    return answer([*(fitting or ["no runs"] * (not lines)), *notes], budget_tokens, {"runs": [_facts(run) for run in shown]})


def _line(run: Mapping[str, Any]) -> str:
    """`#12 2026-01-31 10:00:03 ctx_execute python: ok, 0.2s, h1 | print(1)`."""
    items = run["items"]
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run["started_at"]))
    first = items[0] if items else None
    code = one_line(first["code"].partition("\n")[0], 60) if first else ""
    told = ", ".join(_endings(items)) or "no items"
    handles = " ".join(handle for item in items[:3] for handle in item["handles"][:2])
    where = f" in {run['kernel']}" if run["kernel"] else ""
    language = first["language"] if len(items) == 1 and first else counted(len(items), "item")
    return (
        f"#{run['run']} {when} {run['session']} {run['tool']} {language}{where}: {told}{f', {handles}' if handles else ''} | {code}"
    )


def _endings(items: list[dict[str, Any]]) -> list[str]:
    if len(items) == 1:
        item = items[0]
        ending = f"exit {item['exit_code']}" if item["status"] == "failed" and item["exit_code"] else item["status"]
        return [ending, *([duration(item["wall_s"])] if item["wall_s"] else [])]
    counts: dict[str, int] = {}
    for item in items:
        counts[item["status"]] = counts.get(item["status"], 0) + 1
    return [f"{number} {status}" for status, number in counts.items()]


def _one(run: dict[str, Any], budget_tokens: int) -> Answer:
    lines = [_line(run).partition(" | ")[0], f"session {run['session']}, {run['surface']}, project {one_line(run['project'], 200)}"]
    for item in run["items"]:
        verdict = item["verdict"] + (f" (rule {item['rule']})" if item["rule"] else "")
        facts = [
            ", ".join(_endings([item])),
            f"verdict {verdict}",
            f"{item['bytes_in']} B of code",
            f"{item['bytes_out']} B printed",
        ]
        lines.append(f"{one_line(item['label'], 80)}: {', '.join([*facts, *item['handles']])}")
        lines += [why] if (why := one_line(said(from_json(item["reasons"])), 400)) else []
        lines += fenced(item["code"].split("\n"))
    return answer(lines, budget_tokens, {"run": _facts(run, code=True)})


def _facts(run: Mapping[str, Any], *, code: bool = False) -> dict[str, Any]:
    items = [item if code else {name: value for name, value in item.items() if name != "code"} for item in run["items"]]
    return {**run, "items": items}
