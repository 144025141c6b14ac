"""The interactive shell: a person at a terminal, or a pipe, on a sandboxed kernel."""

__all__ = ["app", "kernel_targets"]
