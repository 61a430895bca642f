"""The writing passes: what each asks for, what is already there, and what is missing at the end.

Each function returns a `WritingPass`, whose `run`, `estimate` and `preview` a caller chooses from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Literal

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope.models.chat import Prompt
from mnemoscope.personas.write import conversations as talks
from mnemoscope.personas.write import persona_writer, question_windows
from mnemoscope.personas.write import tool_calls as calls
from mnemoscope.personas.write.daily_log_writer import gaps, refuse_simulated, write_days
from mnemoscope.personas.write.from_ledger import Retelling
from mnemoscope.personas.write.llm_writer import LlmWriter, PromptModel, account_of
from mnemoscope.personas.write.persona_files import PersonaFiles, open_persona_files
from mnemoscope.personas.write.question_book import QuestionBook, WindowRecord
from mnemoscope.personas.write.writing_options import WritingOptions
from mnemoscope.personas.write.writing_pass import (
    Listener,
    PassOutcome,
    WritingEstimate,
    WritingPass,
    estimate,
    open_writer,
    preview,
    silent,
)

QuestionMode = Literal["standard", "boundary"]


@dataclass(frozen=True)
class PersonaCreation:
    """A persona and its arcs, to be invented by a model: run it, estimate it or preview it."""

    options: WritingOptions
    prompt: str
    """What persona is wanted, in one's own words."""
    days: int
    epoch: date
    overwrite: bool = False

    def __post_init__(self) -> None:
        if not self.prompt.strip():
            raise UsageError("--prompt is empty: say whom you wish for")
        persona_writer.check(self.options.persona, self.days, self.epoch, overwrite=self.overwrite)

    def run(self, tell: Listener = silent, warn: Listener = silent) -> PassOutcome:
        folder = self.options.persona
        with open_writer(self.options, "create", fresh=self.overwrite, warn=warn) as writer:
            files = self._create(writer, folder, overwrite=self.overwrite)
        arcs = f"{len(files.arcs.arcs)} arcs over {self.days:,} days"
        return PassOutcome(f"{folder}: {files.persona.name}, {files.persona.role}; {arcs}")

    def estimate(self) -> WritingEstimate:
        return estimate(self.options.model, self._rehearse)

    def preview(self) -> list[Prompt]:
        return preview(self.options.model, self._rehearse)

    def _rehearse(self, model: PromptModel, folder: Path) -> None:
        # The typical arcs are those of a short history: that they are refused does not matter.
        with account_of(folder) as account, suppress(MnemoscopeError):
            self._create(LlmWriter(model, account, "create"), folder)

    def _create(self, writer: LlmWriter, folder: Path, *, overwrite: bool = False) -> PersonaFiles:
        return persona_writer.create(
            writer, self.prompt, folder, days=self.days, epoch=self.epoch, overwrite=overwrite
        )


def daily_log_pass(
    options: WritingOptions, *, missing: bool = False, overwrite: bool = False
) -> WritingPass:
    """Pass 1: the daily logs. `missing` also completes the sessions of days that are there."""
    if missing and overwrite:
        raise UsageError("--missing fills gaps and --overwrite leaves none: choose one")
    refuse_simulated(open_persona_files(options.persona, options.arcs))

    def work(files: PersonaFiles, writer: LlmWriter, tell: Listener) -> PassOutcome:
        days = options.days(files.days)
        written = write_days(files, writer, days, missing=missing, overwrite=overwrite, tell=tell)
        return PassOutcome(
            f"{files.beside('memories')}: {written:,} days written",
            [str(gap) for gap in gaps(files, days)],
            "run the same command with --missing in place of --overwrite"
            if overwrite
            else "run the same command with --missing",
        )

    return WritingPass("generate", options, work, fresh=overwrite)


def retelling_pass(options: WritingOptions, out: Path, *, overwrite: bool = False) -> WritingPass:
    """Pass 1 of a simulated history: a model retells it in natural prose, into a new folder."""
    source = open_persona_files(options.persona, options.arcs)
    retelling = Retelling(source, out)
    days = retelling.days(options.days(source.days))

    def work(files: PersonaFiles, writer: LlmWriter, tell: Listener) -> PassOutcome:
        made, missing = _write_days(
            files,
            days,
            files.log,
            lambda asked: retelling.write(files, writer, asked, anew=overwrite),
            tell,
            overwrite=overwrite,
        )
        return PassOutcome(f"{files.beside('memories')}: {made:,} days retold", missing)

    there = replace(options, persona=out, arcs=source.arcs_file.name)
    return WritingPass("from-ledger", there, work, fresh=overwrite, prepare=retelling.open)


