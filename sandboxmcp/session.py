"""The session: what one client has. Its parts are built when they are first needed: the only wiring of the host side."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import uuid
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from sandboxmcp.backend import Backend
from sandboxmcp.core.errors import BrokenPack, StoreError
from sandboxmcp.core.settings import Settings, tightened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sandboxmcp.broker.broker import Broker
    from sandboxmcp.broker.gate import Gate
    from sandboxmcp.core.audit import AuditLog
    from sandboxmcp.journal.journal import Journal
    from sandboxmcp.kernels.registry import Registry
    from sandboxmcp.kernels.runner import Runner
    from sandboxmcp.policy.engine import Engine
    from sandboxmcp.policy.secrets.redactor import Redactor
    from sandboxmcp.store.store import Store


class Session:
    """One client's settings, policy, kernels and jobs, on a backend that others may share.

    Any thread may ask for a part, which is then imported. Opened and closed as often as clients come and go; what belongs to the
    process stays with the backend.
    """

    def __init__(self, settings: Settings, backend: Backend | None = None, environ: Mapping[str, str] | None = None) -> None:
        """Without a `backend` it has one of its own, which is closed with it. `environ`: the client's, by default the process's."""
        self.settings = replace(settings, chosen_workspace=settings.workspace)
        """The workspace is settled here: the process may change its working folder later."""
        self.environ = dict(os.environ if environ is None else environ)
        self.id = uuid.uuid4().hex[:12]
        """Names what this session stores, for searches within it, and its kernels and jobs."""
        self.project = str(self.settings.workspace)
        self.jobs: dict[str, Any] = {}
        """Background jobs by handle; tools/jobs.py fills it."""
        self.backend = backend or Backend()
        self._alone = backend is None
        self._building = threading.RLock()
        self.backend.entered(self.id)

    @property
    def store(self) -> Store:
        """Raises: StoreError when it cannot be opened."""
        if (built := self.__dict__.get("_store")) is not None:
            return cast("Store", built)
        with self._building:
            return self._store

    @property
    def has_store(self) -> bool:
        """It is open, and asking for it does not wait for another part that is being built."""
        return "_store" in self.__dict__

    @property
    def engine(self) -> Engine:
        """Raises: BrokenPack when a pack does not load; UsageError when there is none of that name."""
        with self._building:
            return self._engine

    @property
    def runner(self) -> Runner:
        with self._building:
            return self._runner

    @cached_property
    def _store(self) -> Store:
        from sandboxmcp.journal.journal import close_lost
        from sandboxmcp.store.store import Store

        opened = self.backend.open_store(self.settings.data_dir)
        store = Store(
            opened,
            index_head=self.settings.index.head,
            index_tail=self.settings.index.tail,
            mask=self._mask,
            keep_raw=self.settings.capture.raw,
            owner=(self.project, self.id),
            semantic=self.settings.search.semantic,
        )
        if opened.claim_recovery():
            with contextlib.suppress(StoreError):  # a store that cannot be written can still be searched
                store.adopt()
                close_lost(store.database, time.time())
                self._forget_old(store)
        return store

    def _forget_old(self, store: Store) -> None:
        """Captures and pages that are older than their settings keep them; a few hundred at each start."""
        retention = self.settings.retention
        for days, origins in ((retention.captures, ("execute", "batch", "artifact")), (retention.pages, ("page",))):
            if days:
                store.forget_all(store.expired(origins, time.time() - days * 86_400))
        if retention.journal:
            from sandboxmcp.journal.journal import forget_old

            forget_old(store.database, time.time() - retention.journal * 86_400)

    def _mask(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Masks credentials. Without a policy nothing is kept: BrokenPack, as for everything else that runs."""
        with self._building:
            redactor = self._redactor
        return redactor(pieces)

    def masked(self, text: str) -> str:
        """A label, a query, a URL or any other short text without the credentials in it: what is stored, logged or returned."""
        if not text:
            return text
        if (redactor := self.__dict__.get("_text_redactor")) is None:
            with self._building:
                redactor = self._text_redactor
        return cast("Redactor", redactor).text(text)

    @property
    def can_mask(self) -> bool:
        """`masked` takes microseconds by now: the shapes of credentials have been read."""
        return "_text_redactor" in self.__dict__

    @cached_property
    def _text_redactor(self) -> Redactor:
        """The shipped shapes alone where a pack is broken: then nothing is stored, but what is wrong must be told."""
        from sandboxmcp.policy.sources import shipped_redactor

        try:
            return self._redactor
        except BrokenPack:
            return shipped_redactor()

    @cached_property
    def _redactor(self) -> Redactor:
        from sandboxmcp.policy.sources import redactor_of

        return redactor_of(self.settings, self.environ)

    @cached_property
    def _engine(self) -> Engine:
        from sandboxmcp.policy.sources import engine_of

        return engine_of(self.settings, self.environ)

    @cached_property
    def audit(self) -> AuditLog:
        """The log of verdicts and of what was let out."""
        from sandboxmcp.broker.broker import AUDIT_FILE
        from sandboxmcp.core.audit import AuditLog

        return AuditLog(self.settings.data_dir / AUDIT_FILE, self.masked)

    @cached_property
    def journal(self) -> Journal | None:
        """What this session runs is written there; None where the settings keep none. Raises: StoreError."""
        from sandboxmcp.journal.journal import Journal

        return Journal(self.store.database, self.id, self.project, self.masked) if self.settings.journal else None

    @cached_property
    def _runner(self) -> Runner:
        from sandboxmcp.kernels.runner import Runner
        from sandboxmcp.policy.sources import masker_of

        mask = masker_of(self.settings, lambda: self._redactor)
        return Runner(self.enforced, self.store.captures_dir, self._broker, self.registry, mask)

    @cached_property
    def enforced(self) -> Settings:
        """The settings with what the policy packs tighten: those that sandboxes and the network obey."""
        return tightened(self.settings, self.engine.demands())

    @cached_property
    def registry(self) -> Registry:
        """What other processes are told of the named kernels."""
        from sandboxmcp.kernels.registry import Registry

        return Registry(self.settings.data_dir, self.settings.workspace, self.id)

    @cached_property
    def _broker(self) -> Broker | None:
        from sandboxmcp.broker.broker import make_broker

        return make_broker(self.enforced, self.engine.brokers(), self.id, environment=self.environ, mask=self.masked)

    @cached_property
    def gate(self) -> Gate:
        """The way out for fetching on the host side: the broker's own, so that both spend one budget."""
        from sandboxmcp.broker.broker import gate_of

        with self._building:
            return gate_of(self.enforced) if self._broker is None else self._broker.gate

    async def close(self) -> None:
        """End every kernel and job of this session; what was never built is not built for it. Closes a backend of its own."""
        for job in list(self.jobs.values()):
            await job.stop()
        if "_runner" in self.__dict__:
            await self._runner.close()
        if (broker := self.__dict__.get("_broker")) is not None:
            broker.close()
        if "audit" in self.__dict__:
            self.audit.close()
        if (journal := self.__dict__.get("journal")) is not None:
            journal.end()
        if "_store" in self.__dict__:
            self._store.close()
        self.backend.left(self.id)
        if self._alone:
            self.backend.close()
