"""What all writing passes share: the model and what it may cost, estimates and dry runs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from mnemoscope._store.errors import UsageError
from mnemoscope.models.chat import ModelFailure, Prompt, metered, total
from mnemoscope.models.model import Model
from mnemoscope.models.model_loader import check_models, load_model, priced
from mnemoscope.personas.write.llm_writer import (
    LlmWriter,
    PromptModel,
    account_of,
    cost_limit,
    remove_drafts,
)
from mnemoscope.personas.write.persona_files import PersonaFiles, open_persona_files
from mnemoscope.personas.write.writing_options import WritingOptions
from mnemoscope.types import Usage

PREVIEWED = 3
"""How many prompts a dry run shows."""
_MODEL_OPTIONS = re.compile(r"\?\w+=[^&?\s/]*(?:&\w+=[^&?\s/]*)*$")
# Neither what was paid or rejected before nor half-written files belong into an estimate.
_NOT_COPIED = shutil.ignore_patterns("account.jsonl", "rejected", ".*.draft", ".purse.lock")

Listener = Callable[[str], None]
"""Is told a line for people."""


def silent(line: str) -> None:
    """The listener that ignores what it is told."""


class PassOutcome(NamedTuple):
    """What came of a pass."""

    made: str
    """For people: `57 days written`."""
    missing: Sequence[str] = ()
    """For people: `day 12, session principal`."""
    mend: str = "run the same command again"
    """What to do about what is missing."""


class WritingEstimate(NamedTuple):
    """What a pass would ask of its model; neither retries nor cached replies are counted."""

    usage: Usage
    unpriced: str
    """How to write the model with its price, where that is unknown and counts as 0; else empty."""


Work = Callable[[PersonaFiles, LlmWriter, Listener], PassOutcome]
Rehearsal = Callable[[PromptModel, Path], None]
"""The same work with a stand-in for the model, and an empty folder for all that it writes."""


@dataclass(frozen=True)
class WritingPass:
    """A pass that is ready to run, to be estimated or to be previewed."""

    name: str
    """As the account of the folder calls it."""
    options: WritingOptions
    work: Work
    fresh: bool = False
    """Replies are neither taken from the cache nor kept: what is there is written anew."""
    prepare: Callable[[Path], object] | None = None
    """Puts into a new folder what the pass needs before it begins."""

    def run(self, tell: Listener = silent, warn: Listener = silent) -> PassOutcome:
        """Let the model write in the persona's folder."""
        files = self._open(self.options.persona)
        with open_writer(self.options, self.name, fresh=self.fresh, warn=warn) as writer:
            return self.work(files, writer, tell)

    def estimate(self) -> WritingEstimate:
        return estimate(self.options.model, self._rehearse)

    def preview(self) -> list[Prompt]:
        return preview(self.options.model, self._rehearse)

    def _rehearse(self, model: PromptModel, folder: Path) -> None:
        """The pass on a copy of the persona's folder."""
        persona = self.options.persona
        if self.prepare is None:
            self._open(persona)  # an error names the folder itself, not its copy
        copy = folder / persona.resolve().name
        if persona.is_dir():
            shutil.copytree(persona, copy, ignore=_NOT_COPIED)
        files = self._open(copy)
        with account_of(copy) as account:
            self.work(files, LlmWriter(model, account, self.name), silent)

    def _open(self, folder: Path) -> PersonaFiles:
        if self.prepare is not None:
            self.prepare(folder)
        files = open_persona_files(folder, self.options.arcs)
        self.options.days(files.days)
        return files


@contextmanager
def open_writer(
    options: WritingOptions, name: str, *, fresh: bool = False, warn: Listener = silent
) -> Iterator[LlmWriter]:
    """The model as a writer that pays out of the folder's account, within its limit."""
    check_models([options.model], options.max_cost)
    model = timed_model(options.model, options.timeout, cache=not fresh)
    remove_drafts(options.persona)
    with account_of(options.persona) as account, cost_limit(options.max_cost, options.persona):
        yield LlmWriter(model, account, name, parallelism=options.parallelism, log=warn)


def timed_model(spec: str, seconds: float, *, cache: bool = True) -> Model:
    """The model with so much time for each request, where its kind keeps time and says no other."""
    if seconds <= 0:
        raise UsageError(f"--timeout {seconds:g}: a request needs more than 0 seconds")
    options = _MODEL_OPTIONS.search(spec)
    if options is None or "timeout=" not in options[0]:
        try:
            mark = "?" if options is None else "&"
            return load_model(f"{spec}{mark}timeout={seconds:g}", cache=cache)
        except UsageError:
            pass  # an embedded model takes as long as it takes; what else is wrong is told below
    return load_model(spec, cache=cache)


class _Enough(Exception):
    """A dry run has seen what it shows."""


class _PreviewModel:
    """Keeps the first prompts, and replies as is typical."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.prompts: list[Prompt] = []

    def ask(self, prompt: Prompt) -> str:
        if prompt.attempt > 1 or len(self.prompts) == PREVIEWED:
            raise _Enough
        self.prompts.append(prompt)
        return prompt.typical


class _CountingModel:
    """A model that only estimates; what would be sent back with reasons is counted once."""

    def __init__(self, model: Model) -> None:
        self.name = model.name
        self.model = model
        self.uses: list[Usage] = []

    def ask(self, prompt: Prompt) -> str:
        if prompt.attempt > 1:
            raise ModelFailure("its typical reply was of no use")
        with metered() as uses:
            reply = self.model.ask(prompt)
        self.uses.extend(uses)
        return reply


def preview(model: str, rehearse: Rehearsal) -> list[Prompt]:
    """The prompts that would be asked first; no model is asked, nothing is written."""
    stand_in = _PreviewModel(model)
    with suppress(_Enough), TemporaryDirectory(prefix="mnemoscope-dry-run-") as folder:
        rehearse(stand_in, Path(folder))
    return stand_in.prompts


def estimate(model: str, rehearse: Rehearsal) -> WritingEstimate:
    """How many tokens and dollars it would take; no model is asked, nothing is written."""
    stand_in = _CountingModel(load_model(f"estimate:{model}"))
    with TemporaryDirectory(prefix="mnemoscope-estimate-") as folder:
        rehearse(stand_in, Path(folder))
    unpriced = priced(model) if stand_in.model.price is None else ""
    return WritingEstimate(total(stand_in.uses) or Usage(), unpriced)
