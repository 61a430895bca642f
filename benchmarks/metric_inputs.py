"""Rankings and evidence for the speed of metrics: 10,000 questions with 100 results each."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import NamedTuple

QUESTIONS, RESULTS = 10_000, 100
_DOCUMENTS = [f"d{number}" for number in range(1000)]


class Judged(NamedTuple):
    """The results and the evidence of each question."""

    rankings: dict[str, list[str]]
    evidence: dict[str, list[str]]


def as_found(data: Path | None) -> Judged:
    """As much evidence as a LoCoMo question has, at the ranks at which bm25 finds it.

    Each question takes both from one of LoCoMo's, over turns with 100 results; the other results
    are random documents.
    """
    from mnemoscope._store.spec import Spec
    from mnemoscope.analysis.measure import evidence_ranks
    from mnemoscope.datasets import open_dataset
    from mnemoscope.runner.run import Settings, run
    from mnemoscope.systems.loader import plan

    dataset = open_dataset("locomo", data, {"granularity": "turn"})
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(depth=RESULTS, workers=1)
        [done] = run(dataset, [plan(Spec("bm25"))], Path(folder), settings, counted=False)
        patterns = [(list(evidence_ranks(t)), len(t.evidence)) for t in done.trials() if t.evidence]
    draw = random.Random(0)
    judged = Judged({}, {})
    for number in range(QUESTIONS):
        ranks, total = draw.choice(patterns)
        drawn = draw.sample(_DOCUMENTS, RESULTS + total - len(ranks))
        ranking, missed = drawn[:RESULTS], drawn[RESULTS:]
        judged.rankings[f"q{number}"] = ranking
        judged.evidence[f"q{number}"] = [*(ranking[rank - 1] for rank in ranks), *missed]
    return judged


def at_random() -> Judged:
    """Three random ids of all documents: most of them are not among the results."""
    draw = random.Random(0)
    rankings = {f"q{n}": draw.sample(_DOCUMENTS, RESULTS) for n in range(QUESTIONS)}
    return Judged(rankings, {question: draw.sample(_DOCUMENTS, 3) for question in rankings})


def ten_found() -> Judged:
    """Ten ids at random ranks, all of them among the results."""
    draw = random.Random(0)
    rankings = {f"q{n}": draw.sample(_DOCUMENTS, RESULTS) for n in range(QUESTIONS)}
    return Judged(rankings, {question: draw.sample(own, 10) for question, own in rankings.items()})
