"""The judge: packs in, and for every piece of code one verdict that says who spoke, where, why and what to do instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from sandboxmcp.core.model import Action, Setting, Verdict
from sandboxmcp.core.surface import call
from sandboxmcp.policy.analysis.analyse import facts_of
from sandboxmcp.policy.conditions import Subject, subject_of
from sandboxmcp.policy.facts import Call, Capability, Command, Embedded, Fact, Import, Key, Unknown, keys_of
from sandboxmcp.policy.network_forecast import network_outlook
from sandboxmcp.policy.packs.broker_tables import with_options
from sandboxmcp.policy.packs.pack import Pack
from sandboxmcp.policy.paths import Places
from sandboxmcp.policy.programs.brokered_programs import Brokered, in_force
from sandboxmcp.policy.programs.brokered_programs import example_problem as broker_problem
from sandboxmcp.policy.programs.code_files import Loader, Maker
from sandboxmcp.policy.programs.effects import effects_of
from sandboxmcp.policy.programs.knowledge import Function, Knowledge, Program
from sandboxmcp.policy.rules import STRICTNESS, Example, Rule, matches
from sandboxmcp.policy.written import scripts_run

_MOST_UNKNOWN = 20
_MOST_SCRIPTS = 50
"""That one code writes and runs."""
_UNKNOWN_BECAUSE = "What would run cannot be told before it runs: {}."
_UNKNOWN_INSTEAD = "Write the program and its arguments out, or run it with {}, inside the sandbox."
_Found = tuple[Fact, Pack, Rule, bool | None]
_Index = dict[Key, list[tuple[Pack, Rule]]]


class Engine:
    """Judges code by the rules of its packs. Holds no state of what it has judged; safe to use from several threads."""

    def __init__(self, packs: Sequence[Pack], places: Places = Places()) -> None:  # noqa: B008 - frozen
        self.packs = tuple(packs)
        self.places = places
        self.knowledge = _knowledge(self.packs)
        self._ask_is_deny = any(pack.ask_is_deny for pack in self.packs)
        self._owners = {id(rule): pack.name for pack in self.packs for rule in pack.rules}
        self._rules = _index((pack, rule) for pack in self.packs for rule in pack.rules)
        self._abilities = _index((pack, rule) for pack in self.packs for rule in pack.capabilities)

    def brokers(self) -> dict[str, Brokered]:
        """The programs that may reach the network outside, by name, with the options that are known of them."""
        return in_force(self._with_options(broker) for pack in self.packs for broker in pack.brokers)

    def demands(self) -> tuple[tuple[str, Any], ...]:
        """Settings that the packs demand, dotted, with the values: see `core.settings.tightened`."""
        return tuple(one for pack in self.packs for one in pack.demands)

    def _with_options(self, broker: Brokered) -> Brokered:
        return with_options(broker, self.knowledge.programs.get(broker.fetches))

    def check_brokers(self, pack: Pack) -> None:
        """Raises: BrokenPack when a broker of the pack disagrees with one of its examples."""
        for at, broker in enumerate(pack.brokers):
            for number, _ in enumerate(broker.examples):
                if problem := self.broker_problem(broker, number):
                    raise pack.broken(
                        ("broker", at, "example", number), f"broker {broker.program!r}: {problem}", "Mend the table or the example."
                    )

    def broker_problem(self, broker: Brokered, number: int) -> str:
        """What is wrong with one of a broker's examples; empty when nothing is."""
        return broker_problem(self._with_options(broker), broker.examples[number])

    def judge(self, code: str, language: str, setting: Setting = "kernel") -> Verdict:
        """The strictest verdict of all rules that match anything in `code`. Pure; never raises, whatever the code is."""
        facts = self._facts(code, language)
        unknown = [(fact.line, fact.what) for fact in facts if isinstance(fact, Unknown)]
        found: list[tuple[int, int, Fact, Pack, Rule]] = []
        for fact, pack, rule, match in self._matches(facts, setting):
            if match is None:
                unknown.append((fact.line, f"the arguments of {fact.name}" if isinstance(fact, Command | Call) else "what this is"))
            else:
                found.append((-STRICTNESS[self._action(rule)], fact.line, fact, pack, rule))
        listed = _listed(unknown)
        if not found or (setting == "host" and listed and all(rule.verdict == "allow" for *_, rule in found)):
            return self._without_rule(listed, unknown, setting)
        _, line, fact, pack, rule = min(found, key=lambda one: one[:2])
        return Verdict(
            self._action(rule), pack.name, rule.id, line, rule.because, rule.instead, program=_title(fact), unknown=listed
        )

    def outlook(self, code: str, language: str) -> tuple[str, ...]:
        """What of allowed code would fail inside for want of a network, each part with its line."""
        return network_outlook(self._facts(code, language), self.brokers())

    def _action(self, rule: Rule) -> Action:
        return "deny" if self._ask_is_deny and rule.verdict == "ask" else rule.verdict

    def _without_rule(self, listed: tuple[str, ...], unknown: Sequence[tuple[int, str]], setting: Setting) -> Verdict:
        """No rule speaks. On the host what is unknown is asked about; inside a kernel the sandbox stands."""
        if setting == "kernel" or not listed:
            return Verdict("allow", unknown=listed)
        action: Action = "deny" if self._ask_is_deny else "ask"
        line = min(unknown)[0]
        return Verdict(
            action,
            line=line,
            because=_UNKNOWN_BECAUSE.format(listed[0]),
            instead=_UNKNOWN_INSTEAD.format(call("ctx_execute")),
            unknown=listed,
        )

    def example_problem(self, rule: Rule, example: Example) -> str:
        """What is wrong with an example of `rule`: empty when the verdict is as it says, and by this very rule if not allow."""
        verdict = self.judge(example.code, example.language, example.setting)
        if verdict.action != example.verdict:
            by = f" by {verdict.rule}" if verdict.rule else ""
            return f"the example is {verdict.action}{by}, not {example.verdict}"
        if example.verdict == "allow" or (verdict.rule == rule.id and verdict.pack == self._owners.get(id(rule))):
            return ""
        facts = self._facts(example.code, example.language)
        own = any(match and found is rule for _, _, found, match in self._matches(facts, example.setting))
        return "" if own else f"the example is {verdict.action} by {verdict.rule}, but not by this rule"

    def _facts(self, code: str, language: str) -> list[Fact]:
        """What the code holds, then what that does and is able to do."""
        facts = self._with_effects(facts_of(code, language, self.knowledge))
        texts = {code}
        scripts = list(scripts_run(facts, self.knowledge, self.places))
        while scripts:
            script = scripts.pop()
            if isinstance(script, Unknown) or len(texts) > _MOST_SCRIPTS:
                facts.append(Unknown(script.line, getattr(script, "what", "scripts that write scripts")))
            elif isinstance(script, Embedded) and script.code not in texts:
                texts.add(script.code)
                inside = self._with_effects(facts_of(script.code, script.language, self.knowledge))
                facts += [replace(fact, line=script.line) for fact in inside]
                scripts += scripts_run(facts, self.knowledge, self.places)
        return facts

    def _with_effects(self, found: Iterable[Fact]) -> list[Fact]:
        facts: list[Fact] = []
        for fact in found:
            facts.append(fact)
            facts += effects_of(fact, self.knowledge)
            if isinstance(fact, Command | Call | Import):
                spoken = "shell" if isinstance(fact, Command) else fact.language
                facts += [Capability(fact.line, rule.id, spoken) for _, rule, match in self._held(fact, self._abilities) if match]
        return facts

    def _held(self, fact: Fact, index: _Index) -> Iterator[tuple[Pack, Rule, bool | None]]:
        rules = {id(rule): (pack, rule) for key in keys_of(fact) for pack, rule in index.get(key, ())}
        if rules:
            subject: Subject = subject_of(fact, self.knowledge, self.places)
            for pack, rule in rules.values():
                yield pack, rule, matches(rule, subject)

    def _matches(self, facts: Iterable[Fact], setting: Setting) -> Iterator[_Found]:
        for fact in facts:
            for pack, rule, match in self._held(fact, self._rules):
                if match is not False and setting in rule.settings:
                    yield fact, pack, rule, match


