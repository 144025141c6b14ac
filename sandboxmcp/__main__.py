"""`python -m sandboxmcp` and the `sandboxmcp` command."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """Run the command line and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that is not UTF-8 is no reason to fail
    from sandboxmcp.cli.quick import explain_quickly

    code = explain_quickly(sys.argv[1:])
    if code is None:
        from sandboxmcp.cli.plain import serve_plainly

        code = serve_plainly(sys.argv[1:])
    if code is None:
        from sandboxmcp.cli.app import run_command_line

        code = run_command_line(sys.argv[1:])
    sys.exit(code)


if __name__ == "__main__":
    if not sys.flags.safe_path and sys.path[:1] in ([""], [os.getcwd()]):
        del sys.path[0]  # `-m` put the working folder there, where a script may have left a module of any name
    main()
