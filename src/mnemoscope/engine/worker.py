"""A worker process: takes a scenario, lets a system remember it, asks every question.

It writes each trial to the unit's spool the moment it is there, so that a killed run loses at most
the question in flight. The parent watches the pulse and kills a worker that overstays.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import SynchronizedArray
from pathlib import Path
from typing import NamedTuple

import msgspec

from mnemoscope.core.errors import MnemoscopeError
from mnemoscope.core.jsonl import Journal
from mnemoscope.core.nouns import (
    Hit,
    Ingestion,
    Memory,
    Question,
    Receipt,
    Scenario,
    Status,
    Timing,
    Trial,
)
from mnemoscope.core.tokens import estimate_tokens
from mnemoscope.systems.python import Driver, Plan

REMEMBERING = -1
"""What the pulse says in place of a question's position while memories are taken in."""
_WARM_UP = Question("", "warm-up")
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Unit(msgspec.Struct, frozen=True):
    """One system and one scenario, with what is already recorded of it."""

    run: int
    order: int
    scenario: Scenario
    spool: str
    depth: int
    recorded: frozenset[str] = frozenset()
    ingested: bool = False


class Pulse(NamedTuple):
    """Shared memory that says since when the worker has been doing what."""

    cells: SynchronizedArray[float]

    def start(self, position: int) -> None:
        self.cells[1] = position
        self.cells[0] = time.monotonic()

    def stop(self) -> None:
        self.cells[0] = 0.0

    @property
    def since(self) -> float:
        return self.cells[0]

    @property
    def position(self) -> int:
        return int(self.cells[1])


def spool_trials(spool: Path) -> Path:
    return spool.with_suffix(".trials.jsonl")


def spool_timings(spool: Path) -> Path:
    return spool.with_suffix(".timings.jsonl")


