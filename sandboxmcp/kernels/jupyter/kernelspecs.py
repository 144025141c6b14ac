"""Which kernels and languages there are. Names are resolved in our own folder and nowhere else.

jupyter_client would resolve `python3` to the host's own interpreter, unsandboxed, even with `ensure_native_kernel=False`
(verified): so the manager here knows the kernelspecs that we ship, those that the user's settings allow by name, and no others.
Whatever provisioner a kernelspec names, it gets ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager, NoSuchKernel
from traitlets import TraitError

from sandboxmcp.core.errors import KernelError
from sandboxmcp.core.resources import data_folder

PROVISIONER = "sandboxmcp-bwrap"
"""Our name in the entry point group jupyter_client.kernel_provisioners."""
PREFIX = "sandboxmcp-"
"""Before a language's name in its kernelspec's name. jupyter_client turns plain `python` into the host's `python3`."""


FORKED = "sandboxmcp-kernels-start-only-inside-the-sandbox"
"""In place of a program in the argv of our own kernelspecs: the launcher forks these, and elsewhere they start nothing."""


class SandboxKernelSpecManager(KernelSpecManager):
    """Finds the shipped kernelspecs, those that are allowed by name, and nothing else of the host's."""

    def __init__(self, allowed: tuple[str, ...] = (), folder: Path | None = None, **kwargs: Any) -> None:
        """`allowed`: names of kernelspecs that the user has installed and wants in the sandbox."""
        super().__init__(**kwargs)
        self._allowed = allowed
        self._folder = folder or data_folder("kernels")
        self.ensure_native_kernel = False

    def find_kernel_specs(self) -> dict[str, str]:
        shipped = {PREFIX + language: str(self._folder / language) for language in kernel_languages(self._folder)}
        theirs = super().find_kernel_specs() if self._allowed else {}
        return {**{name: theirs[name] for name in self._allowed if name in theirs}, **shipped}

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """The kernelspec of that name, with our provisioner in it.

        Raises:
            NoSuchKernel: we ship none, and the user has allowed none.
            KernelError: its kernel.json cannot be read.
        """
        folder = self.find_kernel_specs().get(kernel_name)
        if folder is None:
            raise NoSuchKernel(kernel_name)
        try:
            spec = KernelSpec.from_resource_dir(folder)
        except (OSError, ValueError, TypeError, TraitError) as error:
            raise KernelError(f"the kernelspec in {folder} cannot be used: {error}", "Mend its kernel.json.") from None
        spec.metadata = {**spec.metadata, "kernel_provisioner": {"provisioner_name": PROVISIONER, "config": {}}}
        return spec


def kernel_languages(folder: Path | None = None) -> tuple[str, ...]:
    """The languages that have a kernelspec, for Jupyter's clients too."""
    return tuple(sorted(file.parent.name for file in (folder or data_folder("kernels")).glob("*/kernel.json")))


def stateful_languages(folder: Path | None = None) -> tuple[str, ...]:
    """Those whose kernels keep variables between calls. The others' kernels run each cell as a script of its own."""
    base = folder or data_folder("kernels")
    return tuple(name for name in kernel_languages(base) if not (base / name / "script.toml").exists())
