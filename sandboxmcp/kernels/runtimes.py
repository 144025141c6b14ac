"""Which program runs a language inside one sandbox: found by trying it there, once.

A program that lies on PATH may still not work: a version manager's shim without a version, a compiler without its linker, an
interpreter that is too old. So each alternative has checks, and what the first failing one says is what is told.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandboxmcp.core.errors import UsageError
from sandboxmcp.kernels.capture import ItemCapture
from sandboxmcp.kernels.languages import Alternative, Check, ScriptLanguage, filled
from sandboxmcp.kernels.launcher import Launcher

_CHECK_S = 30.0
_WORDS = 4096
"""Bytes of a failed check's stderr that are looked at."""


class NotInstalled(UsageError):
    """Nothing here runs the language."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """A way to run a language that works here."""

    alternative: Alternative
    program: str
    """Absolute path, inside as outside."""

    def table(self, file: str | None = None) -> dict[str, Any]:
        """What the guest needs; `file`: path inside of a file to bind."""
        return filled(self.alternative, self.program, file)


@dataclass(frozen=True, slots=True)
class _Miss:
    """Why an alternative is none: how many checks it passed, what would help, what the failed one wrote."""

    passed: int
    install: str
    said: str


class Runtimes:
    """The runtimes of one sandbox. What was found once is not tried again; what was missing is."""

    def __init__(self, launcher: Launcher, captures: Path) -> None:
        self._launcher = launcher
        self._captures = captures
        self._found: dict[str, Runtime] = {}
        self._trying: dict[str, asyncio.Lock] = {}

    async def find(self, language: ScriptLanguage) -> Runtime:
        """What runs the language.

        Raises:
            NotInstalled: nothing does; says what to install.
            KernelError: the sandbox has ended.
        """
        async with self._trying.setdefault(language.name, asyncio.Lock()):
            if language.name not in self._found:
                self._found[language.name] = await self._try(language)
        return self._found[language.name]

    async def _try(self, language: ScriptLanguage) -> Runtime:
        misses: list[_Miss] = []
        for alternative in language.alternatives:
            for program in self._candidates(alternative.program):
                miss = await self._miss(alternative, program)
                if miss is None:
                    return Runtime(alternative, program)
                misses.append(miss)
        best = max(misses, key=lambda miss: miss.passed, default=_Miss(0, language.install, ""))
        said = f" (it says: {best.said})" if best.said else ""
        raise NotInstalled(f"{language.name} is not installed{said}", f"Install {best.install}.")

    def _candidates(self, program: str) -> list[str]:
        paths = [program] if program.startswith("/") else [f"{folder}/{program}" for folder in self._launcher.path.split(":")]
        return [path for path in dict.fromkeys(paths) if os.access(path, os.X_OK)]

    async def _miss(self, alternative: Alternative, program: str) -> _Miss | None:
        for passed, check in enumerate(alternative.checks):
            said = await self._failure(check, program)
            if said is not None:
                return _Miss(passed, check.install, said)
        return None

    async def _failure(self, check: Check, program: str) -> str | None:
        """The first line that the check wrote on its way to failing; None: it is passed."""
        capture = ItemCapture(self._captures, secrets.token_hex(8), 1 << 16)
        try:
            table = {"argv": [word.replace("{program}", program) for word in check.argv]}
            item = await self._launcher.fork_script(table, b"", capture.streams)
            capture.close_writers()
            await asyncio.wait({item.ended}, timeout=_CHECK_S)
            late = not item.ended.done()
            await item.killed()
            _, stderr = await capture.finish()
            if item.ended.result() == 0 and not late:
                return None
            lines = stderr.path.read_bytes()[:_WORDS].decode(errors="replace").split("\n")
            return f"no answer within {_CHECK_S:g} s" if late else next((line.strip() for line in lines if line.strip()), "")[:200]
        finally:
            capture.discard()
