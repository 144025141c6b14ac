"""What the network does back: redirects, mixed and changing answers, odd spellings, sizes, slowness, certificates, budgets."""

from __future__ import annotations

import itertools
import os

import psutil
import pytest

from sandboxmcp.broker.box_pool import Spares
from sandboxmcp.core.errors import UsageError
from sandboxmcp.store.web.fetch import Asked, Fetcher

HELLO = b"hello\n" * 100
METADATA = "169.254.169.254"


def run_refused(session, command):
    """The exit code and what was said, when nothing new is on disk and nobody came to the site beyond `came`."""
    ran = session.run(f"rm -rf *; {command}")
    return ran.outcome.exit_code, ran.stderr.decode()


def test_a_redirect_to_the_metadata_service_is_not_followed(session):
    session.site.targets["metadata"] = f"http://{METADATA}/latest/meta-data/"
    session.files()
    code, said = run_refused(session, "curl -sSL -o f $U/redirect/metadata")
    assert (code, session.files()) == (7, [])
    assert f"{METADATA} is not a public address" in said


def test_a_redirect_to_another_server_of_this_machine_is_not_followed(session, make_site):
    other = make_site("127.0.0.2")
    session.site.targets["other"] = f"{other.url}/ok"
    code, said = run_refused(session, "curl -sSL -o f $U/redirect/other")
    assert (code, other.connections) == (7, 0)
    assert "127.0.0.2 is not a public address" in said


@pytest.mark.parametrize("target", ["file:///etc/passwd", "gopher://127.0.0.1/", "ftp://127.0.0.1/", "dict://127.0.0.1/"])
def test_a_redirect_to_another_scheme_is_not_followed(session, target):
    session.site.targets["scheme"] = target
    code, said = run_refused(session, "curl -sSL -o f $U/redirect/scheme")
    assert (code, "curl: (1)" in said) == (1, True)


def test_a_loop_of_redirects_ends(session):
    ran = session.run("curl -sSL --max-redirs 3 -o f $U/loop; echo $?")
    assert (ran.text, ran.stderr.decode()) == ("47\n", "curl: (47) Maximum (3) redirects followed\n")


HOSTS = (
    "127.1 0x7f.1 2130706433 017700000001 [::1] 0 127.0.0.1. 127.0.0.01 [::ffff:a9fe:a9fe] [64:ff9b::a9fe:a9fe] "
    "me@127.0.0.1 127.0.0.1%2f@x x%00.org 10.0.0.1 100.64.0.1 [fd00:ec2::254] 169.254.169.254 168.63.129.16 ①②⑦.0.0.1"
).split()


@pytest.mark.parametrize("host", HOSTS)
def test_a_private_host_is_refused_however_it_is_spelled(session, host):
    came = session.site.connections
    port = session.site.server_port
    code, said = run_refused(session, f"curl -sS -o f 'http://{host}:{port}/ok'")
    assert (code in (3, 7), "(sandbox)" in said, session.site.connections) == (True, True, came)


def test_loopback_is_refused_unless_the_user_names_it(make_session, site):
    session = make_session(site, network__allow_private=[])
    came = site.connections
    hosts = ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"]
    ran = session.run("; ".join(f"curl -sS -o f http://{host}:{site.server_port}/ok; echo $?" for host in hosts))
    assert (ran.text, site.connections) == ("7\n7\n7\n", came)


@pytest.fixture(scope="module")
def named(make_session, site):
    """A session whose names answer as these tests want it, and the names that were asked for."""
    changing = itertools.cycle([["127.0.0.1"], [METADATA]])
    asked = []

    def resolver(host, port):
        asked.append(host)
        return {"mixed.example": ["127.0.0.1", "10.0.0.1"]}.get(host) or (next(changing) if "rebinding" in host else ["127.0.0.1"])

    return make_session(site, resolver=resolver), asked


