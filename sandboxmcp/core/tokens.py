"""How many tokens a text costs the model, estimated so that it errs high.

No tokenizer is shipped: the tables of one weigh 75 MB and every model has its own. The text is cut into the pieces that
byte-pair tokenizers start from (a word with its leading blank, up to three digits, a run of punctuation, white space)
and each piece is charged what such a piece costs in tool output, rounded up. tests/core/test_tokens.py holds the
estimate against a real tokenizer (cl100k_base) on output of many kinds.
"""

from __future__ import annotations

import math
import re

_MARGIN = 1.06
_PIECE = re.compile(
    r"(?P<word>[^\W\d_]+)|(?P<digits>\d{1,3})|(?P<newlines>\s*\n+)|(?P<blank>[^\S\n]+(?P<before_digit>(?=\d))?)|(?P<marks>(?:[^\w\s]|_)+)"
)
_KNOWN_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_PLAIN_PER_TOKEN = 7
"""Letters that one token covers in a word of one case; low on purpose, most English words are one token."""
_PIECED_PER_TOKEN = 4
"""The same for the parts of camelCase."""
_FIRST_CJK = "\u2e80"
_REPEATED_RUN = 16
"""A token covers up to this many repetitions of one punctuation mark or blank."""


def estimate_tokens(text: str) -> int:
    """Tokens of `text`: 1.2 × cl100k_base's count in the median of real tool output, below it by at most a tenth."""
    return math.ceil(_MARGIN * sum(_piece_tokens(match) for match in _PIECE.finditer(text)))


def _piece_tokens(match: re.Match[str]) -> int:
    piece = match.group()
    match match.lastgroup:
        case "word":
            return _word_tokens(piece)
        case "digits" | "newlines":
            return 1
        case "blank" | "before_digit":
            return (len(piece) > 1) + (match.group("before_digit") is not None)
        case _:
            return _marks_tokens(piece)


def _word_tokens(word: str) -> int:
    if not word.isascii():
        return len(word) * 3 // 2 + 1 if max(word) >= _FIRST_CJK else len(word) // 2 + 1
    parts = _KNOWN_WORD.findall(word)
    if len(parts) > 1 and len(word) < 3 * len(parts):  # base64: letters that form no words
        return -(-len(word) * 3 // 4)
    return sum(-(-len(part) // (_PLAIN_PER_TOKEN if len(parts) == 1 else _PIECED_PER_TOKEN)) for part in parts)


def _marks_tokens(marks: str) -> int:
    if not marks.isascii():
        return len(marks.encode("utf-8", "surrogatepass"))
    if len(set(marks)) == 1:
        return 1 + len(marks) // _REPEATED_RUN
    return -(-len(marks) // 3)
