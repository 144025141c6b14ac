"""The shipped data folders in a checkout; tests/test_wheel.py looks at them in a wheel."""

from pathlib import Path

import pytest

from sandboxmcp.core.resources import data_folder

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["kernels", "policies"])
def test_a_checkout_uses_the_folder_beside_the_package(name: str) -> None:
    assert data_folder(name) == ROOT / name


def test_a_folder_that_is_nowhere_is_reported_with_both_places() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        data_folder("recipes")

    assert str(ROOT / "recipes") in str(caught.value)
    assert str(ROOT / "sandboxmcp" / "_data" / "recipes") in str(caught.value)
