"""The progress bar of the command line and, on a terminal, of notebooks and scripts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from mnemoscope.text.display import one_line


@contextmanager
def progress_bar(
    label: str, total: float | None, console: Console | None = None
) -> Iterator[Progress]:
    """A bar on stderr with one task; it is drawn on each update and needs no thread."""
    console = console or Console(stderr=True)
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=console,
        auto_refresh=False,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        bar.add_task(one_line(label), total=total)
        yield bar
