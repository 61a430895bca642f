"""`mnemoscope personas conversations`: pass 2, daily logs as talk between user and assistant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from mnemoscope.cli.writing import Outcome, Tell, WritingOptions, run_pass

if TYPE_CHECKING:
    from mnemoscope.personas.write.llm_writer import LlmWriter
    from mnemoscope.personas.write.persona_files import PersonaFiles


def conversations(
    *,
    writing: WritingOptions,
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
    from mnemoscope.personas.write.conversations import (
        conversation_file,
        told_days,
        write_conversations,
    )
    from mnemoscope.personas.write.log_pages import written_days

    def work(home: PersonaFiles, desk: LlmWriter, tell: Tell) -> Outcome:
        logs = told_days(home, written_days(home, writing.days(home)))
        there = [day for day in logs if conversation_file(home, day, format).exists()]
        asked = logs if overwrite else [day for day in logs if day not in set(there)]
        have, made = set(there), set[int]()
        for day in write_conversations(home, desk, asked, format):
            made.add(day)
            have.add(day)
            tell(f"Generated conversation of day {day}/{home.days} ({len(have)} unique)")
        missing = [f"the conversation of day {day}" for day in asked if day not in made]
        folder = conversation_file(home, 1, format).parent
        return Outcome(f"{folder}: {len(made):,} conversations written", missing)

    return run_pass(writing, "conversations", work, fresh=overwrite)
