"""The rich results of one execution (images, HTML, JSON), each saved to a file of its own, up to a cap that counts."""

from __future__ import annotations

import base64
import contextlib
import json
import re
from pathlib import Path
from typing import Any

from sandboxmcp.core.model import Artifact

_MOST = 64
_MOST_BYTES = 256 << 20
_TEXT = "text/plain"
_MIME = re.compile(r"[a-z]+/[a-z0-9][a-z0-9.+-]{0,80}", re.IGNORECASE)


class Displayed:
    """Keeps what a kernel displays. Files are named after `stem`."""

    def __init__(self, stem: Path) -> None:
        self._stem = stem
        self.artifacts: list[Artifact] = []
        self.dropped = 0
        """How many results beyond the cap were not kept."""
        self.lost = 0
        self.trouble = ""
        """How many could not be written, and why."""

    def keep(self, data: dict[str, Any]) -> None:
        """Save every form of one result but its text, which is in the output already."""
        for mime, value in data.items():
            if mime == _TEXT:
                continue
            content = _artifact_bytes(mime, value)
            size = sum(artifact.size for artifact in self.artifacts) + len(content)
            if len(self.artifacts) >= _MOST or size > _MOST_BYTES:
                self.dropped += 1
                continue
            path = self._stem.with_name(f"{self._stem.name}.{len(self.artifacts)}.artifact")
            try:
                path.touch(0o600, exist_ok=False)
                path.write_bytes(content)
            except OSError as error:
                path.unlink(missing_ok=True)
                self.lost, self.trouble = self.lost + 1, error.strerror or str(error)
                continue
            self.artifacts.append(Artifact(mime if _MIME.fullmatch(mime) else "application/octet-stream", path, len(content)))


def _artifact_bytes(mime: str, value: Any) -> bytes:
    """Binary types travel as base64 (messaging protocol, display_data); text and JSON as themselves."""
    if isinstance(value, str) and mime.startswith(("image/", "application/pdf", "audio/", "video/")) and mime != "image/svg+xml":
        with contextlib.suppress(ValueError):
            return base64.b64decode(value)
    return value.encode(errors="surrogatepass") if isinstance(value, str) else json.dumps(value).encode()
