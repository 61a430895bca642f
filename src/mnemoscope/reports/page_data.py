"""What report.html has of every question: compact JSON that its script unpacks.

Texts stand in one list and memories in another, each once; questions refer to them by number. Long
texts are cut, and never is a whole history in the page.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mnemoscope._store.jsonl import printable
from mnemoscope.analysis.question_details import (
    JudgeMark,
    QuestionDetails,
    RecalledHit,
    RunQuestions,
    SourceMemory,
)

HITS = 50
"""The most hits of a question that the page has."""
EVIDENCE_TEXT = 2_000
"""The most characters of a memory that is evidence."""
_HIT_TEXT, _LEAST_TEXT = 500, 80
_ALL_TEXT = 16_000_000
"""Characters of all hits together; with very many memories each text is shorter."""
_LONG_TEXT = 20_000
"""The most characters of a question, a reference, an answer, a reason or an error."""
_KINDS = {"right": "r", "carried": "c", "claimed": "l", "wrong": "w", "unlabelled": "u"}
_LEVEL = 4
"""A tenth larger than at level 6, in a third of the time."""

Row = list[Any]
"""One question; the script names the places of the list."""


def packed(content: Mapping[str, Any]) -> str:
    """JSON, compressed and in base64, which contains no character that HTML knows."""
    encoded = msgspec.json.encode(content)
    return b64encode(zlib.compress(encoded, _LEVEL)).decode()


def page_data(run: RunQuestions, category_names: Mapping[str, str]) -> dict[str, Any]:
    """The content of the page's data: lists of texts and memories, and a row for each question."""
    return _Writer(run).content(category_names)


class _Writer:
    """Collects texts and memories while the rows are written."""

    def __init__(self, run: RunQuestions) -> None:
        self._run = run
        self._texts: dict[str, int] = {"": 0}
        self._memories: dict[tuple[str, str], int] = {}
        self._rows: list[list[Any]] = []
        evidence = {(q.scenario, one.id) for q in run.questions for one in q.evidence}
        named = {(q.scenario, hit.id) for q in run.questions for hit in q.hits}
        self._evidence = evidence
        fit = _ALL_TEXT // max(1, len(named))
        self._most = max(_LEAST_TEXT, min(_HIT_TEXT, fit))

    def content(self, category_names: Mapping[str, str]) -> dict[str, Any]:
        run = self._run
        rows = [self._question(one) for one in run.questions]
        return {
            "version": 1,
            "metrics": run.metric_names,
            "hasTexts": run.has_texts,
            "checkpoints": run.manifest.checkpoints,
            "categoryNames": category_names,
            "k": max((one.k for one in run.questions), default=0),
            "questions": rows,
            "memories": self._rows,
            "texts": list(self._texts),
        }

    def _text(self, text: str, most: int = _LONG_TEXT) -> int:
        """The number of a text, cut if it is long; the end says how much is left out."""
        if len(text) > most:
            text = f"{text[:most]}… [{len(text) - most:,} characters more]"
        if not text.isascii():
            text = printable(text)
        return self._texts.setdefault(text, len(self._texts))

    def _memory(self, scenario: str, id: str, memory: SourceMemory | None) -> int:
        key = (scenario, id)
        number = self._memories.get(key)
        if number is not None:
            return number
        number = self._memories[key] = len(self._memories)
        row: list[Any] = [printable(id)]
        if memory is not None:
            most = EVIDENCE_TEXT if key in self._evidence else self._most
            row.append(self._text(memory.text[:most]))
            left = memory.length - min(most, len(memory.text))
            about = " · ".join(
                filter(None, [f"{memory.at:%Y-%m-%d %H:%M}" if memory.at else "", memory.speaker])
            )
            row += [left, self._text(about, _HIT_TEXT)] if left or about else []
        self._rows.append(row)
        return number

    def _question(self, one: QuestionDetails) -> Row:
        scenario, text = one.scenario, self._text
        asked = one.asked
        return [
            text(one.id),
            text(scenario),
            text(one.checkpoint),
            text(one.category),
            text(one.difficulty),
            text(one.text),
            text(one.reference),
            text(one.expects),
            text(" · ".join(filter(None, [_time(asked.now), asked.session])) if asked else ""),
            text(one.status),
            text(one.error),
            text(one.failure),
            text(one.found or ""),
            [round(one.metrics[name], 4) for name in self._run.metric_names if name in one.metrics]
            if len(one.metrics) == len(self._run.metric_names)
            else [_rounded(one.metrics.get(name)) for name in self._run.metric_names]
            if one.metrics
            else [],
            [[self._memory(scenario, e.id, e.memory), e.rank or 0] for e in one.evidence],
            [self._memory(scenario, hit.id, hit.memory) for hit in one.hits],
            [] if all(hit.score is None for hit in one.hits) else [hit.score for hit in one.hits],
            "".join([_KINDS[hit.kind] for hit in one.hits]),
            self._special(one.hits),
            one.returned,
            one.pool,
            [one.recall_ms, one.answer_ms, one.judge_ms],
            self._answer(one),
            self._verdict(one),
        ]

    def _special(self, hits: Sequence[RecalledHit]) -> dict[str, Row]:
        """What is not the same for all hits, by their place in the list."""
        found = {}
        for place, hit in enumerate(hits):
            if hit.text is None and not hit.sources and hit.places == 1 and not hit.is_repeated:
                continue
            found[str(place)] = [
                None if hit.text is None else self._text(hit.text, EVIDENCE_TEXT),
                [self._text(id) for id in hit.sources[:HITS]],
                hit.places,
                [self._text(id) for id in hit.credited],
                [self._text(id) for id in hit.claimed],
                int(hit.is_repeated),
            ]
        return found

    def _answer(self, one: QuestionDetails) -> Row | None:
        answer = one.answer
        if answer is None:
            return None
        sources = [self._text(id) for id in answer.sources[:HITS]]
        return [self._text(answer.status), self._text(answer.text), answer.shown, sources]

    def _verdict(self, one: QuestionDetails) -> Row | None:
        verdict = one.verdict
        if verdict is None:
            return None
        return [
            self._mark(verdict.final),
            self._mark(verdict.primary),
            self._text(verdict.error),
        ]

    def _mark(self, mark: JudgeMark | None) -> Row | None:
        if mark is None:
            return None
        votes = [[self._text(judge), _rounded(value)] for judge, value in mark.votes.items()]
        marks = list(mark.rubric.values())
        return [_rounded(mark.value), int(mark.passed), marks, self._text(mark.reasoning), votes]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _time(at: Any) -> str:
    return f"{at:%Y-%m-%d %H:%M}" if at else ""
