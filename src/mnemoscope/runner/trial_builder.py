"""From hits to trials: which evidence is reachable, which hits are unknown, their tokens."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope._store.jsonl import printable
from mnemoscope.runner.pipeline import Ask
from mnemoscope.text.token_estimate import estimate_tokens
from mnemoscope.types import Hit, Scenario, Status, Trial


class TrialBuilder:
    """Builds the trials of one scenario, of which the system has the first `seen` memories."""

    def __init__(self, scenario: Scenario, *, keep_texts: bool = False) -> None:
        self._scenario = scenario.id
        self._memories = {memory.id: memory for memory in scenario.memories}
        self._keep_texts = keep_texts
        self._tokens: dict[str, int] = {}
        self._place = {memory.id: place for place, memory in enumerate(scenario.memories)}
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
            # Chance cannot be computed if several memories are parts of one evidence.
            pool=0 if self._has_parts else seen - ask.forgotten,
            reachable=sum(self._evidence_place.get(id, seen) < seen for id in evidence),
            ranking=tuple([hit.id for hit in hits]),
            scores=() if scores.count(None) == len(scores) else scores,
            tokens=self._costs(hits),
            sources=self._sources(hits),
            # Hits whose memories the scenario does not contain, or not yet.
            unknown=sum(
                any(self._place.get(id, seen) >= seen for id in hit.sources or (hit.id,))
                for hit in hits
            ),
            error=error,
            checkpoint=ask.checkpoint,
            texts=self._own_texts(hits) if self._keep_texts else {},
        )

    def _own_texts(self, hits: Sequence[Hit]) -> dict[str, str]:
        """The texts of hits that differ from the memory's text."""
        return {
            hit.id: printable(hit.text)
            for hit in hits
            if hit.text
            and not (hit.id in self._memories and self._memories[hit.id].text == hit.text)
        }

    def _sources(self, hits: Sequence[Hit]) -> dict[str, tuple[str, ...]]:
        """The sources of each hit that is not one memory.

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
