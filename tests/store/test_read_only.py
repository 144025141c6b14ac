"""A store that may only be read: it is searched and read, and says why it is not written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sandboxmcp.core.model import NewSource
from sandboxmcp.store.store import Store

USE = """
import pathlib, sys
from sandboxmcp.core.errors import ReadOnlyStore
from sandboxmcp.core.model import NewSource, Scope
from sandboxmcp.store.store import Store
with Store(pathlib.Path(sys.argv[1])) as store:
    (hit,) = store.search("zebar", Scope("p"))
    assert store.read_lines(hit.handle, 1, 1) == ["the zebra runs"] and store.read_only
    assert store.adopt() == []
    store.add_usage("ctx_search")
    new = NewSource("x", "execute", "p", "s")
    for change in (lambda: store.add(new, "y"), lambda: store.forget([hit.handle]), lambda: store.captures_dir):
        try:
            change()
        except ReadOnlyStore as error:
            assert "SANDBOXMCP_DATA_DIR" in str(error), error
        else:
            raise AssertionError(change)
"""
REMOUNTED = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


@pytest.mark.parametrize("left_open", [False, True], ids=["closed", "killed"])
def test_a_store_on_a_disk_that_may_only_be_read_is_searched(tmp_path: Path, left_open: bool) -> None:
    store = Store(tmp_path / "data")
    store.add(NewSource("x", "execute", "p", "s"), "the zebra runs\n")
    shutil.copytree(tmp_path / "data", tmp_path / "killed")
    store.close()
    folder = tmp_path / ("killed" if left_open else "data")
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", REMOUNTED, str(folder)]
    if shutil.which("unshare") is None or subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    done = subprocess.run([*command, sys.executable, "-c", USE, str(folder)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_store_in_a_folder_without_write_permission_is_searched(tmp_path: Path) -> None:
    with Store(tmp_path / "data") as store:
        store.add(NewSource("x", "execute", "p", "s"), "the zebra runs\n")
    for path in (tmp_path / "data", *(tmp_path / "data").rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        if os.access(tmp_path / "data", os.W_OK):
            pytest.skip("root may write everywhere")
        done = subprocess.run([sys.executable, "-c", USE, str(tmp_path / "data")], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
    finally:
        for path in (tmp_path / "data", *(tmp_path / "data").rglob("*")):
            path.chmod(0o755)
