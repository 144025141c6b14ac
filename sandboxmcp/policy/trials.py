"""Every example of some packs judged, with what came of it, for `policy test` and for pytest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandboxmcp.policy.engine import read_packs
from sandboxmcp.policy.judge import Engine
from sandboxmcp.policy.packs.pack import Pack
from sandboxmcp.policy.packs.toml_lines import line_of


@dataclass(frozen=True, slots=True)
class Trial:
    """One example and what is wrong with it: nothing, when the problem is empty."""

    pack: str
    rule: str
    number: int
    """Of the example, from 1."""
    file: Path
    line: int
    problem: str

    @property
    def name(self) -> str:
        return f"{self.pack}/{self.rule} example {self.number}"


def trials_of(names: Sequence[str], folders: Sequence[Path] = (), project: Path | None = None) -> list[Trial]:
    """All examples of the named packs, of those that they extend and of a project's.

    Raises:
        BrokenPack: a pack cannot be read at all.
    """
    packs, families = read_packs(names, folders, project)
    return [trial for pack, family in zip(packs, families, strict=True) for trial in trials_in(pack, family)]


def trials_in(pack: Pack, family: Engine) -> Iterator[Trial]:
    """The examples of one pack, judged by it and by what it extends."""
    for at, rule in enumerate(pack.rules):
        for number, example in enumerate(rule.examples):
            line = line_of(("rule", at, "example", number), pack.lines)
            yield Trial(pack.name, rule.id, number + 1, pack.file, line, family.example_problem(rule, example))
    for at, broker in enumerate(pack.brokers):
        for number, _ in enumerate(broker.examples):
            line = line_of(("broker", at, "example", number), pack.lines)
            yield Trial(pack.name, f"broker-{broker.program}", number + 1, pack.file, line, family.broker_problem(broker, number))
    for at, shape in enumerate(pack.secrets):  # a shape whose examples disagree does not load: these are here to be counted
        place = line_of(("secret", at), pack.lines)
        yield from (
            Trial(pack.name, f"secret-{shape.name}", n + 1, pack.file, place, "") for n in range(len(shape.masked + shape.kept))
        )
