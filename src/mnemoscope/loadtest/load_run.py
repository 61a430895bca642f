"""A load test: each system under each pattern of requests, and the folder with its results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import msgspec

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope._store.jsonl import encode_json, write_atomically, write_records
from mnemoscope.datasets.base import Dataset
from mnemoscope.loadtest.load_figures import LoadStep, figures
from mnemoscope.loadtest.load_generator import (
    LoadClock,
    LoadGenerator,
    Pattern,
    Request,
    StepLimits,
)
from mnemoscope.loadtest.load_plot import draw
from mnemoscope.loadtest.load_report import blocks
from mnemoscope.loadtest.load_result import LoadOptions, LoadResult
from mnemoscope.loadtest.workload import Workload
from mnemoscope.loadtest.writers import TurnLock, Writers
from mnemoscope.reports.render_markdown import render
from mnemoscope.runner.failures import error_line
from mnemoscope.runner.private_runs import is_private, no_texts_outside
from mnemoscope.systems.loader import CallLimits, Driver, Plan, describe
from mnemoscope.types import Memory, Question

FORMAT = 1
_WARM_UP = Question("", "warm-up")


class LoadUpdate(NamedTuple):
    """The progress of a load test."""

    step: str
    number: int
    steps: int
    requests: int
    """Requests of this step that have returned."""


class Measured(NamedTuple):
    """A step's figures and its requests."""

    step: LoadStep
    requests: list[Request]


class Interrupted(Exception):
    """Ctrl-C in a step, of which some requests were measured."""

    def __init__(self, measured: Measured) -> None:
        self.measured = measured


def run_load(
    dataset: Dataset,
    plans: Sequence[Plan],
    out: Path,
    options: LoadOptions,
    *,
    update: Callable[[LoadUpdate], None] = lambda at: None,
    clock: LoadClock | None = None,
) -> LoadResult:
    """Test every system, and write load.json, load.md, load.png and requests.jsonl into `out`.

    After Ctrl-C the files have what was measured so far, and KeyboardInterrupt is raised again.
    """
    options.check()
    workload = Workload(
        dataset,
        scenarios=options.scenarios,
        k=options.k,
        seed=options.seed,
        writing=options.writers > 0,
    )
    if options.writers and not workload.later:
        raise UsageError("--writers: these histories have no second half to write")
    out.mkdir(parents=True, exist_ok=True)
    test = _LoadTest(workload, options, update, clock)
    measured: list[Measured] = []
    interrupted: KeyboardInterrupt | None = None
    try:
        # Errors and lines of systems may repeat texts, which load.json would keep.
        with no_texts_outside() if is_private(dataset) else nullcontext():
            for one in test.steps(plans):
                measured.append(one)
    except Interrupted as error:
        measured.append(error.measured)
        interrupted = KeyboardInterrupt()
    except KeyboardInterrupt as error:
        interrupted = error
    result = LoadResult(
        format=FORMAT,
        benchmark=dataset.name,
        dataset_options=dict(dataset.options),
        options=options,
        memories=len(workload.before),
        questions=len(workload.questions),
        steps=[one.step for one in measured],
        is_complete=interrupted is None,
    )
    _write(out, result, measured)
    if interrupted is not None:
        raise interrupted
    return result


def _write(out: Path, result: LoadResult, measured: Sequence[Measured]) -> None:
    write_records(
        out / "requests.jsonl",
        (
            {"system": step.system, "clients": step.clients, "rate": step.rate}
            | msgspec.to_builtins(request)
            for step, requests in measured
            for request in requests
        ),
    )
    write_atomically(out / "load.json", encode_json(result))
    write_atomically(out / "load.md", f"{render(blocks(result))}\n".encode())
    if result.steps:
        write_atomically(out / "load.png", draw(result))


class _LoadTest:
    """Drives one system after another through all patterns."""

    def __init__(
        self,
        workload: Workload,
        options: LoadOptions,
        update: Callable[[LoadUpdate], None],
        clock: LoadClock | None,
    ) -> None:
        self._workload, self._options = workload, options
        self._update, self._clock = update, clock

    def steps(self, plans: Sequence[Plan]) -> Iterator[Measured]:
        patterns = self._options.patterns()
        total = len(plans) * len(patterns)
        for place, plan in enumerate(plans):
            known, system = describe(plan)
            driver = Driver(known.build, system)
            # The limit is the connector's own: a system in this process cannot be interrupted.
            driver.limits = CallLimits(recall=self._options.timeout)
            try:
                for number, pattern in enumerate(patterns):
                    name = f"{plan.spec.label or plan.spec}, {pattern.name}"
                    at = LoadUpdate(name, place * len(patterns) + number + 1, total, 0)
                    self._update(at)
                    if number == 0 or self._options.writers:
                        self._ingest(driver, f"load-{number}")
                    self._warm_up(driver)
                    measured = self._measure(plan, driver, pattern, at)
                    yield measured
                    if measured.step.note:  # the system is gone
                        break
            except Interrupted:
                if hasattr(type(system), "kill"):  # else closing it waits for calls under way
                    system.kill()
                raise
            finally:
                driver.close()

    def _ingest(self, driver: Driver, scope: str) -> None:
        try:
            driver.begin(scope)
            driver.remember(self._workload.before)
        except MnemoscopeError:
            raise
        except Exception as error:
            raise MnemoscopeError(f"the memories were not ingested: {error_line(error)}") from error

    def _warm_up(self, driver: Driver) -> None:
        """The first call opens connections and builds lazy indexes, which is not the load's time.

        If it fails, the first request shows the error.
        """

        def ask() -> None:
            try:
                driver.recall(_WARM_UP, 1)
            except BaseException:
                return

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(self._options.timeout)

    def _measure(self, plan: Plan, driver: Driver, pattern: Pattern, at: LoadUpdate) -> Measured:
        workload, options = self._workload, self._options
        turns = TurnLock() if options.writers and plan.hosting != "server" else None

        def ask(number: int) -> int:
            question = workload.question(number)
            with turns.recall() if turns else nullcontext():
                hits = driver.recall(question, workload.k)
            return workload.note(question, hits)

        def remember(memories: Sequence[Memory]) -> None:
            with turns.write() if turns else nullcontext():
                driver.remember(memories)

        generator = LoadGenerator(
            ask,
            lambda number: workload.question(number).id,
            pattern,
            StepLimits(options.requests, options.duration, options.timeout),
            seed=options.seed,
            clock=self._clock,
        )
        rate = options.write_rate or max(1.0, len(workload.later) / options.duration)
        writers = Writers(remember, workload.later, writers=options.writers, rate=rate)
        writers.start()
        is_interrupted = False
        try:
            found = generator.run(lambda done: self._update(at._replace(requests=done)))
        except KeyboardInterrupt:
            is_interrupted = True
            found = generator.results()
        written = writers.finish(0.0 if is_interrupted else options.timeout)
        note = f"the system was lost: {generator.lost}" if generator.lost else ""
        step = figures(
            plan.spec.label or str(plan.spec),
            pattern,
            found,
            workload,
            writers=options.writers,
            written=written if options.writers else None,
            note="interrupted" if is_interrupted else note,
        )
        if is_interrupted:
            raise Interrupted(Measured(step, found))
        return Measured(step, found)
