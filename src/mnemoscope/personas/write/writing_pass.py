"""The common part of the writing passes: the model, its cost limit, estimates and dry runs."""

from __future__ import annotations

import re
import shutil
from abc import ABC, abstractmethod
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
# An estimate needs neither earlier costs and rejected replies nor incomplete files.
_NOT_COPIED = shutil.ignore_patterns("account.jsonl", "rejected", ".*.draft", ".purse.lock")

ShowLine = Callable[[str], None]
"""Shows a line of text to the user."""


def silent(line: str) -> None:
    """Show nothing."""


class PassOutcome(NamedTuple):
    """The result of a pass."""

    made: str
    """For the user: `57 days written`."""
    missing: Sequence[str] = ()
    """For the user: `day 12, session principal`."""
    remedy: str = "run the same command again"
    """How to get what is missing."""


class WritingEstimate(NamedTuple):
    """The usage that a pass would need, without retries, as if nothing were cached."""

    usage: Usage
    unpriced: str
    """The model with options for its price, if that is unknown and counts as 0; else empty."""


Work = Callable[[PersonaFiles, LlmWriter, ShowLine], PassOutcome]


class ModelTask(ABC):
    """Work for a model that can be run, estimated or previewed."""

    options: WritingOptions

    @abstractmethod
    def run(self, progress: ShowLine = silent, warn: ShowLine = silent) -> PassOutcome:
        """Let the model write in the persona's folder."""

    @abstractmethod
    def _rehearse(self, model: PromptModel, folder: Path) -> None:
        """Do the work with a stand-in for the model; all files go into the empty folder."""

    def preview(self) -> list[Prompt]:
        """The first prompts; the model is not asked and no file is written."""
        stand_in = _PreviewModel(self.options.model)
        with suppress(_Enough), TemporaryDirectory(prefix="mnemoscope-dry-run-") as folder:
            self._rehearse(stand_in, Path(folder))
        return stand_in.prompts

    def estimate(self) -> WritingEstimate:
        """The tokens and dollars needed; the model is not asked and no file is written."""
        model = self.options.model
        stand_in = _CountingModel(load_model(f"estimate:{model}"))
        with TemporaryDirectory(prefix="mnemoscope-estimate-") as folder:
            self._rehearse(stand_in, Path(folder))
        unpriced = priced(model) if stand_in.model.price is None else ""
        return WritingEstimate(total(stand_in.uses) or Usage(), unpriced)


@dataclass(frozen=True)
class WritingPass(ModelTask):
    """A pass over a persona's folder."""

    name: str
    """Its name in account.jsonl."""
    options: WritingOptions
    work: Work
    fresh: bool = False
    """Replies are neither read from the cache nor written to it."""
    prepare: Callable[[Path], object] | None = None
    """Puts the files that the pass needs into a new folder."""

    def run(self, progress: ShowLine = silent, warn: ShowLine = silent) -> PassOutcome:
        files = self._open(self.options.persona)
        with open_writer(self.options, self.name, fresh=self.fresh, warn=warn) as writer:
            return self.work(files, writer, progress)

    def _rehearse(self, model: PromptModel, folder: Path) -> None:
        persona = self.options.persona
        if self.prepare is None:
            self._open(persona)  # so that an error names the folder, not its copy
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
    options: WritingOptions, name: str, *, fresh: bool = False, warn: ShowLine = silent
) -> Iterator[LlmWriter]:
    """A writer with the model, the folder's account and the cost limit."""
    check_models([options.model], options.max_cost)
    model = timed_model(options.model, options.timeout, cache=not fresh)
    remove_drafts(options.persona)
    with account_of(options.persona) as account, cost_limit(options.max_cost, options.persona):
        yield LlmWriter(model, account, name, parallelism=options.parallelism, log=warn)


def timed_model(spec: str, seconds: float, *, cache: bool = True) -> Model:
    """The model with a timeout for each request, if it takes one and its spec gives none."""
    if seconds <= 0:
        raise UsageError(f"--timeout {seconds:g}: give more than 0 seconds")
    options = _MODEL_OPTIONS.search(spec)
    if options is None or "timeout=" not in options[0]:
        try:
            mark = "?" if options is None else "&"
            return load_model(f"{spec}{mark}timeout={seconds:g}", cache=cache)
        except UsageError:
            pass  # embedded models take no timeout; the call below reports other errors
    return load_model(spec, cache=cache)


class _Enough(Exception):
    """A dry run has the prompts that it shows."""


class _PreviewModel:
    """Keeps the first prompts; its replies are the typical ones."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.prompts: list[Prompt] = []

    def ask(self, prompt: Prompt) -> str:
        if prompt.attempt > 1 or len(self.prompts) == PREVIEWED:
            raise _Enough
        self.prompts.append(prompt)
        return prompt.typical


class _CountingModel:
    """Counts the estimated usage; a retry is not counted."""

    def __init__(self, model: Model) -> None:
        self.name = model.name
        self.model = model
        self.uses: list[Usage] = []

    def ask(self, prompt: Prompt) -> str:
        if prompt.attempt > 1:
            raise ModelFailure("its typical reply was not usable")
        with metered() as uses:
            reply = self.model.ask(prompt)
        self.uses.extend(uses)
        return reply
