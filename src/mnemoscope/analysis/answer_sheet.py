"""answers.json: what a run's answers are worth, and why they failed where they did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from mnemoscope.analysis.answers import Answered, answer_figures
from mnemoscope.analysis.diagnosis import diagnose, receipts_of
from mnemoscope.core.nouns import Ingestion
from mnemoscope.core.rundir import Manifest

ANSWERS = "answers.json"
_SCALES = {"f1": "f1", "rouge-l": "rouge_l", "likelihood": "likelihood"}
"""Judges that measure something of its own; others say right or wrong, or keep to the rubric."""


def answer_sheet(
    manifest: Manifest, rows: Sequence[Answered], ingestions: Iterable[Ingestion], seed: int
) -> dict[str, Any]:
    """The figures, of a life at its end; the diagnosis, wherever something failed."""
    last = manifest.checkpoints[-1] if manifest.checkpoints else ""
    judge = manifest.identity.get("judge") or {"spec": ""}
    return {
        "judge": judge["spec"],
        "figures": answer_figures(
            [row for row in rows if row.checkpoint == last],
            seed=seed,
            scale=_SCALES.get(judge["spec"].partition(",")[0], ""),
        ),
        "diagnosis": diagnose(rows, receipts_of(ingestions)),
    }


def as_read(manifest: Manifest, rows: Sequence[Answered]) -> list[Answered]:
    """The rows as the reader had them: one that is shown everything has all evidence in hand."""
    reader = manifest.identity.get("reader")
    if not isinstance(reader, dict) or not reader["spec"].startswith("full-context"):
        return list(rows)
    return [
        row._replace(trial=replace(row.trial, ranking=row.trial.evidence, sources={}))
        if row.trial is not None
        else row
        for row in rows
    ]
