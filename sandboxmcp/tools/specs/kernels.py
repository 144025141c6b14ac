"""The tool `ctx_kernels`: named kernels. `sandboxmcp kernels` is not this tool: it acts on the kernels of other processes."""

from __future__ import annotations

from sandboxmcp.tools.specs.common import BUDGET_TOKENS, KERNEL
from sandboxmcp.tools.toolspec import Argument, ToolSpec

SPEC = ToolSpec(
    name="ctx_kernels",
    toolset="execution",
    description="Named kernels: memory, age, variables.",
    summary="named kernels with their memory, age and variables: list, interrupt, restart, stop",
    runs="sandboxmcp.tools.kernels:kernels",
    is_read_only=False,
    is_destructive=True,
    is_open_world=False,
    arguments=(
        Argument("action", "string", choices=("list", "interrupt", "restart", "stop")),
        KERNEL,
        BUDGET_TOKENS,
    ),
)
