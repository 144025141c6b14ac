"""The estimate against a real tokenizer (cl100k_base), on texts of the kinds that tools print, all made here."""

import base64
import csv
import inspect
import io
import json
import random
import statistics
from collections.abc import Callable

import bpe_openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxmcp.core.tokens import _ASCII, _WHOLE, costs_at_most, estimate_tokens

_CL100K = bpe_openai.get_encoding("cl100k_base")
_WORDS = (
    "the of and to in server request queue worker returns value configuration when each memory before error connection because "
    "file system between should would process pipeline database migration index a is it for with this that from have"
).split()


def _draw() -> random.Random:
    return random.Random(7)


def _prose() -> str:
    draw = _draw()
    return "\n\n".join(
        " ".join(" ".join(draw.choices(_WORDS, k=draw.randint(6, 16))).capitalize() + "." for _ in range(5)) for _ in range(12)
    )


def _python_code() -> str:
    return inspect.getsource(json.encoder) + inspect.getsource(csv)


def _log_with_addresses() -> str:
    draw = _draw()
    return "\n".join(
        f"2026-03-{n % 28 + 1:02d}T12:{n % 60:02d}:07.{n:03d}Z INFO gateway[{n}] 10.{n % 256}.{draw.randint(0, 255)}.7:4{n:04d} "
        f"GET /api/v1/users/{n} 200 {draw.randint(1, 900)}ms trace={draw.getrandbits(64):016x}"
        for n in range(200)
    )


def _hex_dump() -> str:
    draw = _draw()
    return "\n".join(f"{n * 16:08x}  " + " ".join(f"{draw.getrandbits(8):02x}" for _ in range(16)) for n in range(120))


def _csv_of_numbers() -> str:
    draw, out = _draw(), io.StringIO()
    csv.writer(out).writerows(
        [n, f"{draw.random() * 1000:.4f}", draw.randint(0, 10**7), f"{draw.gauss(0, 1):.6f}"] for n in range(300)
    )
    return out.getvalue()


def _json_records(indent: int | None) -> str:
    draw = _draw()
    records = [
        {"id": n, "userName": f"user_{n}", "active": n % 3 == 0, "tags": draw.sample(_WORDS, 3), "score": round(draw.random(), 3)}
        for n in range(80)
    ]
    return json.dumps(records, indent=indent)


def _chinese_japanese_korean() -> str:
    return "系统在处理请求时发生错误，请检查配置文件。データベースの移行が完了しました。서버가 요청을 처리하지 못했습니다.\n" * 20


def _cyrillic() -> str:
    return "Сервер не смог обработать запрос, потому что соединение с базой данных было закрыто раньше времени.\n" * 20


def _accented() -> str:
    return "Über die Größe der Dateien entscheidet der Schlüssel; déjà vérifié à l'été, señor, naïve façade.\n" * 20


def _base64() -> str:
    return base64.encodebytes(_draw().randbytes(3000)).decode()


def _manual_columns() -> str:
    return "\n".join(
        f"       -{short}, --{name}={name.upper()}\n              set the {name} of the {other}; {other} is used when absent"
        for short, name, other in zip("abcdefghij", _WORDS[4:14], _WORDS[10:20], strict=True)
    )


def _directory_listing() -> str:
    draw = _draw()
    return "\n".join(
        f"-rw-r--r--  1 root root {draw.randint(10, 10**6):>8} Mar {n % 28 + 1:>2} 09:{n % 60:02d} "
        f"/usr/lib/python3/dist-packages/{draw.choice(_WORDS)}_{draw.choice(_WORDS)}-{n % 9}.{n % 7}.py"
        for n in range(120)
    )


def _traceback() -> str:
    frames = "\n".join(
        f'  File "/srv/app/service/module_{n}.py", line {n * 37}, in handle\n    return self._next(request, *args, **kwargs)'
        for n in range(30)
    )
    return f"Traceback (most recent call last):\n{frames}\nValueError: invalid literal for int() with base 10: 'x'"


def _table_with_rules() -> str:
    rule = "+" + "-" * 24 + "+" + "-" * 12 + "+"
    return "\n".join(f"{rule}\n| {word:<22} | {len(word) * 977:>10} |" for word in _WORDS) + f"\n{rule}"


TEXTS: dict[str, Callable[[], str]] = {
    "prose": _prose,
    "python": _python_code,
    "log": _log_with_addresses,
    "hex dump": _hex_dump,
    "csv": _csv_of_numbers,
    "json": lambda: _json_records(None),
    "indented json": lambda: _json_records(2),
    "cjk": _chinese_japanese_korean,
    "cyrillic": _cyrillic,
    "accented": _accented,
    "base64": _base64,
    "manual": _manual_columns,
    "listing": _directory_listing,
    "traceback": _traceback,
    "table": _table_with_rules,
}


def _ratio(text: str) -> float:
    return estimate_tokens(text) / len(_CL100K.encode(text))


@pytest.mark.parametrize("kind", TEXTS)
def test_the_estimate_is_at_most_a_tenth_too_low_and_not_wildly_high(kind: str) -> None:
    assert 0.9 <= _ratio(TEXTS[kind]()) <= 2.5


def test_the_estimate_errs_high_on_most_kinds_of_text() -> None:
    ratios = [_ratio(make()) for make in TEXTS.values()]

    assert 1.0 <= statistics.median(ratios) <= 1.35


def test_no_text_costs_nothing() -> None:
    assert (estimate_tokens(""), estimate_tokens("a")) == (0, 2)


@given(st.text(), st.text())
def test_joining_two_texts_costs_about_what_they_cost_apart(left: str, right: str) -> None:
    assert estimate_tokens(left + right) <= estimate_tokens(left) + estimate_tokens(right) + 3


@given(st.text())
def test_any_text_has_a_cost_that_is_finite_and_not_negative(text: str) -> None:
    assert 0 <= estimate_tokens(text) <= 8 * len(text) + 1


@given(st.text(st.characters(max_codepoint=127) | st.sampled_from(" \n\n_.,-aB9"), max_size=40))
def test_a_text_of_ascii_is_cut_into_the_pieces_of_any_text(text: str) -> None:
    assert _ASCII.findall(text) == _WHOLE.findall(text)


@given(st.text(max_size=40), st.integers(0, 200))
def test_what_a_text_costs_at_most_may_be_told_by_its_length(text: str, tokens: int) -> None:
    assert costs_at_most(text, tokens) == (estimate_tokens(text) <= tokens)
