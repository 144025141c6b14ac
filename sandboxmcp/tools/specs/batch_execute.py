"""The tool `ctx_batch_execute`: several scripts in one call."""

from __future__ import annotations

from dataclasses import replace

from sandboxmcp.tools.specs.common import BUDGET_TOKENS, CODE, IMAGES, INTENT, KERNEL, LANGUAGE, QUERIES, TIMEOUT
from sandboxmcp.tools.toolspec import Argument, Bare, ToolSpec

_COMMAND = (
    Argument("label", "string"),
    Argument("command", "string", "or code"),
    replace(CODE, required=False),
    replace(LANGUAGE, description="default shell"),
    TIMEOUT,
    KERNEL,
)

SPEC = ToolSpec(
    name="ctx_batch_execute",
    toolset="execution",
    description=(
        "Run several scripts at once, fresh or in a named kernel, in a sandbox without network (the project folder is writable, "
        "at its own path). Output is stored and indexed; back come receipts, small outputs whole, and from large ones the passages "
        "that match queries/intent, cited as handle:first-last. Prefer one batch to many calls; print little."
    ),
    summary="runs several scripts at once, fresh or in the kernels that they name, and answers queries from what they printed",
    runs="sandboxmcp.tools.execution:batch_execute",
    is_read_only=False,
    is_destructive=True,
    is_open_world=True,
    arguments=(
        Argument(
            "commands",
            "objects",
            "a bare string is a shell command",
            required=True,
            fields=_COMMAND,
            bare=Bare("command", "a shell command"),
        ),
        replace(QUERIES, description="answered from the outputs"),
        replace(INTENT, description="what you want to know"),
        Argument("concurrency", "integer", "up to 8", minimum=1),
        replace(TIMEOUT, description="per item, default 120"),
        Argument("query_scope", "string", choices=("batch", "all"), synonyms={"global": "all"}),
        Argument("stop_on_error", "boolean"),
        replace(IMAGES, description="show images inline"),
        replace(BUDGET_TOKENS, description="of the answer, default 2000"),
    ),
)
