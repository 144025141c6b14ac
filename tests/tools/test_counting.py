"""A call that cannot be counted is answered all the same."""

from pathlib import Path

import pytest

from sandboxmcp.core.settings import load_settings
from sandboxmcp.session import Session
from sandboxmcp.tools.usage_stats import count_call


def test_a_call_that_cannot_be_counted_is_told_without_the_fix(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "data").write_text("no folder")
    flags = {"data_dir": str(tmp_path / "data"), "workspace": str(tmp_path)}
    count_call(Session(load_settings(flags, environ={}, project=tmp_path)), "ctx_doctor", captured=0, returned=1)
    assert [message.split(": ")[0] for message in caplog.messages] == ["ctx_doctor was not counted"]
    assert "SANDBOXMCP_DATA_DIR" not in caplog.text
