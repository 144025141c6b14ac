"""Background jobs: `ctx_execute` with `background=true`, and `ctx_jobs` to list them, take their result, or cancel them.

A job belongs to the server and not to the call that started it: a client may reconnect. It cannot outlive its server, whose
sandboxes end with it; so each job has a small record beside the store, by which a later server says what became of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from sandboxmcp.core.errors import SandboxmcpError, UsageError
from sandboxmcp.core.processes import start_mark
from sandboxmcp.core.surface import call
from sandboxmcp.render.answer import Answer, answer, failure, masked_facts
from sandboxmcp.render.budget import checked_budget
from sandboxmcp.render.items import Item
from sandboxmcp.render.receipt import duration, record
from sandboxmcp.session import Session
from sandboxmcp.tools.answering import answer_of
from sandboxmcp.tools.script_runs import Job, run_job

if TYPE_CHECKING:
    from sandboxmcp.kernels.script_run import Begun

_KEPT_S = 14 * 86_400
"""Records are kept as long as captures are."""
_MOST = 16
"""Jobs of one server that run at once."""


@dataclass(slots=True)
class Background:
    """One job of this server."""

    handle: str
    job: Job
    asked: Sequence[str]
    images: bool
    started: float = field(default_factory=time.monotonic)
    items: dict[int, Item] = field(default_factory=dict)
    error: SandboxmcpError | None = None
    ended: float | None = None
    cancelled: bool = False
    note: str = ""
    """What is to be said of its end: that its server's end was its own."""
    stem: Path | None = None
    """What the names of its stream files begin with, once it runs."""
    task: asyncio.Task[None] | None = None

    @property
    def state(self) -> str:
        """`running`, or how it ended."""
        if self.ended is None:
            return "running"
        if self.error is not None:
            return "error"
        if 0 in self.items:
            return self.items[0].outcome.status
        return "cancelled" if self.cancelled else "error"

    @property
    def wall_s(self) -> float:
        return (time.monotonic() if self.ended is None else self.ended) - self.started

    @property
    def printed(self) -> int:
        """Bytes on its stdout so far."""
        with suppress(OSError):
            return self.stem.with_name(f"{self.stem.name}.out").stat().st_size if self.stem is not None else 0
        return 0

    def begun(self, begun: Begun) -> None:
        self.stem = begun.stem

    async def stop(self, note: str = "its server ended") -> None:
        """Cancel it and wait until what it had printed is stored; of one that has just ended, until its record is written."""
        if self.task is not None and not self.task.done():
            if self.ended is None:
                self.cancelled, self.note = True, note
                self.task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([self.task])


async def start(session: Session, background: Background) -> Answer:
    """Begin it and return its handle at once.

    Raises:
        UsageError: too many run already.
    """
    mine = _of(session)
    if sum(one.state == "running" for one in mine.values()) >= _MOST:
        raise UsageError(f"{_MOST} background jobs run already", f"Wait for one ({call('ctx_jobs')}), or cancel one.")
    mine[background.handle] = background
    await anyio.to_thread.run_sync(_record, session, background)
    background.task = asyncio.get_running_loop().create_task(_run(session, background))
    text = (
        f"{background.handle}: started; {call('ctx_jobs')}(action=result, job={background.handle}) has its output, cancel stops it"
    )
    return answer([text], session.settings.budget_tokens, {"job": background.handle, "state": "running"})


def new_handle() -> str:
    return "j" + secrets.token_hex(3)


async def _run(session: Session, background: Background) -> None:
    try:
        await run_job(session, background.job, items=background.items)
    except SandboxmcpError as error:
        background.error = error
    except asyncio.CancelledError:
        if not background.cancelled:
            background.error = SandboxmcpError("the job was given up by its server", "Start it again.")
            raise
    except Exception as error:
        background.error = SandboxmcpError(f"a fault of sandboxmcp ended the job: {error!r}"[:400], "Run: sandboxmcp doctor.")
        raise
    finally:
        background.ended = time.monotonic()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_record, session, background)


async def jobs(session: Session, *, action: str = "list", job: str | None = None, budget_tokens: int) -> Answer:
    """The tool `ctx_jobs`.

    Raises:
        UsageError: there is no such job, or the action needs one.
    """
    budget_tokens = checked_budget(budget_tokens)
    if action == "list":
        return await anyio.to_thread.run_sync(_listed, session, budget_tokens)
    if job is None:
        raise UsageError(f"{action} wants a job", f"{call('ctx_jobs')} lists them.")
    background = _of(session).get(job)
    if background is None:
        return await anyio.to_thread.run_sync(_elsewhere, session, job, action, budget_tokens)
    if action == "cancel":
        await background.stop("")
    return await anyio.to_thread.run_sync(_result, session, background, budget_tokens)


