"""Pairs of question and answer as a model writes them: what one must keep, why it is dropped.

The rules are those that `personas audit` holds against questions later, as far as they need no
model. Evidence is what the model was shown, and nothing else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, timedelta
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from mnemoscope.datasets.checkpoint_plan import morning
from mnemoscope.personas.write.json_salvage import read_array
from mnemoscope.personas.write.llm_writer import Unusable
from mnemoscope.personas.write.persona_files import PersonaFiles
from mnemoscope.personas.write.question_wording import COMMON, DENIAL, strangers, word_stems
from mnemoscope.text.english import stem_words
from mnemoscope.text.facts import AtomIndex
from mnemoscope.types import Memory

Difficulty = Literal["easy", "medium", "hard"]

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
"""Of two days, both may well be what matters."""
_COMPLAINTS = 8
# Counted from one date to another, so that no log need name them.
_DURATION = re.compile(r"\b\d+(?= (?:days?|weeks?|months?|hours?)\b)")
_BARE_WORDS = 2
_YES_OR_NO = ("yes", "no")


class Pair(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of questions.yaml, still without its id."""

    question: str
    answer: str
    category: str
    difficulty: str
    relevant_days: tuple[int, ...]
    requires_synthesis: bool
    query_session: str = ""
    forbidden_sessions: tuple[str, ...] = ()
    expected_disclosure: str = ""
    no_evidence: bool = False


class Dropped(Exception):
    """The pair breaks a rule: a key of REASONS, and what exactly."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{REASONS[reason]}{f' ({detail})' if detail else ''}")
        self.reason = reason


class Shown:
    """The days that a model sees, and what can be checked against them."""

    def __init__(self, home: PersonaFiles, window: Iterable[int], texts: Mapping[int, str]) -> None:
        self.home = home
        self.window = frozenset(window) & texts.keys()
        """The days the questions are about; `texts` may hold earlier ones that bear on them."""
        self.texts = texts
        self._stems = {day: word_stems(text) for day, text in texts.items()}

    def standard(self, written: Mapping[str, Any], categories: Iterable[str]) -> Pair:
        """The pair with no more days than it needs, or why it is Dropped."""
        question, answer, difficulty = read_texts(written)
        category = text_of(written, "category")
        if category not in tuple(categories):
            raise Dropped("category", category)
        if category == NEGATIVE:
            if not DENIAL.search(answer):
                raise Dropped("answered", answer)
            asked_from = (max(self.texts),)
            return Pair(question, answer, category, difficulty, asked_from, False, no_evidence=True)
        days = self.days(written, question, answer)
        counted = category == TEMPORAL
        self.need_values(_DURATION.sub("", answer) if counted else answer, days)
        self.need_names(question, days)
        synthesis = written.get("requires_synthesis")
        needs_several = synthesis if isinstance(synthesis, bool) else len(days) > 1
        return Pair(question, answer, category, difficulty, days, needs_several)

    def need_values(self, text: str, days: tuple[int, ...]) -> None:
        """Dropped where a value or name of the text is in none of these days."""
        memories = [Memory(str(d), self.texts[d], morning(self.home.epoch, d)) for d in days]
        implied = [day.isoformat() for day in self._implied(days)]
        absent = AtomIndex(memories).invented(text, len(memories), implied)
        words = text.split()
        if len(words) <= _BARE_WORDS and words[0].casefold().strip(".,!") not in _YES_OR_NO:
            text = f"it is {text}"  # so short that its capital is a name's, not a sentence's
        if strange := [*absent, *self._strangers(text, days)]:
            raise Dropped("value-absent", ", ".join(strange))

    def need_names(self, question: str, days: tuple[int, ...]) -> None:
        if strange := self._strangers(question, days):
            raise Dropped("entity-missing", ", ".join(strange))

    def days(self, written: Mapping[str, Any], question: str, answer: str) -> tuple[int, ...]:
        """The days given as relevant, without those that share no word with the pair."""
        given = written.get("relevant_days")
        if not isinstance(given, list) or not given or not all(type(day) is int for day in given):
            raise Dropped("unreadable", "relevant_days is no list of whole numbers")
        if unknown := sorted(set(given) - self.texts.keys()):
            raise Dropped("unknown-day", ", ".join(map(str, unknown)))
        if len(self.window) >= _SHORTEST_WINDOW and self.window <= set(given):
            raise Dropped("whole-window", question)
        asked = word_stems(f"{question} {answer}") - COMMON
        days = tuple(day for day in sorted(set(given)) if asked & self._stems[day])
        if not days:
            raise Dropped("no-overlap")
        return days

    def _strangers(self, text: str, days: Iterable[int]) -> list[str]:
        """Names of which no part is in these days, nor known anyway."""
        return strangers(text, self.home.persona, (self._stems[day] for day in days))

    def _implied(self, days: Iterable[int]) -> Iterator[date]:
        """Dates that these days speak of without naming them: tomorrow, on Friday."""
        for day in days:
            words, today = self._stems[day], self.home.date_of(day)
            for off in range(-7, 15):
                then = today + timedelta(days=off)
                relative = {-1: "yesterday", 0: "today", 1: "tomorrow"}.get(off)
                spoken = {f"{then:%A}".lower(), relative} - {None}
                if words & set(stem_words(sorted(filter(None, spoken)))):
                    yield then


class Gathered(NamedTuple):
    """What a window gave."""

    key: str
    pairs: tuple[Pair, ...]
    dropped: dict[str, int]


class ReplyReader:
    """Reads the reply about one window: pairs that keep the rules, at most so many.

    A truncated array is worth what is whole of it. Pairs that take the whole window for evidence
    are sent back once; who then still does loses them.
    """

    def __init__(self, key: str, check: Callable[[Mapping[str, Any]], Pair], most: int) -> None:
        self._key = key
        self._check = check
        self._most = most
        self._asked_for_less = False

    def __call__(self, reply: str) -> Gathered:
        kept: list[Pair] = []
        dropped: Counter[str] = Counter()
        complaints: list[str] = []
        for number, written in enumerate(read_array(reply).objects, 1):
            try:
                kept.append(self._check(written))
            except Dropped as error:
                dropped[error.reason] += 1
                complaints.append(f"pair {number}: {error}")
        if dropped["whole-window"] and not self._asked_for_less:
            self._asked_for_less = True
            raise Unusable(
                "some pairs name every day of the window as relevant; name only the days without "
                f"which the question could not be answered. {_some(complaints)}"
            )
        if not kept:
            raise Unusable(f"no pair of it can be used. {_some(complaints)}".strip())
        return Gathered(self._key, tuple(kept[: self._most]), dict(dropped))


def _some(complaints: list[str]) -> str:
    return "; ".join(complaints[:_COMPLAINTS])


def read_texts(written: Mapping[str, Any]) -> tuple[str, str, str]:
    """Question, answer and difficulty; Dropped where they cannot be used."""
    question, answer = text_of(written, "question"), text_of(written, "answer")
    difficulty = text_of(written, "difficulty").lower()
    if difficulty not in get_args(Difficulty):
        raise Dropped("difficulty", difficulty)
    if named := _DAY_NUMBER.search(f"{question}\n{answer}"):
        raise Dropped("day-number", named[0])
    return question, answer, difficulty


def text_of(written: Mapping[str, Any], field: str) -> str:
    value = written.get(field)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        raise Dropped("unreadable", field)
    return value.strip()
