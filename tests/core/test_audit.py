"""The append-only log."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from sandboxmcp.core.audit import AuditLog


def test_a_line_is_one_json_document_with_its_time(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "deep" / "policy.log")
    log.add("broker", {"program": "curl", "bytes": 7})
    log.close()
    (line,) = (tmp_path / "deep" / "policy.log").read_text().splitlines()
    told = json.loads(line)
    assert (told.pop("time") > 0, told) == (True, {"event": "broker", "program": "curl", "bytes": 7})
    assert (tmp_path / "deep" / "policy.log").stat().st_mode & 0o777 == 0o600


def test_lines_are_added_and_none_is_lost_between_threads_and_logs(tmp_path: Path) -> None:
    logs = [AuditLog(tmp_path / "log") for _ in range(4)]
    threads = [threading.Thread(target=lambda log=log: [log.add("x", {"n": n}) for n in range(100)]) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]) == 400


def test_hostile_values_stay_in_their_line_and_are_cut(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "log")
    log.add("x", {"reason": 'a\n{"event": "forged"}', "long": "y" * 10_000, "odd": "\udcff", "many": ["z"] * 500})
    (line,) = (tmp_path / "log").read_text().splitlines()
    told = json.loads(line)
    assert (told["reason"], len(told["long"]), len(told["many"])) == ('a\n{"event": "forged"}', 2001, 100)


def test_a_log_that_cannot_be_opened_says_so_before_anything_happens(tmp_path: Path) -> None:
    os.symlink("elsewhere", tmp_path / "log")
    with pytest.raises(OSError, match="symbolic links"):
        AuditLog(tmp_path / "log").open()


def test_credentials_are_masked_before_a_value_is_cut(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "log", lambda text: text.replace("secret-0123456789", "[masked]"))
    log.add("x", {"reason": "y" * 1_990 + "secret-0123456789", "hosts": ["secret-0123456789.example"], "n": 1})
    told = json.loads((tmp_path / "log").read_text())
    assert (told["reason"], told["hosts"], told["n"]) == ("y" * 1_990 + "[masked]", ["[masked].example"], 1)
