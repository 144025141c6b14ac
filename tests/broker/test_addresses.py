"""The judge of names and addresses: pure tables."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxmcp.policy.programs.addresses import AddressRules, address_rules, host_problem, is_public

REFUSED_ADDRESSES = (
    "0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254 169.254.169.254 172.16.0.1 172.31.255.255 "
    "192.0.0.1 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 "
    "240.0.0.1 255.255.255.255 168.63.129.16 :: ::1 ::ffff:127.0.0.1 ::ffff:a9fe:a9fe 64:ff9b::a9fe:a9fe 64:ff9b::7f00:1 "
    "64:ff9b:1::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1 2001::1 2001:1ff::1 2001:db8::1 2002:7f00:1::1 3fff::1 ::127.0.0.1 "
    "100::1 4000::1"
).split()
PUBLIC_ADDRESSES = (
    "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 172.15.255.255 172.32.0.0 192.0.1.0 "
    "192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255 168.63.129.15 2606:4700::1111 2a00:1450::1 2001:200::1 "
    "::ffff:1.1.1.1 64:ff9b::101:101"
).split()


@pytest.mark.parametrize("text", REFUSED_ADDRESSES)
def test_an_address_that_is_not_of_the_internet_is_refused(text):
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", PUBLIC_ADDRESSES)
def test_an_address_of_the_internet_is_not(text):
    assert is_public(ipaddress.ip_address(text))


@given(st.ip_addresses(v=4))
def test_an_address_is_judged_the_same_in_its_mapped_forms(address):
    forms = [f"::ffff:{address}", str(ipaddress.IPv6Address((0x64FF9B << 96) | int(address)))]
    assert {is_public(ipaddress.ip_address(form)) for form in forms} == {is_public(address)}


@given(st.ip_addresses(v=4))
def test_what_python_calls_private_is_never_public(address):
    assert not (is_public(address) and (address.is_private or address.is_loopback or address.is_link_local or address.is_multicast))


SPELLINGS = (
    "127.1 0x7f.1 0x7f000001 2130706433 017700000001 0177.0.0.1 127.0.0.01 127.0.0.1. 1.2.3 1.2.3.4.5 256.1.1.1 0 0x example.0x1 "
    "a..b -a.b a-.b a_b- exa%6dple.org a/b a:1 [::1] ::1%lo fe80::1%eth0 ①②⑦.0.0.1 １２７.0.0.1 a\x00b"
).split(" ")
NO_NAMES = ("", "x" * 254, ".".join(["x" * 64, "org"]), "a b", "a\tb", "a\n")


@pytest.mark.parametrize("host", [*SPELLINGS, *NO_NAMES])
def test_a_spelling_that_two_parsers_read_differently_is_refused(host):
    assert host_problem(host) != ""


@pytest.mark.parametrize(
    "host", ["example.org", "example.org.", "a_b.example.org", "1.2.3.4", "xn--bcher-kva.example", "::1", "2606:4700::1", "a1"]
)
def test_a_plain_host_is_not(host):
    assert host_problem(host) == ""


def test_one_private_answer_refuses_the_name():
    why = AddressRules().judge_addresses("example.org", ["1.1.1.1", "10.0.0.1"])
    assert why == "10.0.0.1 is not a public address; the user may name it in network.allow_private"


def test_the_users_own_networks_and_names_are_let_through():
    rules = address_rules(["10.0.0.0/8", "intranet.example"])
    asked = [
        ("x.example", ["10.1.2.3"]),
        ("intranet.example", ["192.168.1.1"]),
        ("x.example", ["192.168.1.1"]),
        ("x", ["::ffff:10.0.0.1"]),
    ]
    assert [rules.judge_addresses(*one) == "" for one in asked] == [True, True, False, True]


def test_a_public_address_of_this_machine_or_its_gateway_is_refused():
    why = AddressRules().judge_addresses("example.org", ["1.1.1.1"], own=[ipaddress.ip_address("1.1.1.1")])
    assert why == "1.1.1.1 is this machine or its gateway; the user may name it in network.allow_private"


def test_a_list_of_domains_stands_for_all_below_them():
    rules = address_rules(domains=["example.org", "Other.Example."])
    hosts = [
        "example.org",
        "www.example.org.",
        "EXAMPLE.org",
        "a.other.example",
        "notexample.org",
        "example.org.evil.example",
        "1.1.1.1",
    ]
    assert [rules.judge_host(host) == "" for host in hosts] == [True, True, True, True, False, False, False]


def test_a_programs_own_domains_narrow_the_users():
    rules = address_rules(domains=["example.org"])
    assert [rules.judge_host(host, ("a.example.org",)) == "" for host in ("a.example.org", "b.example.org")] == [True, False]


@pytest.mark.parametrize("entry", ["10.0.0.1/8", "a b", "http://x", "", "1.2.3.4/33", "127.1"])
def test_a_setting_that_is_no_address_network_or_name_is_refused(entry):
    with pytest.raises(ValueError, match="wants addresses, networks or host names"):
        address_rules([entry])
