"""What the commands share that let a model write: their options, the desk, the money, the end.

A command says what its pass does with a home and a desk; `run_pass` opens both, counts or shows the
prompts instead where that was asked for, and tells at the end what is missing.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import err, out, say
from mnemoscope.types import Usage

if TYPE_CHECKING:
    from mnemoscope.models.chat import Prompt
    from mnemoscope.models.model import Model
    from mnemoscope.personas.write.llm_writer import Asks, LlmWriter
    from mnemoscope.personas.write.persona_files import PersonaFiles

SHOWN = 3
"""How many prompts a dry run shows."""
_NAMED = 12
"""How many missing things are named; of the others their number."""
_OPTIONS = re.compile(r"\?\w+=[^&?\s/]*(?:&\w+=[^&?\s/]*)*$")
# Neither what was paid or rejected before nor half-written files belong into an estimate.
_LEFT_OUT = shutil.ignore_patterns("account.jsonl", "rejected", ".*.draft", ".purse.lock")


@dataclass(frozen=True, kw_only=True)
class Writing:
    """The options of every pass.

    Parameters
    ----------
    persona
        The persona's folder: persona.yaml, an arcs file, and what is written beside them.
    model
        Who writes: `openai:gpt-4o-mini`, `anthropic:…`, `NAME@http://host/v1`, `claude`, `codex`.
    arcs
        Which arcs file, where the folder has several: arcs-180d.yaml.
    start
        The first day to be looked at.
    end
        The last one; else the last of the life.
    parallelism
        Requests in flight at once.
    timeout
        Seconds that one request may take; an agent's process group is killed then.
    max_cost
        What this folder may cost in US dollars, whatever was paid for it before included.
    estimate
        Ask nothing, and say how many tokens and dollars it would take.
    dry_run
        Ask nothing and write nothing; print the prompts that would be asked first.
    """

    persona: Path
    model: str
    arcs: str = ""
    start: int = 1
    end: int | None = None
    parallelism: int = 4
    timeout: float = 600.0
    max_cost: float | None = None
    estimate: bool = False
    dry_run: bool = False

    def days(self, home: PersonaFiles) -> range:
        """The days from --start to --end."""
        last = home.days if self.end is None else self.end
        if 1 <= last < self.start <= home.days:
            raise UsageError(
                f"--start {self.start} is after --end {last}; days of this life go from 1 to "
                f"{home.days}"
            )
        if not 1 <= self.start <= last <= home.days:
            raise UsageError(
                f"--start {self.start} --end {last}: days of this life go from 1 to {home.days}"
            )
        return range(self.start, last + 1)


WritingOptions = Annotated[Writing, Parameter(name="*")]
"""How a command takes them: `def command(*, writing: WritingOptions, …)`."""

Tell = Callable[[str], None]
"""A line of progress for people."""


class Outcome(NamedTuple):
    """What came of a pass."""

    made: str
    """For people: `57 days written`."""
    missing: Sequence[str] = ()
    """For people: `day 12, session principal`. Not empty: the command ends with exit code 1."""
    mend: str = "run the same command again"
    """What to do about what is missing."""


Work = Callable[["PersonaFiles", "LlmWriter", Tell], Outcome]


def run_pass(writing: Writing, name: str, work: Work, *, fresh: bool = False) -> int:
    """Let `work` write in the persona's folder; the exit code.

    `fresh` replies are neither taken from the cache nor kept: where something is to be written
    anew that is there already.
    """
    from mnemoscope.personas.write.persona_files import open_persona_files

    home = open_persona_files(writing.persona, writing.arcs)
    writing.days(home)
    if writing.dry_run:
        return show_prompts(writing.model, _rehearsal(writing, name, work))
    if writing.estimate:
        return tell_estimate(writing.model, _rehearsal(writing, name, work))
    with at_desk(writing, name, fresh=fresh) as desk:
        outcome = work(home, desk, lambda line: say(err, line))
    return tell_outcome(outcome)


@contextmanager
def at_desk(writing: Writing, name: str, *, fresh: bool = False) -> Iterator[LlmWriter]:
    """A desk that pays out of the folder's account, and a kind word where somebody interrupts."""
    from mnemoscope.personas.write.llm_writer import LlmWriter, account_of, ceiling, sweep
    from mnemoscope.runner.answer_setup import check_models

    check_models([writing.model], writing.max_cost)
    model = timed_model(writing.model, writing.timeout, cache=not fresh)
    sweep(writing.persona)
    with account_of(writing.persona) as account, ceiling(writing.max_cost, writing.persona):
        try:
            yield LlmWriter(model, account, name, parallelism=writing.parallelism, log=_complain)
        except KeyboardInterrupt:
            say(err, "\neverything written is kept; the same command goes on from here")
            raise