def test_a_name_with_one_private_answer_is_refused(named, site):
    came = site.connections
    code, said = run_refused(named[0], f"curl -sS -o f http://mixed.example:{site.server_port}/ok")
    assert (code, site.connections) == (7, came)
    assert "10.0.0.1 is not a public address" in said


def test_a_name_that_changes_its_answer_is_judged_and_connected_by_the_same_one(named, site):
    session, asked = named
    asked.clear()
    ran = session.run(f"for i in 1 2 3 4; do curl -sS -o f$i http://rebinding.example:{site.server_port}/ok; echo $?; done")
    assert (ran.text, len(asked)) == ("0\n7\n0\n7\n", 4)


def test_the_family_of_an_address_can_be_chosen(named, site):
    url = f"http://two.example:{site.server_port}/ok"
    assert named[0].run(f"curl -sS -4 -o f {url}; echo $?; curl -sS -6 -o f {url}; echo $?").text == "0\n7\n"


def test_only_the_users_domains_are_reached(make_session, site):
    session = make_session(site, resolver=lambda host, port: ["127.0.0.1"], network__domains=["good.example"])
    port = site.server_port
    hosts = ["good.example", "a.good.example", "good.example.evil.example", "127.0.0.1"]
    ran = session.run("; ".join(f"curl -sS -o f http://{host}:{port}/ok; echo $?" for host in hosts))
    assert ran.text == "0\n0\n7\n7\n"


def test_an_answer_is_cut_at_the_size_that_is_allowed(make_session, site):
    session = make_session(site, network__size=2 << 20)
    ran = session.run("curl -sS -o f $U/big/3; echo $?; curl -sS -o g $U/endless; echo $?; stat -c %s g")
    assert ran.text == f"63\n63\n{2 << 20}\n"


def test_a_limit_in_the_command_counts_too(session):
    assert session.run("rm -f f; curl -sS --max-filesize 1k -o f $U/endless; echo $?; stat -c %s f").text == "63\n1024\n"


def test_a_slow_body_ends_with_its_time(session):
    ran = session.run("rm -f f; curl -sS -m 0.5 -o f $U/slow; echo $?; wc -c < f")
    assert (ran.text.split()[0], 0 < int(ran.text.split()[1]) < 1000) == ("28", True)


def test_the_sessions_time_holds_without_one_in_the_command(make_session, site):
    session = make_session(site, network__time_s=0.5)
    assert session.run("curl -sS -o f $U/slow; echo $?").text == "28\n"


def test_a_session_has_so_many_requests_and_a_new_sandbox_brings_no_more(make_session, site):
    session = make_session(site, network__requests=2)
    first = session.run("for i in 1 2 3; do curl -sS -o f $U/ok; echo $?; done")
    session.inside.wait(session.inside.runner.close())
    again = session.run("curl -sS -o f $U/ok; echo $?")
    assert (first.text, again.text) == ("0\n0\n7\n", "7\n")
    assert "has used its 2 network requests; raise network.requests" in again.stderr.decode()


def test_a_session_has_so_many_bytes(make_session, site):
    session = make_session(site, network__bytes=1 << 20)
    ran = session.run("rm -f f; curl -sS -o f $U/big/3; echo $?; curl -sS -o g $U/ok; echo $?")
    assert ran.text.split()[1:] == ["7"] and "has used its 1,048,576 bytes of network" in ran.stderr.decode()
    assert (session.workspace / "f").stat().st_size < 2 << 20


def test_without_requests_there_is_no_broker_at_all(make_session, site):
    session = make_session(site, network__requests=0)
    came = site.connections
    assert (session.inside.broker, session.run("curl -sS -o f $U/ok; echo $?").text, site.connections) == (None, "7\n", came)


def test_tls_is_end_to_end_and_its_certificates_are_checked(make_session, make_site, authority):
    secure = make_site(tls=True)
    trusting = make_session(secure, network__authorities=str(authority.certificate))
    doubting = make_session(secure)
    assert trusting.run("curl -sS -o f $U/ok; echo $?; wget -q -O g $U/ok; cmp f g; wc -c < f").text == "0\n600\n"
    assert doubting.run("curl -sS -o f $U/ok; echo $?; wget -q -O g $U/ok; echo $?; ls").text == "60\n5\n"


