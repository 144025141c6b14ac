"""`sandboxmcp workspace diff | apply | discard`: what scripts changed while `workspace_mode` was overlay."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

from sandboxmcp.cli.commands import command
from sandboxmcp.core.settings import Settings
from sandboxmcp.core.text import neutral
from sandboxmcp.render.receipt import counted

_MARKS = {"added": "A", "changed": "M", "deleted": "D", "folder": "A"}


def add_to(group: typer.Typer) -> None:
    """Register the group."""
    workspace = typer.Typer(name="workspace", help="Changes that an overlay keeps aside.", no_args_is_help=True)
    group.add_typer(workspace)

    @command(workspace, "diff")
    def diff(
        settings: Settings,
        as_json: bool,
        patch: Annotated[bool, typer.Option("--patch", help="Show the lines of changed texts.")] = False,
    ) -> int:
        """List what scripts have added (A), changed (M) and deleted (D)."""
        from sandboxmcp.sandbox.overlay.changes import changes
        from sandboxmcp.sandbox.overlay.changes import patch as patch_of
        from sandboxmcp.sandbox.overlay.layer import layer_of

        project = settings.workspace.resolve()
        layer = layer_of(settings.data_dir, project)
        found = list(changes(layer, project))
        lines = []
        for change in found:
            lines.append(_line(change))
            lines += patch_of(layer, project, change) if patch else []
        _tell(as_json, lines or ["no changes"], changes=[asdict(change) for change in found])
        return 0

    @command(workspace, "apply")
    def apply_changes(settings: Settings, as_json: bool) -> int:
        """Carry the changes over into the project, protected paths left out, and forget them."""
        from sandboxmcp.sandbox.overlay.apply import apply
        from sandboxmcp.sandbox.overlay.layer import layer_of, settle

        project = settings.workspace.resolve()
        layer = layer_of(settings.data_dir, project)
        done, skipped = apply(layer, project) if layer.exists() else ([], [])
        settle(layer)
        lines = [_line(change) for change in done] + [f"left out: {_line(change)}" for change in skipped]
        _tell(as_json, lines or ["no changes"], applied=[asdict(one) for one in done], left_out=[asdict(one) for one in skipped])
        return 0

    @command(workspace, "discard")
    def discard_changes(settings: Settings, as_json: bool) -> int:
        """Forget the changes."""
        from sandboxmcp.sandbox.overlay.changes import changes
        from sandboxmcp.sandbox.overlay.layer import discard, layer_of

        project = settings.workspace.resolve()
        layer = layer_of(settings.data_dir, project)
        number = len(list(changes(layer, project)))
        discard(layer)
        _tell(as_json, [f"{counted(number, 'change')} discarded"], discarded=number)
        return 0


def _line(change: Any) -> str:
    return f"{_MARKS[change.kind]} {change.path}{'/' if change.kind == 'folder' else ''}"


def _tell(as_json: bool, lines: list[str], **facts: Any) -> None:
    """Names and texts are the scripts' own: nothing of them reaches the terminal raw."""
    print(json.dumps({"ok": True, **facts}) if as_json else "\n".join(neutral(line).replace("\n", " ") for line in lines))
