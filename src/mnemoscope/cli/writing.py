"""The common part of the commands that let a model write: options, and running a pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path  # noqa: F401 - cyclopts reads inherited type hints here
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from mnemoscope.cli.console import err, out, say
from mnemoscope.personas.write.writing_options import WritingOptions

if TYPE_CHECKING:
    from mnemoscope.personas.write.writing_pass import ModelTask

_NAMED = 12
"""Most missing files that are listed."""


@dataclass(frozen=True, kw_only=True)
class Writing(WritingOptions):
    """The options of every pass.

    Parameters
    ----------
    estimate
        Print how many tokens and dollars it needs; the model is not asked.
    dry_run
        Print the first prompts; the model is not asked and no file is written.
    """

    estimate: bool = False
    dry_run: bool = False


WritingFlags = Annotated[Writing, Parameter(name="*")]
"""The options as a parameter: `def command(*, writing: WritingFlags, …)`."""


def show_pass(task: ModelTask, *, estimate: bool = False, dry_run: bool = False) -> int:
    """Run the task, or print its prompts or its estimate; returns the exit code."""
    if dry_run:
        prompts = task.preview()
        for number, prompt in enumerate(prompts, 1):
            say(out, f"=== prompt {number}, system\n{prompt.system}\n", lines=True)
            say(out, f"=== prompt {number}, user\n{prompt.user}\n", lines=True)
        say(out, f"{len(prompts)} prompts shown; no model was asked, nothing was written")
        return 0
    if estimate:
        return _show_estimate(task)
    with interruptible():
        outcome = task.run(progress, warn)
    say(out, outcome.made)
    if not outcome.missing:
        return 0
    say(err, f"missing: {len(outcome.missing):,}; {outcome.remedy}", before="[yellow]note:[/] ")
    for one in outcome.missing[:_NAMED]:
        say(err, f"  {one}")
    if len(outcome.missing) > _NAMED:
        say(err, f"  and {len(outcome.missing) - _NAMED:,} more")
    return 1


def _show_estimate(task: ModelTask) -> int:
    use, unpriced = task.estimate()
    say(
        out,
        f"{use.requests:,} requests, {use.input_tokens:,} input tokens, {use.output_tokens:,} "
        f"output tokens, about ${use.cost:,.4f}; no model was asked, and neither retries nor what "
        "is in the cache is taken into account",
    )
    if unpriced:
        costs = f"what {task.options.model} costs is not known and counts as 0; say it: "
        say(out, f"{costs}'{unpriced}'", before="[yellow]note:[/] ")
    return 0


def progress(line: str) -> None:
    say(err, line)


def warn(line: str) -> None:
    say(err, line, before="[yellow]warning:[/] ")


@contextmanager
def interruptible() -> Iterator[None]:
    """Print on Ctrl-C that the pass can be resumed."""
    try:
        yield
    except KeyboardInterrupt:
        say(err, "\nfinished files are kept; run the same command to continue", lines=True)
        raise
