"""A pytest plugin: policy packs as test files, each example in them as a test.

Which files are packs says the option `sandboxmcp_packs` (globs against the root folder); by default those of the project itself.
Nothing else of sandboxmcp is imported before a pack is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sandboxmcp.policy.trials import Trial

_OPTION = "sandboxmcp_packs"
_DEFAULT = [".sandboxmcp/policies/*.toml"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(_OPTION, "globs of policy packs whose examples are tests", type="args", default=_DEFAULT)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> PackFile | None:
    if file_path.suffix != ".toml":
        return None
    try:
        path = file_path.relative_to(parent.config.rootpath).as_posix()
    except ValueError:
        return None
    matched = any(fnmatchcase(path, glob) for glob in parent.config.getini(_OPTION))
    return PackFile.from_parent(parent, path=file_path) if matched else None


class PackFile(pytest.File):
    """One pack; one that is broken fails to be collected, with its file and line."""

    def collect(self) -> Iterator[ExampleItem]:
        from sandboxmcp.core.errors import BrokenPack
        from sandboxmcp.policy.sources import user_folder
        from sandboxmcp.policy.trials import trials_of

        try:
            trials = trials_of([str(self.path)], [user_folder()])
        except BrokenPack as error:
            raise self.CollectError(str(error)) from None
        for trial in trials:
            if trial.file == self.path:
                yield ExampleItem.from_parent(self, name=f"{trial.rule}-{trial.number}", trial=trial)


class ExampleItem(pytest.Item):
    """One example, which passes when its pack gives it the verdict that it names."""

    def __init__(self, *, trial: Trial, **rest: object) -> None:
        super().__init__(**rest)  # type: ignore[arg-type]  # what pytest hands to every item
        self.trial = trial

    def runtest(self) -> None:
        if self.trial.problem:
            pytest.fail(f"{self.trial.file}:{self.trial.line}: {self.trial.problem}", pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.trial.file, self.trial.line - 1, self.trial.name
