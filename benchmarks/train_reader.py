"""Choose the weights of the extractive reader's short answers, on data held apart for it.

Usage: python benchmarks/train_reader.py LOCOMO LONGMEMEVAL [--write]
LOCOMO and LONGMEMEVAL are the folders of the two datasets. Used are three conversations of LoCoMo
(the first three of the file) and every second question of LongMemEval's oracle variant; the others
are left for the report. Every question is put to `oracle` and `hybrid`, turn by turn.
1. Spans: the weights that maximise the expected F1 of a span drawn by softmax of its score.
2. Absence: logistic regression of whether a question has no answer in the conversation.
Both are first cross-validated by conversation; the figures are printed. --write writes the weights
of all chosen data to src/mnemoscope/readers/short_answer_weights.json. Three minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mnemoscope.datasets.locomo import Locomo
from mnemoscope.datasets.longmemeval import LongMemEval
from mnemoscope.readers import Passage, short_answers
from mnemoscope.readers.answer_absence import ABSENCE_FEATURES, absence_features
from mnemoscope.readers.answer_spans import (
    MOST_SENTENCES,
    SPAN_FEATURES,
    Candidates,
    candidates,
)
from mnemoscope.readers.extractive import Extractive
from mnemoscope.readers.question_kinds import KINDS, Asked, asked_for
from mnemoscope.readers.sentence_fit import SENTENCE_FEATURES, sentence_features
from mnemoscope.readers.spoken_sentences import sentence_index
from mnemoscope.systems.builtin.baselines import Oracle
from mnemoscope.systems.builtin.hybrid import Hybrid
from mnemoscope.text.overlap import answer_tokens, locomo_f1, token_f1
from mnemoscope.types import Query, Question, Scenario

CONVERSATIONS = ("conv-26", "conv-30", "conv-41")
SYSTEMS = ("oracle", "hybrid")
PASSAGES = 20
LONGEST_REFERENCE = 25
"""Words; longer references are no short answers."""
SPAN_KINDS = tuple(kind for kind in KINDS if kind not in ("date", "yes"))
SHARED_PENALTY, KIND_PENALTY, ABSENCE_PENALTY = 3e-4, 1e-3, 1e-3
DRAWS = 4
WEIGHTS = Path(short_answers.__file__).with_name("short_answer_weights.json")

Floats = NDArray[np.float32]


class Put(NamedTuple):
    """A question with what a system recalled for it."""

    locomo: bool
    fold: int
    system: str
    question: Question
    query: Query
    passages: list[Passage]


class Case(NamedTuple):
    """A question with its candidates and their F1."""

    put: Put
    asked: Asked
    found: Candidates
    values: Floats


def puts(locomo: Path, longmemeval: Path) -> Iterator[Put]:
    for scenario in Locomo(locomo, granularity="turn").read():
        if scenario.id in CONVERSATIONS:
            yield from _ask(scenario, True, CONVERSATIONS.index(scenario.id))
    dataset = LongMemEval(longmemeval, variant="oracle", granularity="turn")
    for number, scenario in enumerate(dataset.read()):
        if number % 2 == 0:
            yield from _ask(scenario, False, zlib.crc32(scenario.questions[0].id.encode()) % 3)


def _ask(scenario: Scenario, locomo: bool, fold: int) -> Iterator[Put]:
    memories = {memory.id: memory for memory in scenario.memories}
    for name, system in (("oracle", Oracle()), ("hybrid", Hybrid())):
        system.reset(scenario.id)
        system.remember(scenario.memories)
        for question in scenario.questions:
            query = Query(question.text, question.now, question.session)
            hits = system.recall(question if name == "oracle" else query, PASSAGES)  # type: ignore[arg-type]
            found = [memories[hit.id] for hit in hits]
            passages = [Passage(one.id, one.text, one.at, one.session) for one in found]
            yield Put(locomo, fold, name, question, query, passages)


def cases(asked: Sequence[Put]) -> Iterator[Case]:
    """The candidates of every question that has a short answer in words."""
    books = sentence_index("wordllama")
    fits = np.array(
        [short_answers.FIT_WEIGHTS.get(name, 0) for name in SENTENCE_FEATURES], np.float32
    )
    for put in asked:
        question = put.question
        kind = asked_for(question.text)
        short = 0 < len(question.reference.split()) <= LONGEST_REFERENCE
        if kind.kind not in SPAN_KINDS or question.expects != "answer" or not short:
            continue
        read = books.sentences_of([passage.text for passage in put.passages])
        sentences, table = sentence_features(question.text, kind, put.passages, read, books)
        if not sentences:
            continue
        best = np.argsort(-(table @ fits), kind="stable")[:MOST_SENTENCES]
        chosen = [sentences[at] for at in best]
        found = candidates(question.text, kind, chosen, table[best], books)
        if len(found.of):
            yield Case(put, kind, found, _values(found, put))


def _values(found: Candidates, put: Put) -> Floats:
    """LoCoMo's F1 of every span."""
    reference = put.question.reference
    category = put.question.category if put.locomo else "4"
    if category == "3":
        reference = reference.partition(";")[0]
    parts = reference.split(",") if category == "1" else [reference]
    wanted = [Counter(answer_tokens(part)) for part in parts]
    stems = [[_stems(token) for token in sentence.tokens] for _, sentence in found.sentences]
    values = np.zeros(len(found.of), np.float32)
    for span, (of, first, last) in enumerate(zip(found.of, found.first, found.last, strict=True)):
        words = Counter(stem for token in stems[of][first : last + 1] for stem in token)
        total = words.total()
        values[span] = np.mean(
            [2 * (words & own).total() / (total + own.total() or 1) for own in wanted]
        )
    return values


