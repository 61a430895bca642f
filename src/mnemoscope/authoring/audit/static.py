"""The audit that needs no model: every check on days and questions, and its trail."""

from __future__ import annotations

from mnemoscope.authoring.audit.day_checks import check_days
from mnemoscope.authoring.audit.findings import Finding, write_trail
from mnemoscope.authoring.audit.life import AuditedLife
from mnemoscope.authoring.audit.question_checks import check_questions

TRAIL = "static-audit.jsonl"


def static_audit(life: AuditedLife) -> list[Finding]:
    """All findings; the same life gives the same ones."""
    return [*check_days(life), *check_questions(life)]


def write_static_trail(life: AuditedLife, findings: list[Finding]) -> None:
    write_trail(life.trail / TRAIL, findings)
