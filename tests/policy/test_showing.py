"""A pack in words says everything that its file says of what is let out."""

import pytest

from sandboxmcp.policy.engine import load_engine
from sandboxmcp.policy.packs.showing import pack_in_words

FORMS = [
    "  gh issue view [-c|--comments] [-R|--repo REPO] [--json JSON] [-q|--jq JQ] ARGUMENT",
    "  gh release download [-R|--repo REPO] [-p|--pattern PATTERN] [-D|--dir FOLDER] [up to 1 ARGUMENT]; leaves files",
    "  gh api [--paginate] [-X|--method GET] [-q|--jq JQ] ARGUMENT",
    "  as in: gh issue list -R owner/name --search 'curl wget' --json number,title",
    "  git-remote-broker ARGUMENT ARGUMENT: git-upload-pack (clone, fetch, pull)",
    "  npm view [--json] ARGUMENT [up to 4 ARGUMENTs more]",
    "  anything else of it runs inside, without a network",
]


@pytest.mark.parametrize("name", ["default", "ci", "offline", "strict", "research", "programs", "secrets"])
def test_every_shipped_pack_can_be_shown(name: str) -> None:
    engine = load_engine([name])
    pack = next(one for one in engine.packs if one.name == name)
    lines = list(pack_in_words(pack, engine.brokers()))
    missing = [one.id for one in pack.rules if not any(line.startswith(f"{one.verdict} {one.id}: ") for line in lines)]
    assert (lines[0].split()[0].rstrip(":"), missing) == (name, [])


def test_forms_have_their_options_with_what_these_take() -> None:
    engine = load_engine(["research"])
    pack = next(one for one in engine.packs if one.name == "research")
    lines = list(pack_in_words(pack, engine.brokers()))
    shapes = sum(len(broker.shapes) for broker in pack.brokers)
    assert [form for form in FORMS if form not in lines] == []
    assert sum(line.startswith("  ") and not line.startswith(("  as in:", "  anything")) for line in lines) == shapes


def test_a_fetcher_has_the_options_that_the_broker_takes() -> None:
    engine = load_engine()
    (line,) = (one for one in pack_in_words(engine.packs[1], engine.brokers()) if "quietly, into files: curl " in one)
    assert "[-I|--head]" in line and "--proxy" not in line
