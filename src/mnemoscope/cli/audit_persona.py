"""`mnemoscope personas audit`: what is wrong with a life and its questions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich import box
from rich.table import Table
from rich.text import Text

from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import err, out, print_json, say
from mnemoscope.cli.writing import Outcome, Tell, Writing, at_desk, run_pass

if TYPE_CHECKING:
    from mnemoscope.personas.audit.audit_verdicts import Verdict
    from mnemoscope.personas.audit.audited_log import AuditedLife
    from mnemoscope.personas.audit.findings import Finding, Tally
    from mnemoscope.personas.write.llm_writer import LlmWriter
    from mnemoscope.personas.write.persona_files import PersonaFiles

PROPOSALS = "proposals.yaml"
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
    writing = Writing(
        persona=persona,
        model=model or "",
        arcs=arcs,
        parallelism=parallelism,
        timeout=timeout,
        max_cost=max_cost,
        estimate=estimate,
        dry_run=dry_run,
    )
    if estimate or dry_run:
        from mnemoscope.personas.audit.audited_log import AuditedLife

        def work(home: PersonaFiles, desk: LlmWriter, tell: Tell) -> Outcome:
            life = AuditedLife(home)
            return Outcome("audited", _ask(life, desk, tell, writing.model, check, overwrite))

        return run_pass(writing, "audit", work)
    return _audit(writing, check, out, overwrite=overwrite, strict=strict, json=json)


def _audit(
    writing: Writing,
    check: list[CheckName] | None,
    trail: Path | None,
    *,
    overwrite: bool,
    strict: bool,
    json: bool,
) -> int:
    from mnemoscope.personas.audit.audit_verdicts import as_findings
    from mnemoscope.personas.audit.audited_log import AuditedLife
    from mnemoscope.personas.audit.findings import tally, write_proposals
    from mnemoscope.personas.audit.static_audit import static_audit, write_static_trail
    from mnemoscope.personas.write.persona_files import open_persona_files

    life = AuditedLife(open_persona_files(writing.persona, writing.arcs), trail)
    life.trail.mkdir(parents=True, exist_ok=True)
    findings = static_audit(life)
    write_static_trail(life, findings)
    if writing.model:
        account = replace(writing, persona=trail or writing.persona)
        with at_desk(account, "audit", fresh=overwrite) as desk:
            failed = _ask(life, desk, _tell, writing.model, check, overwrite)
        if failed:
            note = f"{len(failed)} got no reply; the same command asks for them again"
            say(err, note, before="[yellow]note:[/] ")
    verdicts = _verdicts(life, writing.model)
    findings += as_findings(verdicts)
    proposed = write_proposals(life.trail / PROPOSALS, findings)
    rows = tally(findings, life.entries)
    if json:
        print_json(_as_json(life, rows, findings, verdicts, proposed))
    else:
        _print(life, rows, verdicts, proposed)
    return 1 if strict and findings else 0


def _tell(line: str) -> None:
    say(err, line)


def _ask(
    life: AuditedLife,
    desk: LlmWriter,
    tell: Tell,
    model: str,
    check: list[CheckName] | None,
    overwrite: bool,
) -> list[str]:
    """Ask the model what it was not asked yet; what got no reply."""
    from mnemoscope.models.model_loader import without_price
    from mnemoscope.personas.audit.audit_verdicts import CHECKS, TRAIL, VerdictBook
    from mnemoscope.personas.audit.model_audit import ModelAudit

    with VerdictBook(life.trail / TRAIL) as book:
        asked = ModelAudit(life, tuple(check or CHECKS))
        return asked.ask(desk, book, without_price(model), again=overwrite, tell=tell)


def _verdicts(life: AuditedLife, model: str) -> list[Verdict]:
    """What this model, or any, said of the questions, now or earlier."""
    from mnemoscope.models.model_loader import without_price
    from mnemoscope.personas.audit.audit_verdicts import TRAIL, VerdictBook
    from mnemoscope.personas.audit.model_audit import ModelAudit

    if not (life.trail / TRAIL).exists():
        return []
    with VerdictBook(life.trail / TRAIL) as book:
        return ModelAudit(life).current(book, without_price(model))


def _judged(verdicts: list[Verdict]) -> int:
    return sum(verdict.judged for verdict in verdicts)


def _as_json(
    life: AuditedLife,
    rows: list[Tally],
    findings: list[Finding],
    verdicts: list[Verdict],
    proposed: int,
) -> dict[str, object]:
    return {
        "persona": life.home.persona.id,
        "days": len(life.logs),
        "questions": len(life.entries) + len(life.unreadable),
        "codes": {row.code: {"days": row.days, "questions": row.questions} for row in rows},
        "judged": _judged(verdicts),
        "unjudged": len(verdicts) - _judged(verdicts),
        "questions with proposals": proposed,
        "findings": findings,
    }


def _print(life: AuditedLife, rows: list[Tally], verdicts: list[Verdict], proposed: int) -> None:
    questions = len(life.entries) + len(life.unreadable)
    say(out, f"{life.home.persona.id}: {len(life.logs):,} days, {questions:,} questions")
    if not rows:
        say(out, "nothing found")
    else:
        table = Table("code", "days", "questions", "what it means, and an example", box=box.SIMPLE)
        for row in rows:
            told = Text(row.meaning)
            told.append(f"\n{row.examples[0]}", "dim")
            days = f"{row.days:,}" if row.days else ""
            table.add_row(Text(row.code, "bold cyan"), days, f"{row.questions:,}", told)
        out.print(table)
    if unjudged := len(verdicts) - _judged(verdicts):
        say(
            out,
            f"of {len(verdicts):,} checks by a model {_judged(verdicts):,} were made; {unjudged:,} "
            "were skipped, since its replies could not be used; --overwrite asks all of them anew",
        )
    if proposed:
        say(out, f"{life.trail / PROPOSALS}: repairs of {proposed:,} questions are proposed")
