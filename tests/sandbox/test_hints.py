"""What a failed script is told from what it was made to say."""

import pytest

from sandboxmcp.sandbox.hints import network_hint

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
    assert hint in network_hint(said, brokered) and bool(hint) == bool(network_hint(said, brokered))


def test_the_pack_research_is_not_recommended_where_it_is_in_force():
    assert "research" not in network_hint(GIT, ["curl", "git-remote-broker"])
