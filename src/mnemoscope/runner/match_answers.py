"""Finds the question of a dataset for each answer of a file: by its id, or by its text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope.analysis.foreign_verdicts import ImportCounts
from mnemoscope.runner.foreign_fields import AnswerFile, GivenAnswer
from mnemoscope.types import Question

_EXAMPLES = 5
_NUMBERED = re.compile(r"(?:.*?[_-])?(\d+)[_/-]q(?:a|uestion)?_?(\d+)", re.IGNORECASE)
"""`locomo_0_qa12` of mem0-style evaluations and `locomo_0_q12` of others: conversation, number."""
_PREFIX = "lme_"
_LAST_NUMBER = re.compile(r"(\d+)\D*$")


@dataclass
class Matched:
    """Question id to its answer, and what became of the others."""

    answers: dict[str, GivenAnswer] = field(default_factory=dict)
    by_id: int = 0
    by_text: int = 0
    other_text: int = 0
    unknown: int = 0
    repeated: int = 0
    conflicting: int = 0
    examples: dict[str, list[str]] = field(default_factory=dict)

    def note(self, kind: str, place: str) -> None:
        setattr(self, kind, getattr(self, kind) + 1)
        kept = self.examples.setdefault(kind, [])
        if len(kept) < _EXAMPLES:
            kept.append(place)

    def counts(self, file: AnswerFile, questions: int) -> ImportCounts:
        return {
            "in_file": len(file.answers),
            "matched": len(self.answers),
            "by_id": self.by_id,
            "by_text": self.by_text,
            "other_text": self.other_text,
            "unknown": self.unknown,
            "repeated": self.repeated,
            "conflicting": self.conflicting,
            "missing": questions - len(self.answers),
            "elsewhere": file.elsewhere,
            "verdicts": sum(one.is_right is not None for one in self.answers.values()),
            "examples": self.examples,
        }


class QuestionIndex:
    """The questions of a dataset by id, by number and by text."""

    def __init__(self, questions: Iterable[tuple[str, Question]]) -> None:
        """`questions` are pairs of the scenario's id and the question."""
        self.by_id: dict[str, Question] = {}
        self._scenario: dict[str, str] = {}
        self._numbered: dict[tuple[int, int], str] = {}
        self._by_text: dict[str, list[str]] = {}
        conversations: dict[str, int] = {}
        for scenario, question in questions:
            self.by_id[question.id] = question
            self._by_text.setdefault(_normal(question.text), []).append(question.id)
            conversation, slash, number = question.id.rpartition("/q")
            self._scenario[question.id] = conversation or scenario
            if slash and number.isdigit():
                order = conversations.setdefault(conversation, len(conversations))
                self._numbered[order, int(number)] = question.id
        self._order = conversations

    def by_name(self, name: str) -> str | None:
        """The id of the question that the file calls so."""
        for own in (name, name.removeprefix(_PREFIX)):
            if own in self.by_id:
                return own
        if self._numbered and (numbered := _NUMBERED.fullmatch(name)):
            return self._numbered.get((int(numbered[1]), int(numbered[2])))
        return None

    def by_wording(self, answer: GivenAnswer, taken: Iterable[str]) -> str | None:
        """The question with this text in the same conversation; None if several are meant."""
        same = self._by_text.get(_normal(answer.text), [])
        if answer.group:
            named = [id for id in same if self._is_of(id, answer.group)]
            same = named or ([] if self._knows(answer.group) else same)
        if len({self._scenario[id] for id in same}) > 1:
            return None
        # A text that is asked twice in one conversation: the answers are in the same order.
        known = set(taken)
        return next((id for id in same if id not in known), same[0] if same else None)

    def _is_of(self, id: str, group: str) -> bool:
        conversation = self._scenario[id]
        number = _LAST_NUMBER.search(group)
        return group == conversation or (
            number is not None and self._order.get(conversation) == int(number[1])
        )

    def _knows(self, group: str) -> bool:
        return any(self._is_of(id, group) for id in self.by_id)


def match_answers(file: AnswerFile, index: QuestionIndex, dataset: str, name: str) -> Matched:
    """Match every answer; the first answer to a question counts, and the others are counted."""
    found = Matched()
    for answer in file.answers:
        id = index.by_name(answer.question) if answer.question else None
        named = id is not None
        if id is None and answer.text:
            id = index.by_wording(answer, found.answers)
        if id is None:
            found.note("unknown", f"{answer.place}: {answer.question or answer.text:.60}")
            continue
        if id in found.answers:
            same = found.answers[id].answer == answer.answer
            found.note("repeated" if same else "conflicting", f"{answer.place}: {id}")
            continue
        found.answers[id] = answer
        if named:
            found.by_id += 1
            if answer.text and _normal(answer.text) != _normal(index.by_id[id].text):
                found.note("other_text", f"{answer.place}: {id}")
        else:
            found.by_text += 1
    _check(found, file.answers, index, dataset, name)
    return found


def _check(
    found: Matched, answers: Sequence[GivenAnswer], index: QuestionIndex, dataset: str, name: str
) -> None:
    """Refuse a file for another dataset, and ids that mean other questions than ours."""
    if not found.answers:
        theirs = answers[0].question or answers[0].text
        raise UsageError(
            f"no answer is for a question of {dataset}: {name} has questions like {theirs!r:.80}, "
            f"the dataset has ids like {next(iter(index.by_id))!r}"
        )
    worded = sum(bool(one.text) for one in found.answers.values())
    if 2 * found.other_text > worded > 0:
        raise DataError(
            f"{found.other_text:,} of {worded:,} question texts are not those of the questions "
            f"that their ids name in {dataset}, first {found.examples['other_text'][0]}: the ids "
            "mean other questions",
            file=name,
        )


def _normal(text: str) -> str:
    return " ".join(text.split()).casefold()
