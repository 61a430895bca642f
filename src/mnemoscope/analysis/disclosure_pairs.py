"""Disclosure runs by one figure: the share of question texts that are right in all their rooms.

Recall over the asks inside says nothing of leaks, so comparisons of these runs go by `right`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from mnemoscope._store.fingerprint import differences
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.disclosure_rates import TextOutcome, outcomes
from mnemoscope.analysis.entitled import withheld
from mnemoscope.analysis.measure import evidence_ranks
from mnemoscope.analysis.pairing import NotComparable, PairedAnswers, PairedValues
from mnemoscope.analysis.question_records import records_of

RIGHT = "right"
_JUDGES = ("judge", "appellate_judge")


def right_metric(runs: Sequence[RunDirectory]) -> str:
    """`right`, if all runs have answers by one judge that may be shown, else such as `right@10`.

    Empty if one of the runs is not of questions that were asked inside and outside.
    """
    told = [run.read_json("metrics.json").get("disclosure") for run in runs]
    if not told or not all(told):
        return ""
    manifests = [run.manifest() for run in runs]
    judges = [{role: one.identity.get(role) for role in _JUDGES} for one in manifests]
    if (
        all(own["answers"] for own in told)
        and not any(differences(judges[0], own) for own in judges)
        and not any(map(withheld, manifests))
    ):
        return RIGHT
    shared = set.intersection(*(set(own["hits"]) for own in told))
    return f"{RIGHT}@{max(shared, key=int)}" if shared else ""


def is_right_metric(metric: str) -> bool:
    return metric.partition("@")[0] == RIGHT


def text_outcomes(run: RunDirectory, metric: str) -> dict[str, TextOutcome]:
    """Each text of the run; repeated reports of one run read it once."""
    run.ensure_unedited()
    state = run.trials_path.stat()
    return _read_outcomes(run.path, (state.st_size, state.st_mtime_ns), metric)


@lru_cache(maxsize=64)
def _read_outcomes(path: Path, state: tuple[int, int], metric: str) -> dict[str, TextOutcome]:
    k = metric.partition("@")[2]
    records = records_of(RunDirectory(path, checked=False))
    return outcomes(records, int(k) if k else None, evidence_ranks)


def pair_texts(base: RunDirectory, cand: RunDirectory) -> PairedAnswers | None:
    """Pair two disclosure runs by text; None if they are not such runs."""
    metric = right_metric((base, cand))
    if not metric:
        return None
    before, after = text_outcomes(base, metric), text_outcomes(cand, metric)
    shared = [text for text in before if text in after]
    for text in shared:
        if before[text].evidence != after[text].evidence:
            raise NotComparable(f"the runs have different evidence for {text!r}")
    known = [
        text
        for text in shared
        if before[text].is_right is not None and after[text].is_right is not None
    ]
    if not known:
        raise NotComparable("no question of the two runs was measured in all its rooms in both")
    values = PairedValues(
        [metric],
        known,
        np.array([[float(bool(before[text].is_right))] for text in known]),
        np.array([[float(bool(after[text].is_right))] for text in known]),
        [before[text].category for text in known],
        [before[text].cluster for text in known],
    )
    return PairedAnswers(values, len(before) - len(known))
