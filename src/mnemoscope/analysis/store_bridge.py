"""Where the memories of a baseline are in a store that has changed since: the bridge.

Ids are not trusted: a store may be renumbered. A memory is followed by its exact text, by what the
store or the user declares (superseded, merged), and by content: a new memory that carries it, or
several new ones that carry it together. A memory of which information is gone is missing.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from mnemoscope._store.errors import UsageError
from mnemoscope.text.memory_sketch import (
    HashedText,
    MemorySketch,
    SketchKey,
    carried_by,
    carried_together,
    is_near_duplicate,
    is_part,
    share_of,
    sketches,
)
from mnemoscope.types import Memory, Scenario

Method = Literal["same text", "declared", "reworded", "merged", "split", "missing"]
MISSING: Method = "missing"
_MOST_CANDIDATES = 20
"""New memories with most of a memory's words that are compared with it."""
_MOST_PARTS = 8
_RELATED = 0.15
"""The share of a memory's words that what supersedes it has at least."""


class AskedAs(Struct, frozen=True, omit_defaults=True):
    """What questions.jsonl does not say of a question."""

    now: str = ""
    session: str = ""
    cluster: str = ""


class KeptStore(Struct, frozen=True, omit_defaults=True):
    """What a run keeps of its memories, so that a later gate can follow them."""

    key: str
    """The key of all hashes."""
    memories: dict[str, str]
    """The hash of each memory's text, by id."""
    gold: dict[str, MemorySketch]
    """The sketches of the memories that answer a question."""
    asked: dict[str, AskedAs] = {}


class Followed(Struct, frozen=True):
    """A memory of the baseline, and where it is in the new store."""

    memory: str
    """Its id in the baseline."""
    method: Method
    ids: list[str]
    """The ids of the new store; each of them counts as the memory."""
    share: float = 1.0
    """The share of its words that is there, by rarity; of a missing one, in the nearest memory."""
    nearest: str = ""
    """Of a missing memory: the new memory that has most of its words."""
    why: str = ""
    """Why it is missing."""


class StoreChange(NamedTuple):
    """How many memories of a store are as before."""

    unchanged: int
    new: int
    gone: int


def keep_store(scenario: Scenario, key: str) -> KeptStore:
    """What a run on this scenario keeps of it."""
    hashing = SketchKey(key)
    texts = {memory.id: _composed(memory.text) for memory in scenario.memories}
    gold = dict.fromkeys(id for question in scenario.questions for id in question.evidence)
    asked = {
        question.id: AskedAs(
            question.now.isoformat() if question.now else "", question.session, question.cluster
        )
        for question in scenario.questions
    }
    return KeptStore(
        key,
        {id: hashing.of_text(text) for id, text in texts.items()},
        sketches(texts, gold, hashing),
        {id: one for id, one in asked.items() if one != AskedAs()},
    )


def _composed(text: str) -> str:
    """The text in one form of Unicode: file systems and exports change it, and nothing is lost."""
    return unicodedata.normalize("NFC", text)


class DeclaredSuccessors(NamedTuple):
    """What is said about memories outside their texts."""

    id_map: Mapping[str, Sequence[str]] = {}
    """By the user: an id of the baseline to ids of the new store; none if it is gone."""
    superseded: Mapping[str, Sequence[str]] = {}
    """By the store: an id of the store to its successors."""


class WordIndex:
    """The memories that have a word of a gold memory."""

    def __init__(self, texts: Mapping[str, HashedText], wanted: Set[str]) -> None:
        self.texts = texts
        self._having: dict[str, list[str]] = {}
        for id, text in texts.items():
            for stem in wanted & text.polarity.keys():
                self._having.setdefault(stem, []).append(id)

    def candidates(self, sketch: MemorySketch) -> list[str]:
        """The memories that have most of the sketch's words, best first."""
        weights: dict[str, float] = {}
        for stem, weight in sketch.stems.items():
            for id in self._having.get(stem, ()):
                weights[id] = weights.get(id, 0.0) + weight
        return sorted(weights, key=lambda id: (-weights[id], id))[:_MOST_CANDIDATES]


