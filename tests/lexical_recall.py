"""Mean recall of BM25 over plain words, as the counts that check our loaders define it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from statistics import fmean

import numpy as np

from mnemoscope.systems.builtin.bm25_index import Bm25Index
from mnemoscope.types import Question, Scenario

_WORD = re.compile(r"\w+")


def lexical_recall(
    scenarios: Sequence[Scenario],
    *,
    text_of: Callable[[str], str] = lambda text: text,
    counts: Callable[[Question], bool] = lambda question: True,
) -> tuple[int, dict[int, float]]:
    """The number of questions, and recall@5, @10 and @20; ties go by position."""
    values: dict[int, list[float]] = {5: [], 10: [], 20: []}
    for scenario in scenarios:
        index = Bm25Index(1.5, 0.75)
        texts = [text_of(memory.text).lower() for memory in scenario.memories]
        index.add([_WORD.findall(text) for text in texts])
        place = {memory.id: number for number, memory in enumerate(scenario.memories)}
        for question in scenario.questions:
            if not question.evidence or not counts(question):
                continue
            scores = index.scores(_WORD.findall(question.text.lower()))
            ranking = np.argsort(-scores, kind="stable")[:20].tolist()
            wanted = {place[id] for id in question.evidence}
            for k, found in values.items():
                found.append(len(wanted & {*ranking[:k]}) / len(wanted))
    return len(values[5]), {k: round(fmean(found), 4) for k, found in values.items()}
