"""`mnemoscope personas generate`: pass 1, the daily logs of a persona's life."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mnemoscope._store.errors import UsageError
from mnemoscope.cli.writing import Outcome, Tell, WritingOptions, run_pass

if TYPE_CHECKING:
    from mnemoscope.personas.write.llm_writer import LlmWriter
    from mnemoscope.personas.write.persona_files import PersonaFiles


def generate(
    *,
    writing: WritingOptions,
    missing: bool = False,
    overwrite: bool = False,
    from_ledger: bool = False,
    out: Path | None = None,
) -> int:
    """Have a model write a persona's days, each session from what it may know alone.

    Every day is on disk as soon as it is written, and what is there is not asked for again: the
    same command goes on after an interruption. A request that comes to nothing is told and passed
    over; the exit code is 1 where something is missing at the end. A simulated life is only
    retold, never written into. For example:

        mnemoscope personas generate --persona lives/scientist --model openai:gpt-4o-mini

        mnemoscope personas generate --persona lives/scientist --model claude --missing

        mnemoscope personas generate --persona lives/scientist --model openai:gpt-4o --estimate

        mnemoscope personas generate --persona lives/er-physician --model claude --from-ledger
        --out retold/er-physician

    Parameters
    ----------
    missing
        Fill every gap: missing days, and missing sessions of days that are there.
    overwrite
        Write the days from --start to --end anew, and take no reply from the cache.
    from_ledger
        Retell the simulated life in --persona in natural prose, into --out; every value of its
        ledger must be in the text. Gaps are filled with or without --missing.
    out
        Of --from-ledger: the folder of the retold persona.
    """
    if missing and overwrite:
        raise UsageError("--missing fills gaps and --overwrite leaves none: choose one")
    if from_ledger != (out is not None):
        raise UsageError("--from-ledger and --out FOLDER go together: a retold life is a new one")
    if out is not None:
        from mnemoscope.cli.write_from_ledger import from_ledger as retell

        return retell(writing, out, overwrite=overwrite)

    from mnemoscope.personas.write.daily_log_writer import gaps, refuse_simulated, write_days
    from mnemoscope.personas.write.persona_files import open_persona_files

    refuse_simulated(open_persona_files(writing.persona, writing.arcs))

    def work(home: PersonaFiles, desk: LlmWriter, tell: Tell) -> Outcome:
        days = writing.days(home)
        written = write_days(home, desk, days, missing=missing, overwrite=overwrite, tell=tell)
        return Outcome(
            f"{home.beside('memories')}: {written:,} days written",
            [str(gap) for gap in gaps(home, days)],
            "run the same command with --missing in place of --overwrite"
            if overwrite
            else "run the same command with --missing",
        )

    return run_pass(writing, "generate", work, fresh=overwrite)
