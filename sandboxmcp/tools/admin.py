"""The administration toolset: `ctx_stats` and `ctx_doctor`."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import anyio.to_thread

from sandboxmcp.core.errors import SandboxmcpError
from sandboxmcp.core.settings import misspelt_variables
from sandboxmcp.journal import journal
from sandboxmcp.render.answer import Answer, answer
from sandboxmcp.render.fence import one_line
from sandboxmcp.render.receipt import counted
from sandboxmcp.sandbox.probe import Check, probe_sandbox
from sandboxmcp.session import Session

if TYPE_CHECKING:
    from sandboxmcp.store.salvage import Salvaged

_SCARCE = 512 << 20
"""Bytes of free disk under which it is told how many there are."""


def stats(session: Session) -> Answer:
    """Calls, bytes captured and returned per tool: what was captured and not returned was kept out of the context. Blocking."""
    rows = session.store.usage()
    lines = [
        f"{row.tool}: {counted(row.calls, 'call')}, {row.bytes_captured} B captured, {row.bytes_returned} B returned"
        for row in rows
    ]
    captured, returned = sum(row.bytes_captured for row in rows), sum(row.bytes_returned for row in rows)
    kept_out = sum(max(row.bytes_captured - row.bytes_returned, 0) for row in rows)
    lines.append(f"all: {captured} B captured, {returned} B returned, {kept_out} B kept out" if rows else "no calls yet")
    facts = {
        row.tool: {"calls": row.calls, "captured_bytes": row.bytes_captured, "returned_bytes": row.bytes_returned} for row in rows
    }
    return answer(lines, session.settings.budget_tokens, {"tools": facts, "kept_out_bytes": kept_out})


async def doctor(session: Session) -> Answer:
    """Every check with its result, and for each failure the exact fix. An error result when one fails that is needed."""
    checks = await anyio.to_thread.run_sync(_checks, session)
    if all(check.ok or check.optional for check in checks):
        checks += await _runtimes(session)
        checks += [_work(session)]
    lines = [line for check in checks for line in _told(check)]
    facts = [asdict(check) for check in checks]
    healthy = all(check.ok or check.optional for check in checks)
    missing = [check.name.removeprefix("runtime ") for check in checks if check.name.startswith("runtime") and not check.ok]
    well = f"all well; without {', '.join(missing)}" if missing else "all well"
    lines.append(well if healthy else "not well: see the fixes above")
    return answer(lines, session.settings.budget_tokens, {"ok": healthy, "checks": facts}, is_error=not healthy)


def repair(session: Session) -> Answer:
    """The store's index, and a damaged database before it, built anew from the captures; says what was lost. Blocking.

    Raises:
        StoreError: it cannot be written, or another process has a damaged one open.
    """
    from sandboxmcp.store.salvage import salvage

    damaged = salvage(session.settings.data_dir)
    done = session.store.repair()
    lines = [] if damaged is None else [_salvaged(damaged)]
    lines += [f"indexed {counted(done.sources, 'source')} anew from the captures"]
    lines += [f"SQLite said of the file: {one_line(text, 300)}" for text in done.damage]
    lines += [f"lost, its capture is gone: {handle}" for handle in done.lost]
    facts = {"sources": done.sources, "lost": list(done.lost), "damage": list(done.damage)}
    return answer(lines, session.settings.budget_tokens, facts, is_error=bool(done.lost))


def _salvaged(one: Salvaged) -> str:
    nameless = f", and {counted(one.nameless, 'capture')} without its row: search with scope=all" if one.nameless else ""
    return f"the database was damaged: {counted(one.sources, 'source')} could be read{nameless}; the old file is {one.aside}"


def _told(check: Check) -> Sequence[str]:
    line = f"{'ok' if check.ok else 'no' if check.optional else 'FAILED'} {check.name}: {one_line(check.detail, 300)}"
    return [line] if check.ok or not check.fix else [line, f"  fix: {one_line(check.fix, 600)}"]


def _checks(session: Session) -> list[Check]:
    """What everything else needs."""
    store = _tried("store", lambda: _store(session))
    policy = _tried("policy", lambda: f"{counted(len(session.engine.packs), 'pack')} of rules")
    return [*probe_sandbox(session.settings), _sqlite(), store, policy, *_settings()]


def _settings() -> list[Check]:
    """One that says no for each variable that is called like a setting and is none."""
    fix = "Correct its name, or unset it."
    return [Check("settings", False, sentence, fix, optional=True) for sentence in misspelt_variables(os.environ)]


async def _runtimes(session: Session) -> list[Check]:
    """A check for each language, tried inside the sandbox. Python is what runs this; the others are needed by who uses them."""
    try:
        runner = await anyio.to_thread.run_sync(lambda: session.runner)
        async with runner.session() as sandbox:
            found = await sandbox.runtimes()
    except SandboxmcpError as error:
        return [Check("runtimes", False, error.what, error.fix)]
    python = Check("runtime python", True, sys.executable)
    return [python, *(_runtime(f"runtime {language}", one) for language, one in sorted(found.items()))]


def _work(session: Session) -> Check:
    """What this process and its sandbox have at work; not well where a background loop has ended."""
    own, sandbox = session.backend.statistics, session.runner.running
    parts = [
        counted(own.sessions, "session"),
        counted(own.stores, "store"),
        counted(own.readers, "reader process", "reader processes"),
    ]
    if sandbox is None:
        return Check("work", True, ", ".join(parts))
    now = sandbox.statistics
    parts += [counted(now.running, "running script"), counted(now.named, "named kernel"), counted(now.watched, "watched item")]
    parts += ["a kernel ready"] * now.has_spare + [f"{now.tidying} tidying up"] * (now.tidying > 0)
    dead = [f"{loop.name} ({loop.error})" for loop in now.loops if not loop.alive]
    parts += [f"loops: {', '.join(loop.name for loop in now.loops if loop.alive) or 'none'}", *(f"ended: {one}" for one in dead)]
    return Check("work", not dead, ", ".join(parts), "The next script gets a new sandbox." if dead else "", optional=True)


def _runtime(name: str, found: str | SandboxmcpError) -> Check:
    return Check(name, True, found) if isinstance(found, str) else Check(name, False, "not installed", found.fix, optional=True)


def _sqlite() -> Check:
    """FTS5 and its trigram tokenizer, by using them."""
    try:
        with sqlite3.connect(":memory:") as database:
            database.execute("CREATE VIRTUAL TABLE probe USING fts5(text, tokenize = 'trigram')")
    except sqlite3.Error as error:
        return Check("sqlite", False, f"{sqlite3.sqlite_version}: {error}", "Use a Python whose SQLite is 3.34 or newer with FTS5.")
    return Check("sqlite", True, f"{sqlite3.sqlite_version} with FTS5 and trigram", "")


def _store(session: Session) -> str:
    """Where it is, and what it waits for. Raises StoreError also when it takes nothing in: nothing can be run then."""
    folder = session.store.captures_dir.parent.parent
    free = shutil.disk_usage(folder).free
    waiting = session.store.unadopted
    parts = [str(folder)]
    parts += [f"only {free >> 20} MiB are free there"] * (free < _SCARCE)
    parts += [f"{counted(waiting, 'captured output')} could not be stored yet"] * (waiting > 0)
    runs, _ = journal.count(session.store.database, journal.Wanted(None))
    parts += [f"{counted(runs, 'run')} in the journal" if session.settings.journal else "no journal is kept"]
    outdated = session.store.renewing.outdated()
    parts += [f"{counted(outdated, 'source')} cut by an earlier version, to be cut anew beside searches"] * (outdated > 0)
    return ", ".join(parts)


def _tried(name: str, attempt: Callable[[], str]) -> Check:
    try:
        return Check(name, True, attempt(), "")
    except SandboxmcpError as error:
        return Check(name, False, error.what, error.fix)
