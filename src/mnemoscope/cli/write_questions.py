"""`mnemoscope personas qa`: questions about a history by window, and about its secrets."""

from __future__ import annotations

from typing import Literal

from mnemoscope.cli.writing import WritingFlags, show_pass


def qa(
    *,
    writing: WritingFlags,
    mode: Literal["standard", "boundary"] = "standard",
    interval: int | None = None,
    pairs: int | None = None,
) -> int:
    """Let a model write questions with answers, categories and the days of their evidence.

    The questions of a window depend on its days only, never on a later one. Pairs that break a rule
    are dropped and counted. qa/windows.jsonl records which windows are done; run the same command
    to continue with the others. For example:

        mnemoscope personas qa --persona personas/scientist --model claude

        mnemoscope personas qa --persona personas/scientist --model claude --mode boundary

    Parameters
    ----------
    mode
        standard: questions on open sessions. boundary: questions on an isolated session, asked in a
        session in which the answer may not be disclosed.
    interval
        Days in a window; 7 by default, 30 for boundary.
    pairs
        Pairs to ask for in a window; 12 by default, 2 for boundary.
    """
    from mnemoscope.personas.write.passes import question_pass

    task = question_pass(writing, mode=mode, interval=interval, pairs=pairs)
    return show_pass(task, estimate=writing.estimate, dry_run=writing.dry_run)
