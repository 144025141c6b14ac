"""How many tokens a text costs the model, estimated so that it errs high.

No tokenizer is shipped: the tables of one weigh 75 MB and every model has its own. The text is cut into the pieces that
byte-pair tokenizers start from (a word with the blank or mark before it, up to three digits, a run of punctuation, white
space) and each piece is charged what such a piece costs on average in tool output, plus a margin. tests/core/test_tokens.py
holds the estimate against a real tokenizer (cl100k_base) on output of many kinds.
"""

from __future__ import annotations

import math
import re

_MARGIN = 105
"""Percent."""
_PIECE = re.compile(
    r"(?P<before>[\t -/:-@[-`{-~])?(?P<word>[^\W\d_]+)|(?P<digits>\d{1,3})|(?P<marks> ?(?:[^\w\s]|_)+)(?P<ends>\n*)"
    r"|(?P<newlines>\s*\n)|(?P<blank>[^\S\n]+(?=[^\S\n]\S)|[^\S\n]+)"
)
_WHOLE = re.compile(re.sub(r"\?P<\w+>", "?:", _PIECE.pattern))
"""The same pieces as whole texts: what a piece costs depends on nothing else."""
_SPACE = r" \t-\r\x1c-\x1f"
_BLANK = r" \t\x0b-\r\x1c-\x1f"
_ASCII = re.compile(
    r"[\t -/:-@[-`{-~]?[A-Za-z]+|[0-9]{1,3}"
    rf"| ?[^A-Za-z0-9{_SPACE}]+\n*|[{_SPACE}]*\n|[{_BLANK}]+(?=[{_BLANK}][^{_SPACE}])|[{_BLANK}]+"
)
"""The same pieces of texts of ASCII, found in two thirds of the time: the classes of Unicode are dear."""
_REMEMBERED = 20_000
_LONGEST_REMEMBERED = 40
_KNOWN_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_AFTER_BLANK = (0, 100, 103, 105, 107, 107, 108, 112, 118, 125, 135)
_ALONE = (0, 100, 105, 115, 120, 130, 135, 140, 165, 170, 190)
_AFTER_MARK = (0, 110, 140, 140, 155, 165, 165, 180, 190, 200, 210)
"""Hundredths of tokens, as all costs of pieces: of a word of small letters by its length. A mark such as a dot or an underscore
before it belongs to it."""
_LONGER = 30
"""What each further letter costs."""
_SHOUTED = 20
"""What more for each letter of a word in capitals, after the second."""
_PIECED = 26
"""What for each letter of a word in camelCase, beside the first token."""
_FIRST_CJK = "\u2e80"
_BYTES_PER_TOKEN = 4
_PARTS = 1_024
"""Sums of such parts are exact."""
_REPEATED_RUN = 16
"""A token covers up to this many repetitions of one punctuation mark or blank."""


def estimate_tokens(text: str) -> int:
    """Tokens of `text`: 1.1 × cl100k_base's count in the median of real tool output, below it by at most a tenth.

    Never below its bytes / 4: runs of blanks are cheap in some vocabularies and dear in others.
    """
    return math.ceil(exact_tokens(text))


def costs_at_most(text: str, tokens: int) -> bool:
    """Is the estimate at most so much? Told by the length alone where that suffices: no byte costs more than the margin."""
    return len(text.encode("utf-8", "surrogatepass")) * _MARGIN < tokens * 100 or estimate_tokens(text) <= tokens


def exact_tokens(text: str) -> float:
    """The estimate before it is rounded, in parts of 1,024: for texts that are put together from short lines.

    A line that is rounded by itself costs half a token too much, in a manual every tenth.
    """
    plain = text.isascii()
    pieces = (_ASCII if plain else _WHOLE).findall(text)
    size = len(text) if plain else len(text.encode("utf-8", "surrogatepass"))
    return max(-(-sum(map(_COSTS.__getitem__, pieces)) * _MARGIN * _PARTS // 10_000), size * _PARTS // _BYTES_PER_TOKEN) / _PARTS


class _Costs(dict[str, int]):
    """What pieces cost: texts repeat them, and to look one up takes a tenth of the time. Shared by threads."""

    def __missing__(self, piece: str) -> int:
        word = piece[1:]
        if piece[0] == " " and word.isascii() and word.isalpha():  # most of what is new
            cost = _word_tokens(" ", word)
        else:
            match = _PIECE.fullmatch(piece)
            cost = _piece_tokens(match) if match else 100
        if len(piece) <= _LONGEST_REMEMBERED:
            if len(self) > _REMEMBERED:
                self.clear()
            self[piece] = cost
        return cost


_COSTS = _Costs()


def _piece_tokens(match: re.Match[str]) -> int:
    match match.lastgroup:
        case "word":
            return _word_tokens(match["before"] or "", match["word"])
        case "ends" | "marks":
            return _marks_tokens(match["marks"])
        case "blank":
            return 100 * (1 + len(match["blank"]) // 80)
        case _:
            return 100


def _word_tokens(before: str, word: str) -> int:
    if not word.isascii():
        return 100 + sum(150 if letter >= _FIRST_CJK else 50 for letter in word)
    length = len(word)
    if not word[1:].islower() and length > 1:
        return _capitals_tokens(word) + 30 * (before not in ("", " "))
    costs = _AFTER_BLANK if before == " " else _AFTER_MARK if before else _ALONE
    return costs[min(length, 10)] + _LONGER * max(0, length - 10)


def _capitals_tokens(word: str) -> int:
    length = len(word)
    if word.isupper():
        return 100 + _SHOUTED * (length - 2)
    parts = _KNOWN_WORD.findall(word)
    if len(parts) > 2 and length < 3 * len(parts):  # base64: letters that form no words
        return length * 75
    return 100 + _PIECED * length


def _marks_tokens(marks: str) -> int:
    bare = marks.strip()
    if not bare.isascii():
        plain = sum(map(str.isascii, bare))
        return 100 * (len(bare.encode("utf-8", "surrogatepass")) - plain + -(-plain // 3))
    if len(set(bare)) == 1:
        return 100 * (1 + len(bare) // _REPEATED_RUN)
    return 100 + max(0, len(bare) - 3) * 50
