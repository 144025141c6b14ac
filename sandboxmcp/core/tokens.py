"""How many tokens a text costs the model, estimated so that it errs high.

No tokenizer is shipped: the tables of one weigh 75 MB and every model has its own. The text is cut into the pieces that
byte-pair tokenizers start from (a word with its leading blank, up to three digits, a run of punctuation, white space)
and each piece is charged what such a piece costs in tool output, rounded up. tests/core/test_tokens.py holds the
estimate against a real tokenizer (cl100k_base) on output of many kinds.
"""

from __future__ import annotations

import itertools
import math
import re

_MARGIN = 1.06
_BYTES_PER_TOKEN = 4
"""No text is charged less than its bytes by this: runs of blanks are cheap in some vocabularies and not in others."""
_PIECE = re.compile(
    r"(?P<word>[^\W\d_]+)|(?P<digits>\d{1,3})|(?P<newlines>\s*\n+)|(?P<blank>[^\S\n]+(?P<before_digit>(?=\d))?)|(?P<marks>(?:[^\w\s]|_)+)"
)
_CASED_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_ORDINARY = ((7, 1), (12, 2), (15, 4))
"""Letters of a word of one case, and the tokens they cost at most: most English words are one token. Longer ones are no words."""
_PIECED_PER_TOKEN = 4
"""Letters that one token covers in the parts of camelCase."""
_ACRONYM = 4
"""Longer runs of capitals, like lower-case ones that are too long for a word, cost three tokens in five letters."""
_REPEATED_RUN = 16
"""A token covers up to this many repetitions of one punctuation mark."""
_SCRIPTS = (
    (0x0250, 0.5),  # Latin with accents
    (0x0530, 0.6),  # Greek, Cyrillic
    (0x0700, 1.0),  # Armenian, Hebrew, Arabic
    (0x0E80, 2.0),  # scripts of India, Thai
    (0x2E80, 3.0),  # the rest of the alphabets: byte by byte
    (0xA000, 1.5),  # CJK, kana
    (0xAC00, 3.0),
    (0xD7B0, 1.5),  # Hangul
    (0x10000, 3.0),
)
"""First letter behind a block, and tokens per letter in it; beyond the last, four."""


def estimate_tokens(text: str) -> int:
    """Tokens of `text`, erring high: 1.2 × cl100k_base's count in the median of tool output, and never below bytes / 4."""
    pieces = math.ceil(_MARGIN * sum(_piece_tokens(match) for match in _PIECE.finditer(text)))
    return max(pieces, -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN))


def _piece_tokens(match: re.Match[str]) -> int:
    piece = match.group()
    match match.lastgroup:
        case "word":
            return _word_tokens(piece)
        case "digits" | "newlines":
            return 1
        case "blank" | "before_digit":
            return _blank_tokens(piece) + (match.group("before_digit") is not None)
        case _:
            return _marks_tokens(piece)


def _word_tokens(word: str) -> int:
    if not word.isascii():
        return math.ceil(sum(_letter_tokens(ord(letter)) for letter in word)) + 1
    if word.islower() or word.isupper() or word[1:].islower():
        return _one_case_tokens(word)
    parts = _CASED_PART.findall(word)
    if len(parts) > 1 and len(word) < 3 * len(parts):  # base64: letters that form no words
        return -(-len(word) * 3 // 4)
    return sum(_one_case_tokens(part) if part.isupper() else -(-len(part) // _PIECED_PER_TOKEN) for part in parts)


def _one_case_tokens(word: str) -> int:
    length = len(word)
    if not word.isupper():
        for longest, tokens in _ORDINARY:
            if length <= longest:
                return tokens
    return 1 if length <= _ACRONYM else -(-length * 3 // 5)


def _letter_tokens(code: int) -> float:
    return next((tokens for behind, tokens in _SCRIPTS if code < behind), 4.0)


def _blank_tokens(blank: str) -> int:
    """A run of one kind is a token or two; changes between tabs and blanks break it up."""
    if len(blank) == 1:
        return 0
    return 1 + (0 if len(set(blank)) == 1 else sum(one != other for one, other in itertools.pairwise(blank)))


def _marks_tokens(marks: str) -> int:
    if not marks.isascii():
        return len(marks.encode("utf-8", "surrogatepass"))
    if len(set(marks)) == 1:
        return 1 + len(marks) // _REPEATED_RUN
    return -(-len(marks) // 3)
