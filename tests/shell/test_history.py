"""The file of what was typed holds no credentials."""

from pathlib import Path

from sandboxmcp.core.errors import BrokenPack
from sandboxmcp.shell.terminal import history


def test_what_was_typed_is_kept_without_credentials_and_can_be_called_back_whole(tmp_path: Path) -> None:
    kept = history(tmp_path, Path("/project"), lambda text: text.replace("secret-1", "[masked]"))
    kept.append_string("login('secret-1')")
    (file,) = (tmp_path / "shell").iterdir()
    assert ("login('[masked]')" in file.read_text(), "secret-1" in file.read_text()) == (True, False)
    assert kept.get_strings() == ["login('secret-1')"]


def test_nothing_is_kept_where_nothing_can_be_masked(tmp_path: Path) -> None:
    def broken(text: str) -> str:
        raise BrokenPack(Path("own.toml"), 1, "it does not load")

    history(tmp_path, Path("/project"), broken).append_string("a")
    (file,) = (tmp_path / "shell").iterdir()
    assert file.read_bytes() == b""