def timed_model(spec: str, seconds: float, *, cache: bool = True) -> Model:
    """The model with so much time for each request, where its kind keeps time and says no other."""
    from mnemoscope.models.model_loader import load_model

    if seconds <= 0:
        raise UsageError(f"--timeout {seconds:g}: a request needs more than 0 seconds")
    options = _OPTIONS.search(spec)
    if options is None or "timeout=" not in options[0]:
        try:
            mark = "?" if options is None else "&"
            return load_model(f"{spec}{mark}timeout={seconds:g}", cache=cache)
        except UsageError:
            pass  # an embedded model takes as long as it takes; what else is wrong is told below
    return load_model(spec, cache=cache)


def tell_outcome(outcome: Outcome) -> int:
    """Print what was made and what is missing; 1 where something is."""
    say(out, outcome.made)
    if not outcome.missing:
        return 0
    say(err, f"missing: {len(outcome.missing):,}; {outcome.mend}", before="[yellow]note:[/] ")
    for one in outcome.missing[:_NAMED]:
        say(err, f"  {one}")
    if len(outcome.missing) > _NAMED:
        say(err, f"  and {len(outcome.missing) - _NAMED:,} more")
    return 1


def _complain(line: str) -> None:
    say(err, line, before="[yellow]warning:[/] ")


class _Enough(Exception):
    """A dry run has shown what it shows."""


@dataclass
class _Shows:
    """Stands in for a model: prints prompts, and replies as is typical, until it is enough."""

    name: str
    shown: int = 0

    def ask(self, prompt: Prompt) -> str:
        if prompt.attempt > 1 or self.shown == SHOWN:
            raise _Enough
        self.shown += 1
        say(out, f"=== prompt {self.shown}, system\n{prompt.system}\n")
        say(out, f"=== prompt {self.shown}, user\n{prompt.user}\n")
        return prompt.typical


class _Counts:
    """A model that only estimates; what would be sent back with reasons is counted once."""

    def __init__(self, model: Model) -> None:
        self.name = model.name
        self.model = model
        self._uses: list[Usage] = []

    @property
    def used(self) -> Usage:
        from mnemoscope.models.chat import total

        return total(self._uses) or Usage()

    def ask(self, prompt: Prompt) -> str:
        from mnemoscope.models.chat import ModelFailure, metered

        if prompt.attempt > 1:
            raise ModelFailure("its typical reply was of no use")
        with metered() as uses:
            reply = self.model.ask(prompt)
        self._uses.extend(uses)
        return reply


Rehearsed = Callable[["Asks", Path], None]
"""What would be done, with a stand-in for the model and an empty folder for all that it writes."""


def show_prompts(spec: str, rehearsed: Rehearsed) -> int:
    """Print the prompts that would be asked first."""
    model = _Shows(spec)
    with suppress(_Enough), TemporaryDirectory(prefix="mnemoscope-dry-run-") as folder:
        rehearsed(model, Path(folder))
    say(out, f"{model.shown} prompts shown; no model was asked, nothing was written")
    return 0


def tell_estimate(spec: str, rehearsed: Rehearsed) -> int:
    """Print how many tokens and dollars it would take."""
    from mnemoscope.models.model_loader import load_model

    model = _Counts(load_model(f"estimate:{spec}"))
    with TemporaryDirectory(prefix="mnemoscope-estimate-") as folder:
        rehearsed(model, Path(folder))
    use = model.used
    say(
        out,
        f"{use.requests:,} requests, {use.input_tokens:,} input tokens, {use.output_tokens:,} "
        f"output tokens, about ${use.cost:,.4f}; no model was asked, and neither retries nor what "
        "is in the cache is taken into account",
    )
    if model.model.price is None:
        from mnemoscope.runner.answer_setup import priced

        costs = f"what {spec} costs is not known and counts as 0; say it: "
        say(out, f"{costs}'{priced(spec)}'", before="[yellow]note:[/] ")
    return 0


def _rehearsal(writing: Writing, name: str, work: Work) -> Rehearsed:
    """The pass on a copy of the persona's folder."""
    from mnemoscope.personas.write.llm_writer import LlmWriter, account_of
    from mnemoscope.personas.write.persona_files import open_persona_files

    def rehearsed(model: Asks, folder: Path) -> None:
        copy = folder / writing.persona.resolve().name
        shutil.copytree(writing.persona, copy, ignore=_LEFT_OUT)
        with account_of(copy) as account:
            work(
                open_persona_files(copy, writing.arcs),
                LlmWriter(model, account, name),
                lambda line: None,
            )

    return rehearsed
