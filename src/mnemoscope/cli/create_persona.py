"""`mnemoscope personas create`: a new persona and the arcs of their life, out of a wish."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from mnemoscope._store.errors import UsageError
from mnemoscope.cli.writing import show_pass
from mnemoscope.personas.write.writing_options import WritingOptions


def create(
    *,
    prompt: str,
    model: str,
    persona: Path,
    days: int = 1000,
    epoch: str = "2024-01-01",
    timeout: float = 600.0,
    max_cost: float | None = None,
    estimate: bool = False,
    dry_run: bool = False,
    overwrite: bool = False,
) -> int:
    """Have a model invent a persona and plan the arcs of their life.

    Two requests; a reply that breaks a rule is sent back with the reasons. Nothing is written
    before both papers are right. For example:

        mnemoscope personas create --model claude --persona lives/folder --prompt "A chemist"

        mnemoscope personas create --model claude --persona lives/nurse --days 90 --prompt "A nurse"

    Parameters
    ----------
    prompt
        Whom you wish for, in your own words.
    model
        Who writes: `openai:gpt-4o-mini`, `anthropic:…`, `NAME@http://host/v1`, `claude`, `codex`.
    persona
        The folder that persona.yaml and arcs-Nd.yaml are written into.
    days
        How long the life is.
    epoch
        The date of day 1.
    timeout
        Seconds that one request may take.
    max_cost
        What this folder may cost in US dollars, whatever was paid for it before included.
    estimate
        Ask nothing, and say how many tokens and dollars it would take.
    dry_run
        Ask nothing and write nothing; print the prompts that would be asked first.
    overwrite
        Replace the papers that are there; never where days were written after them.
    """
    from mnemoscope.personas.write.passes import PersonaCreation

    try:
        first = date.fromisoformat(epoch)
    except ValueError:
        raise UsageError(f"--epoch {epoch}: no date such as 2026-01-31") from None
    options = WritingOptions(
        persona=persona, model=model, parallelism=1, timeout=timeout, max_cost=max_cost
    )
    task = PersonaCreation(options, prompt, days, first, overwrite)
    return show_pass(task, estimate=estimate, dry_run=dry_run)
