"""Where the shipped data folders (`kernels`, `policies`) lie, in a wheel, an sdist or an editable install."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def data_folder(name: str) -> Path:
    """The folder `kernels` or `policies`: inside the package in a wheel, beside the package in a checkout.

    A checkout is recognised by its pyproject.toml, since other distributions also install folders of these names.

    Raises:
        FileNotFoundError: neither place has it; the message names both.
    """
    packed = _PACKAGE / "_data" / name
    if packed.is_dir():
        return packed
    beside = _PACKAGE.parent / name
    if beside.is_dir() and (_PACKAGE.parent / "pyproject.toml").is_file():
        return beside
    raise FileNotFoundError(f"sandboxmcp's data folder {name!r} is neither at {packed} nor at {beside}: reinstall sandboxmcp")
