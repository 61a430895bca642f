"""Output of the commands: results go to stdout, messages and progress to stderr."""

from __future__ import annotations

import difflib
import inspect
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.markup import escape

from mnemoscope._store.errors import UsageError
from mnemoscope.reports import progress_bar as bars
from mnemoscope.reports.tables import Block, Cell, Cells, Frame, ReportTable, TableColumn
from mnemoscope.text.display import as_json, one_line, visible
from mnemoscope.types import Scalar

if TYPE_CHECKING:
    from mnemoscope.api import ProgressUpdate

out = Console()
err = Console(stderr=True)
progress_bar = partial(bars.progress_bar, console=err)
_EVERY = 30.0
"""Seconds between two progress lines if stderr is not a terminal."""
_COLOURS = {"note: ": "[yellow]note:[/] ", "error: ": "[bold red]error:[/] "}


def say(console: Console, text: str, *, before: str = "", lines: bool = False) -> None:
    """Print a line without markup and without wrapping, so that long paths can be copied.

    Line breaks become spaces, since errors repeat texts of systems; `lines` keeps them.
    """
    safe = visible(text) if lines else one_line(text)
    console.print(before + escape(safe), soft_wrap=True, highlight=False, emoji=False)


def tell(console: Console, text: str, *, before: str = "") -> None:
    """Print prose without markup; a terminal gets it broken between words."""
    safe = escape(one_line(text))
    wrap = not console.is_terminal
    console.print(before + safe, soft_wrap=wrap, highlight=False, emoji=False)


def print_json(content: Any) -> None:
    """Print JSON to stdout."""
    print(as_json(msgspec.json.format(msgspec.json.encode(content), indent=2).decode()))


def print_table(
    columns: Sequence[TableColumn | str],
    rows: Iterable[Cells],
    *,
    title: str = "",
    frame: Frame = "plain",
    last_apart: bool = False,
) -> None:
    """Print a table to stdout."""
    from mnemoscope.reports.render_terminal import table

    own = [TableColumn(one) if isinstance(one, str) else one for one in columns]
    out.print(table(ReportTable(own, list(rows), title, frame, last_apart)))


def write_markdown(path: Path, blocks: Iterable[Block]) -> None:
    """Write blocks to the file that --markdown names."""
    from mnemoscope.reports.render_markdown import render

    try:
        path.write_text(f"{render(blocks)}\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--markdown {path}: {error.strerror}") from error


def name_cell(name: str) -> Cell:
    """The first cell of a listed item."""
    return Cell(name, "bold cyan")


def pass_cell(passed: bool) -> Cell:
    """The outcome of a check."""
    return Cell("pass", "green") if passed else Cell("FAIL", "bold red")


def show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning of Python as a note, except for false alarms of numpy's matrix products.

    Their kernels read beyond the ends of small arrays and discard what they find there, but the
    processor has noted invalid values by then. Vectors that are not finite are refused elsewhere.
    """
    if not str(message).endswith("encountered in matmul"):
        say(err, str(message), before=_COLOURS["note: "])


class LogLines(logging.Handler):
    """Prints log messages of the library to stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        prefix = next((one for one in _COLOURS if text.startswith(one)), "")
        say(err, text.removeprefix(prefix), before=_COLOURS.get(prefix, ""))


@contextmanager
def watched() -> Iterator[Callable[[ProgressUpdate], None]]:
    """Show progress as a bar, or as a line every 30 seconds; explain how to continue a run."""
    printed = time.monotonic()
    with progress_bar("", None) if err.is_terminal else nullcontext() as bar:

        def update(at: ProgressUpdate) -> None:
            nonlocal printed
            if bar is not None:
                bars.advance(bar, at)
            elif time.monotonic() - printed > _EVERY:
                printed = time.monotonic()
                say(err, bars.progress_line(at))

        try:
            yield update
        except KeyboardInterrupt:
            say(err, "\nall recorded results are kept; repeat the command to continue", lines=True)
            raise


def parse_options(
    options: Mapping[str, str],
    command: Callable[..., Any],
    *also: Callable[..., Any],
    known: Collection[str] = (),
) -> dict[str, Scalar]:
    """The dataset's options: flags that neither the command nor its dataclasses `also` have.

    A flag that resembles one of the command is a typing error and is reported here. With the names
    of the dataset's options in `known`, also a flag that resembles one of the command only a little
    and none of the dataset.
    """
    flags = [name for one in (command, *also) for name in inspect.signature(one).parameters]
    for key in options:
        name = key.replace("-", "_")
        is_own = not known or difflib.get_close_matches(name, known, n=1)
        if near := difflib.get_close_matches(name, flags, n=1, cutoff=0.85 if is_own else 0.6):
            flag = near[0].replace("_", "-")
            raise UsageError(f"unknown option --{key}: did you mean --{flag}?")
    return {key.replace("-", "_"): value for key, value in options.items()}


def print_problems(spec: str, problems: list[str]) -> int:
    """Print the problems that a check found, and return the exit code."""
    for problem in problems:
        say(err, problem, before="[bold red]problem:[/] ")
    if not problems:
        say(out, f"{spec}: no problems found")
    return int(bool(problems))
