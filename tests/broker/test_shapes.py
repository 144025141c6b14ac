"""Command lines of programs with shapes: what is run in the box instead. Pure, on the shipped pack."""

from __future__ import annotations

import pytest

from sandboxmcp.policy.engine import load_engine
from sandboxmcp.policy.programs.brokered_programs import read_program
from sandboxmcp.policy.programs.order import Refusal

PROGRAMS = load_engine(["research"]).brokers()


def test_an_output_folder_is_replaced_by_the_boxs_own_and_a_file_by_its_copy():
    order = read_program(PROGRAMS["pip"], ["download", "-d", "../wheels", "--requirement=r.txt", "-q", "demo[x]>=1"])
    assert order is not None
    fixed = ("download", "--only-binary", ":all:", "--dest", "/tmp/results")
    assert order.argv == (*fixed, "--requirement", "/run/inputs/0", "--quiet", "demo[x]>=1")
    assert (order.inputs, order.results) == ({"/run/inputs/0": "r.txt"}, "../wheels")


def test_results_without_a_folder_go_to_the_working_folder():
    order = read_program(PROGRAMS["npm"], ["pack", "demo"])
    assert order is not None and (order.results, order.inputs) == (".", {})


def test_a_command_line_without_a_shape_runs_inside_where_the_pack_says_so():
    assert read_program(PROGRAMS["npm"], ["run", "build"]) is None
    with pytest.raises(Refusal, match="have no shape that is allowed here; allowed are: gh issue list, "):
        read_program(PROGRAMS["gh"], ["repo", "delete"])


REFUSED = [
    ("pip", ["download", "--", "-e", "x"]),
    ("pip", ["download", "./here"]),
    ("pip", ["download", "demo", "--index-url", "https://x"]),
    ("pip", ["download", "demo @ https://x/y.whl"]),
    ("pip", ["download", "--platform", "-r/etc/passwd", "demo"]),
    ("pip", ["download", *["demo"] * 10]),
    ("pip", ["download", "-d", ""]),
    ("uv", ["pip", "install", "demo"]),
    ("uv", ["pip", "install", "--target", "x", "--editable", "."]),
    ("npm", ["pack"]),
    ("npm", ["pack", "."]),
    ("npm", ["pack", "demo", "--registry=https://x"]),
    ("gh", ["api", "repos/x", "--input", "f"]),
    ("gh", ["api", "-X", "POST", "repos/x"]),
    ("gh", ["issue", "list", "--web"]),
    ("git-remote-broker", ["origin", "file:///etc"]),
    ("git-remote-broker", ["origin", "https://x/y", "z"]),
    ("git-remote-broker", ["--upload-pack=evil", "https://x/y"]),
]


@pytest.mark.parametrize(("program", "arguments"), REFUSED, ids=lambda value: " ".join(value) if isinstance(value, list) else value)
def test_what_does_not_fit_its_shape_is_refused(program, arguments):
    with pytest.raises(Refusal):
        read_program(PROGRAMS[program], arguments)
