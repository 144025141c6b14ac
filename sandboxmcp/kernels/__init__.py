"""Kernels and scripts inside the sandbox, seen from the host: start, lease, run, capture."""
