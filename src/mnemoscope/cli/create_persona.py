"""`mnemoscope personas create`: a new persona and the arcs of their life, out of a wish."""

from __future__ import annotations

from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope.cli.console import out, say
from mnemoscope.cli.writing import Writing, at_desk, show_prompts, tell_estimate

if TYPE_CHECKING:
    from mnemoscope.personas.write.llm_writer import Asks


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
    from mnemoscope.personas.write import persona_writer
    from mnemoscope.personas.write.llm_writer import LlmWriter, account_of

    if not prompt.strip():
        raise UsageError("--prompt is empty: say whom you wish for")
    first = _date(epoch)
    persona_writer.check(persona, days, first, overwrite=overwrite)

    def rehearsed(stand_in: Asks, folder: Path) -> None:
        # The typical arcs are those of a short life; what they would be refused for is no matter.
        with account_of(folder) as account, suppress(MnemoscopeError):
            persona_writer.create(
                LlmWriter(stand_in, account, "create"), prompt, folder, days=days, epoch=first
            )

    if dry_run:
        return show_prompts(model, rehearsed)
    if estimate:
        return tell_estimate(model, rehearsed)
    options = Writing(
        persona=persona, model=model, parallelism=1, timeout=timeout, max_cost=max_cost
    )
    with at_desk(options, "create", fresh=overwrite) as desk:
        home = persona_writer.create(
            desk, prompt, persona, days=days, epoch=first, overwrite=overwrite
        )
    arcs = f"{len(home.arcs.arcs)} arcs over {days:,} days"
    say(out, f"{persona}: {home.persona.name}, {home.persona.role}; {arcs}")
    return 0


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--epoch {text}: no date such as 2026-01-31") from None
