"""The gate to the network: resolve a name, judge every address that it has, connect to those very addresses, count what passes.

The relays of the broker and the host's own fetcher come through here. What was judged is what is connected to: no second
look-up.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from sandboxmcp.broker.budget import Budget
from sandboxmcp.policy.programs.addresses import Address, AddressRules
from sandboxmcp.policy.programs.order import Family

_CONNECT_S = 20.0
Resolver = Callable[[str, int], Sequence[str]]
"""(host, port) → addresses as text, in the order in which they are to be tried. Raises OSError."""


class Refused(Exception):
    """The rules or the budget say no; the message is for the reader."""


class Unreachable(Exception):
    """Allowed, and it did not work: no such name, nobody there; the message is for the reader."""

    def __init__(self, why: str, *, unresolved: bool = False) -> None:
        super().__init__(why)
        self.unresolved = unresolved


def system_resolver(host: str, port: int) -> Sequence[str]:
    """What the machine's resolver says."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


class Gate:
    """Opens connections for one session. Stateless but for the budget; any thread."""

    def __init__(self, rules: AddressRules, budget: Budget, resolver: Resolver = system_resolver) -> None:
        self.rules = rules
        self.budget = budget
        self._resolver = resolver

    def connect(
        self, host: str, port: int, domains: tuple[str, ...] = (), family: Family = "any", timeout_s: float = _CONNECT_S
    ) -> socket.socket:
        """A connected TCP socket, in blocking mode. `domains`: what one program may reach, beside the rules.

        Every answer is judged, also those that `family` leaves out.

        Raises:
            Refused: by its name, or by any of its addresses.
            Unreachable: it has no address, or none answers.
        """
        if not 0 < port < 65536:
            raise Refused(f"{port} is no port")
        if why := self.rules.judge_host(host, domains):
            raise Refused(why)
        answers = self._resolved(host, port)
        if why := self.rules.judge_addresses(host, answers, own=own_addresses(answers)):
            raise Refused(why if why.startswith(host) else f"{host}: {why}")
        wanted = [one for one in answers if family == "any" or (":" in one) == (family == "ipv6")]
        return _first_that_answers(host, port, wanted, time.monotonic() + timeout_s)

    def _resolved(self, host: str, port: int) -> Sequence[str]:
        try:
            answers = self._resolver(host, port)
        except (OSError, UnicodeError) as error:
            raise Unreachable(f"could not resolve {host}: {getattr(error, 'strerror', None) or error}", unresolved=True) from None
        if not answers:
            raise Unreachable(f"could not resolve {host}: it has no address", unresolved=True)
        return answers


def _first_that_answers(host: str, port: int, answers: Sequence[str], deadline: float) -> socket.socket:
    why = "it has no address of this kind"
    for address in answers:
        one = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        try:
            one.settimeout(max(0.1, deadline - time.monotonic()))
            one.connect((address, port))
            one.settimeout(None)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return one
        except OSError as error:
            one.close()
            why = error.strerror or str(error)
    raise Unreachable(f"could not connect to {host} port {port}: {why}")


def own_addresses(answers: Sequence[str]) -> list[Address]:
    """Those of the answers that are this machine's own, whatever they look like, and the default gateway."""
    ours = [ipaddress.ip_address(text.partition("%")[0]) for text in answers if _can_bind(text)]
    return ours + _gateways()


def _can_bind(address: str) -> bool:
    """Only an address of this machine can be bound: simpler and surer than reading every interface."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as one:
        one.bind((address, 0))
        return True
    return False


def _gateways() -> list[Address]:
    """Default gateways, from the kernel's routing tables (proc(5))."""
    found: list[Address] = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/net/route").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[1] == "00000000" and fields[2] != "00000000":
                found.append(ipaddress.IPv4Address(struct.pack("=L", int(fields[2], 16))))
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/net/ipv6_route").read_text().splitlines():
            fields = line.split()
            if fields[0] == "0" * 32 and fields[1] == "00" and fields[4] != "0" * 32:
                found.append(ipaddress.IPv6Address(int(fields[4], 16)))
    return found
