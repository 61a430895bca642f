"""Where output goes: results to stdout, talk and progress to stderr."""

from __future__ import annotations

import difflib
import inspect
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.markup import escape

from mnemoscope._store.errors import UsageError
from mnemoscope.reports import progress_bar as bars
from mnemoscope.types import Scalar

if TYPE_CHECKING:
    from mnemoscope.api import ProgressUpdate

out = Console()
err = Console(stderr=True)
progress_bar = partial(bars.progress_bar, console=err)
_EVERY = 30.0
"""Seconds between two lines on how far a run is, where no bar can be drawn."""
_COLOURS = {"note: ": "[yellow]note:[/] ", "error: ": "[bold red]error:[/] "}


def say(console: Console, text: str, *, before: str = "") -> None:
    """A line for people, as it is: brackets in it are no markup, long paths stay in one piece."""
    console.print(before + escape(text), soft_wrap=True, highlight=False, emoji=False)


def print_json(content: Any) -> None:
    """Machine output: nothing but JSON on stdout."""
    print(msgspec.json.format(msgspec.json.encode(content), indent=2).decode())


class LogLines(logging.Handler):
    """What the library logs, as lines on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        prefix = next((one for one in _COLOURS if text.startswith(one)), "")
        say(err, text.removeprefix(prefix), before=_COLOURS.get(prefix, ""))


@contextmanager
def watched() -> Iterator[Callable[[ProgressUpdate], None]]:
    """A bar, or now and then a line; and where a run is interrupted, that nothing is lost."""
    told = time.monotonic()
    with progress_bar("", None) as bar:

        def update(at: ProgressUpdate) -> None:
            nonlocal told
            bar.update(
                bar.task_ids[0],
                description=at.benchmark,
                total=at.total,
                completed=at.done,
                refresh=True,
            )
            if not err.is_terminal and time.monotonic() - told > _EVERY:
                told = time.monotonic()
                of = f" of {at.total:.0f}" if at.total else ""
                say(err, f"{at.benchmark}: {at.done:.1f}{of} done (systems × scenarios)")

        try:
            yield update
        except KeyboardInterrupt:
            say(err, "\neverything recorded is kept; the same command goes on from here")
            raise


def parse_options(
    options: Mapping[str, str], command: Callable[..., Any], *also: Callable[..., Any]
) -> dict[str, Scalar]:
    """The dataset's options: flags that neither the command nor its dataclasses `also` have.

    One that is nearly a flag of the command is a slip, and no dataset is to be blamed for it.
    """
    flags = [name for one in (command, *also) for name in inspect.signature(one).parameters]
    for key in options:
        if near := difflib.get_close_matches(key.replace("-", "_"), flags, n=1, cutoff=0.85):
            flag = near[0].replace("_", "-")
            raise UsageError(f"there is no option --{key}: did you mean --{flag}?")
    return {key.replace("-", "_"): value for key, value in options.items()}


def print_problems(spec: str, problems: list[str]) -> int:
    """What a check found, and the exit code."""
    for problem in problems:
        say(err, problem, before="[bold red]problem:[/] ")
    if not problems:
        say(out, f"{spec}: no problem found")
    return int(bool(problems))
