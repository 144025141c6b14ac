"""Packs: policy rules and knowledge of programs as TOML. A pack that is wrong anywhere does not load, and says where."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from sandboxmcp.core.errors import BrokenPack
from sandboxmcp.core.model import Action, Setting
from sandboxmcp.core.regular import read_regular
from sandboxmcp.core.settings import demand, flatten
from sandboxmcp.policy.brokered import read_broker
from sandboxmcp.policy.facts import Access
from sandboxmcp.policy.patterns import pattern_problem
from sandboxmcp.policy.programs import Function, Operands, Program, Runs, Then, TouchRule
from sandboxmcp.policy.rules import CONDITIONS, Example, Key, Rule
from sandboxmcp.policy.secrets import LONGEST_REPEAT, Shape, shape_problem
from sandboxmcp.policy.tomllines import Path as Place
from sandboxmcp.policy.tomllines import line_of, lines_of
from sandboxmcp.sandbox.broker.programs import Brokered
from sandboxmcp.sandbox.broker.treatments import treatment_problem

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
    """Variables of the environment that hold code, with its language."""
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


class _Loader:
    """Checks the tables of one pack. Every check knows the place of what it looks at."""

    def __init__(self, file: Path, lines: Mapping[Place, int]) -> None:
        self.file = file
        self.lines = lines

    def fail(self, place: Place, what: str, fix: str = "") -> BrokenPack:
        return BrokenPack(self.file, line_of(place, self.lines), what, fix)

    def pack(self, table: Mapping[str, Any]) -> Pack:
        self.keys(
            table,
            (),
            required={"pack"},
            optional={"rule", "program", "function", "broker", "capability", "secret", "settings", "variable"},
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
            programs=tuple(self.program(program, place) for program, place in self.tables(table, "program")),
            functions=tuple(self.function(function, place) for function, place in self.tables(table, "function")),
            variables={
                name: language for one, at in self.tables(table, "variable") for name, language in self.variable(one, at).items()
            },
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

    def program(self, table: Mapping[str, Any], place: Place) -> Program:
        sets = ("quiet", "noisy", "file", "files", "all_files", "targets", "inert", "code", "module", "encoded", "script")
        switches = ("each", "writes", "silent", "prints", "passes", "switches", "mixes")
        self.keys(
            table,
            place,
            required={"names"},
            optional={
                "flags",
                "values",
                "then",
                "skip",
                "starts",
                "language",
                "stdin",
                "adds_unless",
                "taken",
                "refused",
                "touch",
                "carries",
                "code_after",
                *sets,
                *switches,
            },
        )
        canonical, valued = self.spellings(table, place)
        then = table.get("then")
        self.among([then] if then is not None else [], get_args(Then), (*place, "then"))
        known = {key: self.known(table, key, canonical, place) for key in sets}
        return Program(
            names=self.names(table, "names", place),
            canonical=canonical,
            valued=valued,
            then=then,
            skip=self.number(table, "skip", place),
            starts=frozenset(self.names(table, "starts", place)),
            language=table.get("language"),
            stdin=self.known(table, "stdin", canonical, place) if "stdin" in table else None,
            adds_unless=self.known(table, "adds_unless", canonical, place) if "adds_unless" in table else None,
            code_after=frozenset(self.names(table, "code_after", place)),
            carries=self.carries(table, canonical, place),
            taken=self.taken(table, canonical, valued, place),
            refused=self.refused(table, canonical, place),
            touches=tuple(self.touch(one, canonical, at) for one, at in self.tables(table, "touch", place)),
            **known,  # type: ignore[arg-type]  # the names are those of the fields
            **{key: self.switch(table, key, place) for key in switches},  # type: ignore[arg-type]
        )

    def touch(self, table: Mapping[str, Any], canonical: Mapping[str, str], place: Place) -> TouchRule:
        self.keys(table, place, required={"access"}, optional={"operands", "when", "unless", "values", "prefix"})
        operands = self.text(table, "operands", place, "all")
        self.among([table["access"]], get_args(Access), (*place, "access"))
        self.among([operands], get_args(Operands), (*place, "operands"))
        return TouchRule(
            access=table["access"],
            operands=operands,  # type: ignore[arg-type]  # `among` has just proved it
            when=frozenset(canonical.get(name, name) for name in self.names(table, "when", place)),
            unless=frozenset(canonical.get(name, name) for name in self.names(table, "unless", place)),
            values=self.known(table, "values", canonical, place),
            prefix=self.text(table, "prefix", place, ""),
        )

    def spellings(self, table: Mapping[str, Any], place: Place) -> tuple[dict[str, str], frozenset[str]]:
        canonical: dict[str, str] = {}
        valued: set[str] = set()
        for key in ("flags", "values"):
            for group in self.names(table, key, place):
                spelled = group.split()
                if not spelled or any(not one.startswith("-") or one in canonical for one in spelled):
                    raise self.fail((*place, key), f"{group!r} has a spelling that is no option, or that stands twice")
                canonical |= dict.fromkeys(spelled, spelled[-1])
                valued |= {spelled[-1]} if key == "values" else set()
        return canonical, frozenset(valued)

    def taken(self, table: Mapping[str, Any], canonical: Mapping[str, str], valued: frozenset[str], place: Place) -> dict[str, str]:
        taken = self.table(table.get("taken", {}), (*place, "taken"))
        for name, treatment in taken.items():
            if canonical.get(name) != name or not isinstance(treatment, str):
                raise self.fail((*place, "taken", name), f"{name!r} is no option by its last spelling, or has no treatment")
            if problem := treatment_problem(treatment, name in valued):
                raise self.fail((*place, "taken", name), problem)
        return dict(taken)

    def carries(self, table: Mapping[str, Any], canonical: Mapping[str, str], place: Place) -> dict[str, str]:
        carries = self.table(table.get("carries", {}), (*place, "carries"))
        for name, pattern in carries.items():
            if name and canonical.get(name) != name:
                raise self.fail((*place, "carries", name), f"{name!r} is no option by its last spelling")
            if problem := pattern_problem(pattern) or ("" if re.compile(pattern).groups else "wants a group, which is the command"):
                raise self.fail((*place, "carries", name), f"the pattern {problem}")
        return dict(carries)

    def variable(self, table: Mapping[str, Any], place: Place) -> dict[str, str]:
        self.keys(table, place, required={"names"}, optional={"language"})
        return dict.fromkeys(self.names(table, "names", place), self.text(table, "language", place, "shell"))

    def refused(self, table: Mapping[str, Any], canonical: Mapping[str, str], place: Place) -> dict[str, str]:
        reasons = self.table(table.get("refused", {}), (*place, "refused"))
        here = (*place, "refused")
        return {name: reason for reason in reasons for name in self.known(reasons, reason, canonical, here)}

    def known(self, table: Mapping[str, Any], key: str, canonical: Mapping[str, str], place: Place) -> frozenset[str]:
        names = self.names(table, key, place)
        missing = [name for name in names if name not in canonical]
        if missing:
            raise self.fail((*place, key), f"{missing[0]!r} is neither among flags nor values")
        return frozenset(canonical[name] for name in names)

    def function(self, table: Mapping[str, Any], place: Place) -> Function:
        self.keys(table, place, required={"names", "language", "runs"}, optional={"code", "argument", "receiver"})
        runs = self.text(table, "runs", place)
        self.among([runs], get_args(Runs), (*place, "runs"))
        return Function(
            names=self.names(table, "names", place),
            language=self.text(table, "language", place),
            runs=runs,  # type: ignore[arg-type]  # `among` has just proved it
            code=self.text(table, "code", place, "shell"),
            argument=self.number(table, "argument", place),
            receiver=self.switch(table, "receiver", place),
        )

    def keys(self, table: Mapping[str, Any], place: Place, *, required: set[str], optional: set[str]) -> None:
        for key in table:
            if key not in required | optional:
                known = ", ".join(sorted(required | optional))
                raise self.fail((*place, key), f"unknown key {key!r}", f"Known here: {known}.")
        for key in sorted(required):
            if key not in table:
                raise self.fail(place, f"{_titled(place, table)} lacks {key!r}", f"Add {key}.")

    def tables(self, table: Mapping[str, Any], key: str, place: Place = ()) -> Iterator[tuple[Mapping[str, Any], Place]]:
        found = table.get(key, [])
        if not isinstance(found, list) or (not found and key in table):
            raise self.fail((*place, key), f"{key!r} wants tables, written [[{key}]]")
        for at, item in enumerate(found):
            yield self.table(item, (*place, key, at)), (*place, key, at)

    def table(self, value: Any, place: Place) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self.fail(place, f"{place[-1]!r} wants a table")
        return value

    def text(self, table: Mapping[str, Any], key: str, place: Place, default: str | None = None) -> str:
        value = table.get(key, default)
        if not isinstance(value, str) or (default is None and not value.strip()):
            raise self.fail((*place, key), f"{key!r} wants a text")
        return value

    def names(self, table: Mapping[str, Any], key: str, place: Place) -> tuple[str, ...]:
        value = table.get(key, [])
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or not all(isinstance(item, str) and item for item in listed):
            raise self.fail((*place, key), f"{key!r} wants a text or a list of texts")
        return tuple(listed)

    def number(self, table: Mapping[str, Any], key: str, place: Place) -> int:
        value = table.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 9:
            raise self.fail((*place, key), f"{key!r} wants a number from 0 to 9")
        return value

    def switch(self, table: Mapping[str, Any], key: str, place: Place) -> bool:
        value = table.get(key, False)
        if not isinstance(value, bool):
            raise self.fail((*place, key), f"{key!r} wants true or false")
        return value

    def among(self, values: Sequence[Any], choices: Sequence[str], place: Place) -> None:
        for value in values:
            if value not in choices:
                raise self.fail(place, f"{place[-1]!r} is {value!r}", f"Choose from: {', '.join(choices)}.")


def _titled(place: Place, table: Mapping[str, Any]) -> str:
    """`rule 'curl-to-stdout'`, or what else names the table best."""
    kind = next((str(part) for part in reversed(place) if isinstance(part, str)), "the pack")
    return f"{kind} {table['id']!r}" if isinstance(table.get("id"), str) else kind
