"""The whole audit of a persona: checks without and with a model, and the files it leaves."""

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
    Listener,
    PassOutcome,
    WritingPass,
    open_writer,
    silent,
)

STATIC_TRAIL = "static-audit.jsonl"
PROPOSALS = "proposals.yaml"


@dataclass(frozen=True)
class AuditResult:
    """What was found; no question is changed."""

    persona: str
    days: int
    questions: int
    findings: list[AuditFinding]
    verdicts: list[AuditVerdict]
    """What a model said of the questions as they are now, in this audit or an earlier one."""
    unanswered: list[str]
    """What the model gave no reply to; the same audit asks for it again."""
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
    """What the model would be asked, to be estimated or previewed."""

    def work(files: PersonaFiles, writer: LlmWriter, tell: Listener) -> PassOutcome:
        history = AuditedHistory(files)
        return PassOutcome("audited", _ask(history, writer, options, checks, overwrite, tell))

    return WritingPass("audit", options, work)


def audit_persona(
    options: WritingOptions,
    *,
    checks: Sequence[CheckName] = CHECKS,
    out: Path | None = None,
    overwrite: bool = False,
    tell: Listener = silent,
    warn: Listener = silent,
) -> AuditResult:
    """Look for what is wrong with days and questions; a model is asked where one is named.

    What is found is written into `out`, or else beside the questions.
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
            unanswered = _ask(history, writer, options, checks, overwrite, tell)
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
    tell: Listener,
) -> list[str]:
    """Ask the model what it was not asked yet; what got no reply."""
    with VerdictJournal(history.trail / TRAIL) as journal:
        model = without_price(options.model)
        audit = ModelAudit(history, tuple(checks))
        return audit.ask(writer, journal, model, again=overwrite, tell=tell)
