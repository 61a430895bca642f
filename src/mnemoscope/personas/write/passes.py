"""The writing passes: which files each asks for, and which are missing at the end.

Each function returns a `WritingPass` that the caller can run, estimate or preview.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Literal

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope.personas.write import conversations as talks
from mnemoscope.personas.write import persona_writer, question_windows
from mnemoscope.personas.write import tool_calls as calls
from mnemoscope.personas.write.daily_log_writer import gaps, refuse_simulated, write_days
from mnemoscope.personas.write.from_ledger import HistoryRewriter
from mnemoscope.personas.write.llm_writer import LlmWriter, PromptModel, account_of
from mnemoscope.personas.write.persona_files import PersonaFiles, open_persona_files
from mnemoscope.personas.write.question_store import QuestionStore, WindowRecord
from mnemoscope.personas.write.writing_options import WritingOptions
from mnemoscope.personas.write.writing_pass import (
    ModelTask,
    PassOutcome,
    ShowLine,
    WritingPass,
    open_writer,
    silent,
)

QuestionMode = Literal["standard", "boundary"]


@dataclass(frozen=True)
class PersonaCreation(ModelTask):
    """Lets a model invent a persona and its arcs."""

    options: WritingOptions
    prompt: str
    """A description of the persona, in free text."""
    days: int
    epoch: date
    overwrite: bool = False

    def __post_init__(self) -> None:
        if not self.prompt.strip():
            raise UsageError("--prompt is empty: describe the persona")
        persona_writer.check(self.options.persona, self.days, self.epoch, overwrite=self.overwrite)

    def run(self, progress: ShowLine = silent, warn: ShowLine = silent) -> PassOutcome:
        folder = self.options.persona
        with open_writer(self.options, "create", fresh=self.overwrite, warn=warn) as writer:
            files = self._create(writer, folder, overwrite=self.overwrite)
        arcs = f"{len(files.arcs.arcs)} arcs over {self.days:,} days"
        return PassOutcome(f"{folder}: {files.persona.name}, {files.persona.role}; {arcs}")

    def _rehearse(self, model: PromptModel, folder: Path) -> None:
        # The typical arcs are those of a short history: it does not matter if they break rules.
        with account_of(folder) as account, suppress(MnemoscopeError):
            self._create(LlmWriter(model, account, "create"), folder)

    def _create(self, writer: LlmWriter, folder: Path, *, overwrite: bool = False) -> PersonaFiles:
        return persona_writer.create(
            writer, self.prompt, folder, days=self.days, epoch=self.epoch, overwrite=overwrite
        )


def daily_log_pass(
    options: WritingOptions, *, missing: bool = False, overwrite: bool = False
) -> WritingPass:
    """Pass 1: the daily logs. `missing` also adds missing sessions to existing days."""
    refuse_simulated(open_persona_files(options.persona, options.arcs))

    def work(files: PersonaFiles, writer: LlmWriter, progress: ShowLine) -> PassOutcome:
        days = options.days(files.days)
        written = write_days(
            files, writer, days, missing=missing, overwrite=overwrite, progress=progress
        )
        return PassOutcome(
            f"{files.beside('memories')}: {written:,} days written",
            [str(gap) for gap in gaps(files, days)],
            "run the same command with --missing in place of --overwrite"
            if overwrite
            else "run the same command with --missing",
        )

    return WritingPass("generate", options, work, fresh=overwrite)


def rewriting_pass(options: WritingOptions, out: Path, *, overwrite: bool = False) -> WritingPass:
    """Pass 1 of a simulated history: a model rewrites its logs as prose in a new folder."""
    source = open_persona_files(options.persona, options.arcs)
    rewriter = HistoryRewriter(source, out)
    days = rewriter.days(options.days(source.days))

    def work(files: PersonaFiles, writer: LlmWriter, progress: ShowLine) -> PassOutcome:
        made, missing = _write_days(
            files,
            days,
            files.log,
            lambda asked: rewriter.write(files, writer, asked, anew=overwrite),
            progress,
            overwrite=overwrite,
        )
        return PassOutcome(f"{files.beside('memories')}: {made:,} days rewritten", missing)

    there = replace(options, persona=out, arcs=source.arcs_file.name)
    return WritingPass("from-ledger", there, work, fresh=overwrite, prepare=rewriter.open)


def conversation_pass(
    options: WritingOptions, *, format: talks.Format = "markdown", overwrite: bool = False
) -> WritingPass:
    """Pass 2: for each daily log the conversation that it could have come from."""

    def work(files: PersonaFiles, writer: LlmWriter, progress: ShowLine) -> PassOutcome:
        made, missing = _write_days(
            files,
            talks.open_days(files, files.written_days(options.days(files.days))),
            lambda day: talks.conversation_file(files, day, format),
            lambda asked: talks.write_conversations(files, writer, asked, format),
            progress,
            overwrite=overwrite,
            what="conversation of ",
        )
        folder = talks.conversation_file(files, 1, format).parent
        return PassOutcome(f"{folder}: {made:,} conversations written", missing)

    return WritingPass("conversations", options, work, fresh=overwrite)


def tool_call_pass(options: WritingOptions, *, overwrite: bool = False) -> WritingPass:
    """Pass 3: for each daily log the tool calls that would have saved it."""

    def work(files: PersonaFiles, writer: LlmWriter, progress: ShowLine) -> PassOutcome:
        made, missing = _write_days(
            files,
            files.written_days(options.days(files.days)),
            lambda day: calls.tool_file(files, day),
            lambda asked: calls.write_tool_calls(files, writer, asked),
            progress,
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
    progress: ShowLine,
    *,
    overwrite: bool,
    what: str = "",
) -> tuple[int, list[str]]:
    """Write one file for each of these days; the number written, and which are missing."""
    have = {day for day in days if file_of(day).exists()}
    asked = [day for day in days if overwrite or day not in have]
    made: set[int] = set()
    for day in write(asked):
        made.add(day)
        have.add(day)
        progress(f"Generated {what}day {day}/{files.days} ({len(have)} unique)")
    the = "the " if what else ""
    return len(made), [f"{the}{what}day {day}" for day in asked if day not in made]


def question_pass(
    options: WritingOptions,
    *,
    mode: QuestionMode = "standard",
    interval: int | None = None,
    pairs: int | None = None,
) -> WritingPass:
    """Questions with answers for each window, or about the secrets of isolated sessions."""
    usual = (
        (question_windows.INTERVAL, question_windows.PAIRS)
        if mode == "standard"
        else (question_windows.BOUNDARY_INTERVAL, question_windows.BOUNDARY_PAIRS)
    )
    step = usual[0] if interval is None else interval
    most = usual[1] if pairs is None else pairs
    if most < 1:
        raise UsageError(f"--pairs {most}: give 1 or more")

    def standard(files: PersonaFiles, writer: LlmWriter, progress: ShowLine) -> PassOutcome:
        days = options.days(files.days)
        last = files.written_days(days)[-1]
        if question_windows.waits(files, days, step):
            progress(f"windows that end after day {last} are skipped until their days are written")
        store = QuestionStore(files)
        asked = question_windows.open_windows(files, days, step)
        keys = [question_windows.window_key(window) for window in asked]
        made = question_windows.write_questions(files, writer, store, asked, most)
        return _gather(files, store, keys, made, progress)

    def at_boundaries(files: PersonaFiles, writer: LlmWriter, progress: ShowLine) -> PassOutcome:
        days = options.days(files.days)
        files.written_days(days)
        store = QuestionStore(files)
        asked = question_windows.boundary_windows(files, days, step)
        if not asked:
            raise UsageError(
                f"{files.persona.id} has no secrets to ask about: no log of these days has an "
                "isolated session, or there is no open session to ask in"
            )
        made = question_windows.write_boundary_questions(files, writer, store, asked, most)
        return _gather(files, store, [one.key for one in asked], made, progress)

    if mode == "standard":
        return WritingPass("qa", options, standard)
    return WritingPass("qa-boundary", options, at_boundaries)


def _gather(
    files: PersonaFiles,
    store: QuestionStore,
    keys: list[str],
    windows: Iterable[WindowRecord],
    progress: ShowLine,
) -> PassOutcome:
    """Run the pass with progress lines; its outcome."""
    store.settle_all_but(keys)
    before, done = len(store), sum(map(store.is_settled, keys))
    for window in windows:
        done += 1
        progress(
            f"Generated questions on window {window.key} ({done}/{len(keys)}): "
            f"{len(window.kept)} kept, {window.losses.total()} dropped"
        )
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in store.dropped().most_common())
    made = f"{files.beside('qa') / 'questions.yaml'}: {len(store) - before:,} questions written"
    if reasons:
        made += f"; dropped in all windows: {reasons}"
    return PassOutcome(made, [f"window {key}" for key in keys if not store.is_done(key)])
