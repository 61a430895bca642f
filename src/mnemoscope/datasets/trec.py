"""TREC's judgments (qrels) and rankings (runs), and a dataset that consists of judgments.

The dataset has no texts to search. It is for scoring rankings that were made elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import c_float
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from mnemoscope._store.errors import DataError, MissingData, UsageError
from mnemoscope.datasets.base import DatasetInfo, FileDataset, Findings
from mnemoscope.datasets.labelled import (
    collect_judgments,
    columns,
    count,
    judged_question,
    present,
)
from mnemoscope.types import Memory, Scenario

NO_HITS = "no-hits"
"""The document of a topic for which a system returned nothing: a run file cannot have empty lists,
and tools leave out topics that it does not name."""


class TrecRun(NamedTuple):
    """A run file: the documents of each topic, best first, and the repairs."""

    topics: dict[str, list[tuple[str, float]]]
    findings: Findings


def read_run(path: Path) -> TrecRun:
    """Read a run file; a document that is ranked twice keeps its better rank."""
    findings = Findings()
    topics: dict[str, list[tuple[str, float]]] = {}
    for line, (topic, _, document, _, written, _) in columns(
        present(path, "a TREC run"), 6, findings
    ):
        topics.setdefault(topic, []).append((document, _score(written, path, line)))
    if not topics:
        raise DataError("contains no rankings", file=path)
    for topic, ranking in topics.items():
        # Like trec_eval: ignore the rank column, compare scores as C floats, and break ties by
        # descending docno (comp_sim_docno in form_res_rels.c). Another order gives other numbers.
        ranking.sort(key=lambda hit: (c_float(hit[1]).value, hit[0]), reverse=True)
        kept: dict[str, float] = {}
        for document, score in ranking:
            if document in kept:
                findings.add("duplicate document in a ranking", f"{topic}: {document}")
            kept.setdefault(document, score)
        topics[topic] = [] if kept.keys() == {NO_HITS} else list(kept.items())
    return TrecRun(topics, findings)


class Trec(FileDataset):
    """One scenario: judged documents without texts; the topics are the questions.

    `data` is a qrels file, or a folder with exactly one file whose name starts with `qrels`.
    """

    info = DatasetInfo(
        name="trec",
        summary="TREC qrels, to score run files",
        source="your own qrels, in TREC's format",
        granularities=("document",),
        cluster="question",
        main_metric="ndcg@10",
    )
    pool_known = False
    expected_scenarios: int | None = 1

    def __init__(self, data: Path) -> None:
        super().__init__(_only_qrels(data) if data.is_dir() else present(data, "TREC qrels"))

    def read(self) -> Iterator[Scenario]:
        rows = columns(self.path, 4, self.findings)
        judgments = collect_judgments(
            ((line, topic, document, grade) for line, (topic, _, document, grade) in rows),
            self.path,
            self.findings,
        )
        pool = dict.fromkeys(document for judged in judgments.values() for document in judged)
        self.findings.add("pool contains judged documents only", str(self.path))
        scenario = Scenario(
            id=self.name,
            memories=tuple(Memory(id=document, text="") for document in pool),
            questions=tuple(
                judged_question(topic, topic, judged, self.findings)
                for topic, judged in judgments.items()
            ),
        )
        self._counts = count(scenario)
        yield scenario


def _score(written: str, path: Path, line: int) -> float:
    try:
        # Python also accepts 1_000 and the digits of other scripts; other tools do not.
        score = float(written) if written.isascii() and "_" not in written else float("nan")
    except ValueError:
        score = float("nan")
    if not isfinite(score):
        raise DataError(f"score {written!r} is not a finite number", file=path, line=line)
    return score


def _only_qrels(folder: Path) -> Path:
    found = sorted(path for path in folder.glob("qrels*") if path.is_file())
    if not found:
        raise MissingData(f"{folder} contains no file whose name starts with 'qrels'")
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise UsageError(f"{folder} contains several qrels files ({names}); pass one of them")
    return found[0]
