"""Questions from templates: each generator offers candidates of one stratum, without a model.

A candidate may still break a rule of its stratum; the caller checks that. Candidates that cannot be
asked about one memory are not offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

from mnemoscope.drafting.draft import Draft
from mnemoscope.drafting.memory_index import MemoryIndex
from mnemoscope.drafting.multihop_drafts import MultihopDrafts
from mnemoscope.drafting.noun_phrases import Phrase
from mnemoscope.drafting.synonyms import synonyms
from mnemoscope.drafting.update_drafts import UpdateDrafts

_CONCEPTS = 2
"""So many synonyms make a paraphrase."""


class TemplateDrafts:
    """Candidates of each stratum, in an order that the seed decides."""

    def __init__(self, index: MemoryIndex, seed: int) -> None:
        self._index = index
        self._seed = seed

    def of(self, stratum: str) -> Iterator[Draft]:
        """The candidates of a stratum."""
        makers: dict[str, Callable[[Random], Iterator[Draft]]] = {
            "exact": self._exact,
            "paraphrase": self._paraphrase,
            "multihop": MultihopDrafts(self._index).drafts,
            "update": UpdateDrafts(self._index).drafts,
            "absent": self._absent,
        }
        return makers[stratum](Random(f"{self._seed}/{stratum}"))

    def _shuffled(self, rng: Random) -> list[str]:
        ids = list(self._index.usable)
        rng.shuffle(ids)
        return ids

    def _told(self, id: str, about: str) -> str:
        """What was said about something, as a question about one memory."""
        if speaker := self._index.memories[id].speaker:
            return f"What did {speaker} say about {about}?"
        return f"What do the memories say about {about}?"

    def _exact(self, rng: Random) -> Iterator[Draft]:
        for id in self._shuffled(rng):
            if own := self._index.own_phrases(id):
                phrase = max(own, key=lambda one: (len(one.text.split()), one.text))
                yield Draft("exact", self._told(id, phrase.asked), (id,), note=phrase.text)

    def _paraphrase(self, rng: Random) -> Iterator[Draft]:
        for id in self._shuffled(rng):
            concepts = self._concepts(id)[:_CONCEPTS]
            named = [] if self._index.speaker(id) else self._known_names(id)
            if len(concepts) == _CONCEPTS and self._is_only_about(id, concepts):
                about = " and ".join(_with_article(*one) for one in concepts)
            elif concepts and named and self._is_only_about(id, concepts[:1], named[0]):
                about = f"{named[0]} and {_with_article(*concepts[0])}"
            else:
                continue
            note = ", ".join(f"{phrase.text} → {new}" for phrase, new in concepts)
            yield Draft("paraphrase", self._told(id, about), (id,), note=note)

    def _known_names(self, id: str) -> list[str]:
        """Names in a memory that are too common to find it by them."""
        names = (one for one in self._index.phrases[id] if one.is_name)
        return [one.text for one in names if self._index.frequency(one) > self._index.rules.rare]

    def _concepts(self, id: str) -> list[tuple[Phrase, str]]:
        """Nouns of a memory with a synonym that fits and that it lacks; the rarest first."""
        found: dict[str, tuple[Phrase, str]] = {}
        own = self._index.rules.terms[id]
        for phrase in self._index.phrases[id]:
            # In a compound, such as a veggie patch, the noun may have another sense.
            if phrase.is_specific or phrase.determiner == "your":
                continue
            offered = [
                one
                for one in synonyms(phrase.head, self._index.neighbours)
                if not own & set(self._index.stems_of(one))
            ]
            if fitting := self._index.neighbours.fitting(offered, self._index.memories[id].text):
                found.setdefault(phrase.head, (phrase, fitting))
        return sorted(found.values(), key=lambda one: (self._head_frequency(one[0]), one[0].head))

    def _head_frequency(self, phrase: Phrase) -> int:
        [*_, last] = self._index.stems_of(phrase.head) or ("",)
        return self._index.rules.frequency[last]

    def _is_only_about(
        self, id: str, concepts: Sequence[tuple[Phrase, str]], name: str = ""
    ) -> bool:
        """Whether only this memory is about all the concepts, by any of their words."""
        found = self._index.having(name) if name else set(self._index.memories)
        for phrase, _ in concepts:
            words = [phrase.head, *synonyms(phrase.head, self._index.neighbours)]
            found &= set().union(*map(self._index.having, words))
        speaker = self._index.speaker(id)
        same = {one for one in found if self._index.speaker(one) == speaker}
        return same <= {id, *self._index.rules.twins(id)}

    def _absent(self, rng: Random) -> Iterator[Draft]:
        speakers = sorted(self._index.speakers)
        met = {name: self._index.met(name) for name in speakers}
        for id in self._shuffled(rng):
            if not (own := self._index.own_phrases(id)):
                continue
            phrase = rng.choice(own)
            strangers = [
                name for name in speakers if name not in met.get(self._index.speaker(id), ())
            ]
            if strangers:
                who = rng.choice(strangers)
                yield Draft("absent", f"What did {who} say about {phrase.asked}?", ())
            elif (other := self._elsewhere(id, rng)) is not None:
                yield Draft(
                    "absent", f"Which memory mentions both {phrase.asked} and {other.asked}?", ()
                )

    def _elsewhere(self, id: str, rng: Random) -> Phrase | None:
        """A phrase of another day or session that this memory lacks."""
        for other in rng.sample(self._index.usable, min(20, len(self._index.usable))):
            if other != id and self._index.are_apart(id, other):
                for one in self._index.own_phrases(other):
                    return one
        return None


def _with_article(phrase: Phrase, word: str) -> str:
    if phrase.determiner in ("a", "an", "another"):
        return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"
    return f"the {word}"
