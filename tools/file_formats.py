"""The files of a run and the types of their content, for the schemas that tools/schemas.py makes.

Types that no other code needs are declared here: those of files that are put together from others,
and those of Recall Bench's format.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NotRequired, TypedDict

from mnemoscope._store.attempt_ledger import LedgerLine
from mnemoscope._store.journal_chain import ChainRecord
from mnemoscope._store.run_directory import JournalLine, Manifest
from mnemoscope.analysis.answers import AnswerSheet
from mnemoscope.analysis.foreign_verdicts import ImportedAnswers
from mnemoscope.analysis.forgetting import Forgetting
from mnemoscope.analysis.measure import Metrics
from mnemoscope.analysis.repeats import RepeatSet
from mnemoscope.analysis.store_bridge import KeptStore
from mnemoscope.reports.dataset_summary import DatasetSummary
from mnemoscope.reports.run_view import CheckpointReport
from mnemoscope.runner.finish import RecordedQuestion, RecordedRanking, RunTiming
from mnemoscope.types import Status, Timing


class MetricsFile(Metrics):
    """Every figure of a run; of the last checkpoint, if it has checkpoints."""

    benchmark: dict[str, Any]
    """The dataset's name, options and the sha256 of its files."""


class Group(TypedDict):
    """Which systems of the table cannot be told from each other."""

    metric: str
    questions: int
    these_only: bool
    """Whether the groups hold for these conversations only."""
    letters: str
    """Systems that share a letter cannot be told from each other."""
    ranks: list[int]
    """The best and the worst rank that the data allow."""
    is_best: bool


class SummaryEntry(MetricsFile):
    """The figures of one run, as in the files of its folder."""

    timing: RunTiming
    longitudinal: NotRequired[CheckpointReport]
    answers: NotRequired[AnswerSheet]
    forgetting: NotRequired[Forgetting]
    group: NotRequired[Group]


class AskedPair(TypedDict):
    """The question, in Recall Bench's words."""

    id: str
    question: str
    referenceAnswer: str
    category: str
    difficulty: str
    relevantDays: list[int]
    expectedDisclosure: NotRequired[str]
    querySession: NotRequired[str]
    forbiddenSessions: NotRequired[list[str]]


class FirstEvidence(TypedDict):
    """What was recalled."""

    ids: list[str]
    firstEvidenceRank: int | None


class RubricScore(TypedDict):
    """Recall Bench's rubric: correctness 0–3, completeness 0–2, and 1 for no hallucination."""

    correctness: int
    completeness: int
    hallucination: int
    reasoning: NotRequired[str]


class CheckpointQuestion(TypedDict):
    """One question at one checkpoint, in Recall Bench's format."""

    timestamp: str
    personaId: str
    checkpoint: str
    status: Status
    qa: AskedPair
    systemAnswer: str
    score: RubricScore | None
    composite: int | None
    """The sum of the three scores, 0 to 6."""
    usedAppellate: bool
    retrieval: NotRequired[FirstEvidence]
    memoryContextProvided: bool
    latencyMs: float | None
    primaryScore: NotRequired[RubricScore]
    """The first judge's score, if the appellate judge decided."""


class Format(NamedTuple):
    """One file of a run, or of the folder of several runs."""

    file: str
    about: str
    types: tuple[Any, ...]
    """The content, or a line of it, is one of these."""

    @property
    def schema(self) -> str:
        """The name of its schema in docs/schemas."""
        return f"{self.file.partition('.json')[0]}.schema.json"

    @property
    def is_lines(self) -> bool:
        return self.file.endswith(".jsonl")


FORMATS = (
    Format("manifest.json", "What was run, with which data, and how it ended.", (Manifest,)),
    Format(
        "trials.jsonl",
        "The journal. `phase` says what a line is: `remember`, `recall`, `answer` or `judge`.",
        (JournalLine,),
    ),
    Format(
        "kept_store.json",
        "Of a store that users go on changing: what a later gate needs to follow its memories.",
        (KeptStore,),
    ),
    Format(
        "raw_retrievals.jsonl",
        "The full rankings; `mnemoscope score` reads them again.",
        (RecordedRanking,),
    ),
    Format(
        "questions.jsonl",
        "Each question with its status. Runs over checkpoints use Recall Bench's format.",
        (RecordedQuestion, CheckpointQuestion),
    ),
    Format("metrics.json", "Every retrieval figure.", (MetricsFile,)),
    Format("answers.json", "The scores of answers, and why answers failed.", (AnswerSheet,)),
    Format(
        "imported.json",
        "Answers from outside: what was read, their figures, and how far their verdicts agree.",
        (ImportedAnswers,),
    ),
    Format("longitudinal.json", "The figures of every checkpoint.", (CheckpointReport,)),
    Format("forgetting.json", "TOFU: what the system still knows.", (Forgetting,)),
    Format("timings.jsonl", "Times, sizes and the use of models, phase by phase.", (Timing,)),
    Format("timing.json", "The same in total.", (RunTiming,)),
    Format("trials.chain.jsonl", "The hash chain over both journals.", (ChainRecord,)),
    Format(
        "seal.json",
        "The sha256 of the manifest and of the files that were written after it. Two hashes stand "
        "beside a file while it is replaced.",
        (dict[str, list[str]],),
    ),
    Format(
        "summary.json",
        "In the folder of the runs: the figures of each run, by its label.",
        (dict[str, SummaryEntry],),
    ),
    Format(
        "repeats.json",
        "In the folder of the runs: each declared set of repeats, by its label.",
        (dict[str, RepeatSet],),
    ),
    Format(
        "datasets.json",
        "Above the folders of several datasets: the main figures of each system on each of them.",
        (DatasetSummary,),
    ),
    Format("attempts.jsonl", "In the folder of the runs: the ledger of attempts.", (LedgerLine,)),
)
