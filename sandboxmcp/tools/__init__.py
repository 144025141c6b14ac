"""What the agent and the terminal call: judge, run, remember, answer. One module per toolset; no MCP and no typer here."""

__all__ = [
    "admin",
    "arguments",
    "asking",
    "calls",
    "execution",
    "interactive",
    "kernel_client",
    "kernel_rpc",
    "kernels",
    "knowledge",
    "reading",
    "recalling",
    "registry",
    "run_log",
    "surfaces",
    "toolspec",
    "usage_stats",
]
