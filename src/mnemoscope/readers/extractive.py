"""The extractive reader: a short answer taken from the text, or cited sentences; or it abstains.

It takes its words from recalled text, except for dates, which it resolves, and yes and no. It knows
English and Markdown, and nothing about the questions of any dataset.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any, Literal

import numpy as np

from mnemoscope._store.errors import UsageError
from mnemoscope.readers import Passage, Reply
from mnemoscope.readers.answer_cues import Cues, cues
from mnemoscope.readers.passage_index import library
from mnemoscope.readers.sentence_features import FEATURES, Floats, Reading, consider
from mnemoscope.readers.short_answers import ShortReader, weights_sha256
from mnemoscope.readers.spoken_sentences import sentence_index
from mnemoscope.text.token_estimate import CHARACTERS_PER_TOKEN, estimate_tokens
from mnemoscope.types import Query

ABSTENTION = "No evidence found."
SHORT_ABSTENTION = "No information available."
"""LoCoMo's official scorer looks for these words."""
VERSION = 2
"""1 had no short answers."""

# This table and the defaults below come from `python benchmarks/calibrate_reader.py`, on simulated
# histories that nothing else uses; docs/decisions/0006 has its output.
WEIGHTS = {
    "topic": 2.2,
    "own": 4.3,
    "names": 2.5,
    "meaning": 1.3,
    "rest": 4.4,
    "fits": 3.1,
    "specific": 1.5,
    "new": 1.8,
    "rare": 1.0,
    "quote": 1.9,
    "open": -1.8,
}
_TOPIC, _MEANING = FEATURES.index("topic"), FEATURES.index("meaning")
_one_at_a_time = threading.Lock()
_ALIKE = 0.95
"""Cosine above which a sentence repeats another."""


