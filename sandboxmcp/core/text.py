"""Captured bytes as text that is safe to show: what a terminal would leave standing, nothing that acts on the reader.

Lines are counted on the raw bytes' "\\n" and nowhere else. Every rule below works inside one line and never adds or removes
a "\\n", so indexing, searching and reading agree on the numbers. Not covered: look-alike letters, and text that is meant to
persuade; recalled text is fenced as data elsewhere.
"""

from __future__ import annotations

import re
from typing import Final

_CSI = r"[0-?]*[ -/]*[@-~]"
_SEQUENCES = (
    rf"\x1b(?:\[{_CSI}"  # CSI: colours, cursor, erase (ECMA-48, 5.4)
    r"|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # OSC, DCS, SOS, PM, APC with their terminator (ECMA-48, 5.6)
    r"|[ -/]*[0-~])"
)
_ESCAPES = re.compile(rf"{_SEQUENCES}|\x9b{_CSI}")
ESCAPE_SEQUENCES: Final = _SEQUENCES.encode()
C1_SEQUENCES: Final = rb"\xc2\x9b" + _CSI.encode()
"""The same as patterns for bytes of UTF-8. Each begins with a fixed byte, so that it is looked for ten times as fast."""
_OVERSTRUCK = re.compile(r"[^\n\x08]\x08")
_LETTER_RUNS = re.compile(r"[^\W\d_]+")
_PROGRESS = re.compile(r"[%#=|/\\\[\]…]|\.\.\.|\d ?[kMG]?i?B\b")
OVERWRITTEN: Final = "␍"
"""Stands between states of a line that are all kept."""

PLAIN_BYTES: Final = bytes([9, 10, *range(0x20, 0x7F)])
"""ASCII that is shown as it stands: most captured bytes are nothing else, and are told so a hundred times faster."""
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_INVISIBLE = "\u00ad\u034f\u115f\u1160\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
_JOINERS = "\u200c\u200d"
UNSHOWN: Final = f"\x80-\x9f{_JOINERS}{_BIDI}{_INVISIBLE}"
"""Characters beyond ASCII of which `neutral` leaves nothing, or only a code, as they stand in a class of a pattern."""
_UNSAFE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{_JOINERS}{_BIDI}{_INVISIBLE}]")
_VISIBLE_BIDI = re.compile(f"[{_BIDI}]")
LABEL_LENGTH: Final = 200


def shown(data: bytes) -> str:
    """Bytes as harmless text: UTF-8 with U+FFFD for what is not, then `neutral`. As many "\\n" as in the bytes."""
    text = data.decode("utf-8", "replace")
    return neutral(text) if data.translate(None, PLAIN_BYTES) else text


def neutral(text: str) -> str:
    """Text without terminal escapes, overwritten progress, control characters and invisible or reordering characters.

    Control characters become their pictures (NUL: ␀), bidirectional controls their code (`<U+202E>`, CVE-2021-42574),
    invisible characters vanish. Idempotent on its own results.
    """
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPES.sub("", text)
    if "\x08" in text:
        text = _OVERSTRUCK.sub("", text)
    if "\r" in text:
        # Line by line and not by one expression: that would look at a long line, or a long run of returns, again and again.
        text = "\n".join(_last_state(line.rstrip("\r")) if "\r" in line else line for line in text.split("\n"))
    return _UNSAFE.sub(_harmless, text)


def storable(text: str) -> str:
    """A text that UTF-8 can hold: file names that are not UTF-8 carry surrogates, which become their escapes (`\\udcff`)."""
    return text.encode("utf-8", "backslashreplace").decode()


def clean_label(label: str) -> str:
    """A label on one line of at most 200 characters; what is longer ends in an ellipsis."""
    line = " ".join(neutral(label).split())
    return line if len(line) <= LABEL_LENGTH else line[: LABEL_LENGTH - 1].rstrip() + "…"


def _last_state(line: str) -> str:
    """A line that carriage returns overwrote: without those states of progress that a later state replaces.

    The last state alone would lose whole texts whose lines end in carriage returns, so a state goes only when it has no words
    of its own, or has those of the next one and looks like progress.
    """
    if "\r" not in line:
        return line
    states = [state for state in line.split("\r") if state.strip()]
    if not states:
        return ""
    words = ["".join(_LETTER_RUNS.findall(state)) for state in states]
    kept = [
        state
        for state, own, following in zip(states, words, [*words[1:], None], strict=True)
        if following is None or (own not in ("", following) or not _is_progress(state))
    ]
    return OVERWRITTEN.join(kept)


def _is_progress(state: str) -> bool:
    return _PROGRESS.search(state) is not None or not any(map(str.isalnum, state))


def _harmless(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if 0x80 <= code < 0xA0 or 0xD800 <= code < 0xE000:
        return "\ufffd"
    if character in _JOINERS:
        return character if _between_letters(match) else ""
    if code in (0x2028, 0x2029):
        return " "
    return f"<U+{code:04X}>" if _VISIBLE_BIDI.match(character) else ""


def _between_letters(match: re.Match[str]) -> bool:
    """Joiners shape scripts and emoji; next to ASCII they only hide."""
    before, after = match.string[max(0, match.start() - 1) : match.start()], match.string[match.end() : match.end() + 1]
    return before > "\x7f" and after > "\x7f"


def in_gib(size: int) -> str:
    """`2.1 GiB`, or MiB below one."""
    return f"{size / (1 << 30):.1f} GiB" if size >= 1 << 30 else f"{size / (1 << 20):.0f} MiB"
