"""The rules for questions, for those that a model writes and those that an audit reads.

Words are compared by their stems; names are found by their capital letters. Evidence is only what
the prompt contained.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, timedelta
from typing import NamedTuple

from mnemoscope.datasets.checkpoint_plan import morning
from mnemoscope.personas.authored_question import DIFFICULTIES, AuthoredQuestion, Difficulty
from mnemoscope.personas.write.llm_writer import JsonObject, UnusableReply, read_array
from mnemoscope.personas.write.persona_files import Persona, PersonaFiles
from mnemoscope.text.english import STOP_WORDS, stem_words
from mnemoscope.text.facts import AtomIndex
from mnemoscope.text.matching import normalise
from mnemoscope.types import Memory

NEGATIVE = "negative-recall"
TEMPORAL = "temporal-reasoning"
REASONS: Mapping[str, str] = {
    "unreadable": "a field is missing or of the wrong kind",
    "category": "the category is none of those asked for",
    "difficulty": "the difficulty is not easy, medium or hard",
    "day-number": "it speaks of day numbers, which nobody in the log knows",
    "unknown-day": "relevant_days names a day that was not shown",
    "no-overlap": "it shares no word with its relevant days",
    "whole-window": "relevant_days is the whole window instead of the few days that matter",
    "value-absent": "a number, date or name of the answer is not in its relevant days",
    "entity-missing": "a name in the question is not in its relevant days",
    "answered": "negative-recall, but the answer says that something is known",
    "tells": "the answer is to be refused, and tells",
    "duplicate": "the same is asked already",
}
"""Why pairs are dropped."""
_DAY_NUMBER = re.compile(r"\bdays?[ -]?#?\d+\b(?! ?(?:%|\.\d))", re.IGNORECASE)
_SHORTEST_WINDOW = 3
"""Days; both days of a window of two may be needed."""
_COMPLAINTS = 8
# Durations are computed from dates, so the log need not state them.
_DURATION = re.compile(r"\b\d+(?= (?:days?|weeks?|months?|hours?)\b)")
_BARE_WORDS = 2
_YES_OR_NO = ("yes", "no")
COMMON = STOP_WORDS.union(stem_words(sorted(STOP_WORDS)))
"""Stems of stop words."""
DENIAL = re.compile(
    r"\b(?:no|not|never|none|nothing|nobody|nowhere|neither|nor|without|unknown|cannot|silent|"
    r"absent|missing|refused?|declined?)\b|n['’]t\b",
    re.IGNORECASE,
)
"""Words of an answer that denies knowledge."""
_WORD = re.compile(r"[^\W_]+")
_CAPITAL = "A-ZÀ-ÖØ-Þ"
_NAMES = re.compile(rf"[{_CAPITAL}][\w&]*(?:[-'’][\w&]+)*(?: [{_CAPITAL}][\w&]*(?:[-'’][\w&]+)*)*")
_POSSESSIVE = re.compile(r"['’]s?$")
_SENTENCE = re.compile(r"(?:^|[.!?:]\s+)[\"'“‘(]*$")
_NO_NAMES = (
    frozenset(
        "i am pm monday tuesday wednesday thursday friday saturday sunday mondays tuesdays "
        "wednesdays thursdays fridays saturdays sundays january february march "
        "april may june july august september october november december jan feb mar apr jun jul "
        "aug sep oct nov dec".split()
    )
    | STOP_WORDS
)


def word_stems(text: str) -> frozenset[str]:
    """The set of the stems of all words."""
    return frozenset(stem_words(sorted(set(_WORD.findall(text.casefold())))))


def asked_words(question: str) -> str:
    """A key that is equal for questions that differ in case, space and punctuation only."""
    return " ".join(re.findall(r"\w+", normalise(question)))


def unknown_names(text: str, persona: Persona, evidence: Iterable[Iterable[str]]) -> list[str]:
    """Names of which no part is among the stems of the evidence or of the persona's own names."""
    known = [persona.name, persona.company, persona.institution, persona.firm, persona.id]
    known += [persona.principal.name] if persona.principal else []
    stems = word_stems(" ".join(known)).union(*evidence)
    return [name for name in names(text) if not stems & word_stems(name)]


def names(text: str) -> list[str]:
    """Capitalised words that do not begin a sentence: people, things, places."""
    found: list[str] = []
    for match in _NAMES.finditer(text):
        words = [_POSSESSIVE.sub("", word) for word in match[0].split(" ")]
        if _SENTENCE.search(text[: match.start()]):
            words = words[1:]
        kept = [word for word in words if len(word) > 1 and word.casefold() not in _NO_NAMES]
        if kept:
            found.append(" ".join(kept))
    return list(dict.fromkeys(found))


