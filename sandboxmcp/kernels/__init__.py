"""Kernels and scripts inside the sandbox, seen from the host: start, lease, run, capture."""

__all__ = ["jupyter", "languages", "registry", "runner", "sandbox_session", "script_run"]
