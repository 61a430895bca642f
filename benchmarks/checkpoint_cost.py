"""The cost of a sweep over checkpoints, against one checkpoint with the same questions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from mnemoscope._store.spec import Spec
from mnemoscope.datasets.personas import Personas
from mnemoscope.personas.simulate.simulator import simulate_persona
from mnemoscope.runner.run import Settings, run
from mnemoscope.systems.loader import plan
from mnemoscope.types import Scenario
from rounds import Cost, in_turns

DAYS = 1000
SWEEP = f"7-{DAYS}/7"
"""143 checkpoints."""


class AskedOnce(Personas):
    """Every question of the persona is asked once, at the first checkpoint after its days."""

    def read(self) -> Iterator[Scenario]:
        for scenario in super().read():
            asked: list[list[str]] = [[] for _ in scenario.checkpoints]
            for question in scenario.questions:
                last = max(question.relevant_days)
                ends = enumerate(point.days for point in scenario.checkpoints)
                asked[next(place for place, end in ends if end >= last)].append(question.id)
            points = tuple(
                msgspec.structs.replace(point, questions=tuple(own), new=len(own), historical=0)
                for point, own in zip(scenario.checkpoints, asked, strict=True)
            )
            yield msgspec.structs.replace(scenario, checkpoints=points)


class SweepCosts(NamedTuple):
    """CPU seconds of whole runs without a reader, from loading to the written figures."""

    one: Cost
    """All questions at the end."""
    sweep: Cost
    """The same questions over 143 checkpoints."""


def costs(system: str) -> SweepCosts:
    """Both costs. A run before them fills the caches of both."""
    with TemporaryDirectory() as folder:
        data = Path(folder) / "history"
        simulate_persona("executive-assistant", data, days=DAYS)

        def whole(ranges: str) -> None:
            with TemporaryDirectory() as out:
                dataset = AskedOnce(data, ranges=ranges)
                run(dataset, [plan(Spec.parse(system))], Path(out), Settings(workers=1))

        whole("full")
        return SweepCosts(*in_turns(lambda: whole("full"), lambda: whole(SWEEP)))
