"""What the agent and the terminal call: judge, run, remember, answer. One module per toolset; no MCP and no typer here."""