def _result(session: Session, background: Background, budget: int) -> Answer:
    if background.error is not None:
        return failure(background.error, budget)
    facts = {"job": background.handle, "state": background.state, "wall_s": round(background.wall_s, 3)}
    if background.ended is None:
        so_far = f"{duration(background.wall_s)}, {background.printed} B printed so far"
        text = f"{background.handle}: running for {so_far}; ask again later"
        return answer([text], budget, facts | {"bytes": background.printed})
    if not background.items:
        return answer([f"{background.handle}: cancelled before it began"], budget, facts)
    items = [background.items[index] for index in sorted(background.items)]
    return answer_of(session, background.job, items, background.asked, budget, images=background.images, facts=facts)


def _listed(session: Session, budget: int) -> Answer:
    rows = [_row(session, record) for record in _records(session)]
    lines = [_line(told) for told in rows] or ["no background jobs; ctx_execute with background=true starts one"]
    return answer(lines, budget, {"jobs": rows})


def _line(told: dict[str, Any]) -> str:
    parts = [f"{told['job']}: {told['state']}", told["language"], duration(told["wall_s"])]
    return ", ".join([*parts, *told["handles"]]) + (f"; {told['note']}" if told["note"] else "")


def _row(session: Session, record: dict[str, Any]) -> dict[str, Any]:
    """A record as it stands now: one that its server did not finish is lost."""
    mine = _of(session).get(str(record["job"]))
    if mine is not None:
        record = _facts(session, mine)
    state, note = record["state"], str(record.get("note", ""))
    if state == "running" and mine is None:
        alive = start_mark(int(record["pid"])) == record["mark"]
        state = "running elsewhere" if alive else "lost"
        where = f"server {record['pid']}"
        note = f"it belongs to {where}" if alive else f"its {where} ended; what it had printed may be found by {call('ctx_search')}"
    return {key: record[key] for key in ("job", "language", "wall_s", "handles")} | {"state": state, "note": note}


def _elsewhere(session: Session, handle: str, action: str, budget: int) -> Answer:
    """A job of another server: that one is asked while the job runs; later its record and the store tell."""
    from sandboxmcp.tools.recalling import recalled_answer

    records = {str(record["job"]): record for record in _records(session)}
    if handle not in records:
        known = ", ".join(list(records)[:10]) or "none"
        raise UsageError(f"there is no job {handle[:40]!r}", f"Known: {known}.")
    record = records[handle]
    told = _row(session, record)
    if told["state"] == "running elsewhere":
        return _asked_of_owner(session, record, action, budget)
    if told["state"] == "lost" or not record.get("items"):
        return answer([_line(told)], budget, told, is_error=told["state"] == "lost")
    facts = {"job": handle, "state": told["state"]} | ({"note": told["note"]} if told["note"] else {})
    return recalled_answer(session, record["items"][0], record["language"], record.get("asked", ()), budget, facts)


def _asked_of_owner(session: Session, record: dict[str, Any], action: str, budget: int) -> Answer:
    """The other server's answer, given by it within the same budget."""
    from sandboxmcp.tools.kernel_client import ask_owner

    request = {"op": "job", "job": record["job"], "action": action, "budget_tokens": budget}
    told = ask_owner(session.registry.folder / str(record.get("door", "")), int(record["pid"]), request)
    return Answer(str(told["text"]), dict(told["facts"]), bool(told["is_error"]))


def _of(session: Session) -> dict[str, Background]:
    found: dict[str, Background] = session.jobs
    return found


def _facts(session: Session, background: Background) -> dict[str, Any]:
    handles = [stream.source.handle for index in sorted(background.items) for stream in background.items[index].streams]
    return {
        "job": background.handle,
        "project": session.project,
        "language": background.job.scripts[0].language,
        "state": background.state,
        "note": background.note,
        "wall_s": round(background.wall_s, 3),
        "handles": handles,
        "asked": list(background.asked),
        "items": [record(background.items[index]) for index in sorted(background.items)],
        "pid": os.getpid(),
        "door": session.registry.door.name,
        "mark": start_mark(os.getpid()),
        "at": time.time() - (time.monotonic() - background.started),
    }


def _folder(session: Session) -> Path:
    return session.settings.data_dir / "jobs"


def _record(session: Session, background: Background) -> None:
    """Written whole or not at all. A full disk does not stop a job."""
    folder = _folder(session)
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file, new = folder / f"{background.handle}.json", folder / f"{background.handle}.new"
        with os.fdopen(os.open(new, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600), "w") as stream:
            json.dump(masked_facts(session.masked, _facts(session, background)), stream)
        new.replace(file)


def _records(session: Session) -> list[dict[str, Any]]:
    """The records of this project, newest first; old ones are removed on the way."""
    found = []
    for file in _folder(session).glob("*.json"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            record = json.loads(file.read_text())
            if time.time() - float(record["at"]) > _KEPT_S:
                file.unlink()
            elif record["project"] == session.project:
                found.append(record)
    return sorted(found, key=lambda record: -float(record["at"]))
