"""Verdicts: what a model said of a question, one line each; what is there is not asked again."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec

from mnemoscope._store.jsonl import Journal, read_records
from mnemoscope.models.chat import Prompt
from mnemoscope.personas.audit.findings import Finding, Proposal

TRAIL = "model-audit.jsonl"

CheckName = Literal["answerable", "without-evidence", "superseded"]
CHECKS: tuple[CheckName, ...] = ("answerable", "without-evidence", "superseded")


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the trail."""

    question: str
    check: CheckName
    model: str
    asked: str
    """Hash of the prompt: a question that was edited since is asked again."""
    judged: bool
    """Not where the replies could not be read; that is no defect of the question."""
    code: str = ""
    """Empty where nothing is wrong."""
    why: str = ""
    proposal: Proposal | None = None

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.question, self.check, self.model, self.asked


def prompt_hash(prompt: Prompt) -> str:
    return sha256(f"{prompt.system}\0{prompt.user}".encode("utf-8", "replace")).hexdigest()[:16]


class VerdictBook:
    """The trail as a journal: every verdict is on disk as soon as it is there."""

    def __init__(self, path: Path) -> None:
        self._journal = Journal(path)
        self.verdicts = {verdict.key: verdict for verdict in read_records(path, Verdict)}

    def add(self, verdict: Verdict) -> None:
        self._journal.append(verdict)
        self.verdicts[verdict.key] = verdict

    def __enter__(self) -> VerdictBook:
        return self

    def __exit__(self, *exc: object) -> None:
        self._journal.close()


def as_findings(verdicts: Iterable[Verdict]) -> list[Finding]:
    """Those with which something is wrong."""
    return [
        Finding(verdict.code, verdict.why, verdict.question, proposal=verdict.proposal)
        for verdict in verdicts
        if verdict.code
    ]
