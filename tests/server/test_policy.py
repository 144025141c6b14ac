"""The policy as a client of the real server meets it: what is broken stops everything, what is secret is masked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from sandboxmcp.core.settings import load_settings
from sandboxmcp.server.app import make_server
from sandboxmcp.session import Session

pytestmark = pytest.mark.anyio
BROKEN = {
    "broken-pack": ("because", "becuase", "own.toml:8: unknown key 'becuase'"),
    "contradicting-example": (
        'verdict = "deny"\nbecause',
        'verdict = "ask"\nbecause',
        "own.toml:10: rule 'no-make': the example is ask by no-make, not deny",
    ),
    "loosening": (
        'verdict = "deny"',
        'verdict = "allow"',
        "the project's rule 'no-make' allows",
    ),
}
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


async def run(folder: Path, era: str, *calls: tuple[str, dict[str, Any]]) -> list[tuple[bool, str]]:
    """For each call whether it is an error, and its text."""
    session = Session(load_settings({"data_dir": str(folder / "data"), "workspace": str(folder)}, environ={}, project=folder))
    try:
        async with Client(make_server(session), mode=era) as client:
            results = [await client.call_tool(name, arguments) for name, arguments in calls]
    finally:
        await session.close()
    return [(result.is_error, result.content[0].text) for result in results]


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))


@pytest.mark.parametrize(("old", "new", "what"), BROKEN.values(), ids=BROKEN)
async def test_a_broken_pack_stops_everything_and_is_named(
    old: str, new: str, what: str, no_make: str, tmp_path: Path, era: str
) -> None:
    await assert_stopped(tmp_path, era, ".sandboxmcp/policies/own.toml", no_make.replace(old, new), what)


async def test_broken_settings_of_claude_code_stop_everything_and_are_named(tmp_path: Path, era: str) -> None:
    await assert_stopped(tmp_path, era, ".claude/settings.json", '{"permissions": [', "Claude Code's settings are not JSON")


HEREDOCS = {
    "redirected": "cat <<EOF > n.txt; rm victim.txt\nbody\nEOF",
    "background": "cat <<EOF > n.txt & rm victim.txt\nbody\nEOF",
    "piped": "cat <<EOF | tee n.txt; rm victim.txt\nbody\nEOF",
    "two": "cat <<A <<B; rm victim.txt\na\nA\nb\nB",
}


@pytest.mark.parametrize("code", HEREDOCS.values(), ids=HEREDOCS)
async def test_what_stands_behind_a_heredoc_on_its_line_is_judged(code: str, tmp_path: Path, era: str) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text('{"permissions": {"deny": ["Bash(rm:*)"]}}')
    (tmp_path / "victim.txt").touch()
    harmless = code.replace("rm victim.txt", "touch made.txt")
    (denied, said), (failed, _) = await run(
        tmp_path, era, *(("ctx_execute", {"language": "shell", "code": one}) for one in (code, harmless))
    )
    assert (denied, failed, "Bash(rm:*)" in said) == (True, False, True)
    assert ((tmp_path / "victim.txt").exists(), (tmp_path / "made.txt").exists()) == (True, True)


async def assert_stopped(folder: Path, era: str, file: str, text: str, what: str) -> None:
    (folder / file).parent.mkdir(parents=True)
    (folder / file).write_text(text)
    [(is_error, said)] = await run(folder, era, ("ctx_execute", {"language": "shell", "code": "touch made"}))
    assert (is_error, what in " ".join(said.split()), (folder / "made").exists()) == (True, True, False)


async def test_a_credential_is_neither_returned_nor_found(tmp_path: Path, era: str) -> None:
    code = f"print('token', {TOKEN[:10]!r} + {TOKEN[10:]!r})"
    (_, said), (_, found) = await run(
        tmp_path, era, ("ctx_execute", {"code": code}), ("ctx_search", {"queries": [TOKEN[4:], "token"]})
    )
    assert (TOKEN in said, "[redacted:github-token]" in said, TOKEN in found) == (False, True, False)
    kept = [file.read_bytes() for file in (tmp_path / "data").rglob("*") if file.is_file() and file.name != "policy.log"]
    assert [file for file in kept if TOKEN.encode() in file] == []


async def test_what_a_project_denies_is_denied_by_its_own_rule(no_make: str, tmp_path: Path, era: str) -> None:
    (tmp_path / ".sandboxmcp/policies").mkdir(parents=True)
    (tmp_path / ".sandboxmcp/policies/own.toml").write_text(no_make)
    [(is_error, said)] = await run(tmp_path, era, ("ctx_execute", {"language": "shell", "code": "make all"}))
    assert (is_error, "rule no-make" in said) == (True, True)
