"""What the agent and the terminal call: judge, run, remember, answer. One module per toolset; no MCP and no typer here."""

__all__ = [
    "admin",
    "answer",
    "asking",
    "budget",
    "condensed",
    "counting",
    "execution",
    "fence",
    "fetching",
    "interactive",
    "jobs",
    "kernels",
    "knowledge",
    "reading",
    "recalling",
    "receipt",
    "running",
    "sharing",
]
