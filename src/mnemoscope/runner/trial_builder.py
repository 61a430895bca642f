"""From hits to trials: reachable evidence, unknown hits, their tokens, what their texts carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

import msgspec

from mnemoscope._store.jsonl import printable
from mnemoscope.runner.pipeline import Ask
from mnemoscope.systems.plain_hits import PlainHits
from mnemoscope.text.carrying import CarryingTest
from mnemoscope.text.matching import any_says, sentences
from mnemoscope.text.token_estimate import estimate_tokens
from mnemoscope.types import Hit, Question, Scenario, Status, Trial


class TrialBuilder:
    """Builds the trials of one scenario, of which the system has the first `seen` memories."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario.id
        self._memories = {memory.id: memory for memory in scenario.memories}
        self._carrying = CarryingTest(scenario.memories)
        self._policy = scenario.policy
        self._tokens: dict[str, int] = {}
        self._place = {memory.id: place for place, memory in enumerate(scenario.memories)}
        self._seen, self._seen_ids = -1, frozenset[str]()
        self._evidence_place: dict[str, int] = {}
        for place, memory in enumerate(scenario.memories):
            self._evidence_place.setdefault(memory.part_of or memory.id, place)
        self._has_parts = any(memory.part_of for memory in scenario.memories)

    def trial(
        self,
        ask: Ask,
        hits: Sequence[Hit] = (),
        *,
        seen: int | None = None,
        error: str = "",
        timed_out: bool = False,
    ) -> Trial:
        question = ask.question
        seen = len(self._memories) if seen is None else seen
        evidence = tuple(dict.fromkeys(question.evidence))
        scores: tuple[float | None, ...]
        if is_plain := isinstance(hits, PlainHits):
            scores, ranking = tuple(hits.scores), tuple(hits.ids)
        else:
            scores = tuple([hit.score for hit in hits])
            ranking = tuple([hit.id for hit in hits])
        # Most systems return memories as they are: nothing of each hit needs a closer look.
        is_plain = is_plain or not any(hit.text or hit.sources for hit in hits)
        if plain := is_plain and not self._has_parts:
            texts, sources, unknown = {}, {}, self._unknown(ranking, seen)
        else:
            hits = _with_all_sources(hits)
            texts, sources = self._own_texts(hits), self._sources(hits)
            unknown = sum(
                self._unknown(hit.sources or (hit.id,), seen) > 0
                for hit in hits
                if not self._only_text(hit)
            )
        status: Status = "answered" if hits else "empty"
        if error:
            status = "timeout" if timed_out else "error"
        return Trial(
            self._scenario,
            question.id,
            status,
            category=question.category,
            cluster=question.cluster or self._scenario,
            evidence=evidence,
            grades=question.grades,
            # Chance cannot be computed if several memories are parts of one evidence.
            pool=0 if self._has_parts else seen - ask.forgotten,
            reachable=sum([self._evidence_place.get(id, seen) < seen for id in evidence]),
            ranking=ranking,
            scores=() if scores.count(None) == len(scores) else scores,
            tokens=self._costs_of(ranking) if plain else self._costs(hits),
            sources=sources,
            # Hits whose memories the scenario does not contain, or not yet. A hit that only has a
            # text names no memory.
            unknown=unknown,
            error=error,
            checkpoint=ask.checkpoint,
            texts=texts,
            ordered=tuple(
                dict.fromkeys(hit.id for hit in hits if hit.ordered and len(hit.sources) > 1)
            )
            if sources
            else (),
            places=self._places(hits),
            carried=self._carried(question, evidence, hits, seen) if texts else {},
            forbidden=self._forbidden(question, ranking, sources, texts) if self._policy else None,
        )

    def _forbidden(
        self,
        question: Question,
        ranking: Sequence[str],
        sources: Mapping[str, Sequence[str]],
        texts: Mapping[str, str],
    ) -> tuple[int, ...]:
        """The ranks of hits from forbidden sessions: by what a hit names, says or is made of."""
        closed = frozenset(question.forbidden)
        secrets = question.key.secret if question.key else ()

        def is_forbidden(id: str) -> bool:
            named = [id, *sources.get(id, ())]
            if (text := texts.get(id)) is not None:
                if any_says(sentences(text), secrets):
                    return True
                named += self._carrying.made_of(text, ())
            known = (self._memories[one] for one in named if one in self._memories)
            return any(memory.session in closed for memory in known)

        found = {id: is_forbidden(id) for id in dict.fromkeys(ranking)}
        return tuple(rank for rank, id in enumerate(ranking, 1) if found[id])

    def _unknown(self, ids: Sequence[str], seen: int) -> int:
        """How many of the ids are not among the first `seen` memories."""
        if self._seen != seen:
            self._seen, self._seen_ids = seen, frozenset(islice(self._place, seen))
        if self._seen_ids.issuperset(ids):
            return 0
        places = [self._place.get(id, seen) for id in ids]
        return len(places) - sum([place < seen for place in places])

    def _own_texts(self, hits: Sequence[Hit]) -> dict[str, str]:
        """The texts of hits that differ from the memory's text."""
        return {hit.id: printable(hit.text) for hit in hits if self._has_own_text(hit)}

    def _has_own_text(self, hit: Hit) -> bool:
        memory = self._memories.get(hit.id)
        return bool(hit.text) and (memory is None or memory.text != hit.text)

    def _only_text(self, hit: Hit) -> bool:
        """Whether the hit names no memory, so that its text must show what it was made from."""
        return bool(hit.text) and not hit.sources and hit.id not in self._memories

    def _carried(
        self, question: Question, evidence: Sequence[str], hits: Sequence[Hit], seen: int
    ) -> dict[str, tuple[str, ...]]:
        """What the own texts of hits carry, where it can differ from what the hits name.

        A hit without a text of its own is credited with what it names, so also if one of several
        hits with the same id is such a hit.
        """
        own: dict[str, list[Hit]] = {}
        for hit in hits:
            own.setdefault(hit.id, []).append(hit)
        found: dict[str, tuple[str, ...]] = {}
        for id, same in own.items():
            if not all(map(self._has_own_text, same)):
                continue
            text = printable("\n".join(dict.fromkeys(hit.text for hit in same)))
            first, carrying = same[0], self._carrying
            named = [self._memories[id] for id in first.sources or (id,) if id in self._memories]
            if self._only_text(first):
                carried = [one for one in evidence if self._says(text, one, question)]
                # A part of a unit that is carried takes the unit's place.
                made_of = [
                    one
                    for one in carrying.made_of(text, carried)
                    if self._place[one] < seen and self._memories[one].part_of not in carried
                ]
                if carried or len(made_of) > 1:
                    found[id] = tuple(dict.fromkeys([*carried, *made_of]))
                continue
            claimed = {one for memory in named for one in (memory.id, memory.part_of)}
            wanted = [one for one in evidence if one in claimed]
            verbatim = {m.part_of for m in named if carrying.is_verbatim(text, m.id)}
            carried = [one for one in wanted if one in verbatim or self._says(text, one, question)]
            if carried != wanted:
                found[id] = tuple(carried)
        return found

    def _says(self, text: str, id: str, question: Question) -> bool:
        return self._carrying.carries(text, id, question.text, question.reference)

    def _sources(self, hits: Sequence[Hit]) -> dict[str, tuple[str, ...]]:
        """The sources of each hit that is not one memory, in their order.

        A memory that is a part of a larger unit counts for that unit, too.
        """
        if not self._has_parts:
            return {hit.id: hit.sources for hit in hits if hit.sources}
        found: dict[str, tuple[str, ...]] = {}
        for hit in hits:
            made_of = hit.sources or (hit.id,)
            known = [self._memories[id] for id in made_of if id in self._memories]
            wholes = [memory.part_of or memory.id for memory in known]
            found[hit.id] = tuple(dict.fromkeys([*made_of, *wholes]))
        return found

    def _places(self, hits: Sequence[Hit]) -> dict[str, int]:
        """How many memories each hit names, where `sources` also lists what they are parts of."""
        if not self._has_parts:
            return {}
        counts = {hit.id: len(set(hit.sources)) for hit in hits}
        return {id: count for id, count in counts.items() if count > 1}

    def _costs_of(self, ids: Sequence[str]) -> tuple[int, ...]:
        """The tokens of the memories; empty if one is not known."""
        known = self._tokens
        try:
            return tuple(map(known.__getitem__, ids))
        except KeyError:
            if not all(id in self._memories for id in ids):
                return ()
        for id in ids:
            if id not in known:
                known[id] = estimate_tokens(self._memories[id].text)
        return tuple(map(known.__getitem__, ids))

    def _costs(self, hits: Sequence[Hit]) -> tuple[int, ...]:
        """The tokens of each hit; empty if the text of one is not known."""
        for hit in hits:
            if not hit.text and any(id not in self._memories for id in hit.sources or (hit.id,)):
                return ()
        return tuple([self._cost(hit) for hit in hits])

    def _cost(self, hit: Hit) -> int:
        """The tokens of the hit's text, or of its source memories."""
        if hit.text:
            return estimate_tokens(hit.text)
        total = 0
        for id in hit.sources or (hit.id,):
            if id not in self._tokens:
                memory = self._memories.get(id)
                self._tokens[id] = estimate_tokens(memory.text) if memory else 0
            total += self._tokens[id]
        return total


def _with_all_sources(hits: Sequence[Hit]) -> Sequence[Hit]:
    """Hits with one id are one hit: it names what any of them names.

    Else it would be credited with the sources of one and take the places of another.
    """
    if len({hit.id for hit in hits}) == len(hits):
        return hits
    sources: dict[str, tuple[str, ...]] = {}
    for hit in hits:
        known = sources.get(hit.id, ())
        sources[hit.id] = known if known == hit.sources else (*known, *hit.sources)
    return [msgspec.structs.replace(hit, sources=sources[hit.id]) for hit in hits]
