"""A small MCP client over stdio for measuring: one request at a time, nothing between the clock and the pipe."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any


class ServerFailed(Exception):
    """The server closed its pipe, answered with an error, or did not answer in time."""


class Server:
    """A started server that has answered `initialize`; `start_s` says how long that took from the start of its process."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], folder: Path) -> None:
        begun = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(env), cwd=folder
        )
        self._last_id = 0
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self._request("initialize", about, 60)
        self.start_s = time.perf_counter() - begun
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def call(self, tool: str, arguments: Mapping[str, Any], timeout_s: float = 600) -> tuple[str, float]:
        """The text that a model would see, and the seconds it took.

        Raises:
            ServerFailed: also when the tool says that it failed.
        """
        begun = time.perf_counter()
        result = self._request("tools/call", {"name": tool, "arguments": dict(arguments)}, timeout_s)
        took = time.perf_counter() - begun
        text = "".join(part.get("text", "") for part in result.get("content", []))
        if result.get("isError"):
            raise ServerFailed(f"{tool}: {text[:300]}")
        return text, took

    def resident_kib(self) -> int:
        """Resident memory of the server and everything it started; shared pages count once per process."""
        return sum(_status_kib(process, "VmRSS") for process in _tree(self._process.pid))

    def peak_kib(self) -> int:
        """The most that each of its processes had at a time, summed."""
        return sum(_status_kib(process, "VmHWM") for process in _tree(self._process.pid))

    def _request(self, method: str, params: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        self._last_id += 1
        self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        guard = threading.Timer(timeout_s, self._process.kill)
        guard.start()
        try:
            return self._answer()
        finally:
            guard.cancel()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if message.get("id") != self._last_id or "method" in message:
                continue
            if "error" in message:
                raise ServerFailed(str(message["error"].get("message")))
            return dict(message["result"])
        raise ServerFailed("the server closed its pipe or did not answer in time")

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()


def _tree(root: int) -> list[int]:
    found, waiting = [], [root]
    while waiting:
        process = waiting.pop()
        found.append(process)
        for task in _listed(f"/proc/{process}/task"):
            waiting += [int(child) for child in _read(f"/proc/{process}/task/{task}/children").split()]
    return found


def _status_kib(process: int, field: str) -> int:
    lines = _read(f"/proc/{process}/status").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(field))


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # it has ended in the meantime
        return []


def _read(file: str) -> str:
    try:
        return Path(file).read_text()
    except OSError:
        return ""
