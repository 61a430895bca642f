"""The whole audit of a persona: the checks without and with a model, and the files it writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mnemoscope._store.jsonl import encode_lines, write_atomically
from mnemoscope.models.model_loader import without_price
from mnemoscope.personas.audit.audited_history import AuditedHistory
from mnemoscope.personas.audit.findings import AuditFinding, Tally, tally, write_proposals
from mnemoscope.personas.audit.model_audit import (
    CHECKS,
    TRAIL,
    AuditVerdict,
    CheckName,
    ModelAudit,
    VerdictJournal,
    as_findings,
)
from mnemoscope.personas.audit.static_audit import static_audit
from mnemoscope.personas.write.llm_writer import LlmWriter
from mnemoscope.personas.write.persona_files import PersonaFiles, open_persona_files
from mnemoscope.personas.write.writing_options import WritingOptions
from mnemoscope.personas.write.writing_pass import (
    PassOutcome,
    ShowLine,
    WritingPass,
    open_writer,
    silent,
)

STATIC_TRAIL = "static-audit.jsonl"
PROPOSALS = "proposals.yaml"


@dataclass(frozen=True)
class AuditResult:
    """The result of an audit."""

    persona: str
    days: int
    questions: int
    findings: list[AuditFinding]
    verdicts: list[AuditVerdict]
    """The model's verdicts on the present questions, of this audit and earlier ones."""
    unanswered: list[str]
    """Checks without a reply; the next audit asks for them again."""
    tallies: list[Tally]
    proposals: Path
    proposed: int
    """How many questions have proposals."""

    @property
    def judged(self) -> int:
        return sum(verdict.judged for verdict in self.verdicts)


def audit_pass(
    options: WritingOptions, checks: Sequence[CheckName] = CHECKS, *, overwrite: bool = False
) -> WritingPass:
    """The model's part of the audit, to be estimated or previewed."""

    def work(files: PersonaFiles, writer: LlmWriter, progress: ShowLine) -> PassOutcome:
        history = AuditedHistory(files)
        return PassOutcome("audited", _ask(history, writer, options, checks, overwrite, progress))

    return WritingPass("audit", options, work)


def audit_persona(
    options: WritingOptions,
    *,
    checks: Sequence[CheckName] = CHECKS,
    out: Path | None = None,
    overwrite: bool = False,
    progress: ShowLine = silent,
    warn: ShowLine = silent,
) -> AuditResult:
    """Find errors in days and questions; with a model also those that need one.

    The findings are written into `out`, by default into the folder of the questions.
    """
    files = open_persona_files(options.persona, options.arcs)
    history = AuditedHistory(files, out)
    history.trail.mkdir(parents=True, exist_ok=True)
    findings = static_audit(history)
    write_atomically(history.trail / STATIC_TRAIL, encode_lines(findings))
    unanswered: list[str] = []
    if options.model:
        account = replace(options, persona=out or options.persona)
        with open_writer(account, "audit", fresh=overwrite, warn=warn) as writer:
            unanswered = _ask(history, writer, options, checks, overwrite, progress)
    verdicts: list[AuditVerdict] = []
    if (history.trail / TRAIL).exists():
        with VerdictJournal(history.trail / TRAIL) as journal:
            verdicts = ModelAudit(history).current(journal, without_price(options.model))
    findings += as_findings(verdicts)
    return AuditResult(
        files.persona.id,
        len(history.logs),
        len(history.entries) + len(history.unreadable),
        findings,
        verdicts,
        unanswered,
        tally(findings, history.entries),
        history.trail / PROPOSALS,
        write_proposals(history.trail / PROPOSALS, findings),
    )


def _ask(
    history: AuditedHistory,
    writer: LlmWriter,
    options: WritingOptions,
    checks: Sequence[CheckName],
    overwrite: bool,
    progress: ShowLine,
) -> list[str]:
    """Ask the model for the missing verdicts; returns what got no reply."""
    with VerdictJournal(history.trail / TRAIL) as journal:
        model = without_price(options.model)
        audit = ModelAudit(history, tuple(checks))
        return audit.ask(writer, journal, model, again=overwrite, progress=progress)
