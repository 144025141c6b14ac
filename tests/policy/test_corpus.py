"""The labelled corpus: what the default pack says of it, counted in a confusion table and held to two promises.

Its labels were written from the specification alone, before their writer had seen a rule: twice, by two writers.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sandboxmcp.core.model import Action, Setting
from sandboxmcp.policy.engine import Engine

FOLDER = Path(__file__).parent / "corpus"
SETS = {"first": "", "second": "-second"}
SETTINGS: tuple[Setting, ...] = ("kernel", "host")
STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


class Entry(NamedTuple):
    set: str
    kind: str
    language: str
    wanted: dict[Setting, Action]
    code: str


def entries() -> list[Entry]:
    """Every line below the first heading of each file."""
    found: list[Entry] = []
    for name, which in ((name, which) for which in SETS for name in ("shell", "snippets")):
        sections = (FOLDER / f"{name}{SETS[which]}.txt").read_text().split("\n== ")[1:]
        for heading, *lines in (section.split("\n") for section in sections):
            kind, *rest = (part.strip() for part in heading.split("|"))
            language, kernel, host = ("shell", *rest) if name == "shell" else (*rest, rest[-1])
            wanted: Any = {"kernel": kernel, "host": host}
            codes = [line.replace("⏎", "\n") for line in lines if line and not line.startswith("# Rel")]
            found += [Entry(which, kind, language, wanted, code) for code in codes]
    return found


ENTRIES = entries()


@pytest.fixture(scope="module")
def judged(engine: Engine) -> list[tuple[Entry, Setting, Action]]:
    return [(entry, setting, engine.judge(entry.code, entry.language, setting).action) for entry in ENTRIES for setting in SETTINGS]


def test_the_corpus_is_large_and_at_least_half_of_it_is_harmless() -> None:
    shell = [entry for entry in ENTRIES if entry.language == "shell"]
    others = [entry for entry in ENTRIES if entry.language != "shell"]
    shares = [sum(e.wanted["host"] == "allow" for e in part) / len(part) for part in (shell, others)]
    assert (len(shell) >= 400, len(others) >= 200, shares[0] >= 0.5) == (True, True, True)


def test_no_harmless_code_is_denied(judged: list[tuple[Entry, Setting, Action]]) -> None:
    wrong = [(e.code, setting, said) for e, setting, said in judged if STRICTNESS[said] > STRICTNESS[e.wanted[setting]]]
    assert wrong == []


def test_nothing_that_is_to_be_denied_is_allowed_on_the_host(judged: list[tuple[Entry, Setting, Action]]) -> None:
    wrong = [e.code for e, setting, said in judged if setting == "host" and said == "allow" and e.wanted["host"] != "allow"]
    assert wrong == []


@pytest.mark.parametrize("which", SETS)
def test_the_confusion_table_is_what_it_was(
    judged: list[tuple[Entry, Setting, Action]], which: str, print_at_the_end: Callable[[str], None]
) -> None:
    counts = Counter((setting, entry.wanted[setting], said) for entry, setting, said in judged if entry.set == which)
    rows = [f"{setting:7}  {wanted:8}  {said:6}  {number:7}" for (setting, wanted, said), number in sorted(counts.items())]
    print_at_the_end("\n".join([f"{which} set of the corpus", "setting  labelled  judged  entries", *rows]))
    assert {key: number for key, number in counts.items() if key[1] != key[2]} == {}
