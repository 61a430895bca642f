"""The progress bar of the command line and, on a terminal, of notebooks and scripts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from mnemoscope.text.display import one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


@contextmanager
def progress_bar(
    label: str, total: float | None, console: Console | None = None
) -> Iterator[Progress]:
    """A bar on stderr with one task; it is drawn on each update and needs no thread."""
    # Only on a terminal is a bar drawn; other processes do not import it.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    console = console or Console(stderr=True)
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TextColumn("{task.fields[count]}", markup=False),
        TimeRemainingColumn(),
        console=console,
        auto_refresh=False,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        bar.add_task(one_line(label), total=total, count="")
        yield bar


class RunProgress(Protocol):
    """The progress of a run, as it is shown."""

    @property
    def benchmark(self) -> str: ...
    @property
    def done(self) -> float: ...
    @property
    def total(self) -> float | None: ...
    @property
    def questions(self) -> int: ...
    @property
    def questions_total(self) -> int | None: ...
    @property
    def is_estimate(self) -> bool: ...
    @property
    def seconds_left(self) -> float | None: ...


def advance(bar: Progress, at: RunProgress) -> None:
    """Draw the progress of a run."""
    bar.update(
        bar.task_ids[0],
        description=one_line(at.benchmark),
        total=at.total,
        completed=at.done,
        count=questions_done(at),
        refresh=True,
    )


def progress_line(at: RunProgress) -> str:
    """The progress of a run as one line, where there is no terminal."""
    left = "" if at.seconds_left is None else f", about {duration(at.seconds_left)} left"
    share = f" ({at.done / at.total:.0%})" if at.total else ""
    return f"{at.benchmark}: {questions_done(at)} done{share}{left}"


def questions_done(at: RunProgress) -> str:
    """`1,204 of 9,910 questions`; `about` while scenarios are still to be read."""
    if at.questions_total is None:
        return f"{at.questions:,} questions"
    about = "about " if at.is_estimate else ""
    return f"{at.questions:,} of {about}{at.questions_total:,} questions"


def duration(seconds: float) -> str:
    """`40 s`, `12 min` or `3 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
