"""`sandboxmcp policy`: ask the rules, test them, compare them, and read what they said; nothing is run."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from sandboxmcp.cli import packs
from sandboxmcp.cli.commands import command
from sandboxmcp.cli.judging import Piece, pieces_of
from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.model import Setting, Verdict
from sandboxmcp.core.settings import Settings, load_settings
from sandboxmcp.session import Session

_ACTS = ("policy_packs", "workspace")
_FAILED = 1
_DENIED = 3
_SETTINGS: dict[str, Setting] = {"kernel": "kernel", "host": "host"}

Where = Annotated[str, typer.Option("--setting", help="Where it would run: kernel, or the agent's own host shell.")]
Language = Annotated[str | None, typer.Option("--language", "--lang", help="Language; default: by the file's ending, else shell.")]
Sarif = Annotated[bool, typer.Option("--sarif", help="Print SARIF 2.1.0.", show_default=False)]


def add_to(group: typer.Typer) -> None:
    """Register the group."""
    policy = typer.Typer(name="policy", help="What may run: ask the policy without running anything.", no_args_is_help=True)
    group.add_typer(policy)
    command(policy, "check", _ACTS)(_check)
    command(policy, "explain", _ACTS)(_explain)
    command(policy, "test", _ACTS)(_test)
    command(policy, "list", _ACTS)(packs.list_packs)
    command(policy, "show", _ACTS)(packs.show_pack)
    command(policy, "diff", _ACTS)(_diff)
    command(policy, "log", _ACTS)(_log)


def _check(
    settings: Settings,
    as_json: bool,
    files: Annotated[list[str], typer.Argument(help="Scripts and notebooks, or - for standard input.", show_default=False)],
    language: Language = None,
    setting: Where = "kernel",
    sarif: Sarif = False,
) -> int:
    """Print the verdict on each script or notebook cell with its rule and line; exit code 3 unless all may run."""
    engine, where = Session(settings).engine, _setting(setting)
    judged = [(piece, engine.judge(piece.code, piece.language, where)) for file in files for piece in pieces_of(file, language)]
    denied = [verdict for _, verdict in judged if verdict.action != "allow"]
    if sarif:
        from sandboxmcp.policy.reports import sarif as report

        print(report([_finding(piece, verdict) for piece, verdict in judged if verdict.action != "allow"]))
    elif as_json and len(judged) == 1:
        print(json.dumps({"ok": not denied, **asdict(judged[0][1])}))
    elif as_json:
        rows = [{"file": piece.file, "cell": piece.cell, **asdict(verdict)} for piece, verdict in judged]
        print(json.dumps({"ok": not denied, "verdicts": rows}))
    else:
        for piece, verdict in judged:
            print(_line(verdict) if len(judged) == 1 else f"{piece.title}: {_line(verdict)}")
    return _DENIED if denied else 0


def _explain(
    settings: Settings,
    as_json: bool,
    code: Annotated[str, typer.Argument(help="The code itself; put -- before it.", show_default=False)],
    language: Language = None,
    setting: Where = "kernel",
) -> int:
    """Print the verdict on a piece of code: the rule, why, what to do instead, what cannot be known, what finds no network."""
    from sandboxmcp.cli.quick import remember

    engine = Session(settings).engine
    where, spoken = _setting(setting), language or "shell"
    verdict = engine.judge(code, spoken, where)
    outlook = engine.outlook(code, spoken) if where == "kernel" and verdict.action == "allow" else ()
    if settings == load_settings():  # what flags changed holds for this call alone
        remember(engine, settings)
    if as_json:
        facts = asdict(verdict)
        print(json.dumps({"ok": verdict.action == "allow", "verdict": facts.pop("action"), **facts, "outlook": outlook}))
    else:
        print(_line(verdict))
        for part in verdict.unknown:
            print(f"unknown: {part}")
        for part in outlook:
            print(part)
    return 0 if verdict.action == "allow" else _DENIED


def _test(
    settings: Settings,
    as_json: bool,
    packs: Annotated[list[str] | None, typer.Argument(help="Packs; default: those in force.", show_default=False)] = None,
    junit: Annotated[bool, typer.Option("--junit", help="Print JUnit XML.", show_default=False)] = False,
    sarif: Sarif = False,
) -> int:
    """Judge every example inside the packs; exit code 1 when one disagrees, 6 when a pack is broken."""
    from sandboxmcp.policy import reports
    from sandboxmcp.policy.sources import PROJECT_FOLDER, user_folder
    from sandboxmcp.policy.trials import trials_of

    project = None if packs else settings.workspace / PROJECT_FOLDER
    trials = trials_of(packs or [*settings.policy_packs, "secrets"], [user_folder()], project)
    failed = [trial for trial in trials if trial.problem]
    if junit:
        print(reports.junit(trials))
    elif sarif:
        print(reports.sarif(reports.findings_of(trials)))
    elif as_json:
        rows = [{"example": trial.name, "file": str(trial.file), "line": trial.line, "problem": trial.problem} for trial in failed]
        print(json.dumps({"ok": not failed, "examples": len(trials), "failed": rows}))
    else:
        for trial in failed:
            print(f"{trial.file}:{trial.line}: {trial.name}: {trial.problem}")
        print(f"{len(trials)} examples, {len(failed)} disagree")
    return _FAILED if failed else 0


def _diff(
    settings: Settings,
    as_json: bool,
    old: Annotated[str, typer.Argument(help="A pack, by name or path.", show_default=False)],
    new: Annotated[str, typer.Argument(help="The pack to compare it with.", show_default=False)],
    corpus: Annotated[
        Path | None, typer.Option(help="File of commands, one a line; default: the examples of both packs.", show_default=False)
    ] = None,
    language: Language = None,
    setting: Where = "kernel",
) -> int:
    """Print which commands get another verdict from the new pack than from the old one; exit code 1 when some do."""
    from sandboxmcp.policy.engine import load_engine
    from sandboxmcp.policy.sources import user_folder

    engines = [load_engine([name], [user_folder()]) for name in (old, new)]
    where = _setting(setting)
    if corpus is None:
        examples = [example for engine in engines for pack in engine.packs for rule in pack.rules for example in rule.examples]
        codes = list(dict.fromkeys((example.code, example.language) for example in examples))
    else:
        codes = [(line, language or "shell") for line in _lines(corpus)]
    rows = []
    for code, spoken in codes:
        before, after = (engine.judge(code, spoken, where) for engine in engines)
        if before.action != after.action:
            rows.append(
                {"code": code, "language": spoken, "old": before.action, "new": after.action, "rule": after.rule or before.rule}
            )
    if as_json:
        print(json.dumps({"ok": not rows, "judged": len(codes), "changed": rows}))
    else:
        for row in rows:
            print(f"{row['old']} -> {row['new']} ({row['rule']}): {' '.join(str(row['code']).split())}")
        print(f"{len(codes)} judged, {len(rows)} changed")
    return _FAILED if rows else 0


def _log(
    settings: Settings,
    as_json: bool,
    last: Annotated[int, typer.Option("-n", "--last", help="Lines from the end; 0: all.")] = 50,
    denied: Annotated[bool, typer.Option("--denied", help="Only what was not allowed.", show_default=False)] = False,
) -> int:
    """Print what was judged and what was let out, oldest first."""
    from sandboxmcp.broker.broker import AUDIT_FILE

    lines = _lines(settings.data_dir / AUDIT_FILE) if (settings.data_dir / AUDIT_FILE).exists() else []
    rows = [row for line in lines if (row := _row(line)) and not (denied and row.get("verdict") == "allow")]
    shown = rows[-last:] if last else rows
    if as_json:
        print(json.dumps({"ok": True, "events": shown}))
    for row in [] if as_json else shown:
        print(_entry(row))
    return 0


def _entry(row: dict[str, Any]) -> str:
    from datetime import datetime

    when = datetime.fromtimestamp(float(row.get("time", 0))).isoformat(timespec="seconds")
    rest = {name: value for name, value in row.items() if name not in ("time", "event") and value not in (None, "", 0, False)}
    return " ".join([when, str(row.get("event")), *(f"{name}={_value(value)}" for name, value in rest.items())])


def _value(value: Any) -> str:
    """On one line, without what steers a terminal, and quoted where blanks could pass for more of the log: scripts choose some."""
    from sandboxmcp.render.fence import one_line

    text = one_line(str(value), 500)
    return json.dumps(text, ensure_ascii=False) if " " in text else text


def _row(line: str) -> dict[str, Any] | None:
    """One line of the log; None for one that was cut short by a full disk."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _lines(file: Path) -> list[str]:
    try:
        return [line for line in file.read_text(errors="replace").splitlines() if line.strip()]
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None


def _setting(name: str) -> Setting:
    if name not in _SETTINGS:
        raise UsageError(f"--setting is {name!r}", "Choose kernel or host.")
    return _SETTINGS[name]


def _finding(piece: Piece, verdict: Verdict) -> Any:
    from sandboxmcp.policy.reports import Finding

    level = "error" if verdict.action == "deny" else "warning"
    rule = f"{verdict.pack}/{verdict.rule}" if verdict.rule else "unknown"
    where = f"cell {piece.cell}: " if piece.cell is not None else ""
    return Finding(rule, level, f"{where}{verdict.because} {verdict.instead}".strip(), piece.file, verdict.line or 1)


def _line(verdict: Verdict) -> str:
    rule = f" by {verdict.pack}/{verdict.rule}" if verdict.rule else ""
    line = f" at line {verdict.line}" if verdict.line else ""
    return f"{verdict.action}{rule}{line}. {verdict.because} {verdict.instead}".rstrip(" .") + "."
