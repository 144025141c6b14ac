"""Which addresses and names of the internet may be reached. Pure: whoever resolves and connects asks here, every time.

Threat: a script names a public host that answers with an address of this machine, of its network or of its cloud (metadata), by
a redirect, a second look-up, or a spelling that only some parsers read as an address. So names are judged before they are
resolved, and every address that they resolve to is judged where the connection is made: one refused answer refuses the name.
Not covered: what a permitted host is told in the request itself, and a public address that forwards to a private one.

`ipaddress.is_global` is not used: its answers differ between patch releases of Python 3.11.
Source: IANA's special-purpose address registries (RFC 6890); 168.63.129.16 is the metadata service of Azure.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_DENIED_4 = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 "
        "192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32"
    ).split()
)
_PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
_DENIED_6 = tuple(ipaddress.IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_NAME = re.compile(
    r"(?=.{1,253}\Z)(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.?\Z"
)
_NUMERIC_LABEL = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)\Z")
_DOTTED_QUAD = re.compile(r"(?:0|[1-9][0-9]{0,2})(?:\.(?:0|[1-9][0-9]{0,2})){3}\Z")


def host_problem(host: str) -> str:
    """What is wrong with how a host is spelled: empty for a plain name, a canonical dotted quad, or an IPv6 literal.

    A last label that is a number in any spelling (`127.1`, `0x7f.1`, `2130706433`, `017700000001`) is an address to some parsers
    and a name to others, so only the one spelling that all agree on passes. IPv6 comes without brackets and without a zone.
    """
    if ":" in host:
        try:
            ipaddress.IPv6Address(host)
        except ValueError:
            return f"{host[:60]!r} is no IPv6 address"
        return "IPv6 zones are not allowed" if "%" in host else ""
    if not _NAME.match(host):
        return f"{host[:60]!r} is no host name"
    if not _NUMERIC_LABEL.match(host.rstrip(".").rsplit(".", 1)[-1]):
        return ""
    if not _DOTTED_QUAD.match(host):
        return f"{host[:60]!r} is an unusual spelling of an address"
    return "" if all(int(part) < 256 for part in host.split(".")) else f"{host!r} is no address"


def is_public(address: Address) -> bool:
    """Whether an address is one of the internet's; an IPv4 address inside an IPv6 one is judged as itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _DENIED_4)
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    if address in _NAT64:
        return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return address in _PUBLIC_6 and not any(address in network for network in _DENIED_6)


@dataclass(frozen=True, slots=True)
class AddressRules:
    """What the user's settings say of hosts and addresses."""

    private_names: frozenset[str] = frozenset()
    """Names that may have private addresses, in small letters without a final dot."""
    private_networks: tuple[Network, ...] = ()
    """Addresses that may be reached although they are private."""
    domains: tuple[str, ...] = ()
    """When not empty, the only names that may be reached; `example.org` stands for itself and everything below it."""

    def judge_host(self, host: str, also_within: tuple[str, ...] = ()) -> str:
        """Why a host may not be reached by its name; empty when it may. `also_within`: domains of one program, likewise."""
        if problem := host_problem(host):
            return problem
        name = host.lower().rstrip(".")
        for domains in (self.domains, also_within):
            if domains and not any(name == domain or name.endswith(f".{domain}") for domain in domains):
                return f"{name} is not among the domains that may be reached ({', '.join(domains[:5])})"
        return ""

    def judge_addresses(self, host: str, answers: Iterable[str], *, own: Iterable[Address] = ()) -> str:
        """Why a name with these answers may not be reached. `own`: addresses of this machine and its gateway, public ones too."""
        name, ours = host.lower().rstrip("."), set(own)
        for text in answers:
            address = _plain(ipaddress.ip_address(text.partition("%")[0]))
            if name in self.private_names or any(address in network for network in self.private_networks):
                continue
            if not is_public(address):
                return f"{address} is not a public address; the user may name it in network.allow_private"
            if address in ours:
                return f"{address} is this machine or its gateway; the user may name it in network.allow_private"
        return ""


_SERVICES = tuple(ipaddress.ip_network(text) for text in ("169.254.0.0/16", "168.63.129.16/32", "fe80::/10", "fd00:ec2::/32"))
_SERVICE_NAMES = frozenset({"metadata", "metadata.google.internal", "instance-data", "metadata.goog"})


@lru_cache(1_000)
def is_service_address(host: str, allow_private: tuple[str, ...] = ()) -> bool:
    """Whether a host, as it is written, is where clouds tell their machines secrets; not so when the settings name it."""
    name = host.lower().rstrip(".")
    rules = address_rules(allow_private)
    if name in _SERVICE_NAMES:
        return name not in rules.private_names
    try:
        address = _plain(ipaddress.ip_address(name))
    except ValueError:
        return False
    return any(address in network for network in _SERVICES) and bool(rules.judge_addresses(name, [name]))


def _plain(address: Address) -> Address:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped


def address_rules(allow_private: Iterable[str] = (), domains: Iterable[str] = ()) -> AddressRules:
    """Rules from settings: `allow_private` holds addresses, networks and names.

    Raises:
        ValueError: an entry is none of these; names it.
    """
    names: set[str] = set()
    networks: list[Network] = []
    for entry in allow_private:
        text = entry.strip().lower().rstrip(".")
        try:
            networks.append(ipaddress.ip_network(text))
        except ValueError:
            if "/" in text or host_problem(text):
                raise ValueError(f"wants addresses, networks or host names, and {entry!r} is none") from None
            names.add(text)
    return AddressRules(frozenset(names), tuple(networks), tuple(checked_domain(entry) for entry in domains))


def checked_domain(entry: str) -> str:
    """A domain in small letters.

    Raises:
        ValueError: it is none.
    """
    text = entry.strip().lower().strip(".")
    if host_problem(text):
        raise ValueError(f"wants domains, and {entry!r} is none")
    return text
