"""`mnemoscope personas create`: a model invents a persona and its arcs from a description."""

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
    """Let a model invent a persona and plan the arcs of its history.

    It needs two requests; a reply that breaks a rule is retried with the reasons. Both files are
    written when both are valid. For example:

        mnemoscope personas create --model claude --persona personas/chemist --prompt "A chemist"

        mnemoscope personas create --model claude --persona personas/nurse --days 90 \\
            --prompt "A nurse"

    Parameters
    ----------
    prompt
        A description of the persona, in your own words.
    model
        The model: `openai:gpt-4o-mini`, `anthropic:…`, `NAME@http://host/v1`, `claude`, `codex`.
    persona
        The folder for persona.yaml and arcs-Nd.yaml.
    days
        The length of the history.
    epoch
        The date of day 1.
    timeout
        Seconds that one request may take.
    max_cost
        The limit of what this folder costs in US dollars, earlier passes included.
    estimate
        Print how many tokens and dollars it needs; the model is not asked.
    dry_run
        Print the first prompts; the model is not asked and no file is written.
    overwrite
        Replace existing files; not possible if the folder has daily logs.
    """
    from mnemoscope.personas.write.passes import PersonaCreation

    try:
        first = date.fromisoformat(epoch)
    except ValueError:
        raise UsageError(f"--epoch {epoch}: give a date such as 2026-01-31") from None
    options = WritingOptions(
        persona=persona, model=model, parallelism=1, timeout=timeout, max_cost=max_cost
    )
    task = PersonaCreation(options, prompt, days, first, overwrite)
    return show_pass(task, estimate=estimate, dry_run=dry_run)