def _title(fact: Fact) -> str:
    """What a fact is about, in a word."""
    return next((str(getattr(fact, name)) for name in ("name", "path", "text") if hasattr(fact, name)), "").replace("\0", "…")


def _index(rules: Iterable[tuple[Pack, Rule]]) -> _Index:
    index: _Index = {}
    for pack, rule in rules:
        for key in rule.keys:
            index.setdefault(key, []).append((pack, rule))
    return index


def _knowledge(packs: Sequence[Pack]) -> Knowledge:
    programs: dict[str, Program] = {name: program for pack in packs for program in pack.programs for name in program.names}
    functions: dict[tuple[str, str], Function] = {
        (function.language, name): function for pack in packs for function in pack.functions for name in function.names
    }
    for broker in in_force(broker for pack in packs for broker in pack.brokers).values():
        if broker.fetches in programs:
            programs[broker.program] = replace(programs[broker.fetches], methods=frozenset(broker.methods))
    makers: dict[str, tuple[Maker, ...]] = {}
    loaders: dict[str, tuple[Loader, ...]] = {}
    for pack in packs:
        for maker in pack.makers:
            makers |= {name: (*makers.get(name, ()), maker) for name in maker.names}
        for loader in pack.loaders:
            loaders |= {name: (*loaders.get(name, ()), loader) for name in loader.names}
    variables = {name: language for pack in packs for name, language in pack.variables.items()}
    return Knowledge(programs, functions, variables, makers, loaders)


def _listed(unknown: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    listed = list(dict.fromkeys(f"line {line}: {what}" for line, what in sorted(unknown)))
    more = len(listed) - _MOST_UNKNOWN
    return (*listed[:_MOST_UNKNOWN], f"and {more} more") if more > 0 else tuple(listed)