class Extractive:
    """Answers in a few words, or cites the best sentences in time order with dates.

    Args:
        form: short: a date, a number, a name, yes or no, or a few words, by the kind of question;
            sentences: cited sentences. By default the dataset decides: sentences for personas and
            TOFU, whose references are sentences, else short.
        budget: Estimated tokens of passages to read, best first.
        passages: The maximum number of passages that a short answer is taken from.
        items: The maximum number of things in a short answer, if several are asked for.
        item_margin: The largest distance to the best score at which a thing is added.
        abstain_above: The chance, as the reader estimates it, that the passages do not hold the
            answer; above it, the reader gives no short answer.
        sentences: The maximum number of cited sentences.
        threshold: The minimum similarity of question and passages; below it, the reader abstains.
        sure: What each point of the best score adds to that similarity.
        missing: What is subtracted if no passage contains any word of the question.
        margin: The largest distance to the best score at which a sentence is cited.
        margin_several: The same if the question asks for more than one thing.
        related: The minimum topic of a section, as a share of that of the best sentence.
        gain: What is added to a score for words of the question that are not covered yet.
        spread: What is subtracted for each sentence already cited from the same passage.
        same_thing: Cosine above which a later sentence replaces an earlier one, if the question
            asks for the current state.
        model: The embedding model.
    """

    def __init__(
        self,
        form: Literal["short", "sentences"] = "short",
        budget: int = 4000,
        passages: int = 20,
        items: int = 4,
        item_margin: float = 2.0,
        abstain_above: float = 0.3,
        sentences: int = 6,
        threshold: float = 0.55,
        sure: float = 0.03,
        missing: float = 0.2,
        margin: float = 5.0,
        margin_several: float = 7.0,
        related: float = 0.3,
        gain: float = 5.0,
        spread: float = 1.0,
        same_thing: float = 0.6,
        model: str = "wordllama",
    ) -> None:
        if min(budget, sentences, passages, items) < 1:
            raise UsageError("extractive: budget, sentences, passages and items must be 1 or more")
        if form not in ("short", "sentences"):
            raise UsageError(f"extractive: form must be short or sentences, not {form!r}")
        _refuse_unused(form, locals())
        self.form = form
        self.passages = passages
        self.budget = budget
        self.sentences = sentences
        self.threshold = threshold
        self.sure = sure
        self.missing = missing
        self.margin = margin
        self.margin_several = margin_several
        self.related = related
        self.gain = gain
        self.spread = spread
        self.same_thing = same_thing
        self._library = library(model)
        self._short = ShortReader(sentence_index(model), items, item_margin, abstain_above)
        self._weights = np.array([WEIGHTS[name] for name in FEATURES], np.float32)

    def identity(self) -> dict[str, Any]:
        embedder = self._library.embedder.identity()
        if self.form == "sentences":
            return {"embedder": embedder}
        return {"embedder": embedder, "version": VERSION, "weights": weights_sha256()}

    def read(self, query: Query, passages: Sequence[Passage]) -> Reply:
        with _one_at_a_time:  # reading extends the shared index
            return (
                self._answer(query, passages)
                if self.form == "short"
                else self._cite(query, passages)
            )

    def _answer(self, query: Query, passages: Sequence[Passage]) -> Reply:
        """A short answer."""
        read = within(passages[: self.passages], self.budget)
        answer = self._short.read(query, [one for one, _ in read], [text for _, text in read])
        if answer is None or not answer.text:
            return Reply(SHORT_ABSTENTION, abstained=True)
        return Reply(answer.text, sources=tuple(read[place][0].id for place in answer.passages))

    def _cite(self, query: Query, passages: Sequence[Passage]) -> Reply:
        read = within(passages, self.budget)
        digests = self._library.digests([(text, passage.session) for passage, text in read])
        # A passage may have nothing to cite, for example if the budget cuts it off.
        cited = [
            (passage, own) for (passage, _), own in zip(read, digests, strict=True) if own.cited
        ]
        if not cited or not self._library.vocabulary.rows(query.text)[1:]:
            return Reply(ABSTENTION, abstained=True)
        asked = cues(query.text)
        reading = consider(query.text, asked, [digest for _, digest in cited], self._library)
        scores = (reading.features @ self._weights).round(5)
        if self.belief(reading, scores) < self.threshold:
            return Reply(ABSTENTION, abstained=True)
        candidates = [(passage, one.text) for passage, own in cited for one in own.cited]
        chosen = self._choose([passage for passage, _ in candidates], reading, scores, asked)
        best = [candidates[place] for place in chosen]
        lines = [
            f"[{passage.at.date().isoformat()}] {text}" if passage.at else text
            for passage, text in sorted(best, key=lambda one: _when(one[0]))
        ]
        sources = dict.fromkeys(passage.id for passage, _ in best)
        return Reply("\n".join(lines), sources=tuple(sources))

    def belief(self, reading: Reading, scores: Floats) -> float:
        """The similarity of passages and question; below the threshold, the reader abstains."""
        nearest = float(reading.features[:, _MEANING].max())
        uncovered = float(reading.weights @ (reading.covered.max(axis=0) < 0.5))
        return nearest + self.sure * float(scores.max()) - self.missing * uncovered

    def _choose(
        self, passages: Sequence[Passage], reading: Reading, scores: Floats, asked: Cues
    ) -> list[int]:
        """Positions of the sentences to cite: high scores, new words, different passages."""
        margin = self.margin_several if asked.several else self.margin
        topic = reading.features[:, _TOPIC]
        order = np.argsort(-scores, kind="stable")
        near = (scores >= scores[order[0]] - margin) & (topic >= self.related * topic[order[0]])
        order = order[near[order]][: 8 * self.sentences]
        chosen: list[int] = []
        values = scores[order]
        covered = np.zeros(len(reading.weights), np.float32)
        own, vectors = reading.own[order], reading.vectors[order]
        sources = [passages[place].id for place in order.tolist()]
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
        if not asked.current or asked.several:
            return chosen

        def overtaken(place: int) -> bool:
            """Whether a later sentence about the same thing is chosen too."""
            vector = reading.vectors[place]
            return any(
                _when(passages[later]) > _when(passages[place])
                and float(vector @ reading.vectors[later]) > self.same_thing
                for later in chosen
            )

        return [place for place in chosen if not overtaken(place)]


_ONLY = {
    "short": ("passages", "items", "item_margin", "abstain_above"),
    "sentences": tuple(
        "sentences threshold sure missing margin margin_several related gain spread same_thing"
        "".split()
    ),
}
"""The options that only one form of answers has."""


def _refuse_unused(form: str, given: Mapping[str, Any]) -> None:
    """An option that the form of answers does not have would change nothing, unnoticed."""
    known = signature(Extractive).parameters
    for other, names in _ONLY.items():
        for name in names:
            if other != form and given[name] != known[name].default:
                raise UsageError(f"extractive: {name} needs form={other}")


def _when(passage: Passage) -> str:
    """A sort key; passages without a date come first."""
    return "" if passage.at is None else passage.at.isoformat()


def within(passages: Sequence[Passage], budget: int) -> list[tuple[Passage, str]]:
    """The passages that fit the budget of estimated tokens; the last one is cut."""
    found = []
    for passage in passages:
        if budget <= 0:
            break
        cost = estimate_tokens(passage.text)
        if cost > budget:
            text = passage.text[: budget * CHARACTERS_PER_TOKEN]
            # Cut at the end of a sentence or line.
            found.append((passage, text[: max(text.rfind("\n"), text.rfind(". ") + 1, 0)]))
            break
        found.append((passage, passage.text))
        budget -= cost
    return found
