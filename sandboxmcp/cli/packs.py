"""`sandboxmcp policy list` and `policy show`: the packs themselves."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sandboxmcp.core.settings import Settings
from sandboxmcp.session import Session


def list_packs(settings: Settings, as_json: bool) -> int:
    """Print the packs in force with their rules."""
    packs = Session(settings).engine.packs
    if as_json:
        rows = [
            {
                "name": pack.name,
                "file": str(pack.file),
                "description": pack.description,
                "extends": list(pack.extends),
                "rules": [{"id": rule.id, "verdict": rule.verdict, "because": rule.because} for rule in pack.rules],
            }
            for pack in packs
        ]
        print(json.dumps({"ok": True, "packs": rows}))
        return 0
    for pack in packs:
        print(f"{pack.name}  {pack.file}  {pack.description}")
        for rule in pack.rules:
            print(f"  {rule.verdict:5}  {rule.id}: {rule.because}")
    return 0


def show_pack(
    settings: Settings,
    as_json: bool,
    name: Annotated[str, typer.Argument(help="A pack, by name or path.", show_default=False)],
) -> int:
    """Print one pack in words: its rules, and the forms in which programs are let out."""
    from sandboxmcp.policy.engine import load_engine
    from sandboxmcp.policy.packs.showing import pack_in_words
    from sandboxmcp.policy.sources import user_folder

    engine = load_engine([name], [user_folder()])
    pack = next(one for one in engine.packs if name in (one.name, one.file.stem) or Path(name) == one.file)
    lines = list(pack_in_words(pack, engine.brokers()))
    if as_json:
        brokers = [asdict(broker) for broker in pack.brokers]
        print(json.dumps({"ok": True, "name": pack.name, "text": lines, "brokers": brokers}, default=sorted))
    else:
        print("\n".join(lines))
    return 0
