"""`mnemoscope personas qa`: questions about a life, window by window, and about what it keeps."""

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
    from mnemoscope.personas.write.passes import question_pass

    task = question_pass(writing, mode=mode, interval=interval, pairs=pairs)
    return show_pass(task, estimate=writing.estimate, dry_run=writing.dry_run)
