"""`mnemoscope personas conversations`: pass 2, conversations that match the daily logs."""

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

    The user is the person that the persona works for, so isolated sessions are left out. Each
    conversation has 4 to 12 turns, in conversations/conv-0001.md or .json. An invalid reply is
    retried with the reasons and then skipped; run the same command to ask again for what is
    missing. For example:

        mnemoscope personas conversations --persona personas/scientist --model claude

        mnemoscope personas conversations --persona personas/scientist --model openai:gpt-4o-mini
        --start 1 --end 100 --format json --max-cost 2

    Parameters
    ----------
    format
        The format of the files.
    overwrite
        Write existing files again.
    """
    from mnemoscope.personas.write.passes import conversation_pass

    task = conversation_pass(writing, format=format, overwrite=overwrite)
    return show_pass(task, estimate=writing.estimate, dry_run=writing.dry_run)
