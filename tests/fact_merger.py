"""A system that rewrites memories: it merges two neighbouring turns into one paraphrased fact.

It stands for memory systems that extract facts with a model. Its rules share nothing with the
carrying test: names are resolved, dates written out, words replaced by synonyms, chatter dropped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

from mnemoscope.systems.builtin.bm25 import Bm25
from mnemoscope.types import Hit, Memory, Query

_CHATTER = re.compile(
    r"^(?:wow|hey|hi|hello|oh|yeah|yes|yep|thanks|thank you|sure|cool|awesome|haha|aw+|"
    r"absolutely|definitely|totally|nice|great|amazing|congrats|congratulations)"
    r"(?: (?:so much|a lot|for asking))?(?:,? [A-Z][a-z]+)?[!,.]+\s*",
    re.IGNORECASE,
)
_FIRST_PERSON = (
    (r"\bI'm\b|\bI am\b", "{name} is"),
    (r"\bI've\b|\bI have\b", "{name} has"),
    (r"\bI'll\b", "{name} will"),
    (r"\bI'd\b", "{name} would"),
    (r"\bI was\b", "{name} was"),
    (r"\bI\b", "{name}"),
    (r"\bmyself\b", "themselves"),
    (r"\bmine\b", "{name}'s"),
    (r"\bmy\b|\bMy\b", "{name}'s"),
    (r"\bme\b", "{name}"),
)
_SYNONYMS = {
    "went to": "visited",
    "got": "received",
    "bought": "purchased",
    "started": "began",
    "really": "truly",
    "awesome": "superb",
    "amazing": "wonderful",
    "great": "excellent",
    "love": "adore",
    "loved": "adored",
    "think": "believe",
    "thought": "believed",
    "happy": "glad",
    "hard": "difficult",
    "big": "large",
    "help": "assist",
    "helped": "assisted",
    "job": "position",
    "talk": "speak",
    "talked": "spoke",
    "made": "created",
    "fun": "enjoyable",
    "kids": "children",
    "trip": "journey",
    "nice": "pleasant",
    "want": "wish",
    "wanted": "wished",
    "beautiful": "lovely",
    "take": "bring",
    "enjoy": "like",
    "friends": "pals",
    "cool": "neat",
    "excited": "thrilled",
    "tough": "challenging",
    "pretty": "rather",
    "keep": "continue",
    "finally": "at last",
    "tried": "attempted",
}
_WORDS = re.compile("|".join(rf"\b{word}\b" for word in _SYNONYMS))
_DIGITS = {"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "ten": "10"}


def paraphrased(memory: Memory) -> str:
    """The turn in the third person and in other words."""
    name = memory.speaker
    text = memory.text.removeprefix(f"{name}: ")
    while (shorter := _CHATTER.sub("", text)) != text and shorter:
        text = shorter
    for pattern, replacement in _FIRST_PERSON:
        text = re.sub(pattern, replacement.format(name=name), text)
    text = _WORDS.sub(lambda match: _SYNONYMS[match.group()], text)
    for word, digit in _DIGITS.items():
        text = re.sub(rf"\b{word}\b", digit, text)
    if memory.at is not None:
        day = memory.at - timedelta(days=1)
        text = re.sub(r"\byesterday\b", f"on {day.day} {day:%B %Y}", text)
        text = re.sub(r"\blast year\b", f"in {memory.at.year - 1}", text)
    return text if name in text else f"{name} said: {text}"


class FactMerger:
    """Facts of two turns each, ranked by bm25 over their texts."""

    def __init__(self, rewrites: bool = True, sources: bool = True) -> None:
        self.rewrites = rewrites
        self.sources = sources

    def remember(self, memories: Sequence[Memory]) -> None:
        pairs: list[list[Memory]] = []
        for memory in memories:
            if pairs and len(pairs[-1]) == 1 and pairs[-1][0].session == memory.session:
                pairs[-1].append(memory)
            else:
                pairs.append([memory])
        self.made_of = {f"fact-{n}": [m.id for m in own] for n, own in enumerate(pairs)}
        self.texts = {
            f"fact-{n}": " ".join(paraphrased(m) if self.rewrites else m.text for m in own)
            for n, own in enumerate(pairs)
        }
        self._bm25 = Bm25(cache=False)
        self._bm25.reset("")
        # Both variants rank the same texts, so that only the credit differs.
        ranked = [" ".join(paraphrased(m) for m in own) for own in pairs]
        self._bm25.remember([Memory(f"fact-{n}", text) for n, text in enumerate(ranked)])

    def recall(self, query: Query, k: int) -> list[Hit]:
        return [
            Hit(
                hit.id,
                hit.score,
                self.texts[hit.id],
                tuple(self.made_of[hit.id]) if self.sources else (),
            )
            for hit in self._bm25.recall(query, k)
        ]
