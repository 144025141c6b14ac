"""Questions that the policy wants put to the user before code runs, and what becomes of them when nobody can answer."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace

from sandboxmcp.core.model import Script, Verdict

_MOST_CODE = 1_000
"""Characters of the code that are shown with the question."""


@dataclass(frozen=True, slots=True)
class Question:
    """One script that may run if the user says so. The key binds an answer to exactly this code and this rule."""

    key: str
    text: str


class AnswersNeeded(Exception):
    """The call must be made again with the user's answers: how the protocol of 2026-07-28 asks."""

    def __init__(self, questions: Sequence[Question]) -> None:
        super().__init__(f"{len(questions)} questions")
        self.questions = tuple(questions)


Ask = Callable[[Sequence[Question]], Awaitable[Mapping[str, bool]]]
"""Puts questions to the user; keys that are missing in what it returns were not answered. May raise AnswersNeeded."""


async def nobody(questions: Sequence[Question]) -> Mapping[str, bool]:
    """For callers without anyone to ask."""
    return {}


ASK: ContextVar[Ask] = ContextVar("ASK", default=nobody)
"""Who can be asked during this call: the server sets it for each request, as only it knows the client."""


async def ask_first(verdicts: Sequence[Verdict], scripts: Sequence[Script]) -> None:
    """Put the questions now, for what goes on after this call has ended: whoever asks later gets these answers."""
    questions = tuple(dict.fromkeys(_questions(verdicts, scripts).values()))
    answers = await ASK.get()(questions) if questions else {}

    async def answered(again: Sequence[Question]) -> Mapping[str, bool]:
        return answers

    ASK.set(answered)


async def settled(verdicts: Sequence[Verdict], scripts: Sequence[Script]) -> list[Verdict]:
    """The verdicts with every `ask` decided: allow if the user says so, else a deny that says how it could be allowed."""
    questions = _questions(verdicts, scripts)
    if not questions:
        return list(verdicts)
    answers = await ASK.get()(tuple(dict.fromkeys(questions.values())))
    return [
        _decided(verdict, answers.get(questions[at].key)) if at in questions else verdict for at, verdict in enumerate(verdicts)
    ]


def _questions(verdicts: Sequence[Verdict], scripts: Sequence[Script]) -> dict[int, Question]:
    """By the place of the script."""
    pairs = enumerate(zip(verdicts, scripts, strict=True))
    return {at: _question(verdict, script) for at, (verdict, script) in pairs if verdict.action == "ask"}


def _question(verdict: Verdict, script: Script) -> Question:
    parts = (verdict.pack or "", verdict.rule or "", script.language, script.code)
    key = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    line = f", line {verdict.line}" if verdict.line else ""
    shown = script.code if len(script.code) <= _MOST_CODE else script.code[:_MOST_CODE] + "…"
    return Question(key, f"May this {script.language} code run? {verdict.because} (rule {verdict.rule}{line})\n\n{shown}")


def _decided(verdict: Verdict, answer: bool | None) -> Verdict:
    if answer:
        return replace(verdict, action="allow")
    if answer is False:
        return replace(verdict, action="deny", because=f"The user was asked and said no. {verdict.because}")
    how = (
        f"It is for the user to allow: with a client that can show the question, or by changing rule {verdict.pack}/{verdict.rule}."
    )
    return replace(verdict, action="deny", because=f"Nobody could be asked. {verdict.because}", instead=f"{verdict.instead} {how}")
