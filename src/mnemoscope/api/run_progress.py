"""The progress of a run: a callback of the caller, or a bar on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mnemoscope.datasets.base import Dataset
    from mnemoscope.runner.question_progress import QuestionProgress


class ProgressUpdate(NamedTuple):
    """The progress of a run."""

    benchmark: str
    done: float
    """Finished systems × scenarios; one in progress counts as a fraction."""
    total: float | None
    questions: int = 0
    """Questions that are done, over all systems and checkpoints."""
    questions_total: int | None = None
    """None if it is not known yet."""
    is_estimate: bool = False
    """Whether scenarios are still to be read, so that the number of questions is an estimate."""
    seconds_left: float | None = None
    """An estimate; None if it is not known yet."""


Progress = Callable[[ProgressUpdate], None] | bool | None
"""A callback; None draws a bar if stderr is a terminal, False draws none."""


class Reporting(NamedTuple):
    """What the runner gets to report its progress."""

    advance: Callable[[float], None]
    questions: QuestionProgress


@contextmanager
def reporting(progress: Progress, dataset: Dataset, systems: int) -> Iterator[Reporting]:
    """Yield the callback by which the runner reports its progress, and its count of questions."""
    from mnemoscope.runner.question_progress import QuestionProgress

    scenarios = dataset.expected_scenarios
    total = scenarios * systems if scenarios else None
    questions = QuestionProgress()
    # When the first progress was reported, and how much was done by then.
    started: tuple[float, float] | None = None

    def update(done: float) -> ProgressUpdate:
        nonlocal started
        now = time.monotonic()
        started = started or (now, done)
        gained = done - started[1]
        left = None
        if total and gained > 0 and now > started[0]:
            left = max(total - done, 0.0) * (now - started[0]) / gained
        return ProgressUpdate(
            *(dataset.name, done, total, questions.done, questions.total(total)),
            *(not questions.is_all_read, left),
        )

    if callable(progress):
        yield Reporting(lambda done: progress(update(done)), questions)
    elif progress is False or not sys.stderr.isatty():
        yield Reporting(lambda done: None, questions)
    else:
        from mnemoscope.reports.progress_bar import advance, progress_bar

        with progress_bar(dataset.name, total) as bar:
            yield Reporting(lambda done: advance(bar, update(done)), questions)
