"""What a load test ingests, asks and writes meanwhile, and the recall of what came back.

The system gets memories and queries. The evidence stays here, with the clients.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable, Sequence
from itertools import islice

from mnemoscope._store.errors import UsageError
from mnemoscope.analysis.measure import Depth
from mnemoscope.datasets.base import Dataset
from mnemoscope.runner.pipeline import Ask
from mnemoscope.runner.trial_builder import TrialBuilder
from mnemoscope.types import Hit, Memory, Question, Scenario

Returned = tuple[tuple[str, tuple[str, ...], str], ...]


class Workload:
    """The histories of one space: what is ingested before, what meanwhile, and the questions.

    With writers, the first half of each history is ingested before the step, and the questions are
    those whose whole evidence is in it. So the same questions are asked from the first request to
    the last, while the index grows.
    """

    def __init__(
        self, dataset: Dataset, *, scenarios: int, k: int, seed: int, writing: bool
    ) -> None:
        taken = list(islice(dataset.scenarios(), scenarios))
        before: list[Memory] = []
        later: list[Memory] = []
        for scenario in taken:
            cut = len(scenario.memories) // 2 if writing else len(scenario.memories)
            before += scenario.memories[:cut]
            later += scenario.memories[cut:]
        self.before, self.later, self.k = before, later, k
        unfinished = {memory.part_of or memory.id for memory in later}
        ingested = {memory.part_of or memory.id for memory in before} - unfinished
        asked = [
            question
            for scenario in taken
            for question in scenario.questions
            if question.evidence and ingested.issuperset(question.evidence)
        ]
        if not asked:
            raise UsageError(
                "none of these histories has a question whose evidence is ingested before the "
                "load begins; give more of them: --scenarios 5"
            )
        random.Random(seed).shuffle(asked)
        self.questions: Sequence[Question] = asked
        self._trials = TrialBuilder(Scenario("load", (*before, *later), ()))
        self._results: dict[tuple[str, Returned], int] = {}
        self._hits: list[tuple[Question, Sequence[Hit]]] = []
        self._noting = threading.Lock()
        depth = Depth(k)
        self._depth = depth
        names = [name for name in depth.names if name.startswith("recall@")]
        self.metric = names[-1]
        """Recall at k, or at the largest k below it that is measured."""

    def question(self, number: int) -> Question:
        """The question of a request; all are asked in turn, in an order that the seed draws."""
        return self.questions[number % len(self.questions)]

    def note(self, question: Question, hits: Sequence[Hit]) -> int:
        """Keep a result once, and return its number: most requests repeat an earlier result."""
        key = (question.id, tuple([(hit.id, hit.sources, hit.text) for hit in hits]))
        with self._noting:
            found = self._results.setdefault(key, len(self._hits))
            if found == len(self._hits):
                self._hits.append((question, hits))
        return found

    def recall(self, results: Iterable[int]) -> list[float]:
        """The recall of each result, scored once the step has ended, so as not to slow it down."""
        column = self._depth.names.index(self.metric)
        known: dict[int, float] = {}
        for result in set(results):
            question, hits = self._hits[result]
            trial = self._trials.trial(Ask("", question), hits)
            known[result] = self._depth.values(trial)[column]
        return [known[result] for result in results]
