"""The gate, the greetings and the relay, each on its own, on loopback; and what the host-side fetcher will stand on."""

from __future__ import annotations

import socket
import threading

import pytest

from sandboxmcp.broker.broker import gate_of
from sandboxmcp.broker.budget import Allowance, Budget
from sandboxmcp.broker.gate import Gate, Refused, Unreachable, own_addresses
from sandboxmcp.broker.proxy_handshake import Garbled, http_connect, socks5
from sandboxmcp.broker.relay import Relay
from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.settings import load_settings
from sandboxmcp.policy.programs.addresses import address_rules


def gate(answers, *private: str, budget: Budget | None = None) -> Gate:
    return Gate(address_rules(private), budget or Budget(), lambda host, port: answers)


def test_the_gate_connects_to_what_it_judged(site):
    with gate(["127.0.0.1"], "127.0.0.1").connect("any.example", site.server_port) as one:
        assert one.getpeername() == ("127.0.0.1", site.server_port)


def test_the_second_address_is_tried_when_the_first_does_not_answer(site):
    with gate(["127.9.9.9", "127.0.0.1"], "127.0.0.0/8").connect("any.example", site.server_port) as one:
        assert one.getpeername()[0] == "127.0.0.1"


@pytest.mark.parametrize(("host", "port"), [("127.1", 80), ("a b", 80), ("any.example", 0), ("any.example", 70000)])
def test_the_gate_refuses_before_it_resolves(host, port):
    def never(host: str, port: int) -> list[str]:
        raise AssertionError("asked")

    with pytest.raises(Refused):
        Gate(address_rules(), Budget(), never).connect(host, port)


def test_a_name_without_an_address_is_unresolved():
    with pytest.raises(Unreachable) as caught:
        gate([]).connect("nowhere.example", 80)
    assert caught.value.unresolved


def test_a_port_where_nobody_listens_is_unreachable():
    with pytest.raises(Unreachable, match=r"could not connect to any\.example port 1: Connection refused"):
        gate(["127.0.0.1"], "127.0.0.1").connect("any.example", 1)


def test_an_address_of_this_machine_is_known_as_its_own():
    assert [str(one) for one in own_addresses(["127.0.0.1", "192.0.2.1"])][:1] == ["127.0.0.1"]


def test_the_gate_of_the_settings_has_their_rules_and_limits():
    made = gate_of(load_settings({"network.domains": ["example.org"], "network.requests": 3, "network.size": "1MiB"}, {}))
    assert (made.rules.domains, made.budget.allowance.requests, made.budget.allowance.size) == (("example.org",), 3, 1 << 20)


def test_a_setting_that_is_no_address_is_a_usage_error():
    with pytest.raises(UsageError, match=r"network\.allow_private or network\.domains wants domains"):
        gate_of(load_settings({"network.domains": ["a b"]}, {}))


def test_a_budget_counts_requests_and_bytes():
    budget = Budget(Allowance(requests=2, bytes=100))
    assert [bool(budget.begin()), bool(budget.spend(100)), bool(budget.begin()), bool(budget.spend(1))] == [
        False,
        False,
        True,
        True,
    ]
    assert (budget.requests, budget.bytes) == (1, 101)


GREETINGS = {
    "socks name": (socks5, b"\5\1\0" + b"\5\1\0\3\7a.bc.de\0\x50", ("a.bc.de", 80)),
    "socks ipv4": (socks5, b"\5\2\1\0" + b"\5\1\0\1\1\2\3\4\1\xbb", ("1.2.3.4", 443)),
    "socks ipv6": (socks5, b"\5\1\0" + b"\5\1\0\4" + b"\0" * 15 + b"\1\0\x50", ("::1", 80)),
    "connect": (http_connect, b"CONNECT a.bc:443 HTTP/1.1\r\nHost: a.bc:443\r\n\r\n", ("a.bc", 443)),
    "connect ipv6": (http_connect, b"CONNECT [::1]:443 HTTP/1.1\r\n\r\n", ("::1", 443)),
}
GARBLED = {
    "socks4": (socks5, b"\4\1\0\x50\1\2\3\4\0"),
    "socks bind": (socks5, b"\5\1\0" + b"\5\2\0\1\1\2\3\4\0\x50"),
    "socks with a password only": (socks5, b"\5\1\2"),
    "cut": (socks5, b"\5\1\0\5\1\0\3\xffabc"),
    "get": (http_connect, b"GET http://a.bc/ HTTP/1.1\r\n\r\n"),
    "no port": (http_connect, b"CONNECT a.bc HTTP/1.1\r\n\r\n"),
    "endless": (http_connect, b"CONNECT a.bc:443 HTTP/1.1\r\nX: " + b"x" * 20_000),
    "binary": (http_connect, b"\0\xff\r\n\r\n"),
}


def greeted(greeting, said):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(said)
        ours.shutdown(socket.SHUT_WR)
        return greeting(theirs)


@pytest.mark.parametrize("name", GREETINGS)
def test_a_greeting_names_its_target(name):
    greeting, said, wanted = GREETINGS[name]
    target = greeted(greeting, said)
    assert (target.host, target.port) == wanted


@pytest.mark.parametrize("name", GARBLED)
def test_another_greeting_is_garbled(name):
    with pytest.raises(Garbled):
        greeted(*GARBLED[name])


def test_a_relay_that_is_closed_ends_its_connections(site):
    listener = socket.create_server(("127.0.0.1", 0))
    relay = Relay(listener, http_connect, gate(["127.0.0.1"], "127.0.0.1"))
    with socket.create_connection(listener.getsockname()) as client:
        client.sendall(f"CONNECT any.example:{site.server_port} HTTP/1.1\r\n\r\n".encode())
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        relay.close()
        assert client.recv(100) == b""
    assert relay.hosts == [f"any.example:{site.server_port}"]
    assert [thread for thread in threading.enumerate() if thread is relay._thread] == []
