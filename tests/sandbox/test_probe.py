"""The probe builds a sandbox wall by wall; one that fails names a remedy, and then nothing is run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sandboxmcp.core.errors import SandboxUnavailable
from sandboxmcp.core.settings import load_settings
from sandboxmcp.kernels.runner import Runner
from sandboxmcp.sandbox import locate, probe
from sandboxmcp.sandbox.probe import probe_sandbox


def settings_for(workspace: Path):
    return load_settings(flags={"workspace": str(workspace)}, environ={"HOME": str(workspace)}, project=workspace)


@pytest.fixture
def broken_bubblewrap(monkeypatch, tmp_path):
    """A machine whose only bubblewrap says which version it is and builds nothing."""
    program = tmp_path / "bwrap"
    program.write_text('#!/bin/sh\n[ "$1" = --version ] && echo bubblewrap 9 && exit 0\necho "bwrap: no luck" >&2\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setattr(locate, "_SYSTEM", (str(program),))
    monkeypatch.setattr(locate, "_packed", lambda: ())
    return program


def test_every_wall_stands_here(sandbox, tmp_path):
    checks = probe_sandbox(settings_for(tmp_path))
    assert [(check.name, check.detail) for check in checks if not check.ok] == []
    assert {"platform", "bubblewrap", "user namespace", "network namespace", "whole sandbox"} <= {check.name for check in checks}


def test_a_wall_that_cannot_be_built_is_the_last_check_and_names_a_remedy(broken_bubblewrap, tmp_path):
    checks = probe_sandbox(settings_for(tmp_path))
    assert [check.ok for check in checks] == [True] * (len(checks) - 1) + [False]
    assert (checks[-1].name, checks[-1].detail, bool(checks[-1].fix)) == ("user namespace", "bwrap: no luck", True)


def test_without_a_sandbox_nothing_runs(broken_bubblewrap, tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()

    async def run() -> None:
        runner = Runner(settings_for(workspace), tmp_path)
        async with runner.session():
            pass

    with pytest.raises(SandboxUnavailable):
        asyncio.run(run())
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("bwrap: Creating new namespace failed: nesting depth (ENOSPC)", "user.max_user_namespaces"),
        ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", "AppArmor"),
        ("bwrap: setting up uid map: Permission denied", "AppArmor"),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "systempaths=unconfined"),
        ("bwrap: setting up uid map: Read-only file system", "/proc of its own"),
        ("bwrap: Creating new namespace failed: Resource temporarily unavailable", "ulimit -u"),
        ("words of a future version", "seccomp=unconfined"),
    ],
)
def test_words_choose_among_remedies(monkeypatch, said, remedy):
    monkeypatch.setattr(probe, "_switch", lambda _: "")
    assert remedy in probe._remedy(said)


@pytest.mark.parametrize(
    ("switch", "value", "remedy"),
    [
        ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces=10000"),
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "unprivileged_userns_clone=1"),
    ],
)
def test_the_machines_own_switches_come_before_words(monkeypatch, switch, value, remedy):
    monkeypatch.setattr(probe, "_switch", lambda path: value if path == switch else "")
    assert remedy in probe._remedy("words of a future version")
