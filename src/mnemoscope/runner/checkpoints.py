"""Brings a system to the checkpoints of a scenario.

At a checkpoint the system contains exactly the memories so far, and no earlier question has changed
it. It is a copy of the system if the system can be copied; else the memories are ingested again
from the start.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from mnemoscope._store.errors import SystemLost, UsageError
from mnemoscope.runner.failures import error_line, stop_if_ours
from mnemoscope.runner.pipeline import Lifecycle
from mnemoscope.systems.loader import Driver
from mnemoscope.types import Checkpoint, Receipt, Scenario, Selector


class CannotForget(Exception):
    """The scenario requires forgetting, and the system has no `forget`."""


class AtCheckpoint(NamedTuple):
    """The system at a checkpoint."""

    driver: Driver
    """The driver to ask."""
    receipt: Receipt
    """The receipts of all memories so far, joined."""
    given: int
    """How many memories were ingested for this checkpoint."""
    took: float
    """Seconds of ingestion, without the start of the system."""


class CheckpointDriver:
    """Brings one system to one checkpoint of a scenario after the other."""

    def __init__(
        self,
        driver: Driver,
        scenario: Scenario,
        lifecycle: Lifecycle,
        on_batch: Callable[[int, int], None] = lambda first, end: None,
    ) -> None:
        """`on_batch` is told which memories are ingested next, as positions in the scenario."""
        self._on_batch = on_batch
        self._driver = driver
        self._scenario = scenario
        self._lifecycle = lifecycle
        self._may_choose = lifecycle == "auto"
        self._place = {one.label: place for place, one in enumerate(scenario.checkpoints)}
        self._passed = 0
        """How many checkpoints are behind the system."""
        self._held: int | None = None
        self._receipt = Receipt()
        self._copy: Driver | None = None
        self._forgotten: set[str] = set()
        """Labels of the checkpoints whose memories were forgotten."""

    def reach(self, checkpoint: Checkpoint) -> AtCheckpoint:
        """Bring the system to the checkpoint: it contains the memories so far and nothing else."""
        self.leave()
        if self._held is None or self._lifecycle == "fresh":
            self._begin()
        given = checkpoint.memories - (self._held or 0)
        took = 0.0
        for step in self._steps(checkpoint):
            if self._held is None or self._held < step.memories:
                first = self._held or 0
                self._on_batch(first, step.memories)
                started = time.perf_counter()
                new = self._driver.remember(self._scenario.memories[first : step.memories])
                took += time.perf_counter() - started
                self._receipt = joined(self._receipt, new)
                self._held = step.memories
            if step.forget and step.label not in self._forgotten:
                self._forget(step)
        self._passed = self._place.get(checkpoint.label, 0) + 1
        if self._lifecycle == "fork" and not self._make_copy():
            return self.reach(checkpoint)
        return AtCheckpoint(self._copy or self._driver, self._receipt, given, took)

    def leave(self) -> None:
        """Close the copy that was asked."""
        if self._copy is not None:
            self._copy.close()
            self._copy = None

    def _begin(self) -> None:
        self._driver.begin(self._scenario.id)
        self._held, self._receipt = None, Receipt()
        self._forgotten = set()
        self._passed = 0
        if self._lifecycle == "auto":
            if len(self._scenario.checkpoints) < 2:
                self._lifecycle = "incremental"
            else:
                self._lifecycle = "fork" if self._driver.can("fork") else "fresh"
        if self._lifecycle == "fork" and not self._driver.can("fork"):
            raise UsageError(
                "this system has no fork(): choose --lifecycle fresh (each checkpoint is ingested "
                "from the start) or incremental (one system is asked at all checkpoints)"
            )

    def _steps(self, checkpoint: Checkpoint) -> list[Checkpoint]:
        """The checkpoints to pass on the way: a resumed run ingests the same batches again."""
        held = -1 if self._held is None else self._held
        if not self._place:
            return [checkpoint] if held < checkpoint.memories else []
        way = self._scenario.checkpoints[self._passed : self._place[checkpoint.label] + 1]
        if self._lifecycle == "fresh":
            way = tuple(one for one in way if one.forget or one is way[-1])
        return [
            one
            for one in way
            if held < one.memories or (one.forget and one.label not in self._forgotten)
        ]

    def _forget(self, checkpoint: Checkpoint) -> None:
        if not self._driver.can("forget"):
            if checkpoint.forget_if_able:
                return
            raise CannotForget(
                "it has no forget(selector), so no question is asked after the forgetting"
            )
        wanted = set(checkpoint.forget)
        gone = tuple(memory for memory in self._scenario.memories if memory.id in wanted)
        self._driver.forget(Selector(gone))
        self._forgotten.add(checkpoint.label)

    def _make_copy(self) -> bool:
        try:
            self._copy = self._driver.fork()
        except SystemLost:
            raise
        except BaseException as error:
            stop_if_ours(error)
            if not self._may_choose:
                raise UsageError(
                    f"fork() failed: {error_line(error)}; choose --lifecycle fresh or incremental"
                ) from error
            self._lifecycle = "fresh"
            return False
        return True


def joined(before: Receipt, new: Receipt) -> Receipt:
    """The receipts of two calls of `remember` in one."""
    return Receipt(
        before.rejected | new.rejected,
        before.merged | new.merged,
        before.truncated | new.truncated,
    )
