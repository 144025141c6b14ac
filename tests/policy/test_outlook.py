"""What the policy allows and would yet fail inside for want of a network is told beforehand."""

import pytest

from sandboxmcp.policy.engine import load_engine
from sandboxmcp.policy.prefilter import surely_without_network, words_of

ENGINES = {name: load_engine([name]) for name in ("default", "research")}
NOTHING = "would fail: there is no network in the sandbox; let out, in the forms that the policy names: "
MORE = "curl, wget; the user's pack research adds git, pip, npm and others for reading"
RESEARCH = "curl, gh, git-remote-broker, npm, pip, uv, wget"
GIT = "can reach the network only as git-upload-pack (clone, fetch, pull)"
SAID = {
    "nobody-let-out": (
        "default",
        "true\ngit clone u && pip install x",
        f"git clone (line 2), pip install (line 2) {NOTHING}{MORE}",
    ),
    "through-another": ("default", "nice bash -c 'npm install'", f"npm install (line 1) {NOTHING}{MORE}"),
    "by-a-helper": ("research", "git push; git push", f"git push (line 1) {GIT}"),
    "inside": (
        "research",
        "pip install x",
        "pip install (line 1) would run inside, without a network; let out are: pip download, pip index",
    ),
    "another-form": ("research", "gh pr close 7", "gh pr (line 1) would be refused by the broker: these arguments have no shape"),
    "not-this-one": ("research", "ssh a@b", f"ssh (line 1) {NOTHING}{RESEARCH}"),
}
QUIET = ["curl -sS -o f https://example.org", "pip --version; git log; npm test; make install", "curl -sS -o f $U", "$C clone"]


@pytest.mark.parametrize(("packs", "code", "said"), SAID.values(), ids=SAID)
def test_what_finds_no_network_is_told_with_its_line(packs: str, code: str, said: str) -> None:
    (found,) = ENGINES[packs].outlook(code, "shell")
    assert (ENGINES[packs].judge(code, "shell").action, found[: len(said)]) == ("allow", said)


@pytest.mark.parametrize("packs", ENGINES)
def test_of_what_goes_out_or_wants_no_network_nothing_is_told(packs: str) -> None:
    assert [ENGINES[packs].outlook(code, "shell") for code in QUIET] == [()] * len(QUIET)


def test_a_program_that_python_starts_is_told_of_too() -> None:
    code = "import subprocess\nsubprocess.run(['pip', 'install', 'x'])"
    assert ENGINES["default"].outlook(code, "python") == (f"pip install (line 2) {NOTHING}{MORE}",)


def test_the_quick_look_is_sure_only_where_nothing_is_told() -> None:
    words = words_of(ENGINES["default"])
    codes = ["make test", "npm test", "git log", "npm install", '"ssh" a', "X=y pip3 install z"]
    assert [surely_without_network(code, words) for code in codes] == [True] * 3 + [False] * 3
