"""The execution toolset: `ctx_batch_execute`, `ctx_execute` and `ctx_execute_file`."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio.to_thread

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.model import BYTE_ORDER_MARK, BoundFile, Script
from sandboxmcp.core.surface import argument
from sandboxmcp.kernels.languages import UnknownLanguage
from sandboxmcp.render.answer import Answer
from sandboxmcp.render.budget import checked_budget
from sandboxmcp.render.fence import clean_label
from sandboxmcp.session import Session
from sandboxmcp.tools.answering import answer_of
from sandboxmcp.tools.files import bound_files
from sandboxmcp.tools.script_runs import Job, Progress, ask_before, no_progress, run_job

_MOST_AT_ONCE = 8


async def batch_execute(
    session: Session,
    commands: Sequence[str | Mapping[str, Any]],
    *,
    queries: Sequence[str] = (),
    intent: str | None = None,
    concurrency: int | None = None,
    timeout_s: float | None = None,
    query_scope: str = "batch",
    stop_on_error: bool = False,
    images: bool = False,
    budget_tokens: int | None = None,
    progress: Progress = no_progress,
) -> Answer:
    """Run the scripts, fresh or in the kernels that they name, and answer the queries from what they printed.

    A command is a shell command or `{label?, command | code, language?, timeout_s?, kernel?}`.

    Raises:
        UsageError: nothing runs when an argument is wrong. A language that is unknown or not installed costs its own script alone.
        SandboxUnavailable, BrokenPack, StoreError: nothing could run or be kept.
    """
    budget = _budget(session, budget_tokens)
    if not commands:
        raise UsageError("commands is empty", 'Give at least one, such as ["ls -la"].')
    scripts = await anyio.to_thread.run_sync(_commands, session, commands, timeout_s)
    job = Job(
        scripts,
        tuple(script.label for script in scripts),
        tuple(f"batch:{script.label}" for script in scripts),
        "batch",
        batch=uuid.uuid4().hex[:12],
        concurrency=_concurrency(session, concurrency),
        stop_on_error=stop_on_error,
        notes=_notes(concurrency),
    )
    items = await run_job(session, job, progress)
    answering = partial(
        answer_of, session, job, items, _asked(intent, queries), budget, everywhere=query_scope == "all", images=images
    )
    return await anyio.to_thread.run_sync(answering)


async def execute(
    session: Session,
    code: str,
    *,
    language: str = "python",
    intent: str | None = None,
    queries: Sequence[str] = (),
    timeout_s: float | None = None,
    kernel: str | None = None,
    cwd: str | None = None,
    background: bool = False,
    images: bool = False,
    budget_tokens: int | None = None,
    progress: Progress = no_progress,
) -> Answer:
    """Run one script, fresh or in the kernel of that name; in the background the answer is a job's handle. Raises as above."""
    budget = _budget(session, budget_tokens)
    given = partial(_script, session, "", code, language, timeout_s, kernel=kernel, cwd=cwd)
    script = await anyio.to_thread.run_sync(given)
    job = Job((script,), ("",), (f"execute:{language}",), "execute", batch=uuid.uuid4().hex[:12])
    asked = _asked(intent, queries)
    if background:
        return await in_background(session, job, asked, images)
    items = await run_job(session, job, progress)
    return await anyio.to_thread.run_sync(partial(answer_of, session, job, items, asked, budget, images=images))


async def execute_file(
    session: Session,
    code: str,
    *,
    path: str | None = None,
    paths: Sequence[str] = (),
    language: str = "python",
    intent: str | None = None,
    queries: Sequence[str] = (),
    timeout_s: float | None = None,
    images: bool = False,
    budget_tokens: int | None = None,
    progress: Progress = no_progress,
) -> Answer:
    """Run the script once for each file, which is bound in it. Raises as above, also when a file may not be read."""
    budget = _budget(session, budget_tokens)

    def job() -> Job:
        known = session.runner.binding_languages()
        if language in session.runner.languages() and language not in known:
            raise UsageError(f"a file cannot be bound in {language}", f"Languages that can: {', '.join(known)}.")
        files, left_out = bound_files(session, path, paths)
        scripts = tuple(_script(session, name, code, language, timeout_s, file=file) for name, file in files)
        labels = tuple(clean_label(name, "file", session.masked) for name, _ in files)
        single = len(files) == 1
        return Job(
            scripts,
            ("",) if single else labels,
            tuple(f"file:{label}" for label in labels),
            "execute" if single else "batch",
            batch=uuid.uuid4().hex[:12],
            concurrency=_concurrency(session, None),
            notes=left_out,
        )

    made = await anyio.to_thread.run_sync(job)
    items = await run_job(session, made, progress)
    return await anyio.to_thread.run_sync(partial(answer_of, session, made, items, _asked(intent, queries), budget, images=images))


