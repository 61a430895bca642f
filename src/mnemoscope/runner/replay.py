"""Replays a run: asks its system again for questions drawn at random, in workers as a run does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.fingerprint import differences
from mnemoscope._store.run_directory import Manifest, RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.analysis.replayed import (
    QuestionKey,
    ReplayResult,
    differing,
    draw_questions,
    rankings_of,
    result_of,
)
from mnemoscope.datasets.base import Dataset
from mnemoscope.datasets.subset import Subset
from mnemoscope.isolation.scratch import scratch_root
from mnemoscope.runner.pipeline import Pipeline
from mnemoscope.runner.run import Settings, benchmark_identity, run
from mnemoscope.runner.scheduler import Limits
from mnemoscope.systems.loader import Plan, plan
from mnemoscope.types import Scenario, Trial


class DrawnQuestions(Subset):
    """A dataset with the drawn questions alone, each at its checkpoint; all memories are kept."""

    def __init__(self, whole: Dataset, drawn: Sequence[QuestionKey]) -> None:
        super().__init__(whole, None, None, 0)
        self._keys = frozenset(drawn)
        self.expected_scenarios = len({scenario for scenario, _, _ in drawn})

    def scenarios(self) -> Iterator[Scenario]:
        for scenario in self._whole.scenarios():
            own = {key[1:] for key in self._keys if key[0] == scenario.id}
            if not own:
                continue
            asked = {question for _, question in own}
            points = tuple(
                msgspec.structs.replace(
                    point, questions=tuple(id for id in point.questions if (point.label, id) in own)
                )
                for point in scenario.checkpoints
            )
            left = tuple(question for question in scenario.questions if question.id in asked)
            yield msgspec.structs.replace(scenario, questions=left, checkpoints=points)


def replay(
    directory: RunDirectory,
    dataset: Dataset,
    questions: int,
    *,
    system: Any = None,
    draw: Random | None = None,
    workers: int = 0,
) -> ReplayResult:
    """Ask the system of a finished run again, and compare its rankings with the recorded ones.

    `system` is the class or object, if it was given from Python and cannot be imported.
    """
    manifest = directory.manifest()
    if manifest.state != "complete":
        raise UsageError(f"{directory.path} is not complete (state {manifest.state})")
    if "format" in manifest.identity["system"]:
        raise UsageError(f"{directory.path} was scored from a file: no system can be asked again")
    _check_data(manifest, dataset)
    recorded = rankings_of([line for line in directory.journal() if isinstance(line, Trial)])
    drawn = draw_questions(recorded, questions, draw)
    planned = plan(Spec.parse(manifest.identity["system"]["spec"]), system)
    part = DrawnQuestions(dataset, drawn)
    first, notes = _asked_again(manifest, part, planned, workers)
    second = None
    if differing(recorded, first, drawn):
        second, _ = _asked_again(manifest, part, planned, workers)
    return result_of(recorded, drawn, first, second, notes)


def _check_data(manifest: Manifest, dataset: Dataset) -> None:
    own = benchmark_identity(dataset, dataset.files())
    if apart := differences(manifest.identity["benchmark"], own):
        raise DataError(f"the run was made with other data: {'; '.join(apart)}", file=dataset.name)


def _asked_again(
    manifest: Manifest, part: DrawnQuestions, planned: Plan, workers: int
) -> tuple[dict[QuestionKey, tuple[object, ...]], list[str]]:
    """The rankings of one replay, and notes on what is not as in the run."""
    identity = manifest.identity
    settings = Settings(
        int(identity["depth"]),
        int(identity["seed"]),
        msgspec.convert(identity["limits"], Limits),
        workers,
        accept_leaks=bool(manifest.leaks),
    )
    pipeline = Pipeline(lifecycle=identity.get("lifecycle", "auto"))
    # Every lock hides that place, also those of systems of other runs that run now.
    with TemporaryDirectory(prefix="replay-", dir=scratch_root()) as folder:
        [done] = run(part, [planned], Path(folder), settings, pipeline=pipeline, counted=False)
        now = done.manifest().identity
        if apart := differences(identity["system"], now["system"]):
            raise UsageError(f"the system here is not the one of the run: {'; '.join(apart[:3])}")
        others = differences(identity["versions"], now["versions"])
        notes = [f"other versions than in the run: {', '.join(others)}"] if others else []
        trials = [line for line in done.journal() if isinstance(line, Trial)]
        return rankings_of(trials), notes
