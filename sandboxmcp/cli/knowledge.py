"""`sandboxmcp search | index | read | sources`: what is stored, from the terminal."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from sandboxmcp.cli.commands import command, show, use
from sandboxmcp.core.settings import Settings
from sandboxmcp.render.answer import Answer

_Budget = Annotated[int | None, typer.Option("--budget", help="Tokens of the answer; default 2,000.", show_default=False)]
_Source = Annotated[str | None, typer.Option(help="Only sources whose label contains this.", show_default=False)]


def add_to(group: typer.Typer) -> None:
    """Register the commands."""

    @command(group, "search")
    def search(
        settings: Settings,
        as_json: bool,
        queries: Annotated[list[str], typer.Argument(help="One or more questions.", show_default=False)],
        source: _Source = None,
        kind: Annotated[str | None, typer.Option(help="code, prose, log or data.", show_default=False)] = None,
        limit: Annotated[int | None, typer.Option(help="At most this many passages per query.", show_default=False)] = None,
        sort: Annotated[str, typer.Option(help="relevance or recent.")] = "relevance",
        scope: Annotated[str, typer.Option(help="project or all.")] = "project",
        budget: _Budget = None,
    ) -> int:
        """Search what is stored; passages are cited handle:first-last."""
        given = {"queries": queries, "source": source, "kind": kind, "limit": limit, "sort": sort, "scope": scope}
        return _tell("ctx_search", "knowledge", "search", settings, as_json, given, budget)

    @command(group, "index", acts=("workspace", "data_dir", "ingest_roots"))
    def index(
        settings: Settings,
        as_json: bool,
        paths: Annotated[list[str], typer.Argument(help="Files, folders or globs; or - for standard input.", show_default=False)],
        source: Annotated[str | None, typer.Option(help="The label; default: the path.", show_default=False)] = None,
        include: Annotated[list[str] | None, typer.Option(help="Only files that match; repeatable.")] = None,
        exclude: Annotated[list[str] | None, typer.Option(help="No files that match; repeatable.")] = None,
        max_files: Annotated[int, typer.Option(help="At most this many files.")] = 2_000,
        budget: _Budget = None,
    ) -> int:
        """Store texts for search; folders as git would see them."""
        what = {"content": sys.stdin.buffer.read().decode("utf-8", "replace")} if paths == ["-"] else {"path": paths[0]}
        given = {**what, "source": source, "include": include, "exclude": exclude, "max_files": max_files}
        return _tell("ctx_index", "indexing", "index", settings, as_json, given, budget, more=tuple(paths[1:]))

    @command(group, "read")
    def read(
        settings: Settings,
        as_json: bool,
        handle: Annotated[
            str | None, typer.Argument(help="A handle or a citation such as HANDLE:98-102.", show_default=False)
        ] = None,
        from_line: Annotated[int | None, typer.Option("--from", help="First line.", show_default=False)] = None,
        to_line: Annotated[int | None, typer.Option("--to", help="Last line.", show_default=False)] = None,
        around: Annotated[
            str | None, typer.Option(help="A citation, shown with 10 lines on each side.", show_default=False)
        ] = None,
        grep: Annotated[str | None, typer.Option(help="Only lines that hold this text.", show_default=False)] = None,
        cursor: Annotated[str | None, typer.Option(help="Where the page before ended.", show_default=False)] = None,
        budget: _Budget = None,
    ) -> int:
        """Show a stored text, page by page."""
        given = {"handle": handle, "from_line": from_line, "to_line": to_line, "around": around, "grep": grep, "cursor": cursor}
        return _tell("ctx_read", "reading", "read", settings, as_json, given, budget)

    @command(group, "sources")
    def sources(
        settings: Settings,
        as_json: bool,
        source: _Source = None,
        forget: Annotated[str | None, typer.Option(help="Forget this handle.", show_default=False)] = None,
        budget: _Budget = None,
    ) -> int:
        """List this project's sources, newest first; or forget one."""
        given = {"action": "forget" if forget else "list", "source": None if forget else source, "handle": forget}
        return _tell("ctx_sources", "knowledge", "sources", settings, as_json, given, budget)

    @command(group, "fetch")
    def fetch(
        settings: Settings,
        as_json: bool,
        urls: Annotated[list[str], typer.Argument(help="One or more URLs.", show_default=False)],
        source: Annotated[str | None, typer.Option(help="The label; default: the URL.", show_default=False)] = None,
        intent: Annotated[str | None, typer.Option(help="What you want to know.", show_default=False)] = None,
        force: Annotated[bool, typer.Option("--force", help="Fetch again what is still young.")] = False,
        budget: _Budget = None,
    ) -> int:
        """Fetch pages and store their text, where the policy allows."""
        given = {"requests": [{"url": url} for url in urls], "source": source, "intent": intent, "force": force}
        return _tell("ctx_fetch_and_index", "fetching", "fetch_blocking", settings, as_json, given, budget)

    @command(group, "purge")
    def purge(
        settings: Settings,
        as_json: bool,
        scope: Annotated[str | None, typer.Argument(help="source, project or all.", show_default=False)] = None,
        source: _Source = None,
        confirm: Annotated[str | None, typer.Option(help="The token of a preview, to delete.", show_default=False)] = None,
        budget: _Budget = None,
    ) -> int:
        """Delete what is stored, after a preview.

        The first call shows what would go and gives the token that does it.
        """
        given = {"scope": scope, "source": source, "confirm": confirm}
        return _tell("ctx_purge", "purging", "purge", settings, as_json, given, budget)


def _tell(
    tool: str, module: str, name: str, settings: Settings, as_json: bool, given: dict[str, Any], budget: int | None, **beyond: Any
) -> int:
    """Check the arguments as the server would, run the tool, print the answer. `beyond`: what only the command line can give."""
    from importlib import import_module

    from sandboxmcp.server.arguments import checked_arguments

    checked = checked_arguments(tool, given) | beyond
    checked["budget_tokens"] = settings.budget_tokens if budget is None else budget
    reply: Answer = use(settings, tool, getattr(import_module(f"sandboxmcp.tools.{module}"), name), **checked)
    show(reply, as_json)
    return 1 if reply.is_error else 0
