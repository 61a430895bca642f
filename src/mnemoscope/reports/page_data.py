"""What report.html has of every question: compact JSON that its script unpacks.

Texts stand in one list and memories in another, each once; questions refer to them by number. Long
texts are cut, and never is a whole history in the page.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.jsonl import printable
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.seal import Seal
from mnemoscope.analysis.question_details import (
    AskedFrom,
    DatasetTexts,
    JudgeMark,
    Key,
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
_ASKED, _HITS = (8, 9), 16
"""Places in the row: when and in which session it is asked, and its hits, after its evidence."""
REPORT_PAGE = "report.html"
_DATA = b'<script type="application/octet-stream" id="data">'


def packed(content: Mapping[str, Any]) -> str:
    """JSON, compressed and in base64, in an element that is no script and that HTML ignores."""
    encoded = b64encode(zlib.compress(msgspec.json.encode(content), _LEVEL))
    return f"{_DATA.decode()}{encoded.decode()}</script>"


def page_data(
    run: RunQuestions, category_names: Mapping[str, str], withheld: str = ""
) -> dict[str, Any]:
    """The content of the page's data: lists of texts and memories, and a row for each question.

    `withheld` is why the run has no accuracy: then the page counts no questions by verdict.
    """
    content = _Writer(run).content(category_names)
    return {**content, "withheld": withheld} if withheld else content


def kept_texts(run: RunDirectory) -> DatasetTexts | None:
    """The texts in the page that a run has; None without a page, texts or the seal's word for it.

    So a page can be written again where the dataset is not at hand.
    """
    place = run.path / REPORT_PAGE
    vouched = (Seal(run.path).read() or {}).get(REPORT_PAGE)
    if not place.is_file() or vouched != [sha256_file(place)]:
        return None
    content = place.read_bytes()
    packed = content[content.rindex(_DATA) + len(_DATA) :].partition(b"<")[0]
    found = msgspec.json.decode(zlib.decompress(b64decode(packed)))
    if not found["hasTexts"]:
        return None
    texts, listed = found["texts"], found["memories"]
    memories: dict[Key, SourceMemory] = {}
    asked: dict[Key, AskedFrom] = {}
    for row in found["questions"]:
        id, scenario, now, session = (texts[row[place]] for place in (0, 1, *_ASKED))
        if now or session:
            asked[scenario, id] = AskedFrom(_moment(now), session)
        for number in {*row[_HITS], *(number for number, _ in row[_HITS - 1])}:
            named, *own = listed[number]
            if own:
                text, at, speaker = (texts[own[place]] for place in (0, 2, 3))
                length = len(text) + own[1]
                memories[scenario, named] = SourceMemory(text, length, _moment(at), speaker=speaker)
    return DatasetTexts(memories, asked)


def _moment(text: str) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


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
            # Apart from the rest: they alone differ between two runs of the same.
            "recall_ms": [one.recall_ms for one in run.questions],
            "answer_ms": [one.answer_ms for one in run.questions],
            "judge_ms": [one.judge_ms for one in run.questions],
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
            row += [
                memory.length - min(most, len(memory.text)),
                self._text(_time(memory.at)),
                self._text(memory.speaker, _HIT_TEXT),
            ]
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
            text(_time(asked.now) if asked else ""),
            text(asked.session if asked else ""),
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


def _time(at: datetime | None) -> str:
    return at.isoformat() if at else ""
