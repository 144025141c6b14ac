"""The parts, each built once and only when first needed: the only wiring of the host side."""

from __future__ import annotations

import threading
import uuid
from functools import cached_property
from typing import TYPE_CHECKING

from sandboxmcp.core.settings import Settings

if TYPE_CHECKING:
    from sandboxmcp.kernels.registry import Registry
    from sandboxmcp.kernels.runner import Runner
    from sandboxmcp.policy.engine import Engine
    from sandboxmcp.sandbox.broker.session import Broker
    from sandboxmcp.store.store import Store


class Services:
    """Settings, store, policy engine and runner of one process; any thread may ask for a part, which is then imported."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.session = uuid.uuid4().hex[:12]
        """Names what this process stores, for searches within the session."""
        self.project = str(settings.workspace)
        self._building = threading.RLock()

    @property
    def store(self) -> Store:
        """Raises: StoreError when it cannot be opened."""
        with self._building:
            return self._store

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
        from sandboxmcp.store.store import Store

        return Store(self.settings.data_dir, index_head=self.settings["index.head"], index_tail=self.settings["index.tail"])

    @cached_property
    def _engine(self) -> Engine:
        from sandboxmcp.policy.engine import load_engine

        return load_engine(self.settings["policy_packs"])

    @cached_property
    def _runner(self) -> Runner:
        from sandboxmcp.kernels.runner import Runner

        return Runner(self.settings, self.store.captures_dir, self._broker, self.registry)

    @cached_property
    def registry(self) -> Registry:
        """What other processes are told of the named kernels."""
        from sandboxmcp.kernels.registry import Registry

        return Registry(self.settings.data_dir, self.settings.workspace)

    @cached_property
    def _broker(self) -> Broker | None:
        from sandboxmcp.sandbox.broker.session import make_broker

        return make_broker(self.settings, self.engine.brokers(), self.session)

    async def close(self) -> None:
        """End every kernel and close the store; what was never built is not built for it."""
        if "_runner" in self.__dict__:
            await self._runner.close()
        if (broker := self.__dict__.get("_broker")) is not None:
            broker.close()
        if "_store" in self.__dict__:
            self._store.close()
