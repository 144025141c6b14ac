"""What the log keeps of one verdict: who spoke, about what and where; of the code only its digest, since code may hold secrets."""

from __future__ import annotations

import hashlib
from typing import Any

from sandboxmcp.core.model import Script, Verdict
from sandboxmcp.services import Services


def verdict_facts(services: Services, script: Script, label: str, said: Verdict, verdict: Verdict) -> dict[str, Any]:
    """The facts of one line. `said` is what the policy said, `verdict` what came of it once the user had been asked."""
    return {
        "session": services.session,
        "project": services.project,
        "setting": "kernel",
        "label": label,
        "language": script.language,
        "code": hashlib.sha256(script.code.encode("utf-8", "surrogatepass")).hexdigest()[:16],
        "verdict": verdict.action,
        "asked": said.action == "ask",
        "pack": said.pack,
        "rule": said.rule,
        "program": said.program,
        "line": said.line,
        "unknown": len(said.unknown),
    }
