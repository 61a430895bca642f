"""The results of comparisons: of two runs, of many, with a plan, by question, at a gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from mnemoscope.results.frames import (
    OVERALL,
    SHOWN_ROWS,
    BoldText,
    Frame,
    frame_of,
    html_table,
    plain_cell,
)
from mnemoscope.text.display import as_html

if TYPE_CHECKING:
    from mnemoscope.analysis.aggregates import GateRow, SeedRow
    from mnemoscope.analysis.comparison import Comparison
    from mnemoscope.analysis.frozen_plan import FrozenPlan
    from mnemoscope.analysis.plan import PlannedComparison
    from mnemoscope.analysis.question_difficulty import QuestionAnalysis
    from mnemoscope.analysis.system_groups import SystemGroups
    from mnemoscope.results.frames import DataFrame


class PairRow(NamedTuple):
    """Two systems of several, on the questions that all of them measured."""

    first: str
    second: str
    delta: float
    low: float
    """Ends of the simultaneous 95 % interval of first - second."""
    high: float
    verdict: Literal["better", "cannot tell"]
    """Whether the first is better."""


class ManyResult:
    """Several systems compared by one metric: all pairs, groups and rank intervals."""

    def __init__(self, groups: SystemGroups) -> None:
        self.groups = groups

    def rows(self) -> list[PairRow]:
        return [
            PairRow(
                *(pair.first, pair.second, pair.delta, *pair.ci95),
                "better" if pair.is_decided else "cannot tell",
            )
            for pair in self.groups.pairs
        ]

    def to_frame(self) -> DataFrame:
        """Return one row for each pair of systems."""
        return frame_of(PairRow, self.rows())

    def __repr__(self) -> str:
        from mnemoscope.reports.group_tables import answer

        return answer(self.groups)

    def _repr_html_(self) -> str:
        from mnemoscope.reports.group_tables import legend, markdown_cells

        rows = [
            [
                one.system,
                *markdown_cells(one),
                BoldText(f"{one.mean:.4f}") if one.is_best else f"{one.mean:.4f}",
            ]
            for one in self.groups.systems
        ]
        told = [legend(self.groups), *self.groups.notes]
        return (
            f"<p>{as_html(repr(self))}</p>"
            + html_table(["system", "group", "ranks", self.groups.metric], rows)
            + "".join(f"<p>{as_html(line)}</p>" for line in told)
        )


class PlanRow(NamedTuple):
    """What a planned comparison finds in one metric; None with fewer than five conversations."""

    metric: str
    role: str
    n: int
    conversations: int
    between: float
    within: float
    """Variances of the differences between conversations, and between questions within them."""
    power: float | None
    detectable: float | None
    """The difference that is found with power 0.8."""
    needed: int | None
    """How many conversations find the difference with power 0.8."""
    endless: float | None
    """Detectable with endlessly many questions in these conversations."""
    equivalent: float | None


class PlanResult:
    """A planned comparison, and its frozen form if it was frozen."""

    def __init__(self, plan: PlannedComparison, frozen: FrozenPlan | None = None) -> None:
        self.plan = plan
        self.frozen = frozen

    def rows(self) -> list[PlanRow]:
        return [
            PlanRow(
                *(row.metric, row.role, row.n, row.clusters, row.between, row.within, row.power),
                *(row.detectable, row.needed, row.endless, row.equivalent),
            )
            for row in self.plan.rows
        ]

    def to_frame(self) -> DataFrame:
        """Return one row for each metric."""
        return frame_of(PlanRow, self.rows())

    def __repr__(self) -> str:
        from mnemoscope.reports.plan_tables import answer

        return answer(self.plan)

    def _repr_html_(self) -> str:
        rows = [[plain_cell(cell) for cell in row] for row in self.rows()]
        return (
            f"<p>{as_html(repr(self))}</p>"
            + html_table(PlanRow._fields, rows)
            + f"<p>{as_html(self.plan.assumed)}</p>"
        )


class DifficultyRow(NamedTuple):
    """One question and the systems that find it."""

    question: str
    category: str
    text: str
    evidence: tuple[str, ...]
    difficulty: float
    discrimination: float | None
    found_by: tuple[str, ...]
    missed_by: tuple[str, ...]


class QuestionsResult:
    """What several systems find on one benchmark, question by question."""

    def __init__(
        self,
        analysis: QuestionAnalysis,
        category_names: Mapping[str, str] = {},
        memories: Mapping[str, str] = {},
    ) -> None:
        self.analysis = analysis
        self.category_names = category_names
        self.memories = memories
        """The texts of evidence and candidates by id; empty if the dataset was not found."""

    def rows(self) -> list[DifficultyRow]:
        return [
            DifficultyRow(*(getattr(one, name) for name in DifficultyRow._fields))
            for one in self.analysis.items
        ]

    def to_frame(self) -> DataFrame:
        """Return one row for each question: difficulty, discrimination, who finds it."""
        return frame_of(DifficultyRow, self.rows())

    def to_csv(self, path: str | Path) -> None:
        """Write one row for each question; formulas of spreadsheets are escaped."""
        rows = [
            ["; ".join(cell) if isinstance(cell, tuple) else cell for cell in row]
            for row in self.rows()
        ]
        Frame(DifficultyRow._fields, rows).to_csv(path)

    def __repr__(self) -> str:
        found = self.analysis
        return (
            f"{found.questions:,} questions by {found.metric}: all systems find "
            f"{len(found.all_find):,}, none finds {len(found.none_find):,}, "
            f"{len(found.candidates):,} candidates for missing labels"
        )

    def _repr_html_(self) -> str:
        rows = [[plain_cell(cell) for cell in row] for row in self.rows()[:SHOWN_ROWS]]
        return f"<p>{as_html(repr(self))}</p>{html_table(DifficultyRow._fields, rows)}"


class ComparedRow(NamedTuple):
    """One metric of two runs."""

    scope: str
    metric: str
    n: int | None
    base: float
    cand: float
    delta: float
    low: float | None
    """Ends of the 95 % interval of the difference; None for unpaired tests."""
    high: float | None
    p: float
    """Adjusted for the number of secondary metrics; of unpaired tests, for all of them."""
    verdict: str
    """Empty for categories and for metrics that were not declared."""
    role: str
    """primary, secondary, category, chosen after looking; or unpaired."""
    confirmed: bool | None
    """For secondary metrics: whether the primary metric is better or worse."""


class ComparisonResult:
    """Two results compared, with a verdict for each metric."""

    def __init__(
        self,
        base: str,
        cand: str,
        *,
        paired: Comparison | None = None,
        seed: Sequence[SeedRow] = (),
        category_names: Mapping[str, str] = {},
    ) -> None:
        self.base = base
        self.cand = cand
        self.paired = paired
        """The comparison by question; None if only means are known."""
        self.seed = list(seed)
        """The unpaired procedure, if only means are known or if it was requested."""
        self.category_names = category_names

    def rows(self) -> list[ComparedRow]:
        if self.paired is not None:
            return [
                ComparedRow(
                    *(row.scope, row.metric, row.n, row.base, row.cand, row.delta),
                    *(*row.shown, row.p, row.verdict or "", row.role, row.confirmed),
                )
                for row in self.paired.rows
            ]
        return [
            ComparedRow(
                *(OVERALL, row.metric, None, row.base, row.cand, row.delta, None, None),
                row.p_corrected,
                ("worse" if row.delta < 0 else "better") if row.significant else "cannot tell",
                "unpaired",
                None,
            )
            for row in self.seed
        ]

    @property
    def verdict(self) -> Literal["better", "worse", "mixed", "equivalent", "cannot tell", "none"]:
        """The verdict on the candidate: that of the primary metric; `none` if it may have none.

        Of unpaired tests, it is the one of all metrics.
        """
        if self.paired is not None:
            primary = self.paired.primary
            return primary.verdict if primary and primary.verdict else "none"
        found = {row.verdict for row in self.rows()}
        if {"better", "worse"} <= found:
            return "mixed"
        return next((word for word in ("worse", "better") if word in found), "cannot tell")

    @property
    def answer(self) -> str:
        """The comparison in one sentence."""
        if self.paired is None:
            return f"{self.cand} against {self.base}, by unpaired tests: {self.verdict}"
        from mnemoscope.reports.comparison_tables import answer

        return answer(self.paired)

    @property
    def regressed(self) -> bool:
        """Whether the primary metric is worse or a declared one regressed; unpaired: any metric."""
        if self.paired is not None:
            return self.paired.regressed
        return any(row.verdict == "worse" for row in self.rows())

    def to_frame(self) -> DataFrame:
        return frame_of(ComparedRow, self.rows())

    def __repr__(self) -> str:
        return self.answer

    def _repr_html_(self) -> str:
        rows = [[plain_cell(cell) for cell in row] for row in self.rows()]
        return f"<p>{as_html(repr(self))}</p>{html_table(ComparedRow._fields, rows)}"


class GateResult(msgspec.Struct, frozen=True):
    """Whether a run's figures stayed within the allowed drops from a baseline."""

    passed: bool
    rows: list[GateRow]
