"""`mnemoscope personas tool-calls`: pass 3, daily logs as memories that an agent saves."""

from __future__ import annotations

from mnemoscope.cli.writing import WritingFlags, show_pass


def tool_calls(*, writing: WritingFlags, overwrite: bool = False) -> int:
    """Let a model write, for each daily log, the calls by which an agent would have saved it.

    They are in tools/day-0001.yaml, for systems that are driven through a tool loop. A day is
    written in the voice of the one before; stretches of thirty days go side by side. For example:

        mnemoscope personas tool-calls --persona lives/scientist --model claude

        mnemoscope personas tool-calls --persona lives/scientist --model openai:gpt-4o-mini
        --start 1 --end 100 --estimate

    Parameters
    ----------
    overwrite
        Write anew what is there already.
    """
    from mnemoscope.personas.write.passes import tool_call_pass

    task = tool_call_pass(writing, overwrite=overwrite)
    return show_pass(task, estimate=writing.estimate, dry_run=writing.dry_run)