@cache
def _stems(token: str) -> tuple[str, ...]:
    return tuple(answer_tokens(token))


class Sample(NamedTuple):
    features: Floats
    values: Floats
    counts: NDArray[np.intp]
    kinds: NDArray[np.intp]


def sample(data: Sequence[Case]) -> Sample:
    rows = [
        np.concatenate([case.found.sentence_features[case.found.of], case.found.features], axis=1)
        for case in data
    ]
    return Sample(
        np.concatenate(rows),
        np.concatenate([case.values for case in data]),
        np.array([len(row) for row in rows]),
        np.array([SPAN_KINDS.index(case.asked.kind) for case in data]),
    )


def thin(data: Sample, scores: Floats | None, seed: int) -> Sample:
    """For each question the best spans, the highest scores, and some at random."""
    random = np.random.default_rng(seed)
    kept, counts, begin = [], [], 0
    for count in data.counts:
        own = slice(begin, begin + count)
        chosen = [np.argsort(-data.values[own], kind="stable")[:40], random.permutation(count)[:80]]
        if scores is not None:
            chosen.append(np.argsort(-scores[own], kind="stable")[:80])
        places = np.unique(np.concatenate(chosen))
        kept.append(begin + places)
        counts.append(len(places))
        begin += count
    rows = np.concatenate(kept)
    return Sample(data.features[rows], data.values[rows], np.array(counts), data.kinds)


def score(weights: Floats, data: Sample) -> Floats:
    kinds = np.repeat(data.kinds, data.counts)
    own = data.features @ weights[1:].T
    found: Floats = data.features @ weights[0] + own[np.arange(len(kinds)), kinds]
    return found


def ascend(data: Sample, steps: int, rate: float) -> Floats:
    """Maximise the expected F1 by Adam; row 0 is for all kinds, the others for one kind each."""
    starts = np.cumsum(data.counts) - data.counts
    kinds = np.repeat(data.kinds, data.counts)
    places = [np.flatnonzero(kinds == kind) for kind in range(len(SPAN_KINDS))]
    parts = [data.features[place] for place in places]
    weights = np.zeros((1 + len(SPAN_KINDS), data.features.shape[1]), np.float32)
    penalty = np.array([SHARED_PENALTY] + [KIND_PENALTY] * len(SPAN_KINDS), np.float32)[:, None]
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, steps + 1):
        scores = score(weights, data)
        shares = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), data.counts))
        shares /= np.repeat(np.add.reduceat(shares, starts), data.counts)
        expected = np.add.reduceat(shares * data.values, starts)
        pull = shares * (data.values - np.repeat(expected, data.counts)) / len(data.counts)
        slope = np.zeros_like(weights)
        for kind, (place, part) in enumerate(zip(places, parts, strict=True), start=1):
            slope[kind] = pull[place] @ part
        slope[0] = slope[1:].sum(axis=0)
        slope -= penalty * weights
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        weights += rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return weights


