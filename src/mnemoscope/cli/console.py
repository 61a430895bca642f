"""Where output goes: results to stdout, talk and progress to stderr."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from mnemoscope._store.errors import UsageError
from mnemoscope.types import Scalar

out = Console()
err = Console(stderr=True)


def say(console: Console, text: str, *, before: str = "") -> None:
    """A line for people, as it is: brackets in it are no markup, long paths stay in one piece."""
    console.print(before + escape(text), soft_wrap=True, highlight=False, emoji=False)


def print_json(content: Any) -> None:
    """Machine output: nothing but JSON on stdout."""
    print(msgspec.json.format(msgspec.json.encode(content), indent=2).decode())


@contextmanager
def progress_bar(label: str, total: float | None) -> Iterator[Progress]:
    """A bar on stderr with one task; drawn only when it is told something, with no thread."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=err,
        auto_refresh=False,
        transient=True,
        disable=not err.is_terminal,
    ) as bar:
        bar.add_task(label, total=total)
        yield bar


def parse_options(options: dict[str, str], command: Callable[..., Any]) -> dict[str, Scalar]:
    """The dataset's options: flags that the command itself does not have, `--twins expand`.

    One that is nearly a flag of the command is a slip, and no dataset is to be blamed for it.
    """
    flags = inspect.signature(command).parameters
    for key in options:
        if near := difflib.get_close_matches(key.replace("-", "_"), flags, n=1, cutoff=0.85):
            flag = near[0].replace("_", "-")
            raise UsageError(f"there is no option --{key}: did you mean --{flag}?")
    return {key.replace("-", "_"): value for key, value in options.items()}
