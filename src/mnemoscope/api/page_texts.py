"""The texts of memories that the pages of runs show, read from the dataset once for all runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mnemoscope._store.fingerprint import fingerprint
from mnemoscope._store.run_directory import RunDirectory

if TYPE_CHECKING:
    from mnemoscope.analysis.question_details import DatasetTexts
    from mnemoscope.datasets.base import Dataset


def page_texts(dataset: Dataset, runs: Sequence[RunDirectory]) -> DatasetTexts:
    """The texts of all memories that the pages of these runs of one dataset show.

    The page of a private run has none: it is a file of the run.
    """
    from mnemoscope.analysis.question_details import DatasetTexts
    from mnemoscope.analysis.read_questions import named_memories
    from mnemoscope.reports.page_data import EVIDENCE_TEXT, HITS
    from mnemoscope.runner.dataset_texts import dataset_texts

    wanted: dict[str, set[str]] = {}
    if any(run.manifest().private for run in runs):
        return DatasetTexts()
    for run in runs:
        for scenario, ids in named_memories(run, HITS).items():
            wanted.setdefault(scenario, set()).update(ids)
    return dataset_texts(dataset.scenarios(), wanted, EVIDENCE_TEXT)


def found_page_texts(
    runs: Sequence[RunDirectory], data: Path | None = None
) -> list[DatasetTexts | None]:
    """The texts for each of these runs: of the dataset, else of the page that the run has.

    None for a run with neither.
    """
    from mnemoscope.reports.page_data import kept_texts
    from mnemoscope.runner.dataset_texts import dataset_of

    keys = [fingerprint(run.manifest().identity["benchmark"]) for run in runs]
    found: dict[str, DatasetTexts | None] = {}
    for key in dict.fromkeys(keys):
        same = [run for run, own in zip(runs, keys, strict=True) if own == key]
        dataset = dataset_of(same[0].manifest(), data)
        found[key] = page_texts(dataset, same) if dataset else None
    return [found[key] or kept_texts(run) for run, key in zip(runs, keys, strict=True)]
