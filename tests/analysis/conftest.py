"""Make finished run directories from a list of hits and misses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mnemoscope._store.jsonl import Journal
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.measure import Depth
from mnemoscope.runner.finish import finish
from mnemoscope.types import Question, Trial

POOL = tuple(f"m{number}" for number in range(20))


@pytest.fixture(scope="session")
def make_run() -> Callable[..., RunDirectory]:
    """Each question has one evidence memory, m0: first in a hit, absent in a miss."""

    def make(
        path: Path,
        hits: Sequence[bool],
        *,
        failed: int = 0,
        data: str = "d" * 64,
        depth: int = 10,
        clusters: int = 0,
        **options: Any,
    ) -> RunDirectory:
        run = RunDirectory(path)
        benchmark = {"name": "made", "options": {"scope": "own", **options}, "sha256": [data]}
        system = {"spec": path.name}
        versions = {"mnemoscope": "0"}
        manifest = run.open(
            {
                "benchmark": benchmark,
                "system": system,
                "depth": depth,
                "seed": 42,
                "versions": versions,
            },
            category_names={"even": "of even number"},
        )
        questions: dict[str, Question] = {}
        with Journal(run.trials_path) as journal:
            for number, hit in enumerate(hits):
                category = "odd" if number % 2 else "even"
                question = Question(f"q{number}", f"What of {number}?", category=category)
                questions[question.id] = question
                journal.append(
                    Trial(
                        scenario=question.id,
                        question=question.id,
                        status="error" if number < failed else "answered",
                        category=category,
                        cluster=f"c{number % clusters}" if clusters else question.id,
                        evidence=("m0",),
                        pool=len(POOL),
                        reachable=1,
                        tokens=(1,) * depth,
                        ranking=POOL[:depth] if hit else POOL[1 : depth + 1],
                    )
                )
        finish(run, manifest, questions, Depth(depth))
        run.release()
        return run

    return make
