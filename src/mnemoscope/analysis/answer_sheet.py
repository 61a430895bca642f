"""answers.json: what a run's answers are worth, and why they failed where they did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import convert
from msgspec.structs import replace

from mnemoscope._store.run_directory import Manifest
from mnemoscope.analysis.answer_figures import Answered, answer_figures
from mnemoscope.analysis.diagnosis import diagnose, receipts_of
from mnemoscope.types import Ingestion, Scale, Trial

ANSWERS = "answers.json"
_UNRECORDED = {
    "f1": Scale("f1"),
    "rouge-l": Scale("rouge_l"),
    "likelihood": Scale("likelihood", None, None),
}
"""Our own judges that measure something of their own: their runs record the judge's name alone."""
_UNNAMED = Scale("")
"""Right and wrong, the rubric, a panel, and judges that declare no scale."""


def answer_sheet(
    manifest: Manifest, rows: Sequence[Answered], ingestions: Iterable[Ingestion], seed: int
) -> dict[str, Any]:
    """The figures, of a life at its end; the diagnosis, wherever something failed.

    A measure that knows no right and wrong has no failures to explain.
    """
    last = manifest.checkpoints[-1] if manifest.checkpoints else ""
    scale = scale_of(manifest)
    return {
        "judge": (manifest.identity.get("judge") or {"spec": ""})["spec"],
        "figures": answer_figures(
            [row for row in rows if row.checkpoint == last], seed=seed, scale=scale
        ),
        "errors": _common_errors(rows),
        "diagnosis": diagnose(as_read(manifest, rows), receipts_of(ingestions))
        if scale.bounded
        else None,
    }


def _common_errors(rows: Sequence[Answered]) -> dict[str, int]:
    """What failures to answer and to judge say most often."""
    said = (line.error for row in rows for line in (row.answer, row.verdict) if line and line.error)
    return dict(Counter(said).most_common(3))


def scale_of(manifest: Manifest) -> Scale:
    """What the run's judge measures; without a name for right and wrong, the rubric, a panel."""
    judge = manifest.identity.get("judge") or {"spec": ""}
    if "panel" in judge:
        return _UNNAMED
    if "scale" in judge:
        return convert(judge["scale"], Scale)
    return _UNRECORDED.get(judge["spec"].partition(",")[0], _UNNAMED)


def as_read(manifest: Manifest, rows: Sequence[Answered]) -> list[Answered]:
    """The rows as the reader had them: one that is shown everything has all evidence in hand.

    Where not all of it fitted, nobody knows what was shown.
    """
    reader = manifest.identity.get("reader")
    if not isinstance(reader, dict) or not reader["spec"].startswith("full-context"):
        return list(rows)
    return [row._replace(trial=_with_everything(row)) for row in rows]


def _with_everything(row: Answered) -> Trial | None:
    trial, answer = row.trial, row.answer
    if trial is None or answer is None or answer.shown is None:
        return trial
    if answer.shown < trial.pool:
        return None
    return replace(trial, ranking=trial.evidence, sources={})
