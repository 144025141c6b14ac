"""The judge: packs in, and for every piece of code one verdict that says who spoke, where, why and what to do instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sandboxmcp.core.errors import BrokenPack
from sandboxmcp.core.model import Setting, Verdict
from sandboxmcp.core.resources import data_folder
from sandboxmcp.policy.analysis import facts_of
from sandboxmcp.policy.brokered import with_options
from sandboxmcp.policy.facts import Call, Command, Fact, Unknown
from sandboxmcp.policy.pack import Pack, load_pack
from sandboxmcp.policy.programs import Function, Knowledge, Program
from sandboxmcp.policy.rules import STRICTNESS, Example, Key, Rule, Subject, keys_of, matches, subject_of
from sandboxmcp.sandbox.broker.programs import Brokered, in_force
from sandboxmcp.sandbox.broker.programs import example_problem as broker_problem

_KNOWLEDGE = "programs"
"""The shipped pack without rules: how well-known programs read their options and what they run."""
_MOST_UNKNOWN = 20
_UNKNOWN_BECAUSE = "What would run cannot be told before it runs: {}."
_UNKNOWN_INSTEAD = "Write the program and its arguments out, or run it with ctx_execute, inside the sandbox."


class Engine:
    """Judges code by the rules of its packs. Holds no state of what it has judged; safe to use from several threads."""

    def __init__(self, packs: Sequence[Pack]) -> None:
        self.packs = tuple(packs)
        self.knowledge = _knowledge(self.packs)
        self._rules: dict[Key, list[tuple[Pack, Rule]]] = {}
        for pack in self.packs:
            for rule in pack.rules:
                for key in rule.keys:
                    self._rules.setdefault(key, []).append((pack, rule))

    def brokers(self) -> dict[str, Brokered]:
        """The programs that may reach the network outside, by name, with the options that are known of them."""
        return in_force(self._with_options(broker) for pack in self.packs for broker in pack.brokers)

    def _with_options(self, broker: Brokered) -> Brokered:
        return with_options(broker, self.knowledge.programs.get(broker.fetches))

    def check_brokers(self, pack: Pack) -> None:
        """Raises: BrokenPack when a broker of the pack disagrees with one of its examples."""
        for at, broker in enumerate(pack.brokers):
            for number, example in enumerate(broker.examples):
                if problem := broker_problem(self._with_options(broker), example):
                    raise pack.broken(
                        ("broker", at, "example", number), f"broker {broker.program!r}: {problem}", "Mend the table or the example."
                    )

    def judge(self, code: str, language: str, setting: Setting = "kernel") -> Verdict:
        """The strictest verdict of all rules that match anything in `code`. Pure; never raises, whatever the code is."""
        facts = facts_of(code, language, self.knowledge)
        unknown = [(fact.line, fact.what) for fact in facts if isinstance(fact, Unknown)]
        found: list[tuple[int, int, Pack, Rule]] = []
        for fact, pack, rule, match in self._matches(facts, setting):
            if match is None:
                unknown.append((fact.line, f"the arguments of {fact.name}" if isinstance(fact, Command | Call) else "what this is"))
            else:
                found.append((-STRICTNESS[rule.verdict], fact.line, pack, rule))
        listed = _listed(unknown)
        if not found or (setting == "host" and listed and all(rule.verdict == "allow" for *_, rule in found)):
            return _without_rule(listed, unknown, setting)
        _, line, pack, rule = min(found, key=lambda one: one[:2])
        return Verdict(rule.verdict, pack.name, rule.id, line, rule.because, rule.instead, listed)

    def example_problem(self, rule: Rule, example: Example) -> str:
        """What is wrong with an example of `rule`: empty when the verdict is as it says, and by this very rule if not allow."""
        verdict = self.judge(example.code, example.language, example.setting)
        if verdict.action != example.verdict:
            by = f" by {verdict.rule}" if verdict.rule else ""
            return f"the example is {verdict.action}{by}, not {example.verdict}"
        if example.verdict == "allow":
            return ""
        facts = facts_of(example.code, example.language, self.knowledge)
        own = any(match and found is rule for _, _, found, match in self._matches(facts, example.setting))
        return "" if own else f"the example is {verdict.action} by {verdict.rule}, but not by this rule"

    def _matches(self, facts: Iterable[Fact], setting: Setting) -> Iterator[tuple[Fact, Pack, Rule, bool | None]]:
        for fact in facts:
            rules = {id(rule): (pack, rule) for key in keys_of(fact) for pack, rule in self._rules.get(key, ())}
            if not rules:
                continue
            subject: Subject = subject_of(fact, self.knowledge)
            for pack, rule in rules.values():
                match = matches(rule, subject) if setting in rule.settings else False
                if match is not False:
                    yield fact, pack, rule, match


def load_engine(names: Sequence[str] = ("default",), folders: Sequence[Path] = ()) -> Engine:
    """An engine of the named packs and of those that they extend.

    A name is looked for as `NAME.toml` in `folders`, then among the shipped packs; a name with a slash or `.toml` is a path.
    Every example of every rule is judged by its pack with what that extends.

    Raises:
        BrokenPack: a pack is missing, wrong, or disagrees with one of its examples; names file and line.
    """
    places = (*folders, data_folder("policies"))
    loaded: dict[str, Pack] = {}
    for name in (_KNOWLEDGE, *names):
        _load(name, places, loaded)
    packs = _distinct_programs(loaded)
    for pack in packs:
        family = Engine([loaded[name] for name in _family(pack, loaded)])
        family.check_brokers(pack)
        for at, rule in enumerate(pack.rules):
            for number, example in enumerate(rule.examples):
                if problem := family.example_problem(rule, example):
                    raise pack.broken(
                        ("rule", at, "example", number), f"rule {rule.id!r}: {problem}", "Mend the rule or the example."
                    )
    return Engine(packs)


def _load(name: str, places: Sequence[Path], loaded: dict[str, Pack], asked_by: Pack | None = None) -> None:
    if name in loaded:
        return
    pack = load_pack(_file_of(name, places, asked_by))
    loaded[name] = pack
    for other in pack.extends:
        _load(other, places, loaded, pack)


def _file_of(name: str, places: Sequence[Path], asked_by: Pack | None) -> Path:
    if "/" in name or name.endswith(".toml"):
        return Path(name)
    for place in places:
        if (place / f"{name}.toml").exists():
            return place / f"{name}.toml"
    if asked_by is not None:
        raise asked_by.broken(("pack", "extends"), f"the pack {name!r}, which it extends, is nowhere")
    looked = ", ".join(str(place) for place in places)
    raise BrokenPack(places[-1] / f"{name}.toml", 1, f"there is no policy pack {name!r} in {looked}", "Correct policy_packs.")


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


def _knowledge(packs: Sequence[Pack]) -> Knowledge:
    programs: dict[str, Program] = {name: program for pack in packs for program in pack.programs for name in program.names}
    functions: dict[tuple[str, str], Function] = {
        (function.language, name): function for pack in packs for function in pack.functions for name in function.names
    }
    return Knowledge(programs, functions)


def _listed(unknown: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    listed = list(dict.fromkeys(f"line {line}: {what}" for line, what in sorted(unknown)))
    more = len(listed) - _MOST_UNKNOWN
    return (*listed[:_MOST_UNKNOWN], f"and {more} more") if more > 0 else tuple(listed)


def _without_rule(listed: tuple[str, ...], unknown: Sequence[tuple[int, str]], setting: Setting) -> Verdict:
    """No rule speaks. On the host what is unknown is asked about; inside a kernel the sandbox stands."""
    if setting == "kernel" or not listed:
        return Verdict("allow", unknown=listed)
    line = min(unknown)[0]
    return Verdict("ask", line=line, because=_UNKNOWN_BECAUSE.format(listed[0]), instead=_UNKNOWN_INSTEAD, unknown=listed)
