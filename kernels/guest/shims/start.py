#!/opt/sandboxmcp/python -IS
"""Starts shim.py, which the host has compiled: a script that is started itself is compiled anew at each call."""

import marshal
import posix

exec(marshal.loads(posix.read(posix.open("/opt/sandboxmcp/shim", posix.O_RDONLY), 1 << 20)))  # noqa: S302 - a read-only file of the host's
