"""`mnemoscope personas audit`: find errors in a persona's logs and questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich import box
from rich.table import Table
from rich.text import Text

from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import err, print_json, say
from mnemoscope.cli.console import out as stdout
from mnemoscope.cli.writing import interruptible, progress, show_pass, warn
from mnemoscope.personas.write.writing_options import WritingOptions
from mnemoscope.text.display import one_line

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
    """Find errors in a persona's logs and questions, and propose repairs.

    Without a model it finds missing and empty logs, answers that are not in their evidence, day
    numbers, whole weeks as evidence and more. With --model it also checks whether the evidence is
    enough, whether it is needed, and whether a later day changes the answer. Findings are written
    to the qa folder (static-audit.jsonl, model-audit.jsonl, proposals.yaml); questions are not
    changed. For example:

        mnemoscope personas audit --persona personas/scientist

        mnemoscope personas audit --persona personas/scientist --model claude --max-cost 2

    Parameters
    ----------
    persona
        The persona's folder.
    model
        The model that checks questions: `openai:gpt-4o-mini`, `NAME@http://host/v1`, `claude`.
    check
        A check of the model; repeat it for several. All three by default.
    arcs
        The arcs file, if the folder has several: arcs-180d.yaml.
    out
        The folder for the findings, instead of the qa folder; for read-only personas.
    parallelism
        Requests in flight at once.
    timeout
        Seconds that one request may take.
    max_cost
        The limit of what this folder costs in US dollars, earlier passes included.
    estimate
        Print how many tokens and dollars the model's checks need; the model is not asked.
    dry_run
        Print the first prompts; the model is not asked and no file is written.
    overwrite
        Ask the model again for verdicts that exist.
    strict
        Exit with code 1 if there are findings.
    json
        Print JSON instead of a table.
    """
    if model is None and (estimate or dry_run):
        raise UsageError("--estimate and --dry-run need --model")
    if model is None and check:
        raise UsageError("--check needs --model: it selects among the checks of a model")
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
            options, checks=checks, out=out, overwrite=overwrite, progress=progress, warn=warn
        )
    if result.unanswered:
        note = f"{len(result.unanswered)} checks got no reply; run the same command to ask again"
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
            meaning = Text(row.meaning)
            meaning.append(f"\n{one_line(row.examples[0])}", "dim")
            days = f"{row.days:,}" if row.days else ""
            table.add_row(Text(row.code, "bold cyan"), days, f"{row.questions:,}", meaning)
        stdout.print(table)
    if unjudged := len(result.verdicts) - result.judged:
        say(
            stdout,
            f"of {len(result.verdicts):,} checks by a model {result.judged:,} have a verdict; "
            f"{unjudged:,} were skipped because the replies were not usable; --overwrite asks for "
            "all of them again",
        )
    if result.proposed:
        say(stdout, f"{result.proposals}: repairs of {result.proposed:,} questions are proposed")
