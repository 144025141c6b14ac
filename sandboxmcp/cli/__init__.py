"""The `sandboxmcp` command: one module per command group, heavy imports only inside commands."""

__all__ = ["app", "plain", "quick"]
