"""`mnemoscope personas conversations`: pass 2, daily logs as talk between user and assistant."""

from __future__ import annotations

from typing import Literal

from mnemoscope.cli.writing import WritingFlags, show_pass


def conversations(
    *,
    writing: WritingFlags,
    format: Literal["markdown", "json"] = "markdown",
    overwrite: bool = False,
) -> int:
    """Let a model write, for each daily log, the conversation that it could have come from.

    It is a talk with whom the persona works for, so isolated sessions are left out. Each has 4 to
    12 turns, in conversations/conv-0001.md or .json. A reply that is no such
    conversation is sent back with the reasons, and in the end skipped: the same command asks again
    for what is missing. For example:

        mnemoscope personas conversations --persona lives/scientist --model claude

        mnemoscope personas conversations --persona lives/scientist --model openai:gpt-4o-mini
        --start 1 --end 100 --format json --max-cost 2

    Parameters
    ----------
    format
        Markdown to read, or JSON to load.
    overwrite
        Write anew what is there already.
    """
    from mnemoscope.personas.write.passes import conversation_pass

    task = conversation_pass(writing, format=format, overwrite=overwrite)
    return show_pass(task, estimate=writing.estimate, dry_run=writing.dry_run)
