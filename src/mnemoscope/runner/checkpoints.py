"""A system at the checkpoints of a scenario.

A checkpoint is asked of a system that remembers exactly what happened so far and that no earlier
question has changed: a copy of it where it can be copied, else one that ingests it all again.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from mnemoscope._store.errors import SystemLost, UsageError
from mnemoscope.runner.failures import error_line, stop_if_ours
from mnemoscope.runner.pipeline import Lifecycle
from mnemoscope.systems.loader import Driver
from mnemoscope.types import Checkpoint, Receipt, Scenario, Selector


class CannotForget(Exception):
    """A system that is to forget has no way to be told."""


class AtCheckpoint(NamedTuple):
    """The system at a checkpoint."""

    driver: Driver
    """The one to ask."""
    receipt: Receipt
    """What became of all memories since the first."""
    given: int
    """How many memories were handed over to get here."""
    took: float
    """Seconds that taking them in took; starting a system is not remembering."""


class CheckpointDriver:
    """Brings one system to one checkpoint of a scenario after the other."""

    def __init__(self, driver: Driver, scenario: Scenario, lifecycle: Lifecycle) -> None:
        self._driver = driver
        self._scenario = scenario
        self._lifecycle = lifecycle
        self._may_choose = lifecycle == "auto"
        self._held: int | None = None
        self._receipt = Receipt()
        self._copy: Driver | None = None
        self._forgotten: set[str] = set()
        """The checkpoints whose forgetting is done."""

    def reach(self, checkpoint: Checkpoint) -> AtCheckpoint:
        """The system as it is at the checkpoint: it remembers what it should and nothing else."""
        self.leave()
        if self._held is None or self._lifecycle == "fresh":
            self._begin()
        given = checkpoint.memories - (self._held or 0)
        took = 0.0
        for step in self._steps(checkpoint):
            if self._held is None or self._held < step.memories:
                started = time.perf_counter()
                new = self._driver.remember(
                    self._scenario.memories[self._held or 0 : step.memories]
                )
                took += time.perf_counter() - started
                self._receipt = joined(self._receipt, new)
                self._held = step.memories
            if step.forget and step.label not in self._forgotten:
                self._forget(step)
        if self._lifecycle == "fork" and not self._make_copy():
            return self.reach(checkpoint)
        return AtCheckpoint(self._copy or self._driver, self._receipt, given, took)

    def leave(self) -> None:
        """Let the copy go that was questioned."""
        if self._copy is not None:
            self._copy.close()
            self._copy = None

    def _begin(self) -> None:
        self._driver.begin(self._scenario.id)
        self._held, self._receipt = None, Receipt()
        self._forgotten = set()
        if self._lifecycle == "auto":
            if len(self._scenario.checkpoints) < 2:
                self._lifecycle = "incremental"
            else:
                self._lifecycle = "fork" if self._driver.can("fork") else "fresh"
        if self._lifecycle == "fork" and not self._driver.can("fork"):
            raise UsageError(
                "this system has no fork(): choose --lifecycle fresh (it lives each checkpoint "
                "anew) or incremental (questions are asked of the one system that goes on)"
            )

    def _steps(self, checkpoint: Checkpoint) -> list[Checkpoint]:
        """Where to stop on the way: a run that is resumed hands over the same batches again."""
        held = -1 if self._held is None else self._held
        labels = [one.label for one in self._scenario.checkpoints]
        if not labels:
            return [checkpoint] if held < checkpoint.memories else []
        way = self._scenario.checkpoints[: labels.index(checkpoint.label) + 1]
        if self._lifecycle == "fresh":
            way = tuple(one for one in way if one.forget or one is way[-1])
        return [
            one
            for one in way
            if held < one.memories or (one.forget and one.label not in self._forgotten)
        ]

    def _forget(self, checkpoint: Checkpoint) -> None:
        if not self._driver.can("forget"):
            raise CannotForget("it has no forget(selector), so nothing is asked after forgetting")
        wanted = set(checkpoint.forget)
        gone = tuple(memory for memory in self._scenario.memories if memory.id in wanted)
        self._driver.forget(Selector(gone))
        self._forgotten.add(checkpoint.label)

    def _make_copy(self) -> bool:
        try:
            self._copy = self._driver.fork()
        except SystemLost:
            raise
        except (Exception, SystemExit) as error:
            stop_if_ours(error)
            if not self._may_choose:
                raise UsageError(
                    f"fork() failed: {error_line(error)}; choose --lifecycle fresh or incremental"
                ) from error
            self._lifecycle = "fresh"
            return False
        return True


def joined(before: Receipt, new: Receipt) -> Receipt:
    """What two calls of remember have come to."""
    return Receipt(
        before.rejected | new.rejected,
        before.merged | new.merged,
        before.truncated | new.truncated,
    )
