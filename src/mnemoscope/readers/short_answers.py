"""Short answers without a model: what the question asks for decides what is taken from the text.

Dates are resolved against the day of their passage. Yes and no come from the polarity of the best
sentence. Everything else is a span of a sentence, chosen by linear weights for the kind of
question; a question for several things gets one span from each of several passages.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from mnemoscope.readers import Passage
from mnemoscope.readers.answer_absence import ABSENCE_FEATURES, absence_features, chance_absent
from mnemoscope.readers.answer_spans import (
    MOST_SENTENCES,
    SPAN_FEATURES,
    Candidates,
    candidates,
)
from mnemoscope.readers.question_kinds import Asked, asked_for
from mnemoscope.readers.sentence_fit import SENTENCE_FEATURES, Floats, sentence_features
from mnemoscope.readers.spoken_sentences import SentenceIndex, SpokenSentence, day_of
from mnemoscope.text.dates import DateMention, find_dates, write_day, write_month
from mnemoscope.text.english import STOP_WORDS, stem_words
from mnemoscope.types import Query

FIT_WEIGHTS = {
    "covered": 2.0,
    "passage": 1.0,
    "meaning": 1.0,
    "speaker": 0.7,
    "other": -0.3,
    "named": 0.2,
    "asks": -0.5,
    "rank": 0.3,
    "day": 0.5,
    "off": -0.3,
}
"""How well a sentence fits the question: the best ones are searched for spans."""
_DATED = 0.6
"""What is added for a sentence that contains a date, if the question asks for one."""
_AHEAD = re.compile(
    r"\b(?:will|going to|gonna|plan(?:s|ning)?|next|upcoming|soon|can't wait|looking forward|"
    r"hoping|thinking (?:of|about)|excited for)\b|'ll\b",
    re.IGNORECASE,
).search
_NOT = re.compile(
    r"\b(?:not|never|no|none|nobody|without|\w+n't|cannot|unfortunately|rather than|instead of|"
    r"quit|gave up|refus\w+|hate\w*|dislike\w*)\b",
    re.IGNORECASE,
)
_LIKELY = re.compile(r"\W*(?:would|might|could)\b", re.IGNORECASE).match
_COUNTED = re.compile(r"\bhow (?:many|old)\b", re.IGNORECASE).search
_DIGITS = SPAN_FEATURES.index("digits")
_NEVER = 100


class Short(NamedTuple):
    """An answer, and the numbers of the passages it is from."""

    text: str
    passages: tuple[int, ...]


class Weights(NamedTuple):
    spans: dict[str, Floats]
    """For each kind of question, the weights of SENTENCE_FEATURES and SPAN_FEATURES."""
    absence: Floats
    """The weights of ABSENCE_FEATURES."""


_in_use: list[tuple[Weights, str]] = []


def use(table: Mapping[str, Any], sha256: str = "") -> None:
    """Use these weights from now on, in this process: for training."""
    names = [*SENTENCE_FEATURES, *SPAN_FEATURES]
    if table["features"] != names or list(table["absence"]) != list(ABSENCE_FEATURES):
        raise ValueError(
            "the weights are of other features: run benchmarks/train_reader.py --write"
        )
    shared = np.array(table["shared"], np.float32)
    spans = {kind: shared + np.array(own, np.float32) for kind, own in table["kinds"].items()}
    _in_use[:] = [(Weights(spans, np.array(list(table["absence"].values()), np.float32)), sha256)]


def _weights() -> tuple[Weights, str]:
    if not _in_use:
        text = (files(__package__) / "short_answer_weights.json").read_bytes()
        use(json.loads(text), hashlib.sha256(text).hexdigest())
    return _in_use[0]


def weights() -> Weights:
    """The weights that benchmarks/train_reader.py chose."""
    return _weights()[0]


def weights_sha256() -> str:
    return _weights()[1]


class ShortReader:
    """Answers in a few words."""

    def __init__(
        self, index: SentenceIndex, items: int, margin: float, abstain_above: float
    ) -> None:
        self.index = index
        self.abstain_above = abstain_above
        self.items = items
        self.margin = margin
        self._fits = np.array([FIT_WEIGHTS.get(name, 0) for name in SENTENCE_FEATURES], np.float32)

    def read(self, query: Query, passages: Sequence[Passage], texts: Sequence[str]) -> Short | None:
        """The answer; None if there is nothing to answer from."""
        read = self.index.sentences_of(texts)
        asked = asked_for(query.text)
        sentences, table = sentence_features(query.text, asked, passages, read, self.index)
        if not sentences:
            return None
        told = any(sentence.speaker for _, sentence in sentences)
        signs = absence_features(asked, table, told)
        if chance_absent(signs, weights().absence) > self.abstain_above:
            return None
        fits = (table @ self._fits).round(5)
        if asked.kind == "date":
            return _date(query.text, sentences, fits, passages)
        if asked.kind == "yes":
            return _polarity(query.text, sentences, fits)
        best = np.argsort(-fits, kind="stable")[:MOST_SENTENCES]
        found = candidates(
            query.text, asked, [sentences[at] for at in best], table[best], self.index
        )
        return self._spans(query.text, asked, found)

    def _spans(self, question: str, asked: Asked, found: Candidates) -> Short | None:
        if not len(found.of):
            return None
        own = weights().spans[asked.kind]
        split = len(SENTENCE_FEATURES)
        scores = (found.sentence_features @ own[:split])[found.of] + found.features @ own[split:]
        if asked.kind in ("number", "duration"):
            # A number that is asked for is not made up, nor replaced by words.
            numeric = found.features[:, _DIGITS] > 0
            if not numeric.any() and _COUNTED(question):
                return None
            scores = np.where(numeric, scores, scores - _NEVER)
        scores = scores.round(4)
        order = np.argsort(-scores, kind="stable")
        chosen = [int(order[0])]
        if asked.several:
            chosen = self._several(found, scores, order)
        texts = [clean(found.text(span)) for span in chosen]
        sources = [found.sentences[found.of[span]][0] for span in chosen]
        return Short(", ".join(texts), tuple(dict.fromkeys(sources)))

    def _several(self, found: Candidates, scores: Floats, order: np.ndarray) -> list[int]:
        """The best span of each sentence within the margin, without repetitions."""
        chosen: list[int] = []
        used: set[int] = set()
        said: set[str] = set()
        for span in map(int, order):
            if scores[span] < scores[order[0]] - self.margin or len(chosen) == self.items:
                break
            if int(found.of[span]) in used:
                continue
            words = set(content_stems(found.text(span)))
            if words and words <= said:
                continue
            used.add(int(found.of[span]))
            if chosen and len(words & said) * 2 >= len(words):
                continue
            chosen.append(span)
            said |= words
        return chosen


def clean(text: str) -> str:
    """A span without quotation marks and commas at its ends."""
    return text.strip(" \"'“”‘’`*,;:-–—")


def content_stems(text: str) -> list[str]:
    words = re.findall(r"[^\W_]+", text.lower())
    return stem_words([word for word in words if word not in STOP_WORDS])


def _date(
    question: str,
    sentences: Sequence[tuple[int, SpokenSentence]],
    fits: Floats,
    passages: Sequence[Passage],
) -> Short | None:
    """The date in the sentence that fits best, or else the day of its passage."""
    best: tuple[float, int, str] | None = None
    for place in map(int, np.argsort(-fits, kind="stable")):
        if best is not None and fits[place] + _DATED <= best[0]:
            break
        number, sentence = sentences[place]
        said = day_of(passages[number])
        found = find_dates(sentence.text, said, ahead=bool(_AHEAD(sentence.text)))
        if found:
            value, text = float(fits[place]) + _DATED, _written(question, found[0])
        elif said is not None:
            day = DateMention(0, 0, "day", said, said, write_day(said))
            value, text = float(fits[place]), _written(question, day)
        else:
            continue
        if best is None or value > best[0]:
            best = value, number, text
    return None if best is None else Short(best[2], (best[1],))


def _written(question: str, mention: DateMention) -> str:
    """The date as the question wants it: a year, a month, or what is known."""
    wanted = re.search(r"\b(?:what|which) (year|month)\b", question, re.IGNORECASE)
    if wanted and wanted[1].lower() == "year":
        return str(mention.first.year)
    if wanted and mention.grain not in ("year", "season"):
        return write_month(mention.first)
    return mention.written


def _polarity(
    question: str, sentences: Sequence[tuple[int, SpokenSentence]], fits: Floats
) -> Short:
    place = int(np.argmax(fits))
    number, sentence = sentences[place]
    negative = bool(_NOT.search(sentence.text)) != bool(_NOT.search(question))
    word = "No" if negative else "Yes"
    return Short(f"Likely {word.lower()}" if _LIKELY(question) else word, (number,))
