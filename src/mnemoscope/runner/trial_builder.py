"""The memories that questions are asked of: what is known, what is reachable, what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope._store.jsonl import printable
from mnemoscope.runner.pipeline import Ask
from mnemoscope.text.token_estimate import estimate_tokens
from mnemoscope.types import Hit, Memory, Status, Trial


class TrialBuilder:
    """A scenario's memories, of which a system has seen the first so many."""

    def __init__(
        self, scenario: str, memories: Sequence[Memory], *, keep_texts: bool = False
    ) -> None:
        self._scenario = scenario
        self._memories = {memory.id: memory for memory in memories}
        self._keep_texts = keep_texts
        self._tokens: dict[str, int] = {}
        self._place = {memory.id: place for place, memory in enumerate(memories)}
        self._evidence_place: dict[str, int] = {}
        for place, memory in enumerate(memories):
            self._evidence_place.setdefault(memory.part_of or memory.id, place)
        self._has_parts = any(memory.part_of for memory in memories)

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
        ranking = tuple([hit.id for hit in hits])
        scores = tuple([hit.score for hit in hits])
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
            # Chance knows no memories of which several make up one evidence: it is left unknown.
            pool=0 if self._has_parts else seen - ask.forgotten,
            reachable=sum(self._evidence_place.get(id, seen) < seen for id in evidence),
            ranking=ranking,
            scores=() if scores.count(None) == len(scores) else scores,
            tokens=tuple([self._cost(hit) for hit in hits]),
            sources=self._sources(hits),
            unknown=self._unknown(hits, seen),
            error=error,
            checkpoint=ask.checkpoint,
            texts=self._own_texts(hits) if self._keep_texts else {},
        )

    def _own_texts(self, hits: Sequence[Hit]) -> dict[str, str]:
        """The texts that are not simply those of a memory."""
        return {
            hit.id: printable(hit.text)
            for hit in hits
            if hit.text
            and not (hit.id in self._memories and self._memories[hit.id].text == hit.text)
        }

    def _sources(self, hits: Sequence[Hit]) -> dict[str, tuple[str, ...]]:
        """What evidence each hit brings, for hits that are not one memory."""
        if not self._has_parts:
            return {hit.id: hit.sources for hit in hits if hit.sources}
        return {hit.id: tuple(self._with_wholes(hit)) for hit in hits}

    def _with_wholes(self, hit: Hit) -> dict[str, None]:
        """The memories of a hit and the larger things that they are pieces of."""
        made_of = hit.sources or (hit.id,)
        known = [self._memories[id] for id in made_of if id in self._memories]
        return dict.fromkeys([*made_of, *(memory.part_of or memory.id for memory in known)])

    def _cost(self, hit: Hit) -> int:
        """Its own text's tokens, or those of all that it stems from."""
        if hit.text:
            return estimate_tokens(hit.text)
        return sum(map(self._tokens_of, hit.sources or (hit.id,)))

    def _tokens_of(self, id: str) -> int:
        known = self._tokens.get(id)
        if known is None:
            memory = self._memories.get(id)
            known = self._tokens[id] = estimate_tokens(memory.text) if memory else 0
        return known

    def _unknown(self, hits: Sequence[Hit], seen: int) -> int:
        """How many hits are, or stem from, something that is no memory of the scenario yet."""
        return sum(
            any(self._place.get(id, seen) >= seen for id in hit.sources or (hit.id,))
            for hit in hits
        )