def fit_spans(data: Sequence[Case]) -> Floats:
    """The mean over several draws of spans: one draw alone moves F1 by a hundredth."""
    whole = sample(data)
    found = []
    for draw in range(DRAWS):
        first = ascend(thin(whole, None, draw), 80, 0.08)
        found.append(ascend(thin(whole, score(first, whole), DRAWS + draw), 150, 0.05))
    mean: Floats = np.mean(found, axis=0, dtype=np.float32)
    return mean


def fit_absence(asked: Sequence[Put]) -> Floats:
    """Logistic regression by Newton's method."""
    books = sentence_index("wordllama")
    rows, absent = [], []
    for put in asked:
        kind = asked_for(put.question.text)
        read = books.sentences_of([passage.text for passage in put.passages])
        sentences, table = sentence_features(put.question.text, kind, put.passages, read, books)
        if sentences:
            rows.append(absence_features(kind, table, any(one.speaker for _, one in sentences)))
            absent.append(put.question.expects == "abstain")
    features, wanted = np.array(rows, np.float64), np.array(absent, np.float64)
    weights = np.zeros(len(ABSENCE_FEATURES))
    ridge = ABSENCE_PENALTY * len(wanted) * np.eye(len(ABSENCE_FEATURES))
    for _ in range(40):
        chance = 1 / (1 + np.exp(-features @ weights))
        curve = (features * (chance * (1 - chance))[:, None]).T @ features + ridge
        weights += np.linalg.solve(curve, features.T @ (wanted - chance) - ridge @ weights)
    return weights.astype(np.float32)


def table(spans: Floats, absence: Floats) -> dict[str, Any]:
    """The weights as they are written."""

    def rounded(values: Floats) -> list[float]:
        return [round(float(value), 3) for value in values]

    return {
        "features": [*SENTENCE_FEATURES, *SPAN_FEATURES],
        "shared": rounded(spans[0]),
        "kinds": dict(zip(SPAN_KINDS, map(rounded, spans[1:]), strict=True)),
        "absence": dict(zip(ABSENCE_FEATURES, rounded(absence), strict=True)),
    }


def check(
    asked: Sequence[Put], written: dict[str, Any]
) -> dict[tuple[bool, str, bool], list[float]]:
    """F1 of the whole reader with the given weights."""
    short_answers.use(written)
    reader = Extractive()
    found: dict[tuple[bool, str, bool], list[float]] = {}
    for put in asked:
        reply, question = reader.read(put.query, put.passages), put.question
        absent = question.expects == "abstain"
        if absent:
            value = float(bool(reply.abstained))
        elif put.locomo:
            value = locomo_f1(reply.text, question.reference, question.category)
        else:
            value = token_f1(reply.text, question.reference)
        found.setdefault((put.locomo, put.system, absent), []).append(value)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("locomo", type=Path)
    parser.add_argument("longmemeval", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    asked = list(puts(given.locomo, given.longmemeval))
    data = list(cases(asked))
    print(f"{len(asked)} questions put, {len(data)} with a short answer in words")
    total: dict[tuple[bool, str, bool], list[float]] = {}
    for fold in range(len(CONVERSATIONS)):
        spans = fit_spans([case for case in data if case.put.fold != fold])
        absence = fit_absence([put for put in asked if put.fold != fold])
        held = [put for put in asked if put.fold == fold]
        for key, values in check(held, table(spans, absence)).items():
            total.setdefault(key, []).extend(values)
    print("\ncross-validated by conversation\n\n| data | system | questions | n | mean |")
    print("|---|---|---|---|---|")
    for (locomo, system, absent), values in sorted(total.items(), reverse=True):
        what = "without an answer: abstained" if absent else "with an answer: F1"
        name = "LoCoMo, 3 conversations" if locomo else "LongMemEval, every second"
        print(f"| {name} | {system} | {what} | {len(values)} | {np.mean(values):.3f} |")
    if given.write:
        text = json.dumps(table(fit_spans(data), fit_absence(asked)), separators=(",", ":"))
        WEIGHTS.write_text(text.replace('],"', '],\n"') + "\n", encoding="utf-8")
        print(f"\nwritten: {WEIGHTS}")


if __name__ == "__main__":
    main()
