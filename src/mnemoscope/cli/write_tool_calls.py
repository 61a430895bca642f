"""`mnemoscope personas tool-calls`: pass 3, daily logs as memories that an agent saves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mnemoscope.cli.writing import Outcome, Tell, WritingOptions, run_pass

if TYPE_CHECKING:
    from mnemoscope.personas.write.llm_writer import LlmWriter
    from mnemoscope.personas.write.persona_files import PersonaFiles


def tool_calls(*, writing: WritingOptions, overwrite: bool = False) -> int:
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
    from mnemoscope.personas.write.log_pages import written_days
    from mnemoscope.personas.write.tool_calls import tool_file, write_tool_calls

    def work(home: PersonaFiles, desk: LlmWriter, tell: Tell) -> Outcome:
        logs = written_days(home, writing.days(home))
        there = [day for day in logs if tool_file(home, day).exists()]
        asked = logs if overwrite else [day for day in logs if day not in set(there)]
        have, made = set(there), set[int]()
        for day in write_tool_calls(home, desk, asked):
            made.add(day)
            have.add(day)
            tell(f"Generated tool calls of day {day}/{home.days} ({len(have)} unique)")
        missing = [f"the tool calls of day {day}" for day in asked if day not in made]
        return Outcome(f"{tool_file(home, 1).parent}: {len(made):,} days written", missing)

    return run_pass(writing, "tool-calls", work, fresh=overwrite)
