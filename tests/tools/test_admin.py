"""What ctx_doctor says of a store that takes nothing in, or waits for something."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from sandboxmcp.session import Session
from sandboxmcp.tools.admin import doctor
from sandboxmcp.tools.knowledge import search

EXAMINE = """
import pathlib, sys
import anyio
from sandboxmcp.core.settings import load_settings
from sandboxmcp.session import Session
from sandboxmcp.tools.admin import doctor
place = pathlib.Path(sys.argv[1])
flags = {"data_dir": str(place), "workspace": str(place.parent)}
session = Session(load_settings(flags, environ={"HOME": str(place), "PATH": "/usr/bin:/bin"}, project=place.parent))
if sys.argv[2] == "full":
    session.store.close()
    del session.__dict__["_store"]
    with open(place / "filler", "wb", buffering=0) as filler:
        try:
            while filler.write(b"x" * 4096):
                pass
        except OSError:
            pass
    (place / "reserve").unlink(missing_ok=True)
told = {check["name"]: check for check in anyio.run(doctor, session).structured["checks"]}
print(told["store"]["ok"], told["store"]["detail"])
"""
READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
SMALL = 'mount -t tmpfs -o size=3m none "$0" && exec "$@"'


@pytest.mark.parametrize(("mount", "state"), [(READ_ONLY, "read-only"), (SMALL, "full")])
def test_doctor_reports_a_store_that_takes_nothing_in(tmp_path: Path, mount: str, state: str) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, str(folder)]
    if shutil.which("unshare") is None or subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    done = subprocess.run([*command, sys.executable, "-c", EXAMINE, str(folder), state], capture_output=True, text=True)
    assert (done.returncode, done.stdout.startswith("False "), state.split("-")[0] in done.stdout.lower()) == (0, True, True), done


def test_outputs_that_could_not_be_stored_are_told(session: Session) -> None:
    (session.settings.data_dir / "incoming" / "a_killed_one" / "no_file").mkdir(parents=True)
    assert (
        search(session, ["zebra"], budget_tokens=500).text.split("\n")[-1].startswith("1 captured output could not be stored yet")
    )
    checks = {check["name"]: check for check in anyio.run(doctor, session).structured["checks"]}
    assert "1 captured output could not be stored yet" in checks["store"]["detail"]


def test_a_misspelt_variable_is_told_by_doctor_and_is_no_failure(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDBOXMCP_LIMTS_MEMORY", "1GiB")
    told = [check for check in anyio.run(doctor, session).structured["checks"] if check["name"] == "settings"]
    assert [(check["ok"], check["optional"], check["detail"].split("; ")[1]) for check in told] == [
        (False, True, "did you mean SANDBOXMCP_LIMITS_MEMORY?")
    ]
