"""Results that take a while to compute, kept in memory until a file of their runs changes.

The functions are those of the API and the reports. Nothing is computed here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from mnemoscope import api
from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.watched_run import open_regular
from mnemoscope.analysis.question_details import DatasetTexts, QuestionDetails
from mnemoscope.analysis.read_questions import named_memories, question_details
from mnemoscope.analysis.system_groups import SystemGroups
from mnemoscope.analysis.verify import recorded_gates
from mnemoscope.reports.page_data import HITS, REPORT_PAGE, kept_texts
from mnemoscope.reports.published_comparison import of_run
from mnemoscope.reports.report_page import report_page
from mnemoscope.reports.run_report import report
from mnemoscope.reports.run_view import RunView
from mnemoscope.results import ComparisonResult, QuestionRow, RunResult
from mnemoscope.viewer.run_folder import ViewedRun

T = TypeVar("T")

_KEPT = 128
_KEPT_OF = {"report": 2, "texts": 4, "rows": 4}
"""These are large."""
_LONGEST_TEXT = 4_000
"""Characters of a memory that are kept; pages show no more."""


class KeptResults:
    """Computes each result once; one at a time, so that many tabs cannot fill the machine."""

    def __init__(self, data: Path | None = None) -> None:
        """`data` is the dataset's file or folder, for the texts of memories."""
        self._data = data
        self._kept: dict[str, OrderedDict[Hashable, Any]] = {}
        self._lock = Lock()

    def groups(self, runs: Sequence[ViewedRun], metric: str = "") -> SystemGroups:
        paths = [one.path for one in runs]
        return self._once(
            "groups", runs, metric, lambda: api.compare_many(paths, metric=metric)
        ).groups

    def comparison(
        self,
        base: ViewedRun,
        cand: ViewedRun,
        *,
        band: float | None = None,
        discordant: str = "",
        by_category: bool = True,
    ) -> ComparisonResult:
        return self._once(
            "comparison",
            (base, cand),
            (band, discordant, by_category),
            lambda: api.compare(
                base.path, cand.path, band=band, discordant=discordant, by_category=by_category
            ),
        )

    def question_rows(self, run: ViewedRun) -> list[QuestionRow]:
        return self._once("rows", [run], (), lambda: RunResult(run.path).question_rows())

    def details(self, run: ViewedRun, question: str) -> QuestionDetails | None:
        """The question at the last checkpoint; None if the run did not ask it."""
        texts = self._texts(run)

        def read() -> QuestionDetails | None:
            found = question_details(run.directory, texts, only=question).questions
            return found[-1] if found else None

        return self._once("details", [run], question, read)

    def report(self, run: ViewedRun, view: RunView) -> bytes:
        """The report page as it was written, or as it would be written."""
        texts = self._texts(run)

        def read() -> bytes:
            try:
                with open_regular(run.path / REPORT_PAGE) as file:
                    return file.read()
            except FileNotFoundError:  # a run of an older version
                published = of_run(view)
                blocks = report(view, published.blocks if published else (), is_wide=True)
                journal = list(run.directory.journal())
                questions = question_details(run.directory, texts, depth=HITS, journal=journal)
                gates = recorded_gates(run.directory, journal)
                return report_page(view, blocks, questions, gates)

        return self._once("report", [run], (), read)

    def _texts(self, run: ViewedRun) -> DatasetTexts | None:
        """The texts of the run's memories: of the dataset if it was named, else of its page."""
        manifest, data = run.manifest, self._data

        def read() -> DatasetTexts | None:
            from mnemoscope.runner.dataset_texts import dataset_of, dataset_texts

            if data is not None and manifest is not None:
                with suppress(MnemoscopeError):  # the folder has runs of several datasets
                    if (dataset := dataset_of(manifest, data)) is not None:
                        wanted = named_memories(run.directory)
                        return dataset_texts(
                            dataset.scenarios(), wanted, _LONGEST_TEXT, private=manifest.private
                        )
            return kept_texts(run.directory)

        return self._once("texts", [run], (), read)

    def _once(
        self, kind: str, runs: Sequence[ViewedRun], options: Hashable, compute: Callable[[], T]
    ) -> T:
        key = (tuple((one.path, one.signature) for one in runs), options)
        with self._lock:
            kept = self._kept.setdefault(kind, OrderedDict())
            if key not in kept:
                kept[key] = compute()
                while len(kept) > _KEPT_OF.get(kind, _KEPT):
                    kept.popitem(last=False)
            kept.move_to_end(key)
            found: T = kept[key]
            return found
