"""From the names of packs to an engine: packs are found, checked, and their examples judged before any of them is in force."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from sandboxmcp.core.errors import BrokenPack
from sandboxmcp.core.resources import data_folder
from sandboxmcp.core.surface import argument
from sandboxmcp.policy.judge import Engine as Engine
from sandboxmcp.policy.packs.pack import Pack, load_pack
from sandboxmcp.policy.paths import Places

_KNOWLEDGE = "programs"
"""The shipped pack without rules: how well-known programs read their options and what they run."""


def load_engine(
    names: Sequence[str] = ("default",),
    folders: Sequence[Path] = (),
    *,
    project: Path | None = None,
    imported: Iterable[Pack] = (),
    places: Places = Places(),  # noqa: B008 - frozen
) -> Engine:
    """An engine of the named packs and of those that they extend, of a project's packs, and of packs made from other files.

    A name is looked for as `NAME.toml` in `folders`, then among the shipped packs; a name with a slash or `.toml` is a path.
    `project` is the folder of a project's packs, all of which count, and which may only tighten.
    Every example of every rule is judged by its pack with what that extends.

    Raises:
        BrokenPack: a pack is missing, wrong, loosens what it may not, or disagrees with an example; names file and line.
    """
    packs, families = read_packs(names, folders, project)
    for pack, family in zip(packs, families, strict=True):
        check_examples(pack, family)
    return Engine([*packs, *imported], places)


def read_packs(
    names: Sequence[str], folders: Sequence[Path] = (), project: Path | None = None
) -> tuple[tuple[Pack, ...], list[Engine]]:
    """The packs, and for each the engine that its examples are judged by; none is judged here. Raises as `load_engine` does."""
    looked_in = (*folders, data_folder("policies"))
    loaded: dict[str, Pack] = {}
    for name in (_KNOWLEDGE, *names):
        _load(name, looked_in, loaded)
    for file in project_packs(project):
        known = len(loaded)
        own = _load(str(file), looked_in, loaded)
        for pack in list(loaded.values())[known:]:
            _only_tightens(pack, own)
    packs = _distinct_programs(loaded)
    return packs, [Engine([loaded[name] for name in _family(pack, loaded)]) for pack in packs]


def project_packs(folder: Path | None) -> list[Path]:
    """The packs of a project, by name. A link is followed as it would be when the pack is read: a loop is an error there."""
    return sorted(folder.glob("*.toml")) if folder is not None and folder.is_dir() else []


def check_examples(pack: Pack, family: Engine) -> None:
    """Judge every example of the pack by its family.

    Raises:
        BrokenPack: one of them disagrees.
    """
    family.check_brokers(pack)
    for at, rule in enumerate(pack.rules):
        for number, example in enumerate(rule.examples):
            if problem := family.example_problem(rule, example):
                raise pack.broken(("rule", at, "example", number), f"rule {rule.id!r}: {problem}", "Mend the rule or the example.")


def _load(name: str, places: Sequence[Path], loaded: dict[str, Pack], asked_by: Pack | None = None) -> Pack:
    if name in loaded:
        return loaded[name]
    pack = load_pack(_file_of(name, places, asked_by))
    loaded[name] = pack
    for other in pack.extends:
        _load(other, places, loaded, pack)
    return pack


def _only_tightens(pack: Pack, own: Pack) -> None:
    """A project is not to be trusted more than its user: it may add denials and questions, and nothing else.

    What it says of programs could change how the user's rules read a command line, so that is refused with the rest. `own` is the
    project's pack that brought this one in: itself, or what extends it, which may be any file, a shipped pack too.
    """
    try:
        _check_only_tightens(pack)
    except BrokenPack as error:
        if pack is own:
            raise
        fix = f"A project's pack may extend only packs that deny or ask, or that the user has chosen in {argument('policy_packs')}."
        raise own.broken(("pack", "extends"), f"it extends {pack.name!r}, which loosens: {error.problem}", fix) from None


def _check_only_tightens(pack: Pack) -> None:
    fix = f"A project's pack may only deny or ask; put what loosens into a pack of your own, named in {argument('policy_packs')}."
    for kind, found in (
        ("program", pack.programs),
        ("function", pack.functions),
        ("capability", pack.capabilities),
        ("variable", pack.variables),
    ):
        if found:
            raise pack.broken((kind, 0), f"a project's pack describes a {kind}", fix)
    for at, rule in enumerate(pack.rules):
        if rule.verdict == "allow":
            raise pack.broken(("rule", at, "verdict"), f"the project's rule {rule.id!r} allows", fix)
    for at, broker in enumerate(pack.brokers):
        if broker.allowed:
            raise pack.broken(("broker", at, "verdict"), f"the project lets {broker.program!r} out", fix)


def _file_of(name: str, places: Sequence[Path], asked_by: Pack | None) -> Path:
    if "/" in name or name.endswith(".toml"):
        return Path(name)
    for place in places:
        if (place / f"{name}.toml").exists():
            return place / f"{name}.toml"
    if asked_by is not None:
        raise asked_by.broken(("pack", "extends"), f"the pack {name!r}, which it extends, is nowhere")
    looked = ", ".join(str(place) for place in places)
    there = ", ".join(sorted({file.stem for place in places for file in place.glob("*.toml")} - {_KNOWLEDGE}))
    fix = f"There are: {there}. Correct {argument('policy_packs')}."
    raise BrokenPack(places[-1] / f"{name}.toml", 0, f"there is no policy pack {name!r} in {looked}", fix)


def _family(pack: Pack, loaded: dict[str, Pack]) -> list[str]:
    """The pack and everything it extends, by the names they were asked for; the knowledge always."""
    family, waiting = [_KNOWLEDGE], [name for name, known in loaded.items() if known is pack]
    while waiting:
        name = waiting.pop()
        if name not in family:
            family.append(name)
            waiting += loaded[name].extends
    return family


def _distinct_programs(loaded: dict[str, Pack]) -> tuple[Pack, ...]:
    """The packs, once it is certain that none changes what another says of a program: that could loosen its rules."""
    packs = tuple(loaded.values())
    owners: dict[str, Pack] = {}
    for pack in packs:
        for at, program in enumerate(pack.programs):
            for name in program.names:
                if owners.setdefault(name, pack) is not pack:
                    raise pack.broken(("program", at), f"the program {name!r} is described by {owners[name].name!r} already")
    return packs
