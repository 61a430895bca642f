"""What the templates need to know about a corpus: phrases, speakers, days, how rare a word is."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from mnemoscope.datasets.strata_rules import StrataRules
from mnemoscope.drafting.noun_phrases import Phrase, phrases, spoken, unwrapped
from mnemoscope.drafting.word_neighbours import WordNeighbours
from mnemoscope.text.tokenize import stems
from mnemoscope.types import Memory

_FEWEST_WORDS = 7
"""Shorter memories say too little to ask about."""
_MOST_WORDS = 400
_CLAUSE_END = re.compile(r"[.!?,;:()\n]| [-–—] ")
_SENTENCE_END = re.compile(r"[.!?]\s|\n\n")
_LEAST_LETTERS = 0.85
"""Tables, lists of versions and code have more other characters than sentences have."""


class MemoryIndex:
    """The memories of a corpus with their phrases."""

    def __init__(self, memories: Sequence[Memory], rules: StrataRules) -> None:
        self.rules = rules
        self.memories = {memory.id: memory for memory in memories}
        self.speakers = {memory.speaker for memory in memories if memory.speaker}
        self.usable = [memory.id for memory in memories if _is_usable(memory)]
        """The memories that can be asked about."""
        self.phrases: dict[str, list[Phrase]] = {
            id: [one for one in phrases(self.memories[id].text) if not self._addresses(one)]
            for id in self.usable
        }
        self._circles: defaultdict[str, set[str]] = defaultdict(set)
        for memory in memories:
            if memory.speaker:
                self._circles[memory.session].add(memory.speaker)
        self._place = {memory.id: place for place, memory in enumerate(memories)}
        self._stems: dict[str, tuple[str, ...]] = {}

    @cached_property
    def neighbours(self) -> WordNeighbours:
        """Neighbours among the nouns that head a phrase at least twice."""
        counts: defaultdict[str, int] = defaultdict(int)
        for own in self.phrases.values():
            for one in own:
                counts[one.head] += not one.is_name
        return WordNeighbours(word for word, n in counts.items() if n > 1)

    def stems_of(self, text: str) -> tuple[str, ...]:
        if text not in self._stems:
            self._stems[text] = tuple(stems(text))
        return self._stems[text]

    def having(self, *texts: str) -> set[str]:
        """The memories that have all words of these texts."""
        return self.rules.having([stem for text in texts for stem in self.stems_of(text)])

    def frequency(self, phrase: Phrase) -> int:
        """How many memories have the rarest word of a phrase."""
        return min((self.rules.frequency[stem] for stem in self.stems_of(phrase.text)), default=0)

    def is_only_in(self, id: str, *texts: str) -> bool:
        """Whether no other memory than this and its near-duplicates has all these words."""
        return self.having(*texts) <= {id, *self.rules.twins(id)}

    def date(self, id: str) -> str:
        """The date of a memory; empty if it is not known."""
        at = self.memories[id].at
        return f"{at:%Y-%m-%d}" if at else ""

    def day(self, id: str) -> str:
        """The date and the session of a memory; empty if neither is known."""
        return f"{self.date(id)} {self.memories[id].session}".strip()

    def speaker(self, id: str) -> str:
        return self.memories[id].speaker

    def circle(self, id: str) -> frozenset[str]:
        """Who spoke in the session of a memory: two people of one name have different circles."""
        return frozenset(self._circles[self.memories[id].session])

    def met(self, name: str) -> set[str]:
        """Everybody who spoke in a session with this speaker."""
        return set().union(*(names for names in self._circles.values() if name in names))

    def are_apart(self, first: str, second: str) -> bool:
        """Whether two memories are not known to be of one day and session."""
        return not self.day(first) or self.day(first) != self.day(second)

    def is_salient(self, phrase: Phrase) -> bool:
        """Whether a phrase says enough to ask for it, with a word that is rare."""
        return phrase.is_specific and self.frequency(phrase) <= self.rules.rare

    def own_phrases(self, id: str) -> list[Phrase]:
        """The salient phrases that only this memory has."""
        salient = filter(self.is_salient, self.phrases[id])
        return [one for one in salient if self.is_only_in(id, one.text)]

    def are_told_together(self, id: str, *phrases: Phrase) -> bool:
        """Whether one sentence has all these phrases; of what was spoken, one clause of it."""
        ends = _CLAUSE_END if self.speaker(id) else _SENTENCE_END
        return any(
            all(one.text.lower() in part.lower() for one in phrases)
            for part in ends.split(unwrapped(self.memories[id].text))
        )

    def time_order(self, id: str) -> tuple[float, int]:
        """Sorts memories by time; without times, by their place in the corpus."""
        at = self.memories[id].at
        return (at.timestamp() if at else 0.0), self._place[id]

    def _addresses(self, phrase: Phrase) -> bool:
        """Whether a name is that of a speaker, or a short form of it."""
        return phrase.is_name and any(
            name.startswith(phrase.text) or phrase.text.startswith(name) for name in self.speakers
        )


def _is_usable(memory: Memory) -> bool:
    text = spoken(memory.text)
    letters = sum(char.isalpha() or char.isspace() for char in text)
    if letters < _LEAST_LETTERS * len(text):
        return False
    return _FEWEST_WORDS <= len(text.split()) <= _MOST_WORDS and not text.rstrip().endswith("?")
