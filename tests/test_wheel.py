"""The wheel as a user meets it: built, installed into a bare environment, started from `/` with an empty home."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    _run([sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(out), str(ROOT)])
    (built,) = out.glob("*.whl")
    return built


@dataclass(frozen=True)
class Installed:
    """A virtual environment that holds the wheel and what it depends on, nothing else."""

    scripts: Path
    home: Path
    workspace: Path

    def sandboxmcp(self, *arguments: str, status: int = 0) -> str:
        """What the command prints on stdout when it is started from `/` in an environment that says next to nothing."""
        environ = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "SANDBOXMCP_WORKSPACE": str(self.workspace)}
        return _run([str(self.scripts / "sandboxmcp"), *arguments], environ, status)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("bare")
    python = folder / "env" / "bin" / "python"
    uv = [sys.executable, "-m", "uv"]
    _run([*uv, "venv", "--quiet", "--python", sys.executable, str(folder / "env")], os.environ)
    what = str(wheel) if shutil.which("bwrap") else f"{wheel}[bwrap]"
    constraints = ["--constraint", str(ROOT / "constraints-dev.txt")]
    _run([*uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python), *constraints, what], os.environ)
    for name in ("home", "workspace"):
        (folder / name).mkdir()
    return Installed(python.parent, folder / "home", folder / "workspace")


def _run(command: list[str], environ: Mapping[str, str] | None = None, status: int = 0) -> str:
    done = subprocess.run(command, cwd="/", env=environ, capture_output=True, text=True, timeout=240)
    assert done.returncode == status, f"{command} ended {done.returncode}: {done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_wheel_carries_every_file_of_the_three_rooms_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    places = {"sandboxmcp": "sandboxmcp", "kernels": "sandboxmcp/_data/kernels", "policies": "sandboxmcp/_data/policies"}
    sources = {
        f"{target}/{file.relative_to(ROOT / folder)}"
        for folder, target in places.items()
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }

    assert names == sources


def test_the_wheel_names_its_licence_its_command_and_its_provisioner(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (entry_points,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("entry_points.txt"))
        licences = [name for name in archive.namelist() if name.endswith("licenses/LICENSE")]

    assert "sandboxmcp = sandboxmcp.__main__:main" in entry_points
    assert "[jupyter_client.kernel_provisioners]\nsandboxmcp-bwrap = " in entry_points
    assert len(licences) == 1


def test_the_installed_command_says_its_version(installed: Installed) -> None:
    assert VERSION in installed.sandboxmcp("version")


def test_the_data_folders_of_an_installed_wheel_are_inside_the_package(installed: Installed) -> None:
    code = "from sandboxmcp.core.resources import data_folder as d; print(d('kernels'), d('policies'))"
    printed = _run([str(installed.scripts / "python"), "-c", code], {"HOME": str(installed.home)}).split()

    assert [Path(path).parts[-3:] for path in printed] == [("sandboxmcp", "_data", "kernels"), ("sandboxmcp", "_data", "policies")]


def test_the_installed_doctor_finds_everything_well(sandbox: None, installed: Installed) -> None:
    found = json.loads(installed.sandboxmcp("doctor", "--json"))

    assert (found["ok"], [check for check in found["checks"] if not check["ok"] and not check["optional"]]) == (True, [])


def test_the_installed_command_runs_a_script_in_the_sandbox(sandbox: None, installed: Installed) -> None:
    assert "| 42\n" in installed.sandboxmcp("run", "-c", "print(6*7)")


def test_the_installed_command_says_that_a_system_folder_is_no_workspace(installed: Installed) -> None:
    environ = {"HOME": str(installed.home), "PATH": "/usr/bin:/bin"}
    command = [str(installed.scripts / "sandboxmcp"), "run", "-c", "print(6*7)"]
    done = subprocess.run(command, cwd="/", env=environ, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, "SANDBOXMCP_WORKSPACE" in done.stderr, "Traceback" in done.stderr) == (2, True, False)
