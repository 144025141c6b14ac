"""Python's own report of an exception, without the frames of the machinery that runs a script."""

from __future__ import annotations

import os
import traceback

import ipykernel
import IPython

SCRIPT_NAME = "<script>"
_MACHINERY = tuple(os.path.dirname(file) for file in (IPython.__file__, ipykernel.__file__, __file__))
"""Where frames come from that are no concern of the script's author."""


def script_traceback(etype: type[BaseException], evalue: BaseException) -> str:
    """Python's own report of an exception, from the script's first frame on."""
    report = traceback.TracebackException(etype, evalue, evalue.__traceback__, compact=True)
    trim(report)
    return "".join(report.format())


def trim(report: traceback.TracebackException) -> None:
    """Drop the frames of IPython and of ours around the script's, in the exception and in those that it came from."""
    first = next((at for at, frame in enumerate(report.stack) if frame.filename == SCRIPT_NAME), None)
    if first is not None:
        del report.stack[:first]
        while len(report.stack) > 1 and report.stack[-1].filename.startswith(_MACHINERY):
            del report.stack[-1]
    elif report.exc_type is not None and issubclass(report.exc_type, SyntaxError):
        report.stack.clear()
    for other in (report.__cause__, report.__context__):
        if other is not None:
            trim(other)
