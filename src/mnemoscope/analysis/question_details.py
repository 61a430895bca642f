"""Everything that a run knows about each of its questions, for pages and terminals to show.

`read_questions.question_details` reads them. The journal has ids, ranks and verdicts, but not the
texts of memories. A caller that has the dataset passes `DatasetTexts`; without them the details
have ids only.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct

from mnemoscope._store.run_directory import Manifest
from mnemoscope.types import Expectation, Status

HitKind = Literal["right", "carried", "claimed", "wrong", "unlabelled"]
"""`right`: the memory is evidence. `carried`: the hit's own text says what the evidence says.
`claimed`: the hit names evidence and its text does not say it, so it does not count. `wrong`: no
evidence. `unlabelled`: the question has no evidence, so no hit is right or wrong."""
Found = Literal["found", "partly", "missed"]
"""Whether all, some or none of the evidence is in the top k of `QuestionDetails.k`."""

Key = tuple[str, str]
"""A scenario and the id of one of its memories or questions."""


class SourceMemory(Struct, frozen=True, gc=False):
    """A memory as its dataset has it."""

    text: str
    """The text, or its beginning."""
    length: int
    """Characters of the whole text."""
    at: datetime | None = None
    session: str = ""
    speaker: str = ""


class AskedFrom(Struct, frozen=True, gc=False):
    """When and in which session a question is asked."""

    now: datetime | None = None
    session: str = ""


class DatasetTexts(Struct, frozen=True):
    """What a run directory does not contain of its dataset."""

    memories: Mapping[Key, SourceMemory] = {}
    asked: Mapping[Key, AskedFrom] = {}
    questions: Mapping[Key, str] = {}
    """The texts of questions, where the run is private and does not have them."""


class EvidenceMemory(Struct, frozen=True, gc=False):
    """A memory that contains the answer."""

    id: str
    rank: int | None
    """The rank of the first hit that is credited with it; None if no hit is."""
    memory: SourceMemory | None
    """None if the dataset was not read, or does not contain this id."""


class RecalledHit(Struct, frozen=True, gc=False):
    """One hit, at its place in the list that the system returned."""

    id: str
    rank: int
    """Counted from 1, repeated hits included."""
    kind: HitKind
    score: float | None = None
    text: str | None = None
    """The text that the system returned, if it differs from the memory's."""
    memory: SourceMemory | None = None
    credited: tuple[str, ...] = ()
    """The evidence that it counts for."""
    claimed: tuple[str, ...] = ()
    """The evidence that it names without saying it."""
    sources: tuple[str, ...] = ()
    """The memories it names, if that is not the one memory `id`."""
    places: int = 1
    """How many places of the ranking it takes."""
    is_repeated: bool = False
    """Whether an earlier hit has the same id; it is removed before scoring."""


class JudgeMark(Struct, frozen=True, gc=False):
    """What a judge said of an answer."""

    value: float
    """The grade, or the rubric's score as a share of the best."""
    passed: bool
    rubric: dict[str, int] = {}
    """Correctness (0 to 3), completeness (0 to 2) and 1 for no hallucination; empty for a grade."""
    reasoning: str = ""
    votes: dict[str, float] = {}
    """The members of a panel and their values."""


class VerdictDetails(Struct, frozen=True):
    """The verdict on an answer."""

    final: JudgeMark | None
    """None if judging failed."""
    primary: JudgeMark | None = None
    """The first judge's mark, if the appellate judge decided."""
    error: str = ""


class AnswerDetails(Struct, frozen=True, gc=False):
    """The answer of a reader, or of the system itself."""

    status: Status
    text: str = ""
    sources: tuple[str, ...] = ()
    """Ids of the hits that it was made from, if the reader reports them."""
    shown: int | None = None
    """How many hits the reader was shown; None for all of them."""
    error: str = ""


class QuestionDetails(Struct, frozen=True):
    """One question of a run, at one checkpoint if the run has checkpoints."""

    id: str
    scenario: str
    checkpoint: str
    category: str
    difficulty: str
    text: str
    reference: str
    expects: Expectation
    asked: AskedFrom | None
    """None if the dataset was not read."""
    status: str
    """How recalling or, with a reader, answering ended; empty if the journal has neither."""
    error: str
    evidence: tuple[EvidenceMemory, ...]
    hits: tuple[RecalledHit, ...]
    """The first hits; all of them unless the reader of the details asked for fewer."""
    returned: int
    """How many hits the system returned."""
    pool: int
    """How many memories the system could have recalled from; 0 if unknown."""
    k: int
    """The depth that `found` is about."""
    found: Found | None
    """None without evidence, and where recalling failed or the list ends too early to say."""
    metrics: dict[str, float]
    """The headline metrics of this question; empty without evidence or if recalling failed."""
    answer: AnswerDetails | None = None
    verdict: VerdictDetails | None = None
    failure: str = ""
    """The step that lost the answer, as in the report; empty if none was lost."""
    recall_ms: float | None = None
    answer_ms: float | None = None
    judge_ms: float | None = None


class RunQuestions(Struct, frozen=True):
    """All questions of a run, in the order in which they were asked."""

    manifest: Manifest
    metric_names: tuple[str, ...]
    has_texts: bool
    """Whether texts of memories are known."""
    questions: tuple[QuestionDetails, ...]
