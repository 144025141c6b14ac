"""Packs: policy rules, and what goes with them, as TOML. A pack that is wrong anywhere does not load, and says where."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from sandboxmcp.core.errors import BrokenPack
from sandboxmcp.core.model import Action, Setting
from sandboxmcp.core.safe_open import read_regular
from sandboxmcp.core.settings import demand, flatten
from sandboxmcp.policy.conditions import CONDITIONS
from sandboxmcp.policy.facts import Key
from sandboxmcp.policy.packs.broker_tables import read_broker
from sandboxmcp.policy.packs.program_tables import read_function, read_loader, read_maker, read_program, read_variable
from sandboxmcp.policy.packs.tables import Checks
from sandboxmcp.policy.packs.toml_lines import Path as Place
from sandboxmcp.policy.packs.toml_lines import line_of, lines_of
from sandboxmcp.policy.patterns import pattern_problem
from sandboxmcp.policy.programs.brokered_programs import Brokered
from sandboxmcp.policy.programs.code_files import Loader, Maker
from sandboxmcp.policy.programs.knowledge import Function, Program
from sandboxmcp.policy.rules import Example, Rule
from sandboxmcp.policy.secrets.redactor import LONGEST_REPEAT, Shape, shape_problem

_ACTIONS = get_args(Action)
_SETTINGS = get_args(Setting)
_KINDS = ("command", "import", "call", "capability")
_TEXTS = ("path", "url")
"""Subjects that are patterns rather than names."""
_MOST_BYTES = 8 << 20
"""Some sixty thousand rules."""
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")


@dataclass(frozen=True, slots=True)
class Pack:
    """One loaded pack. `lines` finds what it says in its file again."""

    name: str
    file: Path
    description: str
    version: str
    extends: tuple[str, ...]
    rules: tuple[Rule, ...]
    programs: tuple[Program, ...]
    functions: tuple[Function, ...]
    brokers: tuple[Brokered, ...]
    capabilities: tuple[Rule, ...]
    """What it takes to be able to do something: rules without a verdict, named after it."""
    ask_is_deny: bool
    secrets: tuple[Shape, ...]
    """Credentials that are masked in what is captured."""
    lines: Mapping[Place, int]
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables of the environment that hold code, with its language; `file`: they name a file with code."""
    makers: tuple[Maker, ...] = ()
    loaders: tuple[Loader, ...] = ()
    demands: tuple[tuple[str, Any], ...] = ()
    """Settings, dotted, each with the value that must be in force or a stricter one."""

    def broken(self, place: Place, what: str, fix: str = "") -> BrokenPack:
        return BrokenPack(self.file, line_of(place, self.lines), what, fix)


