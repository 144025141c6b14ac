"""Names that are nearly those of settings: a misspelt limit would else hold nothing, and nobody would know."""

from __future__ import annotations

from collections.abc import Mapping

from sandboxmcp.core.near import nearest
from sandboxmcp.core.settings import KEYS, PREFIX

_NO_SETTINGS = frozenset({"SANDBOXMCP_GOLDEN", "SANDBOXMCP_SANDBOX", "SANDBOXMCP_SOAK"})
"""Variables of our own tests."""


def misspelt_variables(environ: Mapping[str, str]) -> list[str]:
    """A sentence for each variable that is called like a setting of ours and is none; blank ones count as unset."""
    known = {key.variable for key in KEYS} | _NO_SETTINGS
    unknown = sorted(name for name, value in environ.items() if name.startswith(PREFIX) and name not in known and value.strip())
    return [f"the variable {name[:80]} is no setting and changes nothing{_nearest(name)}" for name in unknown]


def _nearest(name: str) -> str:
    near = nearest(name.removeprefix(PREFIX), (key.variable.removeprefix(PREFIX) for key in KEYS))
    return f"; did you mean {PREFIX}{near}?" if near else "; sandboxmcp help settings lists those there are"