def serve(pipe: Connection, pulse: Pulse, plans: Sequence[Plan], parent: int) -> None:
    """Work through units until the parent says stop or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)  # what a system prints must not end up in our tables
    sys.stdout = sys.stderr
    threading.Thread(target=_die_with_parent, args=(parent,), daemon=True).start()
    drivers: dict[int, Driver] = {}
    warm: set[int] = set()
    while message := pipe.recv_bytes():
        unit = msgspec.msgpack.decode(message, type=Unit)
        driver = drivers.setdefault(unit.run, Driver(plans[unit.run].build))
        failure = b""
        try:
            work(unit, driver, pulse, warm_up=unit.run not in warm)
        except (OSError, MnemoscopeError) as error:
            failure = (str(error) or describe(error)).encode()
        warm.add(unit.run)
        pipe.send_bytes(failure)
    for driver in drivers.values():
        driver.close()


def work(unit: Unit, driver: Driver, pulse: Pulse, *, warm_up: bool) -> None:
    spool = Path(unit.spool)
    with Journal(spool_trials(spool)) as trials, Journal(spool_timings(spool)) as timings:
        pulse.start(REMEMBERING)
        started = time.perf_counter()
        try:
            driver.begin(unit.scenario.id)
            receipt = driver.remember(unit.scenario.memories)
            elapsed = (time.perf_counter() - started) * 1000
            size, counters = driver.counted()
        except (Exception, SystemExit) as error:
            _stop_if_ours(error)
            record_not_indexed(unit, trials, describe(error))
            return
        finally:
            pulse.stop()
        timings.append(
            Timing(
                unit.scenario.id,
                index_ms=round(elapsed, 3),
                index_bytes=size,
                counters=counters,
            )
        )
        if not unit.ingested:
            trials.append(ingestion(unit, receipt))
        _ask_all(unit, driver, pulse, trials, timings, warm_up=warm_up)


def _ask_all(
    unit: Unit,
    driver: Driver,
    pulse: Pulse,
    trials: Journal,
    timings: Journal,
    *,
    warm_up: bool,
) -> None:
    pool = Pool(unit.scenario.memories)
    for position, question in enumerate(unit.scenario.questions):
        if question.id in unit.recorded:
            continue
        pulse.start(position)
        if warm_up:
            _warm_up(driver, unit.depth)
            warm_up = False
            pulse.start(position)
        started = time.perf_counter()
        try:
            hits = driver.recall(question, unit.depth)
        except (Exception, SystemExit) as error:
            _stop_if_ours(error)
            trial = pool.trial(unit.scenario.id, question, error=describe(error))
        else:
            elapsed = (time.perf_counter() - started) * 1000
            trial = pool.trial(unit.scenario.id, question, hits)
            timings.append(Timing(unit.scenario.id, question.id, recall_ms=round(elapsed, 4)))
        trials.append(trial)
        pulse.stop()


class Pool:
    """The memories a question is asked of: what is known, what is reachable, what it costs."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        self._tokens = {memory.id: estimate_tokens(memory.text) for memory in memories}

    def trial(
        self,
        scenario: str,
        question: Question,
        hits: Sequence[Hit] = (),
        *,
        error: str = "",
        timed_out: bool = False,
    ) -> Trial:
        evidence = tuple(dict.fromkeys(question.evidence))
        ranking = tuple([hit.id for hit in hits])
        scores = tuple([hit.score for hit in hits])
        sources = {hit.id: hit.sources for hit in hits if hit.sources}
        status: Status = "answered" if hits else "empty"
        if error:
            status = "timeout" if timed_out else "error"
        return Trial(
            scenario,
            question.id,
            status,
            category=question.category,
            cluster=question.cluster or scenario,
            evidence=evidence,
            grades=question.grades,
            pool=len(self._tokens),
            reachable=sum(id in self._tokens for id in evidence),
            ranking=ranking,
            scores=() if scores.count(None) == len(scores) else scores,
            tokens=tuple([self._cost(hit) for hit in hits]),
            sources=sources,
            unknown=self._unknown(ranking, sources),
            error=error,
        )

    def _cost(self, hit: Hit) -> int:
        """Its own text's tokens, or those of all that it stems from."""
        if hit.text:
            return estimate_tokens(hit.text)
        if hit.sources:
            return sum(self._tokens.get(id, 0) for id in hit.sources)
        return self._tokens.get(hit.id, 0)

    def _unknown(self, ranking: Sequence[str], sources: dict[str, tuple[str, ...]]) -> int:
        """How many hits are, or stem from, something that is no memory of the scenario."""
        if not sources:
            return len(ranking) - sum(map(self._tokens.__contains__, ranking))
        return sum(not self._tokens.keys() >= set(sources.get(id, (id,))) for id in ranking)


def ingestion(unit: Unit, receipt: Receipt = Receipt(), error: str = "") -> Ingestion:
    return Ingestion(unit.scenario.id, len(unit.scenario.memories), receipt, error)


def record_not_indexed(unit: Unit, trials: Journal, error: str) -> None:
    """The system never held the memories, so no question could be fairly put."""
    if not unit.ingested:
        trials.append(ingestion(unit, error=error))
    pool = Pool(unit.scenario.memories)
    for question in unit.scenario.questions:
        if question.id not in unit.recorded:
            trial = pool.trial(unit.scenario.id, question, error=error)
            trials.append(msgspec.structs.replace(trial, status="not-indexed"))


def describe(error: BaseException) -> str:
    said = f"{type(error).__name__}: {error}"[:500]
    return said.encode("utf-8", "backslashreplace").decode()  # half a character cannot be written


def _stop_if_ours(error: BaseException) -> None:
    """Stop the run where not the system failed but what it stands on.

    A full disk, a broken cache, an endpoint that is down: recorded, it would count for good; a
    stopped run goes on when it is mended.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MnemoscopeError):
            raise cause
        if isinstance(cause, OSError) and cause.errno in _DISK_FULL:
            raise MnemoscopeError(describe(error)) from error
        cause = cause.__cause__ or cause.__context__


def _warm_up(driver: Driver, depth: int) -> None:
    """One recall that is not measured. If it fails, the first question will tell."""
    try:
        driver.recall(_WARM_UP, depth)
    except (Exception, SystemExit):
        return


def _die_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)