class RejectedPair(Exception):
    """The pair breaks a rule: a key of REASONS, and what exactly."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{REASONS[reason]}{f' ({detail})' if detail else ''}")
        self.reason = reason


class ShownDays:
    """The days that a prompt contains, and the checks of pairs against them."""

    def __init__(
        self, files: PersonaFiles, window: Iterable[int], texts: Mapping[int, str]
    ) -> None:
        self.files = files
        self.window = frozenset(window) & texts.keys()
        """The days that the questions are about; `texts` may contain earlier related ones."""
        self.texts = texts
        self._stems = {day: word_stems(text) for day, text in texts.items()}

    def standard(self, written: JsonObject, categories: Iterable[str]) -> AuthoredQuestion:
        """The pair, without days that share no word with it; RejectedPair if it breaks a rule."""
        question, answer, difficulty = read_texts(written)
        category = text_of(written, "category")
        if category not in tuple(categories):
            raise RejectedPair("category", category)
        if category == NEGATIVE:
            if not DENIAL.search(answer):
                raise RejectedPair("answered", answer)
            return AuthoredQuestion(
                question=question,
                answer=answer,
                category=category,
                difficulty=difficulty,
                relevant_days=(max(self.texts),),
                requires_synthesis=False,
                no_evidence=True,
            )
        days = self.days(written, question, answer)
        counted = category == TEMPORAL
        self.need_values(_DURATION.sub("", answer) if counted else answer, days)
        self.need_names(question, days)
        synthesis = written.get("requires_synthesis")
        needs_several = synthesis if isinstance(synthesis, bool) else len(days) > 1
        return AuthoredQuestion(
            question=question,
            answer=answer,
            category=category,
            difficulty=difficulty,
            relevant_days=days,
            requires_synthesis=needs_several,
        )

    def need_values(self, text: str, days: tuple[int, ...]) -> None:
        """RejectedPair if a value or name of the text is in none of these days."""
        memories = [Memory(str(d), self.texts[d], morning(self.files.epoch, d)) for d in days]
        implied = [day.isoformat() for day in self._implied(days)]
        absent = AtomIndex(memories).invented(text, len(memories), implied)
        words = text.split()
        if len(words) <= _BARE_WORDS and words[0].casefold().strip(".,!") not in _YES_OR_NO:
            text = f"it is {text}"  # so short that a capital marks a name, not a sentence
        if strange := [*absent, *self._unknown_names(text, days)]:
            raise RejectedPair("value-absent", ", ".join(strange))

    def need_names(self, question: str, days: tuple[int, ...]) -> None:
        if strange := self._unknown_names(question, days):
            raise RejectedPair("entity-missing", ", ".join(strange))

    def days(self, written: JsonObject, question: str, answer: str) -> tuple[int, ...]:
        """The days given as relevant, without those that share no word with the pair."""
        given = written.get("relevant_days")
        if not isinstance(given, list) or not given or not all(type(day) is int for day in given):
            raise RejectedPair("unreadable", "relevant_days is no list of whole numbers")
        if unknown := sorted(set(given) - self.texts.keys()):
            raise RejectedPair("unknown-day", ", ".join(map(str, unknown)))
        if len(self.window) >= _SHORTEST_WINDOW and self.window <= set(given):
            raise RejectedPair("whole-window", question)
        asked = word_stems(f"{question} {answer}") - COMMON
        days = tuple(day for day in sorted(set(given)) if asked & self._stems[day])
        if not days:
            raise RejectedPair("no-overlap")
        return days

    def _unknown_names(self, text: str, days: Iterable[int]) -> list[str]:
        return unknown_names(text, self.files.persona, (self._stems[day] for day in days))

    def _implied(self, days: Iterable[int]) -> Iterator[date]:
        """Dates that these days name by other words: tomorrow, on Friday."""
        for day in days:
            words, today = self._stems[day], self.files.date_of(day)
            for off in range(-7, 15):
                then = today + timedelta(days=off)
                relative = {-1: "yesterday", 0: "today", 1: "tomorrow"}.get(off)
                spoken = {f"{then:%A}".lower(), relative} - {None}
                if words & set(stem_words(sorted(filter(None, spoken)))):
                    yield then


class WindowReply(NamedTuple):
    """The pairs of one reply, and how many were dropped by reason."""

    key: str
    pairs: tuple[AuthoredQuestion, ...]
    dropped: dict[str, int]


class ReplyReader:
    """Reads the reply about one window: up to `most` pairs that keep the rules.

    Complete pairs of a truncated array are used. A reply with pairs that name the whole window as
    evidence is retried once; after that such pairs are dropped.
    """

    def __init__(
        self, key: str, check: Callable[[JsonObject], AuthoredQuestion], most: int
    ) -> None:
        self._key = key
        self._check = check
        self._most = most
        self._asked_for_less = False

    def __call__(self, reply: str) -> WindowReply:
        kept: list[AuthoredQuestion] = []
        dropped: Counter[str] = Counter()
        complaints: list[str] = []
        for number, written in enumerate(read_array(reply).objects, 1):
            try:
                kept.append(self._check(written))
            except RejectedPair as error:
                dropped[error.reason] += 1
                complaints.append(f"pair {number}: {error}")
        if dropped["whole-window"] and not self._asked_for_less:
            self._asked_for_less = True
            raise UnusableReply(
                "some pairs name every day of the window as relevant; name only the days without "
                f"which the question could not be answered. {_some(complaints)}"
            )
        if not kept:
            raise UnusableReply(f"no pair of it can be used. {_some(complaints)}".strip())
        return WindowReply(self._key, tuple(kept[: self._most]), dict(dropped))


def _some(complaints: list[str]) -> str:
    return "; ".join(complaints[:_COMPLAINTS])


def read_texts(written: JsonObject) -> tuple[str, str, Difficulty]:
    """Question, answer and difficulty; RejectedPair if they cannot be used."""
    question, answer = text_of(written, "question"), text_of(written, "answer")
    difficulty = text_of(written, "difficulty").lower()
    level = next((one for one in DIFFICULTIES if one == difficulty), None)
    if level is None:
        raise RejectedPair("difficulty", difficulty)
    if named := _DAY_NUMBER.search(f"{question}\n{answer}"):
        raise RejectedPair("day-number", named[0])
    return question, answer, level


def text_of(written: JsonObject, field: str) -> str:
    value = written.get(field)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        raise RejectedPair("unreadable", field)
    return value.strip()
