"""What the agent and the terminal call: judge, run, remember, answer. One module per toolset; no MCP and no typer here."""

__all__ = [
    "admin",
    "asking",
    "execution",
    "fetching",
    "interactive",
    "jobs",
    "kernel_client",
    "kernel_rpc",
    "kernels",
    "knowledge",
    "reading",
    "recalling",
    "script_runs",
    "usage_stats",
]
