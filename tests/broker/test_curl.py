"""curl through the wall: allowed forms fetch the right bytes, refused ones leave nothing on disk and nothing on the wire."""

from __future__ import annotations

import json

import pytest

HELLO = b"hello\n" * 100

ALLOWED = {
    "separate": ("curl -sS -o f $U/ok", "f"),
    "joined": ("curl -sSLfof $U/ok", "f"),
    "with equals": ("curl --no-progress-meter --output=f $U/ok", "f"),
    "named after the URL": ("curl -sSO $U/file/name.txt", "name.txt"),
    "all named": ("curl -sS --remote-name-all $U/file/name2.txt", "name2.txt"),
    "redirected": ("curl -sS $U/ok > f", "f"),
    "appended": (": > f; curl -sS $U/ok >> f", "f"),
    "silent by redirection": ("curl -o f $U/ok 2>/dev/null", "f"),
    "folder made": ("curl -sS --create-dirs -o a/b/c $U/ok", "a/b/c"),
    "folder given": ("mkdir -p d; curl -sS --output-dir d -o f $U/ok", "d/f"),
    "followed": ("curl -sSL -o f $U/redirect/ok", "f"),
    "GET with data": ("curl -sSG -d a=1 --data-raw 'b=x y' -o f $U/ok", "f"),
    "retried": ("curl -sS --retry 2 --retry-delay 0 -o f $U/busy/1", "f"),
    "url option": ("curl -sS --url $U/ok -o f", "f"),
    "with many options": (
        "curl -sS -4 --http1.1 -A agent/1 -e http://x/ -b a=b -H 'X-One: 1' -m 9 --compressed -o f -- $U/ok",
        "f",
    ),
    "glob is literal": ("curl -sS -o 'f#1' '$U/ok?[1-9]'", "f#1"),
    "not the real one's settings": ("echo 'output = evil' > ~/.curlrc; https_proxy=http://127.0.0.1:1 curl -sS -o f $U/ok", "f"),
}


@pytest.mark.parametrize("form", ALLOWED)
def test_an_allowed_form_fetches_the_right_bytes(session, form):
    command, name = ALLOWED[form]
    ran = session.run(f"rm -rf *; {command}")
    assert (ran.outcome.exit_code, ran.stdout, ran.stderr) == (0, b"", b"")
    assert (session.workspace / name).read_bytes() == HELLO


def test_files_outside_the_workspace_can_be_outputs_too(session):
    assert session.run("curl -sS -o /tmp/f $U/ok; curl -sS -o ~/g $U/ok; cat /tmp/f ~/g").stdout == HELLO * 2


def test_several_urls_have_a_file_each(session):
    session.run("curl -sS -o one -o two $U/ok $U/empty")
    assert [(session.workspace / name).read_bytes() for name in ("one", "two")] == [HELLO, b""]


def test_write_out_and_discarding_need_no_silence(session):
    ran = session.run("curl -o /dev/null -w '%{http_code} %{size_download} %{filename_effective} 100%%\\n' $U/ok")
    assert (ran.stdout, ran.stderr) == (b"200 600 /dev/null 100%\n", b"")


def test_headers_are_written_where_they_are_wanted(session):
    session.run("rm -f *; curl -sS -D head -o body $U/ok; curl -sS -I -o only-head $U/ok")
    heads = [(session.workspace / name).read_text().splitlines()[0] for name in ("head", "only-head")]
    assert (heads, (session.workspace / "body").read_bytes()) == (["HTTP/1.1 200 OK"] * 2, HELLO)


def test_the_server_sees_the_headers_that_were_given_and_no_proxy(session):
    session.run("curl -sS -A agent/7 -u me:secret -H 'X-One: 1' -o f $U/headers")
    seen = json.loads((session.workspace / "f").read_text())
    assert (seen["User-Agent"], seen["X-One"], seen["Authorization"]) == ("agent/7", "1", "Basic bWU6c2VjcmV0")
    assert {"Host", "Accept"} == set(seen) - {"User-Agent", "X-One", "Authorization"}


def test_a_failed_request_leaves_the_old_file_as_it_was(session):
    ran = session.run("echo kept > f; curl -sSf -o f $U/missing; echo $?; cat f")
    assert (ran.text, ran.stderr.decode()) == ("22\nkept\n", "curl: (22) The requested URL returned error: 404\n")


def test_a_silent_curl_says_nothing_of_errors_as_the_real_one(session):
    ran = session.run("curl -s -o f http://127.0.0.1:1/; echo $?")
    assert (ran.text, ran.stderr) == ("7\n", b"")


def test_an_existing_file_is_kept_when_curl_is_told_so(session):
    session.run("rm -f *; echo mine > f; curl -sS --no-clobber -o f $U/ok")
    assert [(session.workspace / name).read_bytes() for name in ("f", "f.1")] == [b"mine\n", HELLO]


def test_a_retry_does_not_append_to_what_the_first_attempt_wrote(session):
    session.run("rm -f *; curl -sS --retry 3 --retry-delay 0 -o f '$U/busy/2?again'")
    assert (session.workspace / "f").read_bytes() == HELLO


def test_version_is_answered_by_the_shim(session):
    came = session.site.connections
    assert session.run("curl --version; wget --version").text.splitlines()[0] == "curl (sandboxmcp)"
    assert session.site.connections == came


