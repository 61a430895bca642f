"""The extractive reader: answers with the sentences that answer best, or says there are none.

No model writes anything: what it says was recalled, word for word, so it cannot invent. It knows
English and Markdown, and nothing of how any dataset words its questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mnemoscope.core.errors import UsageError
from mnemoscope.core.nouns import Query
from mnemoscope.core.tokens import CHARACTERS_PER_TOKEN, estimate_tokens
from mnemoscope.readers import Passage, Reply
from mnemoscope.readers.cues import Cues, cues
from mnemoscope.readers.digest import library
from mnemoscope.readers.scoring import FEATURES, Floats, Reading, consider
from mnemoscope.readers.sentences import Cited

ABSTENTION = "No evidence found."

WEIGHTS = {
    "topic": 9.1,
    "own": 2.3,
    "names": 2.3,
    "meaning": 2.5,
    "rest": 4.6,
    "fits": 3.7,
    "specific": 1.8,
    "new": 1.3,
    "rare": 2.5,
    "quote": 1.5,
    "open": -1.6,
    "place": 0.4,
}
_ALIKE = 0.95
"""Cosine from which on a sentence only repeats another."""


class Extractive:
    """Sentences scored by words, meaning and looks, cited with their dates in time order."""

    def __init__(
        self,
        budget: int = 4000,
        sentences: int = 5,
        threshold: float = 8.0,
        missing: float = 8.0,
        margin: float = 3.0,
        margin_several: float = 5.0,
        gain: float = 5.0,
        spread: float = 1.0,
        same_thing: float = 0.6,
        model: str = "wordllama",
    ) -> None:
        if budget < 1 or sentences < 1:
            raise UsageError("extractive: budget and sentences are 1 or more")
        self.budget = budget
        self.sentences = sentences
        self.threshold = threshold
        self.missing = missing
        self.margin = margin
        self.margin_several = margin_several
        self.gain = gain
        self.spread = spread
        self.same_thing = same_thing
        self._library = library(model)
        self._weights = np.array([WEIGHTS[name] for name in FEATURES], np.float32)

    def identity(self) -> dict[str, Any]:
        return {"embedder": self._library.embedder.identity()}

    def read(self, query: Query, passages: Sequence[Passage]) -> Reply:
        read = within(passages, self.budget)
        digests = self._library.digests([(text, passage.session) for passage, text in read])
        candidates = [
            _Candidate(passage, sentence)
            for (passage, _), digest in zip(read, digests, strict=True)
            for sentence in digest.cited
        ]
        if not candidates or not self._library.vocabulary.rows(query.text)[1:]:
            return Reply(ABSTENTION, abstained=True)
        asked = cues(query.text)
        told = [digest for digest in digests if digest.cited]
        reading = consider(query.text, asked, told, self._library)
        scores = (reading.features @ self._weights).round(5)
        if self.belief(reading, scores) < self.threshold:
            return Reply(ABSTENTION, abstained=True)
        chosen = self._choose(candidates, reading, scores, asked)
        return _reply([candidates[place] for place in chosen])

    def belief(self, reading: Reading, scores: Floats) -> float:
        """The best score, less for what the question says and nothing that was recalled does."""
        unheard = float(reading.weights @ (reading.told.max(axis=0) < 0.5))
        return float(scores.max()) - self.missing * unheard

    def _choose(
        self, candidates: Sequence[_Candidate], reading: Reading, scores: Floats, asked: Cues
    ) -> list[int]:
        """Places of the sentences to cite: good ones, each for something more, from many days."""
        margin = self.margin_several if asked.several else self.margin
        order = np.argsort(-scores, kind="stable")
        order = order[scores[order] >= scores[order[0]] - margin][: 8 * self.sentences]
        chosen: list[int] = []
        values = scores[order]
        covered = np.zeros(len(reading.weights), np.float32)
        own, vectors = reading.own[order], reading.vectors[order]
        sources = [candidates[place].passage.id for place in order.tolist()]
        for _ in range(min(self.sentences, len(order))):
            gains = np.maximum(own - covered, 0) @ reading.weights
            best = int(np.argmax(values + self.gain * gains))
            if not np.isfinite(values[best]):
                break
            chosen.append(int(order[best]))
            covered = np.maximum(covered, own[best])
            values = values - self.spread * np.array([id == sources[best] for id in sources])
            values[best] = -np.inf
            values[vectors @ vectors[best] > _ALIKE] = -np.inf
        if asked.current and not asked.several:
            return self._latest(chosen, candidates, reading.vectors)
        return chosen

    def _latest(
        self, chosen: Sequence[int], candidates: Sequence[_Candidate], vectors: Floats
    ) -> list[int]:
        """Without what a later sentence on the same thing has overtaken."""

        def overtaken(place: int) -> bool:
            return any(
                candidates[later].when > candidates[place].when
                and float(vectors[place] @ vectors[later]) > self.same_thing
                for later in chosen
            )

        return [place for place in chosen if not overtaken(place)]


class _Candidate(NamedTuple):
    passage: Passage
    cited: Cited

    @property
    def when(self) -> str:
        return "" if self.passage.at is None else self.passage.at.isoformat()


def within(passages: Sequence[Passage], budget: int) -> list[tuple[Passage, str]]:
    """What fits the budget of estimated tokens; the last passage as far as it fits."""
    found = []
    for passage in passages:
        if budget <= 0:
            break
        cost = estimate_tokens(passage.text)
        if cost > budget:
            text = passage.text[: budget * CHARACTERS_PER_TOKEN]
            # Half a word, and the half sentence before it, would be nobody's.
            found.append((passage, text[: max(text.rfind("\n"), text.rfind(". ") + 1, 0)]))
            break
        found.append((passage, passage.text))
        budget -= cost
    return found


def _reply(chosen: Sequence[_Candidate]) -> Reply:
    lines = []
    for candidate in sorted(chosen, key=lambda candidate: candidate.when):
        at = candidate.passage.at
        date = f"[{at.date().isoformat()}] " if at else ""
        lines.append(date + candidate.cited.text)
    sources = dict.fromkeys(candidate.passage.id for candidate in chosen)
    return Reply("\n".join(lines), sources=tuple(sources))
