"""The broker of one session: its programs, its gate and budget, its boxes, its log. It outlives any one sandbox."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sandboxmcp.broker.box import Box, BoxLimits
from sandboxmcp.broker.box_pool import Spares
from sandboxmcp.broker.budget import Allowance, Budget
from sandboxmcp.broker.gate import Gate, Resolver, system_resolver
from sandboxmcp.core.audit import AuditLog
from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.settings import Settings
from sandboxmcp.policy.programs.addresses import address_rules
from sandboxmcp.policy.programs.brokered_programs import Brokered
from sandboxmcp.sandbox.bwrap import Bind
from sandboxmcp.sandbox.installations import Interpreter, running_interpreter

AUDIT_FILE = "policy.log"
_MOST_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Broker:
    """The parts, wired. Safe to use from the threads of several services."""

    programs: Mapping[str, Brokered]
    gate: Gate
    box: Box
    spares: Spares
    audit: AuditLog
    session: str
    environment: Mapping[str, str]
    """The server's own; a program sees of it what its table names."""
    interpreter: Interpreter
    """What boxes start with, and what programs written in Python run on."""
    turns: threading.Semaphore
    """Held by each request that runs."""

    @property
    def session_variables(self) -> dict[str, str]:
        """What scripts have in their environment so that other programs find the brokered ones."""
        return {name: value for program in self.programs.values() for name, value in program.session.items()}

    def close(self) -> None:
        self.spares.close()
        self.box.remove()
        self.audit.close()


def gate_of(settings: Settings, resolver: Resolver = system_resolver) -> Gate:
    """The gate that the settings ask for, with a budget of its own: for the broker, and for fetching on the host side.

    Raises:
        UsageError: a setting names something that is no address, network or name.
    """
    try:
        rules = address_rules(settings.network.allow_private, settings.network.domains)
    except ValueError as error:
        raise UsageError(f"network.allow_private or network.domains {error}", "Correct the setting.") from None
    allowance = Allowance(settings.network.requests, settings.network.bytes, settings.network.size, settings.network.time_s)
    return Gate(rules, Budget(allowance), resolver)


def make_broker(
    settings: Settings,
    programs: Mapping[str, Brokered],
    session: str,
    resolver: Resolver = system_resolver,
    environment: Mapping[str, str] | None = None,
    mask: Callable[[str], str] | None = None,
) -> Broker | None:
    """The broker of a session; None when its packs or its settings let nothing out. `mask` takes credentials out of its log.

    Raises:
        UsageError: a setting of the network cannot be used.
    """
    if not programs or not settings.network.requests:
        return None
    authorities: Path | None = settings.network.authorities
    interpreter = running_interpreter(settings.workspace)
    binds = [Bind(folder, folder) for folder in interpreter.folders]
    try:
        box = Box.make(
            authorities, binds, interpreter.links, f"{Box.path_of_system()}:{interpreter.scripts}", BoxLimits.of(settings)
        )
    except OSError as error:
        raise UsageError(f"network.authorities cannot be read: {error.strerror}", "Name a readable file of certificates.") from None
    return Broker(
        programs=programs,
        gate=gate_of(settings, resolver),
        box=box,
        spares=Spares(box),
        audit=AuditLog(settings.data_dir / AUDIT_FILE, mask),
        session=session,
        environment=dict(os.environ if environment is None else environment),
        interpreter=interpreter,
        turns=threading.Semaphore(_MOST_AT_ONCE),
    )
