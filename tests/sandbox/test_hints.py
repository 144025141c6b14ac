"""What a failed script is told from what it was made to say."""

import pytest

from sandboxmcp.core.reasons import Reason
from sandboxmcp.render.reasons import sentence
from sandboxmcp.sandbox.hints import git_hint, network_hint

GIT = "fatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com"


@pytest.mark.parametrize(
    ("said", "brokered", "hint"),
    [
        (GIT, ["wget", "curl"], "let out, in the forms that the policy names: curl, wget; the user's pack research adds git"),
        (GIT, ["git-remote-broker"], "let out, in the forms that the policy names: git-remote-broker"),
        (
            "npm error network request failed, reason: getaddrinfo ENOTFOUND registry.npmjs.org",
            [],
            "there is no network in the sandbox",
        ),
        ("curl: (6) could not resolve example.org: Name or service not known", ["curl"], ""),
        ("ConnectionRefusedError: [Errno 111] Connection refused", ["curl"], ""),
    ],
)
def test_who_wanted_a_network_is_told_what_is_let_out(said, brokered, hint):
    found = network_hint(said, brokered)
    assert bool(hint) == bool(found) and (found is None or hint in sentence(found))


def test_the_pack_research_is_not_recommended_where_it_is_in_force():
    found = network_hint(GIT, ["curl", "git-remote-broker"])
    assert found is not None and "research" not in sentence(found)


READ_ONLY = "Read-only file system"
SAID = {
    f"fatal: Unable to create '/p/.git/index.lock': {READ_ONLY}": True,
    f"error: cannot open '.git/FETCH_HEAD': {READ_ONLY}": True,
    f"error: could not lock config file .git/config: {READ_ONLY}": True,
    f"error: unable to create temporary file: {READ_ONLY}\nfatal: Unable to add f to database": True,
    f"fatal: cannot lock ref 'refs/heads/z': Unable to create '/p/.git/refs/heads/z.lock': {READ_ONLY}": True,
    "error: could not write config file .git/config: Device or resource busy": True,
    f"touch: cannot touch '/usr/x': {READ_ONLY}": False,
    "fatal: not a git repository (or any of the parent directories): .git": False,
}


def test_who_could_not_write_the_repository_is_told_the_setting():
    assert {said: bool(git_hint(said, "", writable=False)) for said in SAID} == SAID
    assert git_hint(next(iter(SAID)), "", writable=False) == Reason("git_read_only")
    assert git_hint(next(iter(SAID)), "", writable=True) == Reason("git_partly_writable")
    assert 'git = "rw"' in sentence(Reason("git_read_only"))


def test_a_command_that_fails_without_a_word_is_known_by_the_code():
    silent = {
        code: bool(git_hint("", code, writable=False)) for code in ("git -C a stash", "git stash list", "git status; stash x")
    }
    assert silent == {"git -C a stash": True, "git stash list": False, "git status; stash x": False}
