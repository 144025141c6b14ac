"""The thread that sends what a kernel says to all its clients, so that it sees every one of them come.

ipykernel's sends on the socket directly. Such a send takes along the wake-up by which ZeroMQ tells that something has arrived; a
subscription that came just then was not looked at until the next one, and its client waited for a welcome that was never sent.
"""

from __future__ import annotations

import threading

import zmq
from ipykernel.iostream import IOPubThread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class PublishingThread(IOPubThread):
    """ipykernel's, which after each message looks for subscriptions itself."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._event_pipe_gc_seconds = 600  # each time an idle kernel wakes, the host has to look what it did

    def _really_send(self, msg: Any, *args: Any, **kwargs: Any) -> None:
        super()._really_send(msg, *args, **kwargs)
        if threading.current_thread() is self.thread and not self.closed:
            self._xpub_stream.flush(zmq.POLLIN)
