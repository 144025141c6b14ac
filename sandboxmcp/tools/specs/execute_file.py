"""The tool `ctx_execute_file`: one script on each of several files."""

from __future__ import annotations

from dataclasses import replace

from sandboxmcp.tools.specs.common import BUDGET_TOKENS, CODE, IMAGES, INTENT, LANGUAGE, QUERIES, TIMEOUT
from sandboxmcp.tools.toolspec import Argument, ToolSpec

SPEC = ToolSpec(
    name="ctx_execute_file",
    toolset="execution",
    description="Run a script on each file; its text is bound as FILE_CONTENT, its path as FILE_PATH, neither is shown.",
    summary=(
        "runs a script on each file of a list or glob: its text is `FILE_CONTENT`, its path `FILE_PATH`, "
        "and neither enters the answer"
    ),
    runs="sandboxmcp.tools.execution:execute_file",
    is_read_only=False,
    is_destructive=True,
    is_open_world=True,
    arguments=(
        Argument("path", "string"),
        Argument("paths", "strings", "or paths and globs"),
        CODE,
        replace(LANGUAGE, description="default python"),
        INTENT,
        QUERIES,
        TIMEOUT,
        IMAGES,
        BUDGET_TOKENS,
    ),
)
