"""The wire: the two ends of a client's connection, standard input and output taken over for the protocol."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import BinaryIO


@dataclass(slots=True)
class Wire:
    """The two ends of the connection."""

    incoming: BinaryIO
    outgoing: BinaryIO
    first: bytes = b""
    """The first line, already read."""
    answered: int | str | None = None
    """The id of the request in it, if it was answered here."""


def take_over() -> Wire:
    """Standard input and output as a wire. Descriptor 0 reads nothing from here on, and descriptor 1 is stderr."""
    wire = Wire(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(nothing, 1)
    os.close(nothing)
    return wire