class StoreBridge:
    """Follows the memories of a baseline into a new store."""

    def __init__(
        self,
        kept: KeptStore,
        memories: Sequence[Memory],
        declared: DeclaredSuccessors = DeclaredSuccessors(),
        *,
        exact_only: bool = False,
    ) -> None:
        self._kept = kept
        self._exact_only = exact_only
        self._hashing = SketchKey(kept.key)
        self._texts = {memory.id: _composed(memory.text) for memory in memories}
        hashes = {id: self._hashing.of_text(text) for id, text in self._texts.items()}
        self._same: dict[str, list[str]] = {}
        for id, own in hashes.items():
            self._same.setdefault(own, []).append(id)
        self._id_map = _last_successors(declared.id_map, self._texts.keys(), one_naming=False)
        self._superseded = _last_successors(
            declared.superseded, self._texts.keys(), one_naming=True
        )
        before = set(kept.memories.values())
        # A memory that the baseline had did not count there, so it does not count here.
        self._new = [id for id, own in hashes.items() if own not in before]
        gone = sum(own not in self._same for own in kept.memories.values())
        self.change = StoreChange(len(hashes) - len(self._new), len(self._new), gone)

    def follow(self, gold: Iterable[str]) -> dict[str, Followed]:
        """Where each of these memories of the baseline is."""
        found = {id: self._follow(id) for id in dict.fromkeys(gold)}
        carried = Counter(
            new for one in found.values() if one.method == "reworded" for new in one.ids
        )
        return {
            id: replace(one, method="merged")
            if one.method == "reworded" and any(carried[new] > 1 for new in one.ids)
            else one
            for id, one in found.items()
        }

    def twins(self, id: str) -> list[str]:
        """The memories of the baseline with the same text, itself included."""
        own = self._kept.memories.get(id)
        return [id] if own is None else self._ids_by_text[own]

    @cached_property
    def _ids_by_text(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for id, own in self._kept.memories.items():
            found.setdefault(own, []).append(id)
        return found

    def _follow(self, id: str) -> Followed:
        sketch = self._kept.gold.get(id)
        same = self._same.get(self._kept.memories.get(id, ""), [])
        if id in self._id_map:
            chosen = list(dict.fromkeys([*self._id_map[id], *same]))
            if chosen:
                return Followed(id, "declared", chosen)
            return Followed(id, MISSING, [], 0.0, "", "the id map says that it is gone")
        successors = self._successors(id, same, sketch)
        candidates: list[str] = []
        carriers: dict[str, float] = {}
        if sketch is not None and not self._exact_only:
            candidates = self._new_words.candidates(sketch)
            for new in candidates:
                parts = self._hashing.parts(self._texts[new], sketch.words)
                if not (one := carried_by(sketch, parts)).problem:
                    carriers[new] = one.share
            if not same and not carriers:  # the one that was left of two copies
                for old in self._old_words.candidates(sketch):
                    if is_near_duplicate(sketch, self._old_words.texts[old]):
                        carriers[old] = share_of(sketch, self._old_words.texts[old].polarity)
        everywhere = list(dict.fromkeys([*same, *successors, *carriers]))
        if successors:
            return Followed(id, "declared", everywhere)
        if same:
            return Followed(id, "same text", everywhere)
        if carriers:
            return Followed(id, "reworded", everywhere, max(carriers.values()))
        if sketch is None:
            return Followed(id, MISSING, [], 0.0, "", "the baseline's store does not have it")
        return self._spread(id, sketch, candidates)

    def _successors(self, id: str, same: Sequence[str], sketch: MemorySketch | None) -> list[str]:
        """What supersedes the memory, as the store says.

        The store speaks of its own ids. They are the baseline's only if nothing was renumbered, so
        of a memory whose text is gone, a successor counts if it has words of it.
        """
        found = [new for own in same for new in self._superseded.get(own, ())]
        if not same and id not in self._texts and sketch is not None:
            for new in self._superseded.get(id, ()):
                if share_of(sketch, self._hashing.whole(self._texts[new]).polarity) >= _RELATED:
                    found.append(new)
        return found

    @cached_property
    def _new_words(self) -> WordIndex:
        return self._indexed(self._new)

    @cached_property
    def _old_words(self) -> WordIndex:
        new = set(self._new)
        return self._indexed([id for id in self._texts if id not in new])

    def _indexed(self, ids: Sequence[str]) -> WordIndex:
        wanted = {stem for sketch in self._kept.gold.values() for stem in sketch.stems}
        return WordIndex({id: self._hashing.whole(self._texts[id]) for id in ids}, wanted)

    def _spread(self, id: str, sketch: MemorySketch, candidates: Sequence[str]) -> Followed:
        """The new memories that carry it together, or that it is missing."""
        parts: list[str] = []
        here: set[str] = set()
        texts = self._new_words.texts
        for new in (one for one in candidates if is_part(sketch, texts[one])):
            added = (texts[new].polarity.keys() & sketch.stems.keys()) - here
            if added and len(parts) < _MOST_PARTS:
                parts.append(new)
                here |= added
        together = carried_together(sketch, [texts[new] for new in parts])
        if len(parts) > 1 and not together.problem:
            return Followed(id, "split", parts, together.share)
        if not candidates:
            return Followed(id, MISSING, [], 0.0, "", "its text is not in the store")
        nearest = candidates[0]
        best = carried_by(sketch, self._hashing.parts(self._texts[nearest], sketch.words))
        return Followed(id, MISSING, [], best.share, nearest, best.problem)


def _last_successors(
    declared: Mapping[str, Sequence[str]], there: Set[str], *, one_naming: bool
) -> dict[str, list[str]]:
    """The end of each chain of successors, if it is in the store; a cycle is an error.

    With `one_naming` both sides are ids of the store. Else the right side is: an id that the store
    has ends the chain, because on the left side it is another memory.
    """
    graph = {
        id: [new for new in after if one_naming or new not in there]
        for id, after in declared.items()
    }
    found: dict[str, list[str]] = {}
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise UsageError(f"memories supersede each other: {' → '.join(error.args[1])}") from None
    for id in order:  # successors come before what they supersede
        after = declared.get(id, ()) if id in graph else ()
        ends = [end for new in after for end in ([new] if new not in graph[id] else found[new])]
        found[id] = list(dict.fromkeys(ends)) or ([id] if one_naming and id in there else [])
    return {id: [new for new in found[id] if not one_naming or new != id] for id in declared}
