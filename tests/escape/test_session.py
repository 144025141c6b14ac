"""What one item can leave for the next one of its session. The session is the boundary, so some of this is by ruling; what
would change code that the next script did not ask for is refused."""

from __future__ import annotations

import time

import pytest

from sandboxmcp.core.model import Script
from sandboxmcp.sandbox.usage import run_times

PLANT = {
    "an IPython startup file": ("~/.ipython/profile_default/startup/00.py", "python"),
    "an IPython configuration": ("~/.ipython/profile_default/ipython_kernel_config.py", "python"),
    "an IPython configuration in the workspace": ("ipython_kernel_config.py", "python"),
    "a module beside the script's own imports": ("json.py", "python"),
    "usercustomize in the home": ("~/.local/lib/python{v}/site-packages/usercustomize.py", "python"),
    "usercustomize in the workspace": ("usercustomize.py", "python"),
    "sitecustomize in /tmp": ("/tmp/sitecustomize.py", "python"),
    "a .bashrc": ("~/.bashrc", "shell"),
    "a .profile": ("~/.profile", "shell"),
    "a .bash_profile": ("~/.bash_profile", "shell"),
}


@pytest.mark.parametrize("what", PLANT)
def test_nothing_planted_runs_in_the_next_item(make_inside, what):
    own = make_inside()
    path, language = PLANT[what]
    body = "open('/tmp/ran', 'w')" if path.endswith(".py") else "touch /tmp/ran"
    code = (
        "import os, sys\n"
        f"path = os.path.expanduser({path!r}.format(v='%d.%d' % sys.version_info[:2]))\n"
        f"os.makedirs(os.path.dirname(path) or '.', exist_ok=True)\nopen(path, 'w').write({body!r})\nNone"
    )
    assert own.run(code).outcome.status == "ok"
    for _ in range(2):  # the first may still get a kernel that was started before
        own.run("import json" if language == "python" else "true", language)
    assert own.run("ls /tmp/ran", "shell").outcome.status == "failed"


SIBLING = """
import os
for pid in filter(str.isdigit, os.listdir("/proc")):
    if int(pid) in (1, 2, os.getpid(), os.getppid()): continue
    try:
        open(f"/proc/{pid}/mem", "r+b").close()
        print("memory")
        fd = os.open(f"/proc/{pid}/fd/1", os.O_WRONLY)
        os.write(fd, b"forged")
        print("stdout")
    except OSError: pass
"""


def test_the_kernel_that_waits_for_the_next_script_is_out_of_reach(make_inside):
    own = make_inside()
    own.run("1")
    own.run("1")
    wait_for_spare = "until [ $(ls -d /proc/[0-9]* | wc -l) -ge 4 ]; do sleep 0.01; done\n"
    ran = own.run(f"{wait_for_spare}/usr/bin/env python3 - <<'END'\n{SIBLING}\nEND", "shell")
    assert ran.stdout == b""
    assert own.run("print('honest')").stdout == b"honest\n"


def test_the_home_and_tmp_of_a_session_are_not_those_of_another(make_inside):
    one, other = make_inside(), make_inside()
    one.run("touch /tmp/left ~/left /dev/shm/left", "shell")
    assert other.run("ls /tmp ~ /dev/shm", "shell").text.count("left") == 0


def test_the_guests_code_and_the_interpreter_stay_as_they_are(inside):
    harm = "for f in /opt/sandboxmcp/guest /opt/sandboxmcp /opt; do mv $f $f.old; touch $f/x; rm -rf $f; done 2>/dev/null"
    code = f"{harm}; ls /opt/sandboxmcp/guest"
    assert {"kernel.py", "launcher.py"} <= set(inside.run(code, "shell").text.split())
    assert inside.run("print('still')").stdout == b"still\n"


PLANT_LATER = """
import os, threading, time
def plant():
    while not os.path.exists("go"): time.sleep(0.01)
    open(".envrc", "w").write("evil")
threading.Thread(target=plant).start()
"""


async def within_kernel(own, code):
    async with own.runner.session() as session:
        return await session.run_in("k", Script("test", "python", code, 20.0))


def in_kernel(own, code):
    return own.wait(within_kernel(own, code))


def until(met):
    deadline = time.monotonic() + 20
    while not met():
        assert time.monotonic() < deadline


@pytest.mark.parametrize("then", ["the next call", "the end"])
def test_what_an_idle_kernel_plants_is_moved_aside(make_inside, then):
    own = make_inside()
    in_kernel(own, PLANT_LATER)
    (own.workspace / "go").touch()
    until(lambda: list(own.workspace.glob(".envrc*")))
    if then == "the next call":
        in_kernel(own, "None")
    own.wait(own.runner.close())
    assert sorted(path.name for path in own.workspace.iterdir()) == [".envrc.quarantined-1", "go"]


def test_what_a_cancelled_call_in_a_kernel_planted_is_moved_aside(make_inside):
    own = make_inside()
    in_kernel(own, "None")
    running = own.start(within_kernel(own, "open('.envrc', 'w').close()\nopen('ready', 'w').close()\nwhile True: pass"))
    until((own.workspace / "ready").exists)
    running.cancel()
    until(lambda: not (own.workspace / ".envrc").exists())


def test_what_the_host_makes_while_a_kernel_is_still_is_left(make_inside):
    own = make_inside()
    in_kernel(own, "None")
    session = own.runner.running
    until(lambda: run_times(session.named.pids()) == run_times(session.named.pids()))
    own.wait(session.guarded())
    (own.workspace / ".envrc").touch()
    own.wait(own.runner.close())
    assert [path.name for path in own.workspace.iterdir()] == [".envrc"]
