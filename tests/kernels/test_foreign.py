"""Kernelspecs of the user's own: the same sandbox, and a clear word on each way in which one can be broken."""

from __future__ import annotations

import importlib.util
import json
import sys
from typing import Any

import pytest

from sandboxmcp.core.errors import KernelError, UsageError
from sandboxmcp.core.model import Script
from sandboxmcp.render.reasons import said

FROM_PYPI = {"xpython": "xpython", "bash": "bash_kernel"}
"""Kernels that other people publish → the module that they are."""
SPECS: dict[str, Any] = {
    "bash": {"argv": ["python", "-m", "bash_kernel", "-f", "{connection_file}"], "language": "bash"},
    "theirs": {"argv": ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"], "language": "python"},
    "named": {
        "argv": ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "language": "python",
        "metadata": {"kernel_provisioner": {"provisioner_name": "local-provisioner"}},
    },
    "versioned": {
        "argv": ["python{}.{}".format(*sys.version_info), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "language": "python",
    },
    "missing": {"argv": ["/no/such/program", "{connection_file}"], "language": "x"},
    "empty": {"argv": [], "language": "x"},
    "dies": {"argv": ["/bin/sh", "-c", "echo I cannot start >&2; exit 3", "{connection_file}"], "language": "x"},
    "silent": {"argv": ["/bin/sleep", "600"], "language": "x"},
}


@pytest.fixture(scope="module")
def theirs(make_inside, tmp_path_factory):
    """A sandbox in which every kernelspec above is allowed; Jupyter finds them through JUPYTER_PATH."""
    folder = tmp_path_factory.mktemp("jupyter")
    for name, spec in SPECS.items():
        (folder / "kernels" / name).mkdir(parents=True)
        (folder / "kernels" / name / "kernel.json").write_text(json.dumps({"display_name": name, **spec}))
    (folder / "kernels/garbled").mkdir()
    (folder / "kernels/garbled/kernel.json").write_text("{")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(folder))
        yield make_inside(kernelspecs=[*SPECS, "xpython", "garbled", "absent"], kernel_start_s=8)


@pytest.mark.parametrize("name", ["theirs", "named"])
def test_another_kernel_runs_in_the_sandbox_whatever_provisioner_it_names(theirs, name):
    code = "import os, socket, sys\nprint(socket.gethostname(), os.getuid())\nprint('err', file=sys.stderr)\n6 * 7"
    ran = theirs.run(code, name)
    assert (ran.outcome.status, ran.text, ran.stderr) == ("ok", "sandbox 1000\n42\n", b"err\n")


def test_its_errors_and_rich_results_arrive(theirs):
    ran = theirs.run("from IPython.display import HTML, display\ndisplay(HTML('<b>x</b>'))\n1 / 0", "theirs")
    assert (ran.outcome.exit_code, [one.mime for one in ran.outcome.artifacts]) == (1, ["text/html"])
    assert "ZeroDivisionError" in ran.stderr.decode()


def test_its_output_is_not_lost_when_there_is_much_of_it(theirs):
    assert theirs.run("for i in range(50_000): print(i)", "theirs").stdout == b"".join(b"%d\n" % i for i in range(50_000))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "the kernel died at its start(.|\n)*/no/such/program: No such file or directory"),
        ("dies", "the kernel died at its start(.|\n)*I cannot start"),
        ("silent", "the kernel did not answer within 8 s"),
        ("empty", "has an empty argv"),
        ("garbled", "cannot be used"),
    ],
)
def test_a_broken_kernelspec_is_a_clear_error(theirs, name, message):
    with pytest.raises(KernelError, match=message):
        theirs.run("1", name)


def test_a_kernelspec_that_is_not_there_names_the_ones_that_are(theirs):
    with pytest.raises(UsageError, match=r"there is no kernel 'absent'.*sandboxmcp-python"):
        theirs.run("1", "absent")


def test_a_kernelspec_that_is_not_allowed_is_an_unknown_language(inside):
    outcome = inside.run("1", "theirs").outcome
    assert (outcome.status, said(outcome.reasons).split(".")[0]) == ("skipped", "unknown language 'theirs'")


def test_the_sandbox_goes_on_after_broken_kernels(theirs):
    assert theirs.run("print(1)").stdout == b"1\n"


CODE = {
    "xpython": ("x = 41", "import os, socket\nprint(x + 1, socket.gethostname(), os.getuid())"),
    "bash": ("x=41", "echo $((x + 1)) $(hostname) $(id -u)"),
}
FOREVER = {"xpython": "while True: pass", "bash": "while :; do :; done"}


@pytest.fixture(params=FROM_PYPI)
def published(request):
    """The name of a kernelspec whose kernel is installed here."""
    if importlib.util.find_spec(FROM_PYPI[request.param]) is None:
        pytest.skip(f"{FROM_PYPI[request.param]} is not installed")
    return request.param


def test_a_published_kernel_runs_in_the_sandbox_and_keeps_its_variables(theirs, published):
    async def both():
        async with theirs.runner.session() as session:
            name = f"from-{published}"
            outcomes = [await session.run_in(name, Script("x", published, code, 30)) for code in CODE[published]]
            await session.named.stop(name)
            return outcomes

    first, second = theirs.wait(both())
    assert (first.status, second.status, second.stdout.path.read_text()) == ("ok", "ok", "42 sandbox 1000\n")


def test_a_published_kernel_ends_with_its_time(theirs, published):
    assert theirs.run(FOREVER[published], published, timeout_s=2).outcome.status == "timeout"
    assert theirs.run(CODE[published][0], published).outcome.status == "ok"


def test_the_interpreter_that_a_kernelspec_names_by_its_version_is_ours(theirs):
    assert theirs.run("import sys\nprint(sys.prefix)", "versioned").text == f"{sys.prefix}\n"
