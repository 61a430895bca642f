"""`mnemoscope personas generate`: pass 1, the daily logs of a persona's life."""

from __future__ import annotations

from pathlib import Path

from mnemoscope._store.errors import UsageError
from mnemoscope.cli.writing import WritingFlags, show_pass


def generate(
    *,
    writing: WritingFlags,
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
    from mnemoscope.personas.write.passes import daily_log_pass, retelling_pass

    if missing and overwrite:
        raise UsageError("--missing fills gaps and --overwrite leaves none: choose one")
    if from_ledger != (out is not None):
        raise UsageError("--from-ledger and --out FOLDER go together: a retold life is a new one")
    if out is None:
        task = daily_log_pass(writing, missing=missing, overwrite=overwrite)
    else:
        task = retelling_pass(writing, out, overwrite=overwrite)
    return show_pass(task, estimate=writing.estimate, dry_run=writing.dry_run)
