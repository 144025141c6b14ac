"""wget through the wall, on curl's engine: its own defaults, names and exit codes."""

from __future__ import annotations

import pytest

HELLO = b"hello\n" * 100

ALLOWED = {
    "named": ("wget -q -O f $U/ok", "f"),
    "joined": ("wget -qO f $U/ok", "f"),
    "less verbose": ("wget -nv $U/file/x.txt", "x.txt"),
    "silent by redirection": ("wget $U/file/x.txt 2>/dev/null", "x.txt"),
    "to stdout into a file": ("wget -qO- $U/ok > f", "f"),
    "without a name": ("wget -q $U/redirect/ok -O index.html", "index.html"),
    "with a query": ("wget -q '$U/file/x?a=1&b'", "x?a=1&b"),
    "decoded": ("wget -q $U/file/a%20b", "a b"),
    "into a folder": ("wget -q -P d/e $U/file/x", "d/e/x"),
    "with many options": (
        "wget -q -nc -nd -T 5 -t 2 -4 --header='X-One: 1' -U agent/1 --compression=auto --no-cache -O f $U/ok",
        "f",
    ),
    "redirected": ("wget -q -O f $U/redirect/ok", "f"),
}


@pytest.mark.parametrize("form", ALLOWED)
def test_an_allowed_form_fetches_the_right_bytes(session, form):
    command, name = ALLOWED[form]
    ran = session.run(f"rm -rf *; {command}")
    assert (ran.outcome.exit_code, ran.stdout, ran.stderr) == (0, b"", b"")
    assert (session.workspace / name).read_bytes() == HELLO


def test_a_second_file_of_the_same_name_is_numbered(session):
    session.run("rm -rf *; echo mine > x; wget -q $U/file/x")
    assert [(session.workspace / name).read_bytes() for name in ("x", "x.1")] == [b"mine\n", HELLO]


def test_no_clobber_fetches_nothing_when_the_file_is_there(session):
    came = session.site.connections
    ran = session.run("rm -rf *; echo mine > x; wget -q -nc $U/file/x; echo $?; cat x")
    assert (ran.text, session.site.connections) == ("0\nmine\n", came)


def test_exit_codes_are_wgets(session):
    ran = session.run(
        "wget -q -O f $U/missing; echo $?; wget -q -t 1 -O f http://127.0.0.1:1/; echo $?; wget -q -O f 'http://a b/'; echo $?"
    )
    assert ran.text == "8\n4\n1\n"


REFUSED = {
    "to stdout": ("-q -O - $U/ok", "land in the conversation"),
    "to stdout, joined": ("-qO- $U/ok", "land in the conversation"),
    "not quiet": ("-O f $U/ok", "it is not quiet"),
    "a program": ("-q --use-askpass=/tmp/evil -O f $U/ok", "it runs a program"),
    "a command": ("-q -e robots=off -O f $U/ok", "it runs any wgetrc command"),
    "URLs from a file": ("-q -i urls", "it reads URLs from a file"),
    "a file sent": ("-q --post-file=/etc/passwd -O f $U/ok", "it sends a file"),
    "a body": ("-q --post-data=a -O f $U/ok", "it sends a body"),
    "name by the server": ("-q --content-disposition $U/ok", "it lets the server choose the file name"),
    "name by the redirect": ("-q --trust-server-names $U/redirect/ok", "it lets the server choose the file name"),
    "everything": ("-q -r $U/ok", "it fetches more than was asked"),
    "detached": ("-q -b $U/ok", "it detaches"),
    "a log": ("-q -o log -O f $U/ok", "it writes another file"),
    "no checks": ("-q --no-check-certificate -O f $U/ok", "it turns off certificate checks"),
    "another address": ("-q --bind-address=127.0.0.1 -O f $U/ok", "where the connection goes"),
    "unlisted": ("-q --prefer-family=IPv4 -O f $U/ok", "not on the allow-list"),
    "unlisted, two letters": ("-q -nH -O f $U/ok", "not on the allow-list"),
    "one file for two": ("-q -O f $U/ok $U/empty", "one -O FILE for one URL"),
    "https only": ("-q --https-only -O f $U/ok", "only https"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_a_refused_form_leaves_nothing_on_disk_and_nothing_on_the_wire(session, form):
    arguments, why = REFUSED[form]
    session.run("rm -rf * .[a-z]*")
    session.files()
    came = session.site.connections
    ran = session.run(f"wget {arguments}")
    assert (ran.outcome.exit_code != 0, ran.stdout, session.files(), session.site.connections) == (True, b"", [], came)
    assert why in ran.stderr.decode()


def test_a_name_of_the_urls_never_leaves_the_folder(session):
    session.run("rm -rf *; mkdir d; cd d; wget -q $U/file/..%2f..%2fevil; wget -q $U/file/.. || true")
    assert session.files() == ["d", "d/..%2F..%2Fevil"] or session.files() == []
