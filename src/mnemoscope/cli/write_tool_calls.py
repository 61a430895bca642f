"""`mnemoscope personas tool-calls`: pass 3, tool calls that save the daily logs as memories."""

from __future__ import annotations

from mnemoscope.cli.writing import WritingFlags, show_pass


def tool_calls(*, writing: WritingFlags, overwrite: bool = False) -> int:
    """Let a model write, for each daily log, the tool calls that would have saved it.

    They are written to tools/day-0001.yaml, for systems that are driven by tool calls. A day is
    written in the voice of the day before; stretches of thirty days are written in parallel. For
    example:

        mnemoscope personas tool-calls --persona personas/scientist --model claude

        mnemoscope personas tool-calls --persona personas/scientist --model openai:gpt-4o-mini
        --start 1 --end 100 --estimate

    Parameters
    ----------
    overwrite
        Write existing files again.
    """
    from mnemoscope.personas.write.passes import tool_call_pass

    task = tool_call_pass(writing, overwrite=overwrite)
    return show_pass(task, estimate=writing.estimate, dry_run=writing.dry_run)
