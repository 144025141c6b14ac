"""Kernels and scripts inside the sandbox, seen from the host: start, lease, run, capture."""

__all__ = ["languages", "registry", "runner", "running", "session", "specs"]