def test_bytes_are_the_same_whatever_they_are(session):
    assert session.run("curl -sS -o f $U/big/5; wc -c < f; tr -d x < f | wc -c").text == "5242880\n0\n"


def test_the_real_curl_and_wget_reach_nothing(session):
    came = session.site.connections
    ran = session.run("/usr/bin/curl -sS -m 2 -o f $U/ok; echo $?; env -i /usr/bin/wget -q -T 2 -t 1 -O f $U/ok; echo $?")
    assert (ran.text, session.site.connections) == ("7\n4\n", came)


def test_from_python_a_brokered_curl_works_as_from_a_shell(session):
    code = f"import subprocess\nprint(subprocess.run(['curl', '-sS', '-o', 'py', '{session.site.url}/ok']).returncode)"
    assert session.run(code, "python").text == "0\n"
    with_file = f"import subprocess\nsubprocess.run(['curl', '-sS', '{session.site.url}/ok'], stdout=open('py2', 'wb'), check=True)"
    assert session.run(with_file, "python").outcome.status == "ok"
    assert (session.workspace / "py").read_bytes() == (session.workspace / "py2").read_bytes() == HELLO


def test_no_curl_is_left_on_the_host_afterwards(make_session, site):
    session = make_session(site)
    session.run("curl -sS -o f $U/ok")
    spares = session.inside.broker.spares
    while not (waiting := curls_of(spares)):  # the next request's, started behind the answer
        os.sched_yield()
    spares.close()
    assert psutil.wait_procs(waiting, timeout=20)[1] == []


def curls_of(spares: Spares) -> list[psutil.Process]:
    """Those that wait in the boxes of one session; others of this process may be starting theirs."""
    boxes = [psutil.Process(box.process.init_pid) for box in list(spares._waiting)]
    return [one for box in boxes for one in box.children(recursive=True) if is_curl(one)]


def is_curl(process: psutil.Process) -> bool:
    """One that has ended since is none."""
    try:
        return bool(process.name() == "curl")
    except psutil.NoSuchProcess:
        return False


def test_the_hosts_own_fetcher_goes_through_the_scripts_gate_and_spends_their_budget(make_session, site):
    session = make_session(site, network__requests=2)
    broker = session.inside.broker
    fetcher = Fetcher(broker.gate, lambda url: "")
    first = session.run("curl -sS -o f $U/ok; echo $?")
    second = fetcher.fetch(Asked(f"{site.url}/ok"))
    third = session.run("curl -sS -o g $U/ok; echo $?")
    assert (first.text, second.content, third.text) == ("0\n", HELLO, "7\n")
    with pytest.raises(UsageError, match="has used its 2 network requests"):
        fetcher.fetch(Asked(f"{site.url}/ok"))
    assert broker.gate.budget.bytes > len(HELLO) * 2


@pytest.mark.parametrize("url", ["http://10.0.0.1/", "http://2130706433/", "http://[::ffff:7f00:2]/", "http://169.254.169.254/"])
def test_the_hosts_own_fetcher_refuses_what_the_broker_refuses(session, url):
    scripts = session.run(f"curl -sS -g -o f '{url}'; echo $?")
    with pytest.raises(UsageError, match="may not be fetched"):
        Fetcher(session.inside.broker.gate, lambda url: "").fetch(Asked(url))
    assert (scripts.text != "0\n", "(sandbox)" in scripts.stderr.decode()) == (True, True)


def test_where_curl_is_let_out_a_kernel_without_a_network_says_so(session):
    ran = session.run("import urllib.request\nurllib.request.urlopen('http://example.org')", "python")
    assert "curl -sS -o FILE URL" in ran.stderr.decode()
