"""What many tests stand on: a sandbox that really works, or a skip that CI turns into a failure."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import hypothesis
import pytest

from sandboxmcp.core.model import Outcome, Script
from sandboxmcp.core.settings import Settings, load_settings

T = TypeVar("T")
# A busy machine is no failure. CI tries the same examples every time; developers' machines look for new ones.
hypothesis.settings.register_profile("patient", deadline=None, derandomize=os.environ.get("SANDBOXMCP_SANDBOX") == "required")
hypothesis.settings.load_profile("patient")


def pytest_collection_finish() -> None:
    """Thousands of collected tests are nothing that each search for garbage must go through again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Skip where no sandbox can be had; fail instead when SANDBOXMCP_SANDBOX=required."""
    from sandboxmcp.sandbox.probe import probe_sandbox

    workspace = Path(__file__).parent
    failed = [check for check in probe_sandbox(load_settings(flags={"workspace": str(workspace)})) if not check.ok]
    if failed and os.environ.get("SANDBOXMCP_SANDBOX") == "required":
        pytest.fail(f"no sandbox: {failed[0].name}: {failed[0].detail}. {failed[0].fix}", pytrace=False)
    if failed:
        pytest.skip(f"no sandbox: {failed[0].name}: {failed[0].detail}")


@pytest.fixture
def no_make() -> str:
    """The text of a pack named `own`, the one rule of which denies `make` in shell scripts."""
    return """[pack]
name = "own"
[[rule]]
id = "no-make"
language = "shell"
command = "make"
verdict = "deny"
because = "Not here."
instead = "Use ninja."
[[rule.example]]
code = "make all"
verdict = "deny"
"""


@pytest.fixture
def asks() -> str:
    """The text of a pack named `asks`, the one rule of which asks before Python imports colorsys."""
    return """[pack]
name = "asks"
[[rule]]
id = "colours"
language = "python"
import = "colorsys"
verdict = "ask"
because = "It has colours."
instead = "Leave them."
[[rule.example]]
code = "import colorsys"
verdict = "ask"
"""


_TABLE = "printed at the end"


@pytest.fixture
def print_at_the_end(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Prints a text below the results, whichever process ran the test."""
    return partial(record_property, _TABLE)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = (*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed"))
    for text in (text for report in reports for name, text in report.user_properties if name == _TABLE):
        terminalreporter.write_line(text)


@dataclass(frozen=True)
class Ran:
    """What one script did inside."""

    outcome: Outcome
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        return self.stdout.decode(errors="replace")


class Inside:
    """A runner on an event loop of its own thread, so that plain test functions can run scripts in the sandbox."""

    def __init__(self, settings: Settings, captures: Path, broker: Any = None) -> None:
        from sandboxmcp.kernels.runner import Runner

        self.settings = settings
        self.broker = broker
        self.workspace = settings.workspace
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

        async def build() -> Runner:
            return Runner(settings, captures, broker)

        self.runner = self.wait(build())

    def wait(self, work: Coroutine[Any, Any, T], timeout_s: float = 60.0) -> T:
        """The result of a coroutine of the runner's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout_s)

    def start(self, work: Coroutine[Any, Any, T]) -> Any:
        """A concurrent future for a coroutine of the runner's loop; cancelling it cancels the coroutine."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def run_here(self, code: str, language: str = "python", timeout_s: float = 20.0, **more: Any) -> Ran:
        async with self.runner.session() as session:
            outcome = await session.run(Script("test", language, code, timeout_s), **more)
        return Ran(outcome, _bytes(outcome.stdout), _bytes(outcome.stderr))

    def run(self, code: str, language: str = "python", timeout_s: float = 20.0) -> Ran:
        """Run one fresh script in the sandbox."""
        return self.wait(self.run_here(code, language, timeout_s))

    def close(self) -> None:
        self.wait(self.runner.close())
        if self.broker is not None:
            self.broker.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _bytes(stream: Any) -> bytes:
    """A stream's content; empty for what is too large to look at whole."""
    return stream.path.read_bytes() if stream is not None and stream.kept < 8 << 20 else b""


@pytest.fixture(scope="module")
def make_inside(sandbox: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Inside]]:
    """Makes sandboxed runners, each with a workspace of its own; keyword arguments are settings (`limits__output=…`).

    They end with the module: an ordinary user has 1,024 descriptors, and all the tests in one process start many.
    """
    made: list[Inside] = []

    def make(make_broker: Callable[[Settings], Any] | None = None, **flags: Any) -> Inside:
        workspace = tmp_path_factory.mktemp("workspace")
        names = {name.replace("__", "."): value for name, value in flags.items()}
        settings = load_settings(flags={"workspace": str(workspace), **names}, environ={"HOME": str(workspace)})
        broker = make_broker(settings) if make_broker is not None else None
        made.append(Inside(settings, tmp_path_factory.mktemp("captures"), broker))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="module")
def inside(make_inside: Callable[..., Inside]) -> Inside:
    """A sandboxed runner that the tests of one module share."""
    return make_inside()
