"""Standard input and output taken over for the protocol, the client greeted, and only then the SDK imported.

From here on descriptor 0 reads nothing and descriptor 1 is stderr: no child of ours can eat the protocol and no stray
print can break it.
"""

from __future__ import annotations

import json
import logging
import select
import sys
import threading
from importlib import import_module

from sandboxmcp.core.settings import Settings
from sandboxmcp.server.instructions import greeting
from sandboxmcp.server.wire import Wire, take_over


def serve_stdio(settings: Settings) -> int:
    """Serve one client; returns the exit code: 0 when it hung up, 128 + the number of the signal that ended it."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    wire = take_over()
    importing = threading.Thread(target=import_module, args=("sandboxmcp.server.serving",), name="import")
    if not select.select([wire.incoming], [], [], 0)[0]:
        importing.start()  # nothing to read yet: use the time
    _greet(wire)
    if importing.is_alive():
        importing.join()
    from sandboxmcp.server.serving import serve

    return serve(settings, wire)


def _greet(wire: Wire) -> None:
    wire.first = wire.incoming.readline()
    answer = greeting(wire.first)
    if answer is not None:
        wire.outgoing.write(json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        wire.outgoing.flush()
        wire.answered = answer["id"]
