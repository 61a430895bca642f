"""`mnemoscope personas qa`: questions about a life, window by window, and about what it keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from mnemoscope._store.errors import UsageError
from mnemoscope.cli.writing import Outcome, Tell, WritingOptions, run_pass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mnemoscope.personas.write.llm_writer import LlmWriter
    from mnemoscope.personas.write.persona_files import PersonaFiles
    from mnemoscope.personas.write.question_book import QuestionBook, Window


def qa(
    *,
    writing: WritingOptions,
    mode: Literal["standard", "boundary"] = "standard",
    interval: int | None = None,
    pairs: int | None = None,
) -> int:
    """Let a model write questions with answers, categories and the days that hold the evidence.

    A window's questions rest on its days alone, and never on a later one. Pairs that break a rule
    are dropped and counted. Which windows are done stands in qa/windows.jsonl: the same command
    goes on with the others. For example:

        mnemoscope personas qa --persona lives/scientist --model claude

        mnemoscope personas qa --persona lives/scientist --model claude --mode boundary

    Parameters
    ----------
    mode
        standard: what can be recalled. boundary: what was said in an isolated session, asked where
        it may not be told.
    interval
        Days in a window: 7, and 30 for boundary.
    pairs
        Pairs asked for in a window: 12, and 2 for boundary.
    """
    from mnemoscope.personas.write import boundary_questions, question_windows
    from mnemoscope.personas.write.log_pages import written_days
    from mnemoscope.personas.write.question_book import QuestionBook

    usual = question_windows if mode == "standard" else boundary_questions
    step = usual.INTERVAL if interval is None else interval
    most = usual.PAIRS if pairs is None else pairs
    if most < 1:
        raise UsageError(f"--pairs {most}: ask for at least one")

    def standard(home: PersonaFiles, desk: LlmWriter, tell: Tell) -> Outcome:
        days = writing.days(home)
        last = written_days(home, days)[-1]
        if question_windows.waits(home, days, step):
            tell(f"windows that end after day {last} wait until their days are written")
        book = QuestionBook(home)
        asked = question_windows.open_windows(home, days, step)
        keys = [question_windows.window_key(window) for window in asked]
        made = question_windows.write_questions(home, desk, book, asked, most)
        return _told(home, book, keys, made, tell)

    def at_boundaries(home: PersonaFiles, desk: LlmWriter, tell: Tell) -> Outcome:
        days = writing.days(home)
        written_days(home, days)
        book = QuestionBook(home)
        asked = boundary_questions.stretches(home, days, step)
        if not asked:
            raise UsageError(
                f"{home.persona.id} has nothing to keep: no log of these days has an isolated "
                "session, or there is no open session to ask in"
            )
        made = boundary_questions.write_boundary_questions(home, desk, book, asked, most)
        return _told(home, book, [one.key for one in asked], made, tell)

    work = standard if mode == "standard" else at_boundaries
    return run_pass(writing, "qa" if mode == "standard" else "qa-boundary", work)


def _told(
    home: PersonaFiles, book: QuestionBook, keys: list[str], made: Iterable[Window], tell: Tell
) -> Outcome:
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
    told = f"{home.beside('qa') / 'questions.yaml'}: {len(book) - before:,} questions written"
    if reasons:
        told += f"; dropped in all windows: {reasons}"
    return Outcome(told, [f"window {key}" for key in keys if not book.is_done(key)])
