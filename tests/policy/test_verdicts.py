"""The tables shell.toml and python.toml: evasions that must be denied, harmless code that must not be."""

import tomllib
from pathlib import Path

import pytest

from sandboxmcp.policy.engine import Engine


def _cases(language: str, verdict: str) -> list[object]:
    table = tomllib.loads((Path(__file__).parent / f"{language}.toml").read_text())[verdict]
    return [pytest.param(language, code, id=f"{language}-{name}") for name, code in table.items()]


@pytest.mark.parametrize(("language", "code"), _cases("shell", "denied") + _cases("python", "denied"))
def test_an_evasion_is_denied(language: str, code: str, engine: Engine) -> None:
    assert engine.judge(code, language).action == "deny"


@pytest.mark.parametrize(("language", "code"), _cases("shell", "allowed") + _cases("python", "allowed"))
def test_harmless_code_is_allowed(language: str, code: str, engine: Engine) -> None:
    verdict = engine.judge(code, language)
    assert (verdict.action, verdict.rule) == ("allow", None)


@pytest.mark.parametrize(("language", "code"), _cases("shell", "denied") + _cases("python", "denied"))
def test_a_denial_on_the_host_is_the_same_as_in_a_kernel(language: str, code: str, engine: Engine) -> None:
    assert engine.judge(code, language, "host") == engine.judge(code, language)
