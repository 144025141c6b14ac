"""The tool `ctx_execute`, at the terminal `run`: one script."""

from __future__ import annotations

from dataclasses import replace

from sandboxmcp.tools.specs.common import BUDGET_TOKENS, CODE, IMAGES, INTENT, KERNEL, LANGUAGE, LANGUAGES, QUERIES, TIMEOUT
from sandboxmcp.tools.toolspec import Argument, Command, ToolSpec

_RUN = Command(
    "run",
    "Run a script in the sandbox; show what an agent would see.",
    parameters=(
        Argument("file", "string", help="A script, or - for standard input.", is_positional=True),
        Argument("code", "string", help="The script itself.", flags=("-c", "--code")),
        "language",
        "kernel",
        "queries",
        "timeout_s",
        "budget_tokens",
    ),
    settings=("workspace", "data_dir", "policy_packs"),
)

SPEC = ToolSpec(
    name="ctx_execute",
    toolset="execution",
    description=(
        "Run one script in the sandbox. Output up to 5000 bytes comes back whole, more is stored and only what matches "
        "intent/queries (else head, tail, errors) is shown."
    ),
    summary=(
        "runs one script, fresh or in a named kernel, at once or in the background; up to 5,000 bytes of output come back whole"
    ),
    runs="sandboxmcp.tools.execution:execute",
    is_read_only=False,
    is_destructive=True,
    is_open_world=True,
    arguments=(
        CODE,
        replace(
            LANGUAGE,
            choices=LANGUAGES,
            is_open=True,
            description="default python",
            help="Language; default: by the file's ending or first line, else python.",
            flags=("--lang", "--language"),
        ),
        INTENT,
        replace(QUERIES, help="What to look for in the output; repeatable.", flags=("-q", "--query")),
        replace(TIMEOUT, help="Seconds until it is stopped; default 120.", flags=("--timeout",)),
        replace(
            KERNEL,
            description="a name: variables live on between calls",
            help="Named kernel of a running server of this project; else one that ends with this command.",
        ),
        Argument("cwd", "string", is_hidden=True),
        Argument("background", "boolean", "returns a job at once", is_hidden=True),
        IMAGES,
        BUDGET_TOKENS,
    ),
    commands=(_RUN,),
)
