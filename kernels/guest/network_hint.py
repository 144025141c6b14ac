"""A hint for a script that tries to reach another machine: there is no network, and what to do instead.

There is no network in the sandbox, so nothing is forbidden here that would work: without this the script would see "Network is
unreachable" or wait for a name server. It is a courtesy and no fence: code can go around it, and meets the sandbox's walls then.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SENTENCE = "No network in this sandbox: only loopback can be reached."
_INSTEAD = " Fetch into a file with a quiet curl (`curl -sS -o FILE URL`), then read FILE; or call ctx_fetch_and_index."
_CURL = "/opt/sandboxmcp/shims/curl"
"""There where the policy lets curl out, which it does for scripts and not for kernels that Jupyter starts."""
_EVENTS = frozenset({"socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"})
_OWN = ("localhost", "localhost.localdomain", "ip6-localhost", "::1", "::", "0.0.0.0", "", None)  # noqa: S104 - to recognise it


def install() -> None:
    """For the rest of this process and what it forks; a hook cannot be taken out again."""
    sys.addaudithook(_hook)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    """The set is asked first: this runs for every event of the interpreter."""
    if event in _EVENTS and not _is_own(_host(event, arguments)):
        raise PermissionError(1, _SENTENCE + (_INSTEAD if os.path.lexists(_CURL) else ""))


def _host(event: str, arguments: tuple[Any, ...]) -> object:
    """The host of an event; None for a unix socket or what else has none."""
    if event in ("socket.connect", "socket.sendto"):
        address = arguments[1]
        return address[0] if isinstance(address, tuple) and address else None
    return arguments[0]


def _is_own(host: object) -> bool:
    """Loopback, this machine's own name, or no host at all."""
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if not isinstance(host, str):
        return True
    name = host.lower().rstrip(".")
    return name in _OWN or name.startswith(("127.", "::ffff:127.")) or name.endswith(".localhost") or name == _own_name()


def _own_name() -> str:
    return os.uname().nodename.lower()
