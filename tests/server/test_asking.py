"""A rule that asks: the user is asked through the client; where nobody can be asked it is a denial that says how."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio.lowlevel
import mcp_types as types
import pytest
from mcp import Client

from sandboxmcp.core.settings import load_settings
from sandboxmcp.server.app import make_server
from sandboxmcp.session import Session

pytestmark = pytest.mark.anyio
PACK = """[pack]
name = "asks"
[[rule]]
id = "touchy"
language = "shell"
command = "touch"
verdict = "ask"
because = "It makes a file."
instead = "Leave it."
[[rule.example]]
code = "touch x"
verdict = "ask"
"""


async def call(
    folder: Path, era: str, answer: types.ElicitResult | None, **arguments: Any
) -> tuple[Any, list[str], list[dict[str, Any]]]:
    """The result of one call, the questions that the client was asked, and the policy log."""
    (folder / "asks.toml").write_text(PACK)
    flags = {"data_dir": str(folder / "data"), "workspace": str(folder), "policy_packs": f"default,{folder}/asks.toml"}
    session = Session(load_settings(flags, environ={"HOME": str(folder)}, project=folder))
    asked: list[str] = []

    async def answering(context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        assert answer is not None
        return answer

    try:
        async with Client(make_server(session), mode=era, elicitation_callback=answering if answer else None) as client:
            code = {"language": "shell", "code": "touch made && echo done"}
            result = await client.call_tool("ctx_execute", code | arguments)
            while arguments and "running" in (await client.call_tool("ctx_jobs", {})).content[0].text:
                await anyio.lowlevel.checkpoint()
    finally:
        await session.close()
    lines = (folder / "data/policy.log").read_text().splitlines()
    return result, asked, [json.loads(line) for line in lines if '"verdict"' in line]


async def test_the_user_who_says_yes_lets_it_run(tmp_path: Path, era: str) -> None:
    yes = types.ElicitResult(action="accept", content={"allow": True})
    result, asked, log = await call(tmp_path, era, yes)
    assert (result.is_error, (tmp_path / "made").exists(), len(asked)) == (False, True, 1)
    assert "It makes a file." in asked[0] and "touch made" in asked[0]
    assert [(line["verdict"], line["asked"], line["rule"], line["program"]) for line in log] == [("allow", True, "touchy", "touch")]


@pytest.mark.parametrize("action", ["decline", "cancel", "accept"])
async def test_the_user_who_does_not_say_yes_is_obeyed(tmp_path: Path, era: str, action: Any) -> None:
    content: Any = {"allow": False} if action == "accept" else None
    result, asked, log = await call(tmp_path, era, types.ElicitResult(action=action, content=content))
    assert (result.is_error, (tmp_path / "made").exists(), len(asked)) == (True, False, 1)
    assert "The user was asked and said no" in result.content[0].text
    assert [line["verdict"] for line in log] == ["deny"]


async def test_where_nobody_can_be_asked_it_is_a_denial_that_says_how_to_allow_it(tmp_path: Path, era: str) -> None:
    result, asked, log = await call(tmp_path, era, None)
    text = result.content[0].text
    assert (result.is_error, (tmp_path / "made").exists(), asked) == (True, False, [])
    assert "Nobody could be asked" in text and "changing rule asks/touchy" in text
    assert [line["verdict"] for line in log] == ["deny"]


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_background_job_is_asked_about_before_its_call_ends(tmp_path: Path, era: str, allowed: bool) -> None:
    answer = types.ElicitResult(action="accept", content={"allow": allowed})
    result, asked, log = await call(tmp_path, era, answer, background=True)
    assert (result.is_error, len(asked), (tmp_path / "made").exists()) == (False, 1, allowed)
    assert [line["verdict"] for line in log] == ["allow" if allowed else "deny"]
