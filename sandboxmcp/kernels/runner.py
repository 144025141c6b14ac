"""The runner of a session's scripts: one sandbox, started when it is needed and replaced when it cannot be used any more.

A sandbox is started at the first script and kept for the next ones: the session is the boundary, items share its /tmp.
One that has died (a script can kill what runs beside it) is replaced at the next session.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sandboxmcp.broker.broker import Broker
from sandboxmcp.core.settings import Settings
from sandboxmcp.kernels.jupyter.kernelspecs import stateful_languages
from sandboxmcp.kernels.languages import script_languages
from sandboxmcp.kernels.named_kernels import check_name, check_stateful
from sandboxmcp.kernels.registry import Registry
from sandboxmcp.kernels.sandbox_session import RunSession
from sandboxmcp.sandbox.workspace.masked_copies import Masker

_MODES = {
    "overlay": "the project stays as it is: what scripts change is kept aside (workspace_mode overlay) until the user applies it"
    " with sandboxmcp workspace",
    "ro": "scripts may not write in the project (workspace_mode ro); /tmp is writable",
}


class Runner:
    """Owns the sandbox of a session. Use from one event loop; `close` leaves nothing running."""

    def __init__(
        self,
        settings: Settings,
        captures: Path,
        broker: Broker | None = None,
        registry: Registry | None = None,
        mask: Masker | None = None,
    ) -> None:
        """`captures` is an existing private folder; the files of an Outcome appear there and are the caller's.

        `broker`, the caller's too, lets programs out that the policy packs allow; without one there is no network at all.
        `registry` tells other processes of the named kernels; without one they are nobody else's business. `mask` says what of
        a file of secrets is shown; without one the policy packs of the settings do.
        """
        self._settings = settings
        self._broker = broker
        self._registry = registry
        self._mask = mask
        self._captures = captures
        self._scripts = script_languages()
        self._lock = asyncio.Lock()
        self._session: RunSession | None = None
        self._notices: list[str] = []
        self._mode_told = False

    def languages(self) -> tuple[str, ...]:
        """The names that `Script.language` may have."""
        return tuple(sorted({*stateful_languages(), *self._scripts, *self._settings.kernelspecs}))

    def binding_languages(self) -> tuple[str, ...]:
        """Those in which a script's working folder and file can be prepared."""
        return tuple(sorted({*stateful_languages(), *self._scripts}))

    def check_named(self, name: str, language: str) -> None:
        """Raises: UsageError, no kernel of this name and language can be."""
        check_name(name)
        check_stateful(language, self._settings.kernelspecs)

    @property
    def running(self) -> RunSession | None:
        """The session that there is; none is started for it."""
        return self._session

    def take_notices(self) -> list[str]:
        """What happened to kernels since the last call, for whoever asks next."""
        notices, self._notices = self._notices, []
        if self._session is not None:
            notices += self._session.named.notices
            self._session.named.notices = []
        return notices

    def take_mode(self) -> list[str]:
        """Once, what becomes of changes to the project where scripts do not simply write there."""
        told, self._mode_told = self._mode_told, True
        mode = self._settings.workspace_mode
        return [_MODES[mode]] if mode in _MODES and not told else []

    @asynccontextmanager
    async def session(self) -> AsyncIterator[RunSession]:
        """The session's sandbox, started when there is none.

        Raises:
            SandboxUnavailable: no sandbox can be had; then nothing is run.
            UsageError: the workspace may not be one.
        """
        async with self._lock:
            if self._session is not None:
                await self._session.guarded()
            if self._session is None or not self._session.usable:
                if self._session is not None:
                    await self._give_up(self._session)
                    self._session = None
                self._session = await RunSession.start(self._settings, self._captures, self._broker, self._registry, self._mask)
        yield self._session

    async def _give_up(self, session: RunSession) -> None:
        """End a session that cannot be used any more; whose variables went with it is told."""
        why = session.outdated if session.alive else "the sandbox had ended"
        names = session.named.known()
        await session.close()
        self._notices += session.named.notices
        if names:
            self._notices.append(f"a new sandbox was started ({why}); the variables of {', '.join(names)} are gone")

    async def close(self) -> None:
        """End the sandbox and everything in it."""
        async with self._lock:
            if self._session is not None:
                await self._session.close()
                self._session = None
