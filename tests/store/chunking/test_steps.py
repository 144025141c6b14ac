"""A text is cut into so many parts as its size allows; what is divided more finely is plain lines from there on."""

from __future__ import annotations

import pytest

from sandboxmcp.store.chunking.cutting import Cut, cut
from sandboxmcp.store.chunking.kinds import Form
from sandboxmcp.store.chunking.steps import BYTES_A_PART, FREE_PASSAGES, FREE_SECTIONS, Steps

SIZE = 2 << 20
FINE: dict[Form, str] = {
    "markdown": "# h\n",
    "restructured": "abc\n===\n\n",
    "json": "{\n}\n",
    "xml": "<a>\n</a>\n",
    "lines": "E\n\tat a(b)\n",
    "manual": "ABC\n\n",
    "history": "@@ -1 +1 @@ f\n",
    "records": "A: b\n",
    "snapshot": "- main:\n",
    "plain": "a\n",
}


def _cut(text: str, form: Form) -> tuple[list[Cut], Steps]:
    steps = Steps()
    return list(cut([text.encode()], 1, form, steps)), steps


@pytest.mark.parametrize("form", FINE)
def test_chunks_and_passages_are_bounded_by_the_size_and_hold_every_line(form: Form) -> None:
    text = FINE[form] * (SIZE // len(FINE[form]))
    cuts, _ = _cut(text, form)
    assert len(cuts) <= FREE_SECTIONS + 2 + SIZE // BYTES_A_PART
    assert sum(len(one.passages) for one in cuts) <= FREE_PASSAGES + FREE_SECTIONS + SIZE // BYTES_A_PART
    lines = [number for one in cuts for number in (one.first, one.last)]
    assert lines == sorted(lines) and lines[0] == 1 and lines[-1] == text.count("\n")
    assert sum(one.last - one.first + 1 for one in cuts) == text.count("\n")


def test_the_rest_has_no_title_and_is_told() -> None:
    cuts, steps = _cut("# h\n" * (SIZE // 4), "markdown")
    assert steps.is_plain and cuts[0].title == "h" and cuts[-1].title == ""


def test_sections_of_ordinary_size_are_never_too_many() -> None:
    cuts, steps = _cut("# heading\n\nThe zebra runs over the plain.\n\n" * 100_000, "markdown")
    assert not steps.is_plain and len(cuts) == 100_000


def test_equal_texts_are_cut_alike() -> None:
    text = "# h\n" * (SIZE // 4)
    assert _cut(text, "markdown")[0] == _cut(text, "markdown")[0]