async def in_background(session: Session, job: Job, asked: Sequence[str], images: bool) -> Answer:
    """Start the job and return its handle."""
    from sandboxmcp.tools.jobs import Background, new_handle, start

    background = Background(new_handle(), job, asked, images)
    background.job = replace(job, on_begin=background.begun)
    await ask_before(session, job)
    return await start(session, background)


def _budget(session: Session, budget_tokens: int | None) -> int:
    return checked_budget(session.settings.budget_tokens if budget_tokens is None else budget_tokens)


def _asked(intent: str | None, queries: Sequence[str]) -> list[str]:
    """The questions, each once; the intent is one of them."""
    return list(dict.fromkeys(text.strip() for text in (intent or "", *queries) if text.strip()))


def _concurrency(session: Session, asked: int | None) -> int:
    return int(min(asked or session.settings.concurrency or os.cpu_count() or 1, _MOST_AT_ONCE))


def _notes(concurrency: int | None) -> tuple[str, ...]:
    too_many = concurrency is not None and concurrency > _MOST_AT_ONCE
    return (f"concurrency {concurrency} is more than {_MOST_AT_ONCE}, which was used",) if too_many else ()


def _commands(session: Session, commands: Sequence[str | Mapping[str, Any]], timeout_s: float | None) -> tuple[Script, ...]:
    """Blocking: the first look at the languages imports what runs them."""
    return tuple(_command(session, one, number, timeout_s) for number, one in enumerate(commands, 1))


def _command(session: Session, one: str | Mapping[str, Any], number: int, timeout_s: float | None) -> Script:
    fields: Mapping[str, Any] = {"command": one} if isinstance(one, str) else one
    code = fields.get("command", fields.get("code"))
    if not isinstance(code, str) or ("command" in fields and "code" in fields):
        raise UsageError(f"commands[{number - 1}] wants either `command` or `code`")
    label = clean_label(fields.get("label", ""), f"#{number}", session.masked)
    language = fields.get("language", "shell")
    try:
        return _script(session, label, code, language, fields.get("timeout_s", timeout_s), kernel=fields.get("kernel"))
    except UnknownLanguage:
        return Script(label, language[:60], code)  # its outcome says so, as of a language that is not installed; the others run


def _script(
    session: Session,
    label: str,
    code: str,
    language: str,
    timeout_s: float | None,
    *,
    kernel: str | None = None,
    cwd: str | None = None,
    file: BoundFile | None = None,
) -> Script:
    where = f"{label}: " if label else ""
    if language not in session.runner.languages():
        raise UnknownLanguage(language, session.runner.languages())
    code = code.removeprefix(BYTE_ORDER_MARK)
    if "\0" in code:
        raise UsageError(f"{where}the code holds a NUL byte, which no interpreter accepts", "Take it out or write it as \\0.")
    if not code.strip():
        raise UsageError(f"{where}the code is empty", "Give a script that prints what you want to know.")
    seconds = session.settings.timeout_s if timeout_s is None else timeout_s
    if not 0 < seconds <= 86_400:
        raise UsageError(f"{where}{argument('timeout_s')} is {seconds}", "It wants seconds, more than 0 and at most 86,400.")
    if kernel is not None:
        if session.masked(kernel) != kernel:
            raise UsageError(f"{where}the kernel's name looks like a credential", "Names are logged and listed. Choose another.")
        session.runner.check_named(kernel, language)
    return Script(label, language, code, float(seconds), kernel, _working_folder(session, cwd, language), file)


def _working_folder(session: Session, cwd: str | None, language: str) -> str | None:
    """The folder of the workspace that is meant. A link that leads out of it leads nowhere inside."""
    if cwd is None:
        return None
    workspace = os.path.realpath(session.settings.workspace)
    folder = "" if "\0" in cwd else os.path.realpath(os.path.join(workspace, cwd))
    if not (folder == workspace or folder.startswith(workspace + "/")) or not os.path.isdir(folder):
        raise UsageError(f"cwd {cwd[:200]!r} is no folder of the project", f"It is relative to {workspace}.")
    if language not in session.runner.binding_languages():
        raise UsageError(f"cwd cannot be set for {language}", "Change the folder in the code.")
    return folder
