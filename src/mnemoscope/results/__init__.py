"""Typed results of runs: figures, questions and verdicts as rows, frames and HTML tables.

Results are read from run directories on first use. A frame is a pandas.DataFrame if pandas is
installed, otherwise a `Frame`.
"""

from mnemoscope.results.comparison_results import (
    ComparedRow,
    ComparisonResult,
    DifficultyRow,
    GateResult,
    ManyResult,
    PairRow,
    PlanResult,
    PlanRow,
    QuestionsResult,
)
from mnemoscope.results.frames import OVERALL, BoldText, Cell, Frame, frame_of, html_table
from mnemoscope.results.result_rows import FigureRow, HitRow, QuestionRow
from mnemoscope.results.run_estimate import PhaseEstimate, RunEstimate
from mnemoscope.results.run_results import (
    ImportedRun,
    Results,
    RuleChange,
    RunResult,
    ScoredRun,
)
from mnemoscope.results.shown_results import MissedQuestions, ShownQuestion

__all__ = [
    "OVERALL",
    "BoldText",
    "Cell",
    "ComparedRow",
    "ComparisonResult",
    "DifficultyRow",
    "FigureRow",
    "Frame",
    "GateResult",
    "HitRow",
    "ImportedRun",
    "ManyResult",
    "MissedQuestions",
    "PairRow",
    "PhaseEstimate",
    "PlanResult",
    "PlanRow",
    "QuestionRow",
    "QuestionsResult",
    "Results",
    "RuleChange",
    "RunEstimate",
    "RunResult",
    "ScoredRun",
    "ShownQuestion",
    "frame_of",
    "html_table",
]