def conversation_pass(
    options: WritingOptions, *, format: talks.Format = "markdown", overwrite: bool = False
) -> WritingPass:
    """Pass 2: for each daily log the conversation that it could have come from."""

    def work(files: PersonaFiles, writer: LlmWriter, tell: Listener) -> PassOutcome:
        made, missing = _write_days(
            files,
            talks.told_days(files, files.written_days(options.days(files.days))),
            lambda day: talks.conversation_file(files, day, format),
            lambda asked: talks.write_conversations(files, writer, asked, format),
            tell,
            overwrite=overwrite,
            what="conversation of ",
        )
        folder = talks.conversation_file(files, 1, format).parent
        return PassOutcome(f"{folder}: {made:,} conversations written", missing)

    return WritingPass("conversations", options, work, fresh=overwrite)


def tool_call_pass(options: WritingOptions, *, overwrite: bool = False) -> WritingPass:
    """Pass 3: for each daily log the calls by which an agent would have saved it."""

    def work(files: PersonaFiles, writer: LlmWriter, tell: Listener) -> PassOutcome:
        made, missing = _write_days(
            files,
            files.written_days(options.days(files.days)),
            lambda day: calls.tool_file(files, day),
            lambda asked: calls.write_tool_calls(files, writer, asked),
            tell,
            overwrite=overwrite,
            what="tool calls of ",
        )
        return PassOutcome(f"{calls.tool_file(files, 1).parent}: {made:,} days written", missing)

    return WritingPass("tool-calls", options, work, fresh=overwrite)


def _write_days(
    files: PersonaFiles,
    days: Sequence[int],
    file_of: Callable[[int], Path],
    write: Callable[[Sequence[int]], Iterator[int]],
    tell: Listener,
    *,
    overwrite: bool,
    what: str = "",
) -> tuple[int, list[str]]:
    """Write one file for each of these days: how many were made, and which are missing."""
    have = {day for day in days if file_of(day).exists()}
    asked = [day for day in days if overwrite or day not in have]
    made: set[int] = set()
    for day in write(asked):
        made.add(day)
        have.add(day)
        tell(f"Generated {what}day {day}/{files.days} ({len(have)} unique)")
    the = "the " if what else ""
    return len(made), [f"{the}{what}day {day}" for day in asked if day not in made]


def question_pass(
    options: WritingOptions,
    *,
    mode: QuestionMode = "standard",
    interval: int | None = None,
    pairs: int | None = None,
) -> WritingPass:
    """Questions with answers, window by window, or about what isolated sessions keep."""
    usual = (
        (question_windows.INTERVAL, question_windows.PAIRS)
        if mode == "standard"
        else (question_windows.BOUNDARY_INTERVAL, question_windows.BOUNDARY_PAIRS)
    )
    step = usual[0] if interval is None else interval
    most = usual[1] if pairs is None else pairs
    if most < 1:
        raise UsageError(f"--pairs {most}: ask for at least one")

    def standard(files: PersonaFiles, writer: LlmWriter, tell: Listener) -> PassOutcome:
        days = options.days(files.days)
        last = files.written_days(days)[-1]
        if question_windows.waits(files, days, step):
            tell(f"windows that end after day {last} wait until their days are written")
        book = QuestionBook(files)
        asked = question_windows.open_windows(files, days, step)
        keys = [question_windows.window_key(window) for window in asked]
        made = question_windows.write_questions(files, writer, book, asked, most)
        return _gather(files, book, keys, made, tell)

    def at_boundaries(files: PersonaFiles, writer: LlmWriter, tell: Listener) -> PassOutcome:
        days = options.days(files.days)
        files.written_days(days)
        book = QuestionBook(files)
        asked = question_windows.boundary_windows(files, days, step)
        if not asked:
            raise UsageError(
                f"{files.persona.id} has nothing to keep: no log of these days has an isolated "
                "session, or there is no open session to ask in"
            )
        made = question_windows.write_boundary_questions(files, writer, book, asked, most)
        return _gather(files, book, [one.key for one in asked], made, tell)

    if mode == "standard":
        return WritingPass("qa", options, standard)
    return WritingPass("qa-boundary", options, at_boundaries)


def _gather(
    files: PersonaFiles,
    book: QuestionBook,
    keys: list[str],
    made: Iterable[WindowRecord],
    tell: Listener,
) -> PassOutcome:
    """Let the pass run, and tell how it goes and what came of it."""
    book.settle_all_but(keys)
    before, done = len(book), sum(map(book.is_settled, keys))
    for window in made:
        done += 1
        tell(
            f"Generated questions on window {window.key} ({done}/{len(keys)}): "
            f"{len(window.kept)} kept, {window.lost.total()} dropped"
        )
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in book.dropped().most_common())
    told = f"{files.beside('qa') / 'questions.yaml'}: {len(book) - before:,} questions written"
    if reasons:
        told += f"; dropped in all windows: {reasons}"
    return PassOutcome(told, [f"window {key}" for key in keys if not book.is_done(key)])
