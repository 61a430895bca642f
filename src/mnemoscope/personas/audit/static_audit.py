"""The audit that needs no model: every check on days and questions, and its trail."""

from __future__ import annotations

from mnemoscope.personas.audit.audited_log import AuditedLife
from mnemoscope.personas.audit.day_checks import check_days
from mnemoscope.personas.audit.findings import Finding, write_trail
from mnemoscope.personas.audit.qa_checks import check_questions

TRAIL = "static-audit.jsonl"


def static_audit(life: AuditedLife) -> list[Finding]:
    """All findings; the same life gives the same ones."""
    return [*check_days(life), *check_questions(life)]


def write_static_trail(life: AuditedLife, findings: list[Finding]) -> None:
    write_trail(life.trail / TRAIL, findings)
