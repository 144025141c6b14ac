"""sandboxmcp: a code sandbox for AI agents, spoken to over MCP."""
