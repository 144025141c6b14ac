"""What a script displays: its text goes to stdout, in order; what else there is of it goes out as a message, up to a size.

The host takes no larger message: it would cut the connection, and everything that follows would be lost with it.
"""

from __future__ import annotations

import json
import sys

from ipykernel.displayhook import ZMQShellDisplayHook
from ipykernel.zmqshell import ZMQDisplayPublisher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_BYTES = 32 << 20
"""Of the data of one message. The host has it several times over while it reads it, and may grow by 160 MiB."""


class DisplayHook(ZMQShellDisplayHook):
    """Writes the text form of a result to stdout; sends what else it has as a message."""

    def finish_displayhook(self) -> None:
        content = self.msg["content"] if self.msg else {}
        if text := content.get("data", {}).pop("text/plain", None):
            print(text, flush=True)
        content["data"] = sendable(content.get("data", {}))
        if content["data"]:
            super().finish_displayhook()
        self.msg = None


class DisplayPublisher(ZMQDisplayPublisher):
    """The same for `display(…)`."""

    def publish(self, data: dict[str, Any], metadata: dict[str, Any] | None = None, *more: Any, **rest: Any) -> None:
        if text := data.get("text/plain"):
            print(text, flush=True)
        rich = sendable({mime: value for mime, value in data.items() if mime != "text/plain"})
        if rich:
            super().publish(rich, metadata, *more, **rest)


def sendable(data: dict[str, Any]) -> dict[str, Any]:
    """The forms of a result that fit into a message together, small ones first; what is left out is told on stderr."""
    sizes = {mime: size_of(value) for mime, value in data.items()}
    room = MOST_BYTES
    left_out: set[str] = set()
    for mime in sorted(sizes, key=sizes.__getitem__):
        if sizes[mime] <= room:
            room -= sizes[mime]
        else:
            left_out.add(mime)
            print(f"sandboxmcp: {mime} was not displayed: {told(sizes[mime])}", file=sys.stderr, flush=True)
    return {mime: value for mime, value in data.items() if mime not in left_out}


def told(size: int) -> str:
    return f"as a message it has {size >> 20:,} MiB, the most is {MOST_BYTES >> 20}; save it to a file instead"


def size_of(value: object) -> int:
    """Bytes in a message, nearly: bytes travel as base64, what is no text as JSON."""
    if isinstance(value, bytes):
        return len(value) * 4 // 3
    return len(value) if isinstance(value, str) else len(json.dumps(value, default=str))
