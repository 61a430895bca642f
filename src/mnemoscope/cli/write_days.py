"""`mnemoscope personas generate`: pass 1, the daily logs of a persona."""

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
    """Let a model write a persona's daily logs, each session from what it may know.

    Each day is on disk as soon as it is written, and existing days are not asked for again: run the
    same command to continue after an interruption. A failed request is reported and skipped; the
    exit code is 1 if something is missing at the end. A simulated history is not changed; a model
    can rewrite it into a new folder. For example:

        mnemoscope personas generate --persona personas/scientist --model openai:gpt-4o-mini

        mnemoscope personas generate --persona personas/scientist --model claude --missing

        mnemoscope personas generate --persona personas/scientist --model openai:gpt-4o --estimate

        mnemoscope personas generate --persona personas/er-physician --model claude --from-ledger
        --out rewritten/er-physician

    Parameters
    ----------
    missing
        Write missing days, and missing sessions of existing days.
    overwrite
        Write the days from --start to --end again, without replies from the cache.
    from_ledger
        Rewrite the simulated history in --persona as prose, into --out; the text must contain every
        value of its ledger. Missing days are written with or without --missing.
    out
        With --from-ledger: the folder of the rewritten persona.
    """
    from mnemoscope.personas.write.passes import daily_log_pass, rewriting_pass

    if missing and overwrite:
        raise UsageError("--missing and --overwrite exclude each other: give one of them")
    if from_ledger != (out is not None):
        raise UsageError("--from-ledger needs --out NEW_FOLDER, and --out needs --from-ledger")
    if out is None:
        task = daily_log_pass(writing, missing=missing, overwrite=overwrite)
    else:
        task = rewriting_pass(writing, out, overwrite=overwrite)
    return show_pass(task, estimate=writing.estimate, dry_run=writing.dry_run)