def load_pack(file: Path) -> Pack:
    """The pack in `file`, checked but for its examples, which need the packs that it extends.

    Raises:
        BrokenPack: it cannot be read, is not TOML, has an unknown or missing key, or a value that is wrong.
    """
    try:
        text = read_regular(file, _MOST_BYTES).decode()
        table = tomllib.loads(text)
    except OSError as error:
        raise BrokenPack(file, 1, f"the pack cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BrokenPack(file, error.object.count(b"\n", 0, error.start) + 1, "the pack is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise BrokenPack(file, _line_in(str(error), text), f"the pack is not TOML: {error}") from None
    except RecursionError:
        raise BrokenPack(file, 1, "the pack is nested too deeply") from None
    return _Loader(file, lines_of(text)).pack(table)


def _line_in(message: str, text: str) -> int:
    """tomllib names the line in its message, or the end of the document."""
    found = re.search(r"at line (\d+)", message)
    return int(found[1]) if found else text.count("\n") + 1


class _Loader(Checks):
    """Reads the tables of one pack."""

    def pack(self, table: Mapping[str, Any]) -> Pack:
        self.keys(
            table,
            (),
            required={"pack"},
            optional={"rule", "program", "function", "broker", "capability", "secret", "settings", "variable", "maker", "loader"},
        )
        about = self.table(table["pack"], ("pack",))
        self.keys(about, ("pack",), required={"name"}, optional={"version", "description", "extends", "ask"})
        self.among([about["ask"]] if "ask" in about else [], ("deny",), ("pack", "ask"))
        rules = tuple(self.rule(rule, place) for rule, place in self.tables(table, "rule"))
        name = self.text(about, "name", ("pack",))
        self.distinct(rules)
        return Pack(
            name=name,
            file=self.file,
            description=self.text(about, "description", ("pack",), ""),
            version=self.text(about, "version", ("pack",), ""),
            extends=self.names(about, "extends", ("pack",)),
            rules=rules,
            programs=tuple(read_program(self, program, place) for program, place in self.tables(table, "program")),
            functions=tuple(read_function(self, function, place) for function, place in self.tables(table, "function")),
            variables={
                name: spoken for one, at in self.tables(table, "variable") for name, spoken in read_variable(self, one, at).items()
            },
            makers=tuple(read_maker(self, one, place) for one, place in self.tables(table, "maker")),
            loaders=tuple(read_loader(self, one, place) for one, place in self.tables(table, "loader")),
            brokers=tuple(read_broker(self, broker, place, name) for broker, place in self.tables(table, "broker")),
            capabilities=tuple(self.capability(one, place) for one, place in self.tables(table, "capability")),
            ask_is_deny="ask" in about,
            secrets=tuple(self.secret(one, place) for one, place in self.tables(table, "secret")),
            demands=self.demands(table),
            lines=self.lines,
        )

    def distinct(self, rules: Sequence[Rule]) -> None:
        seen: set[str] = set()
        for at, rule in enumerate(rules):
            if rule.id in seen:
                raise self.fail(("rule", at, "id"), f"two rules have the id {rule.id!r}", "Give each rule an id of its own.")
            seen.add(rule.id)

    def rule(self, table: Mapping[str, Any], place: Place) -> Rule:
        self.keys(
            table,
            place,
            required={"id", "language", "verdict", "because", "instead", "example"},
            optional={*_KINDS, *_TEXTS, "when", "unless", "setting"},
        )
        name = self.text(table, "id", place)
        if not _ID.fullmatch(name):
            raise self.fail((*place, "id"), f"{name!r} is no id", "Use up to 80 small letters, digits and dashes.")
        languages = self.names(table, "language", place)
        settings = self.names(table, "setting", place)
        self.among(settings, _SETTINGS, (*place, "setting"))
        return Rule(
            id=name,
            verdict=self.action(table, place),
            because=self.text(table, "because", place),
            instead=self.text(table, "instead", place),
            keys=self.subjects(table, languages, place, f"rule {name!r}"),
            paths=self.names(table, "path", place),
            urls=self.names(table, "url", place),
            when=self.conditions(table, "when", place),
            unless=self.conditions(table, "unless", place),
            settings=frozenset(one for one in _SETTINGS if not settings or one in settings),
            examples=tuple(self.example(e, at, languages[0]) for e, at in self.tables(table, "example", place)),
        )

    def subjects(self, table: Mapping[str, Any], languages: Sequence[str], place: Place, title: str) -> frozenset[Key]:
        keys = {(language, kind, name) for language in languages for kind in _KINDS for name in self.names(table, kind, place)}
        keys |= {(language, kind, "") for language in languages for kind in _TEXTS if self.names(table, kind, place)}
        if not keys:
            raise self.fail(place, f"{title} says nothing that it is about", f"Add one of: {', '.join((*_KINDS, *_TEXTS))}.")
        return frozenset(keys)

    def capability(self, table: Mapping[str, Any], place: Place) -> Rule:
        self.keys(table, place, required={"name", "language"}, optional={"command", "import", "call", "when", "unless"})
        name = self.text(table, "name", place)
        return Rule(
            id=name,
            verdict="allow",
            because="",
            instead="",
            keys=self.subjects(table, self.names(table, "language", place), place, f"capability {name!r}"),
            when=self.conditions(table, "when", place),
            unless=self.conditions(table, "unless", place),
        )

    def secret(self, table: Mapping[str, Any], place: Place) -> Shape:
        self.keys(table, place, required={"name", "anchors", "pattern", "masked", "kept"}, optional={"caseless"})
        pattern = self.text(table, "pattern", place)
        if problem := pattern_problem(pattern, few=LONGEST_REPEAT):
            raise self.fail((*place, "pattern"), f"pattern {problem}")
        shape = Shape(
            name=self.text(table, "name", place),
            anchors=self.names(table, "anchors", place),
            pattern=pattern,
            caseless=self.switch(table, "caseless", place),
            masked=self.names(table, "masked", place),
            kept=self.names(table, "kept", place),
        )
        if problem := shape_problem(shape):
            raise self.fail(place, f"secret {shape.name!r}: {problem}", "Mend the pattern, its anchors or the example.")
        return shape

    def demands(self, table: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
        found: list[tuple[str, Any]] = []
        for name, value in flatten(self.table(table.get("settings", {}), ("settings",))):
            try:
                found.append((name, demand(name, value)))
            except ValueError as error:
                raise self.fail(("settings", *name.split(".")), f"{name!r} {error}") from None
        return tuple(found)

    def conditions(self, table: Mapping[str, Any], key: str, place: Place) -> tuple[tuple[str, Any], ...]:
        conditions = self.table(table.get(key, {}), (*place, key))
        self.keys(conditions, (*place, key), required=set(), optional=set(CONDITIONS))
        for name, value in conditions.items():
            if problem := CONDITIONS[name].check(value):
                raise self.fail((*place, key, name), f"{key}.{name} {problem}")
        return tuple(conditions.items())

    def example(self, table: Mapping[str, Any], place: Place, language: str) -> Example:
        self.keys(table, place, required={"code", "verdict"}, optional={"language", "setting"})
        setting = self.text(table, "setting", place, "kernel")
        self.among([setting], _SETTINGS, (*place, "setting"))
        code, spoken = self.text(table, "code", place), self.text(table, "language", place, language)
        return Example(code, spoken, self.action(table, place), "host" if setting == "host" else "kernel")

    def action(self, table: Mapping[str, Any], place: Place) -> Action:
        said = self.text(table, "verdict", place)
        self.among([said], _ACTIONS, (*place, "verdict"))
        return said  # type: ignore[return-value]  # `among` has just proved it
