"""The sandbox of one brokered program: like a session's, but without a workspace, and with one socket that leads to the relay.

The program that talks to foreign servers is the one most likely to be taken over by an answer. So it has no network either:
what it says goes through the relay, whose rules hold whatever the program has become. It sees no file of the project, and of
the server's environment only what its pack names.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

from sandboxmcp.core.folders import PrivateFolder
from sandboxmcp.core.settings import Settings
from sandboxmcp.sandbox.bwrap import REFUSED_LIMITS, Bind, SandboxProfile
from sandboxmcp.sandbox.plan import system_folders

DOOR = "/run/broker"
"""The folder inside the box that holds the relay's socket, and the certificates where the user names some."""
_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem")
_PATH = "/usr/local/bin:/usr/bin:/bin"
_CERTIFICATES = ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "npm_config_cafile")
"""What the programs read to learn of a bundle."""


@dataclass(frozen=True, slots=True)
class BoxLimits:
    """What one box may use: the same as all the items of a sandbox together."""

    memory: int = 2 << 30
    """Bytes."""
    processes: int = 256
    descriptors: int = 1_024
    file: int = 4 << 30
    """Bytes of one file."""
    cpu: int = 3_600
    """Seconds of processor time of one process."""

    @classmethod
    def of(cls, settings: Settings) -> BoxLimits:
        return cls(*(getattr(settings.limits, one.name) for one in fields(cls)))

    @property
    def named(self) -> dict[str, int]:
        """As setrlimit(2) names them."""
        return {"NPROC": self.processes, "NOFILE": self.descriptors, "FSIZE": self.file, "CPU": self.cpu, **REFUSED_LIMITS}


@dataclass(frozen=True, slots=True)
class Box:
    """What the boxes of one session share."""

    private: PrivateFolder
    """The socket of each request lies in a folder of its own below it."""
    authorities: Path | None = None
    """The machine's certificates and those of the user's, in one file."""
    binds: tuple[Bind, ...] = ()
    """What a program that is not part of the system needs, an interpreter for example."""
    links: Mapping[str, str] = field(default_factory=dict)
    path: str = _PATH
    limits: BoxLimits = BoxLimits()

    @classmethod
    def make(
        cls,
        authorities: Path | None = None,
        binds: Sequence[Bind] = (),
        links: Mapping[str, str] | None = None,
        path: str = "",
        limits: BoxLimits = BoxLimits(),
    ) -> Box:
        """With a folder in memory where there is one; short, since the name of a socket may have 107 letters.

        Raises:
            OSError: the user's certificates cannot be read.
        """
        private = PrivateFolder(Path("/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()))
        bundle = None
        if authorities is not None:
            own = next((Path(one) for one in _BUNDLES if os.path.exists(one)), None)
            bundle = private.path / "authorities.pem"
            bundle.write_bytes((own.read_bytes() if own else b"") + b"\n" + authorities.read_bytes())
            bundle.chmod(0o644)
        return cls(private, bundle, tuple(binds), dict(links or {}), path or _PATH, limits)

    @property
    def folder(self) -> Path:
        return self.private.path

    @staticmethod
    def path_of_system() -> str:
        return _PATH

    def remove(self) -> None:
        self.private.remove()

    def profile(self, door: Path | None, environment: Mapping[str, str], tmpfs_bytes: int, *, bare: bool = False) -> SandboxProfile:
        """The profile of one box. `door`: the folder with its socket. `bare`: the system's programs are all that it needs."""
        binds = [] if bare else [*self.binds]
        values = dict(environment)
        if door is not None:
            binds.append(Bind(str(door), DOOR))
        if os.path.isdir("/etc/pki/tls"):
            binds.append(Bind("/etc/pki", "/etc/pki"))
        if self.authorities is not None:
            binds.append(Bind(str(self.authorities), "/run/authorities.pem"))
            values |= dict.fromkeys(_CERTIFICATES, "/run/authorities.pem")
        return SandboxProfile(
            workspace="/tmp",
            binds=tuple(binds),
            links={} if bare else self.links,
            system_folders=system_folders(),
            path=self.path,
            environment=values,
            tmpfs_bytes=tmpfs_bytes,
        )

    @contextlib.contextmanager
    def door(self) -> Iterator[tuple[Path, socket.socket]]:
        """A folder with a listening socket `s` in it, for one request."""
        place = self.folder / secrets.token_hex(4)
        place.mkdir(mode=0o755)
        place.chmod(0o755)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(f"{place}/s")
            # The box has another user id when root starts us; the folder above is passable for us alone.
            os.chmod(f"{place}/s", 0o666)  # noqa: S103
            listener.listen(64)
            yield place, listener
        finally:
            listener.close()
            shutil.rmtree(place, ignore_errors=True)
