"""The tool `ctx_doctor`, at the terminal `doctor`: check what sandboxmcp needs."""

from __future__ import annotations

from sandboxmcp.tools.toolspec import Argument, Command, ToolSpec

_REPAIR = Argument("repair", "boolean", help="Build the store anew from its captures: its index, and a damaged database.")

SPEC = ToolSpec(
    name="ctx_doctor",
    toolset="admin",
    description="Check sandbox, store and policy, with fixes.",
    summary="checks sandbox, store and policy; each failure comes with its fix",
    runs="sandboxmcp.tools.admin:doctor",
    is_read_only=True,
    is_destructive=False,
    is_open_world=False,
    commands=(
        Command(
            "doctor",
            "Check sandbox, store, policy and runtimes, with fixes.",
            parameters=(_REPAIR,),
            settings=("workspace", "data_dir", "policy_packs"),
        ),
    ),
)
