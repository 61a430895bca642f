"""`mnemoscope personas audit`: what is wrong with a life and its questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich import box
from rich.table import Table
from rich.text import Text

from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import err, print_json, say
from mnemoscope.cli.console import out as stdout
from mnemoscope.cli.writing import interruptible, show_pass, tell, warn
from mnemoscope.personas.write.writing_options import WritingOptions

if TYPE_CHECKING:
    from mnemoscope.personas.audit.persona_audit import AuditResult

CheckName = Literal["answerable", "without-evidence", "superseded"]


def audit(
    *,
    persona: Path,
    model: str | None = None,
    check: list[CheckName] | None = None,
    arcs: str = "",
    out: Path | None = None,
    parallelism: int = 4,
    timeout: float = 600.0,
    max_cost: float | None = None,
    estimate: bool = False,
    dry_run: bool = False,
    overwrite: bool = False,
    strict: bool = False,
    json: bool = False,
) -> int:
    """Look for what is wrong with a persona's days and questions, and propose repairs.

    Without a model: missing and empty logs, answers that are not in their evidence, day numbers,
    whole weeks as evidence and the like. With --model also whether the evidence is enough, whether
    it is needed, and whether a later day changes the answer. What was found goes into the qa folder
    (static-audit.jsonl, model-audit.jsonl, proposals.yaml); no question is changed. For example:

        mnemoscope personas audit --persona lives/scientist

        mnemoscope personas audit --persona lives/scientist --model openai:gpt-4o-mini --max-cost 2

    Parameters
    ----------
    persona
        The persona's folder.
    model
        Who is asked about each question: `openai:gpt-4o-mini`, `NAME@http://host/v1`, `claude`.
    check
        Which of the model's checks, several times for several; else all three.
    arcs
        Which arcs file, where the folder has several: arcs-180d.yaml.
    out
        Where to write what was found, instead of the qa folder: for lives that are only read.
    parallelism
        Requests in flight at once.
    timeout
        Seconds that one request may take.
    max_cost
        What this folder may cost in US dollars, whatever was paid for it before included.
    estimate
        Ask nothing, and say how many tokens and dollars the model's checks would take.
    dry_run
        Ask nothing and write nothing; print the prompts that would be asked first.
    overwrite
        Ask the model anew, also what it was asked before.
    strict
        End with exit code 1 where something was found.
    json
        Print JSON instead of a table.
    """
    if model is None and (estimate or dry_run):
        raise UsageError("--estimate and --dry-run are about what a --model would be asked")
    if model is None and check:
        raise UsageError("--check chooses among the checks of a --model")
    from mnemoscope.personas.audit.model_audit import CHECKS
    from mnemoscope.personas.audit.persona_audit import audit_pass, audit_persona

    options = WritingOptions(
        persona=persona,
        model=model or "",
        arcs=arcs,
        parallelism=parallelism,
        timeout=timeout,
        max_cost=max_cost,
    )
    checks = check or CHECKS
    if estimate or dry_run:
        task = audit_pass(options, checks, overwrite=overwrite)
        return show_pass(task, estimate=estimate, dry_run=dry_run)
    with interruptible():
        result = audit_persona(
            options, checks=checks, out=out, overwrite=overwrite, tell=tell, warn=warn
        )
    if result.unanswered:
        note = f"{len(result.unanswered)} got no reply; the same command asks for them again"
        say(err, note, before="[yellow]note:[/] ")
    _print_json(result) if json else _print(result)
    return 1 if strict and result.findings else 0


def _print_json(result: AuditResult) -> None:
    print_json(
        {
            "persona": result.persona,
            "days": result.days,
            "questions": result.questions,
            "codes": {
                row.code: {"days": row.days, "questions": row.questions} for row in result.tallies
            },
            "judged": result.judged,
            "unjudged": len(result.verdicts) - result.judged,
            "questions with proposals": result.proposed,
            "findings": result.findings,
        }
    )


def _print(result: AuditResult) -> None:
    say(stdout, f"{result.persona}: {result.days:,} days, {result.questions:,} questions")
    if not result.tallies:
        say(stdout, "nothing found")
    else:
        table = Table("code", "days", "questions", "what it means, and an example", box=box.SIMPLE)
        for row in result.tallies:
            told = Text(row.meaning)
            told.append(f"\n{row.examples[0]}", "dim")
            days = f"{row.days:,}" if row.days else ""
            table.add_row(Text(row.code, "bold cyan"), days, f"{row.questions:,}", told)
        stdout.print(table)
    if unjudged := len(result.verdicts) - result.judged:
        say(
            stdout,
            f"of {len(result.verdicts):,} checks by a model {result.judged:,} were made; "
            f"{unjudged:,} were skipped, since its replies could not be used; --overwrite asks all "
            "of them anew",
        )
    if result.proposed:
        say(stdout, f"{result.proposals}: repairs of {result.proposed:,} questions are proposed")
