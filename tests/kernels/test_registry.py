"""What other processes are told of named kernels."""

from __future__ import annotations

import json
import os
from pathlib import Path

from sandboxmcp.kernels.registry import Registry, shared_kernels

CONNECTION = {"transport": "ipc", "ip": "/nowhere", "key": "secret", "shell_port": 1}


def test_an_entry_is_a_private_connection_file_that_goes_with_its_kernel(tmp_path: Path) -> None:
    registry = Registry(tmp_path, Path("/project"), "s1")
    registry.add("work", "python", CONNECTION)
    (kernel,) = shared_kernels(tmp_path)
    assert (kernel.name, kernel.language, kernel.pid, kernel.workspace) == ("work", "python", os.getpid(), "/project")
    assert {**json.loads(kernel.file.read_text()), "sandboxmcp": None} == {**CONNECTION, "sandboxmcp": None}
    assert (oct(kernel.file.stat().st_mode)[-3:], oct(registry.folder.stat().st_mode)[-3:]) == ("600", "700")
    registry.remove("work")
    assert shared_kernels(tmp_path) == []


def test_a_kernel_started_anew_replaces_its_entry(tmp_path: Path) -> None:
    registry = Registry(tmp_path, Path("/project"), "s1")
    registry.add("work", "python", CONNECTION)
    registry.add("work", "python", {**CONNECTION, "key": "other"})
    (kernel,) = shared_kernels(tmp_path)
    assert json.loads(kernel.file.read_text())["key"] == "other"


def test_an_entry_of_a_process_whose_number_is_used_again_is_removed(tmp_path: Path) -> None:
    Registry(tmp_path, Path("/project"), "s1").add("work", "python", CONNECTION)
    (kernel,) = shared_kernels(tmp_path)
    facts = json.loads(kernel.file.read_text())
    facts["sandboxmcp"]["started"] = "1"
    kernel.file.write_text(json.dumps(facts))
    assert (shared_kernels(tmp_path), kernel.file.exists()) == ([], False)


def test_a_file_that_is_half_written_is_no_kernel(tmp_path: Path) -> None:
    registry = Registry(tmp_path, Path("/project"), "s1")
    registry.add("work", "python", CONNECTION)
    (registry.folder / "1-half.json").write_text('{"transport": "ip')
    assert [kernel.name for kernel in shared_kernels(tmp_path)] == ["work"]


def test_a_folder_that_cannot_be_made_is_no_reason_to_do_without_kernels(tmp_path: Path) -> None:
    (tmp_path / "kernels").write_text("in the way")
    Registry(tmp_path, Path("/project"), "s1").add("work", "python", CONNECTION)
    assert shared_kernels(tmp_path) == []


def test_two_sessions_of_one_process_may_each_have_a_kernel_of_one_name(tmp_path: Path) -> None:
    first, second = (Registry(tmp_path, Path(f"/{name}"), name) for name in ("one", "two"))
    for registry in (first, second):
        registry.add("work", "python", CONNECTION)
    assert {(kernel.workspace, kernel.door.name) for kernel in shared_kernels(tmp_path)} == {
        ("/one", f"one.{os.getpid()}.door"),
        ("/two", f"two.{os.getpid()}.door"),
    }
    first.close()
    assert [kernel.workspace for kernel in shared_kernels(tmp_path)] == ["/two"]


def test_the_door_of_a_process_that_is_gone_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    for name in (f"here.{os.getpid()}.door", "gone.4194305.door", "4194305.door"):
        (folder / name).touch()
    assert (shared_kernels(tmp_path), [door.name for door in folder.iterdir()]) == ([], [f"here.{os.getpid()}.door"])
