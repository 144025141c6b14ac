"""Which kernels and languages there are. Names are resolved in our own folder and nowhere else.

jupyter_client would resolve `python3` to the host's own interpreter, unsandboxed, even with `ensure_native_kernel=False`
(verified): so the manager here knows only the kernelspecs that we ship, and refuses one that does not name our provisioner.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager, NoSuchKernel

from sandboxmcp.core.resources import data_folder

PROVISIONER = "sandboxmcp-bwrap"
"""Our name in the entry point group jupyter_client.kernel_provisioners."""
PREFIX = "sandboxmcp-"
"""Before a language's name in its kernelspec's name. jupyter_client turns plain `python` into the host's `python3`."""


@dataclass(frozen=True, slots=True)
class ScriptLanguage:
    """A language whose one-shot scripts are plain processes of the launcher."""

    name: str
    argv: tuple[str, ...]
    install: str
    """What to install where its program is missing."""


class SandboxKernelSpecManager(KernelSpecManager):
    """Finds the shipped kernelspecs, and nothing of the host's."""

    def __init__(self, folder: Path | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._folder = folder or data_folder("kernels")
        self.ensure_native_kernel = False
        self.kernel_dirs = []

    def find_kernel_specs(self) -> dict[str, str]:
        return {PREFIX + language: str(self._folder / language) for language in kernel_languages(self._folder)}

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """The kernelspec of that name.

        Raises:
            NoSuchKernel: we ship none, or it would start something outside the sandbox.
        """
        folder = self.find_kernel_specs().get(kernel_name)
        if folder is None:
            raise NoSuchKernel(kernel_name)
        spec = KernelSpec.from_resource_dir(folder)
        if spec.metadata.get("kernel_provisioner", {}).get("provisioner_name") != PROVISIONER:
            raise NoSuchKernel(kernel_name)
        return spec


def kernel_languages(folder: Path | None = None) -> tuple[str, ...]:
    """The languages that have a kernel of their own."""
    return tuple(sorted(file.parent.name for file in (folder or data_folder("kernels")).glob("*/kernel.json")))


def script_languages(folder: Path | None = None) -> dict[str, ScriptLanguage]:
    """The languages that run as plain processes, by name."""
    found = {}
    for file in sorted((folder or data_folder("kernels")).glob("*/script.toml")):
        table = tomllib.loads(file.read_text())
        found[file.parent.name] = ScriptLanguage(file.parent.name, tuple(table["argv"]), table["install"])
    return found
