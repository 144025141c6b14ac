"""Claude Code's permissions as a pack: what its settings files deny or want asked holds in kernels too.

Their `allow` entries have no effect here: nothing that another program's settings say loosens a rule. Entries about other tools
than Bash, Read, Edit and Write are that program's own business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sandboxmcp.core.errors import BrokenPack
from sandboxmcp.core.model import Action
from sandboxmcp.core.safe_open import read_regular
from sandboxmcp.policy.facts import Key
from sandboxmcp.policy.packs.pack import Pack
from sandboxmcp.policy.rules import Rule

_ENTRY = re.compile(r"(\w+)(?:\((.*)\))?", re.DOTALL)
_ACCESS = {"Read": ["read"], "Edit": ["write", "remove", "move"], "Write": ["write", "remove", "move"]}
_LANGUAGES = ("shell", "python", "javascript", "typescript", "ruby", "perl", "php")
_MEND = "Mend the file, or set claude_permissions to false; nothing runs until then."


def claude_files(home: Path, project: Path) -> tuple[Path, ...]:
    """Where Claude Code looks, the user's file first."""
    folder = project / ".claude"
    return home / ".claude" / "settings.json", folder / "settings.json", folder / "settings.local.json"


def claude_packs(files: tuple[Path, ...]) -> tuple[Pack, ...]:
    """One pack for each of the files that is there.

    Raises:
        BrokenPack: a file cannot be read or understood; never silence, since what it denies would be allowed.
    """
    return tuple(_pack(file, settings) for file in files if (settings := _settings(file)) is not None)


def _settings(file: Path) -> Mapping[str, Any] | None:
    try:
        text = read_regular(file).decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BrokenPack(file, 1, f"Claude Code's settings cannot be read: {error.strerror}", _MEND) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise BrokenPack(file, line, "Claude Code's settings are not UTF-8", _MEND) from None
    found = _parsed(text, file) if text.strip() else {}
    if not isinstance(found, dict):
        raise BrokenPack(file, 1, "Claude Code's settings are no object", _MEND)
    return found


def _parsed(text: str, file: Path) -> Any:
    """JSON, or JSON with comments and trailing commas, for which the parser is a hundred times slower."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    except RecursionError:
        raise BrokenPack(file, 1, "Claude Code's settings are nested too deeply", _MEND) from None
    import json5

    try:
        return json5.loads(text)
    except ValueError as error:
        found = re.search(r":(\d+)", str(error))
        raise BrokenPack(file, int(found[1]) if found else 1, f"Claude Code's settings are not JSON: {error}", _MEND) from None
    except RecursionError:
        raise BrokenPack(file, 1, "Claude Code's settings are nested too deeply", _MEND) from None


def _pack(file: Path, settings: Mapping[str, Any]) -> Pack:
    permissions = settings.get("permissions", {})
    if not isinstance(permissions, dict):
        raise BrokenPack(file, 1, "permissions in Claude Code's settings is no object", _MEND)
    rules = tuple(_rules(file, permissions))
    return Pack(
        name=f"claude:{file.name}", file=file, description="Claude Code's permissions.", version="", extends=(), rules=rules,
        programs=(), functions=(), brokers=(), capabilities=(), ask_is_deny=False, secrets=(), lines={},
    )  # fmt: skip


def _rules(file: Path, permissions: Mapping[str, Any]) -> Iterator[Rule]:
    verdicts: tuple[Action, ...] = ("deny", "ask")
    for verdict in verdicts:
        entries = permissions.get(verdict, [])
        if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
            raise BrokenPack(file, 1, f"permissions.{verdict} in Claude Code's settings is no list of texts", _MEND)
        for number, entry in enumerate(entries, 1):
            matched = _ENTRY.fullmatch(entry.strip())
            if matched is None:
                raise BrokenPack(file, 1, f"permissions.{verdict} in Claude Code's settings holds {entry!r}", _MEND)
            rule = _rule(file, verdict, number, matched[1], (matched[2] or "").strip(), entry)
            if rule is not None:
                yield rule


def _rule(file: Path, verdict: Action, number: int, tool: str, spec: str, entry: str) -> Rule | None:
    keys: frozenset[Key]
    paths: tuple[str, ...] = ()
    when: tuple[tuple[str, Any], ...] = ()
    if tool == "Bash":
        keys = frozenset({("shell", "command", "*")})
        when = (("line", _globs(spec)),) if spec not in ("", "*") else ()
    elif tool in _ACCESS:
        keys = frozenset((language, "path", "") for language in _LANGUAGES)
        paths, when = (_path(spec),), (("access", _ACCESS[tool]),)
    else:
        return None
    said = "denies" if verdict == "deny" else "wants to be asked about"
    return Rule(
        id=f"{verdict}-{number}",
        verdict=verdict,
        because=f"Claude Code's settings ({file.name}) say {verdict} to {entry}: the user {said} it.",
        instead="Do it another way, or ask the user.",
        keys=keys,
        paths=paths,
        when=when,
    )


def _globs(spec: str) -> list[str]:
    """`git push:*` is that line and every longer one; `*` elsewhere is anything; all else means itself."""
    escaped = spec.replace("[", "[[]").replace("?", "[?]")
    if escaped.endswith(":*"):
        return [escaped[:-2], escaped[:-2] + " *"]
    return [escaped[:-2], escaped] if escaped.endswith(" *") else [escaped]


def _path(spec: str) -> str:
    """`//x` is absolute, `~/x` in the home, everything else relative; a trailing `/**` says what is meant anyway."""
    path = spec.removesuffix("/**").removesuffix("/*")
    if path.startswith("//"):
        return path[1:]
    return path.removeprefix("./").lstrip("/") or "*"