REFUSED = {
    "to stdout": ("$U/ok", 2, "land in the conversation"),
    "to stdout, named": ("-o - $U/ok", 2, "land in the conversation"),
    "to the screen": ("-o /dev/stdout $U/ok", 2, "land in the conversation"),
    "to stderr": ("-o /dev/stderr $U/ok", 23, "no regular file"),
    "to proc": ("-o /proc/self/fd/1 $U/ok", 23, "no regular file"),
    "two URLs, one file": ("-o f $U/ok $U/empty", 2, "a file of its own"),
    "options from a file": ("-o f -K options $U/ok", 2, "reads options from a file"),
    "smuggled in a cluster": ("-sSK options -o f $U/ok", 2, "reads options from a file"),
    "abbreviated": ("--outp f $U/ok", 2, "not on the allow-list"),
    "next": ("-o f $U/ok --next -o g $U/ok", 2, "not supported here"),
    "parallel": ("-Z -o f $U/ok", 2, "not supported here"),
    "a file sent": ("-o f -G -d @/etc/passwd $U/ok", 2, "reads a file and sends it"),
    "a file uploaded": ("-o f -T /etc/passwd $U/ok", 2, "sends a body or a file"),
    "a body": ("-o f -d a=b $U/ok", 2, "sends a body"),
    "another method": ("-o f -X DELETE $U/ok", 2, "method 'DELETE' is not allowed"),
    "headers from a file": ("-o f -H @/etc/passwd $U/ok", 2, "reads a file and sends it"),
    "another host": ("-o f -H 'Host: other' $U/ok", 2, "may not be set"),
    "a second request": ("-o f -H $'X: 1\\r\\nHost: other' $U/ok", 2, "not of the form"),
    "format from a file": ("-o f -w @/etc/passwd $U/ok", 2, "reads a file"),
    "output by format": ("-o f -w '%output{evil}' $U/ok", 2, "not among the variables"),
    "cookies from a file": ("-o f -b jar $U/ok", 2, "file to read"),
    "cookies to a file": ("-o f -c jar $U/ok", 2, "reads or writes another file"),
    "a proxy": ("-o f -x http://127.0.0.1:1 $U/ok", 2, "where the connection goes"),
    "another address": ("-o f --resolve a:80:127.0.0.1 $U/ok", 2, "where the connection goes"),
    "a unix socket": ("-o f --unix-socket /run/docker.sock $U/ok", 2, "where the connection goes"),
    "no checks": ("-o f -k $U/ok", 2, "turns off certificate checks"),
    "name by the server": ("-OJ $U/file/x", 2, "server choose the file name"),
    "another scheme": ("-o f file:///etc/passwd", 1, "only http and https"),
    "gopher": ("-o f gopher://127.0.0.1/", 1, "only http and https"),
    "credentials in the URL": ("-o f http://me:secret@127.0.0.1/", 3, "credentials in the URL"),
    "headers to the screen": ("-o f -D - $U/ok", 2, "land in the conversation"),
    "a trace": ("-o f --trace-ascii t $U/ok", 2, "reads or writes another file"),
    "talkative": ("-v -o f $U/ok", 2, "it is not quiet"),
    "an unknown option": ("--frobnicate -o f $U/ok", 2, "not on the allow-list"),
    "no value": ("-o", 2, "needs a value"),
    "no URL": ("-o f", 2, "no URL"),
    "no name in the URL": ("-O $U/", 23, "no file name"),
    "not UTF-8": ("-o f $U/ok$'\\xff'", 2, "not UTF-8"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_a_refused_form_leaves_nothing_on_disk_and_nothing_on_the_wire(session, form):
    arguments, code, why = REFUSED[form]
    session.run("rm -rf * .[a-z]*")
    session.files()
    came = session.site.connections
    ran = session.run(f"curl -sS {arguments}")
    assert (ran.outcome.exit_code, ran.stdout, session.files(), session.site.connections) == (code, b"", [], came)
    assert why in ran.stderr.decode()


def test_without_silence_nothing_is_fetched(session):
    came = session.site.connections
    assert session.run("curl -o f $U/ok").stderr == b"curl: (sandbox) it is not quiet: add -sS\n"
    assert session.site.connections == came


PLACES = {
    "a FIFO": ("mkfifo here", "here", "a FIFO"),
    "a link": ("ln -s target here", "here", "a symbolic link"),
    "a link to stdout": ("ln -s /dev/stdout here", "here", "a symbolic link"),
    "a folder": ("mkdir here", "here", "a folder"),
    "no folder": ("true", "nowhere/here", "the folder does not exist"),
    "above": ("true", "../" * 40 + "etc/here", "no right to write"),
    "a read-only system": ("true", "/usr/here", "no right to write"),
    "a device": ("true", "/dev/full", "no regular file"),
    "a socket": ("python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"here\")'", "here", "a socket"),
}


@pytest.mark.parametrize("place", PLACES)
def test_an_output_that_is_no_regular_file_is_refused_before_anything_goes_out(session, place):
    prepare, path, why = PLACES[place]
    session.run(f"rm -rf *; {prepare}")
    session.files()
    came = session.site.connections
    ran = session.run(f"curl -sS -o {path} $U/ok; echo $?")
    assert (ran.text, session.files(), session.site.connections) == ("23\n", [], came)
    assert why in ran.stderr.decode()


def test_every_request_is_in_the_log(session):
    session.run("curl -sS -o f $U/ok; curl -sS $U/ok; curl -sS -o f http://10.0.0.1/")
    shown = [(one["program"], one["shape"], one["hosts"], one["verdict"], one["exit_code"]) for one in session.log()[-3:]]
    host = session.site.url.removeprefix("http://")
    assert shown == [
        ("curl", "--silent --show-error --output", [host], "allow", 0),
        ("curl", "", [], "deny", 2),
        ("curl", "--silent --show-error --output", ["10.0.0.1:80"], "deny", 7),
    ]
    assert (session.log()[-3]["bytes_written"], session.log()[-3]["bytes_on_the_wire"] > 600) == (600, True)
    assert (session.inside.settings.data_dir / "policy.log").stat().st_mode & 0o777 == 0o600
