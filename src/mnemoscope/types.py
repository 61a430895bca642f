"""The types that all packages share, the same on disk, on the wire and in the code.

They are small immutable structs. This module knows no dataset, system or metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct

Expectation = Literal["answer", "abstain", "refuse", "partial"]
Scalar = str | int | float | bool

Status = Literal[
    "answered",
    "truncated",
    "abstained",
    "empty",
    "error",
    "timeout",
    "not-indexed",
    "unjudged",
]
"""How a trial ended. An error is a status, not a score of zero. A truncated answer was cut at the
limit of tokens; it is judged as it is."""

FAILED: frozenset[Status] = frozenset({"error", "timeout", "not-indexed"})
"""The statuses of questions that could not be measured."""


class Memory(Struct, frozen=True, omit_defaults=True):
    """One unit that a system ingests."""

    id: str
    """Unique in the dataset. It must not reveal whether the memory is evidence."""
    text: str
    at: datetime | None = None
    """When it happened, on the scenario's clock, in UTC."""
    session: str = ""
    speaker: str = ""
    metadata: dict[str, Scalar] = {}
    part_of: str = ""
    """The id that evidence uses, if this memory is a part of something larger, such as a day."""


class Query(Struct, frozen=True, omit_defaults=True):
    """The part of a question that a system receives: without id, category and evidence."""

    text: str
    now: datetime | None = None
    session: str = ""
    policy: str = ""
    """What may be told in which session, in words; readers get it. Systems get the same rule with
    each memory, as `told_in` of its metadata."""


class AnswerKey(Struct, frozen=True, omit_defaults=True):
    """The facts of the right answer, so that an answer can be judged without a model."""

    required: tuple[tuple[str, ...], ...] = ()
    """Facts that the answer must contain; each entry lists the accepted wordings of one fact."""
    outdated: tuple[str, ...] = ()
    """Facts that were true once and were superseded before the question is asked."""
    others: tuple[str, ...] = ()
    """Near misses: facts about something else of the same kind."""
    secret: tuple[str, ...] = ()
    """Facts that may not be disclosed in the session in which the question is asked."""


class Question(Struct, frozen=True, omit_defaults=True):
    """One question, with its labels."""

    id: str
    text: str
    now: datetime | None = None
    reference: str = ""
    category: str = ""
    evidence: tuple[str, ...] = ()
    """Ids of the memories that contain the answer; empty where no memory does."""
    grades: dict[str, int] = {}
    """Degrees of relevance, where the labels have them; the default grade is 1."""
    expects: Expectation = "answer"
    session: str = ""
    difficulty: str = ""
    expires_after: datetime | None = None
    cluster: str = ""
    """Questions of one cluster share a history and are not independent; default: the scenario."""
    relevant_days: tuple[int, ...] = ()
    """The days of a simulated history that contain the answer, counted from 1."""
    forbidden: tuple[str, ...] = ()
    """Sessions whose content may not be disclosed in the session of the question."""
    key: AnswerKey | None = None
    rubric: tuple[str, ...] = ()
    """What the answer should state, item by item, where the dataset's official score counts it."""
    rivals: tuple[str, ...] = ()
    """Ids of the memories that compete with the evidence: they state a value of another time, a
    value that must be forgotten, or the same once more."""
    replaces: tuple[str, ...] = ()
    """Ids of earlier questions about the same thing, whose answer its own answer supersedes."""


class Checkpoint(Struct, frozen=True, omit_defaults=True):
    """A point in a scenario at which questions are asked; only earlier memories are ingested."""

    label: str
    days: int
    """The requested cut-off; it may lie after the last day of the scenario."""
    memories: int
    """How many of the scenario's memories, counted from the first, are ingested by then."""
    questions: tuple[str, ...]
    """Ids, in the order they are asked."""
    now: datetime | None = None
    ingested_days: int = 0
    eligible: dict[str, int] = {}
    """Category to the number of eligible questions, before sampling and options."""
    new: int = 0
    """How many of the asked questions are eligible here for the first time."""
    historical: int = 0
    """How many were already eligible at an earlier checkpoint; sampling draws from these."""
    forget: tuple[str, ...] = ()
    """Ids of the memories that the system is told to forget before the questions are asked."""
    forget_if_able: bool = False
    """Whether a system without `forget` is asked all the same."""
    cohort: tuple[str, ...] = ()
    """Ids of the questions that are followed from here to the last checkpoint, if it was planned.

    They are among `questions`."""


class Scenario(Struct, frozen=True, omit_defaults=True):
    """One isolated history: memories in time order, and the questions about it."""

    id: str
    memories: tuple[Memory, ...]
    questions: tuple[Question, ...]
    checkpoints: tuple[Checkpoint, ...] = ()
    """When to ask which questions; without checkpoints, all are asked after the last memory."""
    policy: str = ""
    """What may be told in which session, in words, where the questions depend on it."""


class Hit(Struct, frozen=True, omit_defaults=True):
    """One result of a recall. Its rank is its position; the score is not used."""

    id: str
    score: float | None = None
    text: str = ""
    sources: tuple[str, ...] = ()
    """Ids of the memories it was made from, if that is not the one memory `id`.

    The hit takes a place in the ranking for each of them."""
    ordered: bool = False
    """Whether `sources` are in order of relevance, best first. Without an order, every metric is
    its mean over all orders."""


class Selector(Struct, frozen=True, omit_defaults=True):
    """The memories that a system is told to forget, in full, so that it can find them."""

    memories: tuple[Memory, ...]

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(memory.id for memory in self.memories)


class Receipt(Struct, frozen=True, omit_defaults=True):
    """What a system did with the ingested memories; those not listed were stored in full."""

    rejected: dict[str, str] = {}
    """Memory id to the reason it was not stored."""
    merged: dict[str, str] = {}
    """Memory id to what it was merged into."""
    truncated: dict[str, float] = {}
    """Memory id to the share of its text that was indexed."""


class Ingestion(
    Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="phase",
    tag="remember",
):
    """The journal's line for an ingested scenario."""

    scenario: str
    memories: int
    receipt: Receipt = Receipt()
    error: str = ""
    checkpoint: str = ""
    """The checkpoint by which these memories, counted from the first, were ingested."""


class Trial(
    Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="phase",
    tag="recall",
):
    """The journal's line for one question; it contains everything that the metrics need."""

    scenario: str
    question: str
    status: Status
    category: str = ""
    cluster: str = ""
    evidence: tuple[str, ...] = ()
    grades: dict[str, int] = {}
    pool: int = 0
    """How many memories the system could have recalled from."""
    reachable: int = 0
    """How many evidence ids exist in that pool."""
    ranking: tuple[str, ...] = ()
    """The ids of the hits, best first, repetitions included."""
    scores: tuple[float | None, ...] = ()
    """One for each rank; empty if the system returned no scores."""
    tokens: tuple[int, ...] = ()
    """Estimated context tokens of each hit; empty if the text of a hit is not known."""
    sources: dict[str, tuple[str, ...]] = {}
    """Hit id to the memories it was made from, for hits that are not one memory."""
    unknown: int = 0
    """How many hits have an id that is not a memory of this scenario."""
    first_rank: int | None = None
    """Rank of the first evidence as an imported file records it, 0 for none."""
    cut: int | None = None
    """The length of an imported list that may go on after its end; None for a whole list."""
    attempt: int = 1
    error: str = ""
    checkpoint: str = ""
    texts: dict[str, str] = {}
    """Hit id to its text, for hits whose text differs from the memory's."""
    ordered: tuple[str, ...] = ()
    """Ids of the hits whose sources are in order of relevance."""
    places: dict[str, int] = {}
    """Hit id to the number of memories it was made from, where `sources` also lists what those are
    parts of and there is more than one."""
    carried: dict[str, tuple[str, ...]] = {}
    """Hit id to the memories that its own text carries: of a hit that names sources, the evidence
    among them; of a hit that names none, all memories of the pool that the text covers as well.
    Hits that are missing here are credited with what they name."""
    forbidden: tuple[int, ...] | None = None
    """The ranks of hits from sessions that may not be told where the question was asked; None if
    the scenario has no policy."""


class Answer(
    Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="phase",
    tag="answer",
):
    """The journal's line for the answer of a reader, or of the system itself."""

    scenario: str
    question: str
    status: Status
    text: str = ""
    sources: tuple[str, ...] = ()
    """Ids of the hits that the answer was made from, if the reader reports them."""
    error: str = ""
    checkpoint: str = ""
    shown: int | None = None
    """How many hits, best first, the reader was shown; None if it was shown all of them."""


_PASSING = 4
_HALF = 0.5


class Scale(Struct, frozen=True):
    """The scale of a judge's grades. Only grades on the same scale are compared."""

    name: str
    """The name of the mean in reports and files."""
    low: float | None = 0.0
    """The worst value; None for no limit, and then there is no right or wrong."""
    high: float | None = 1.0
    passing: float = _HALF
    """An answer is right from this value on."""

    @property
    def bounded(self) -> bool:
        return self.low is not None and self.high is not None

    def holds(self, value: float) -> bool:
        low = value if self.low is None else self.low
        return low <= value <= (value if self.high is None else self.high)

    @property
    def range(self) -> str:
        low, high = ("no limit" if end is None else f"{end:g}" for end in (self.low, self.high))
        return f"{low} to {high}"


class Repeat(Struct, frozen=True):
    """Which of how many declared repeats a run is."""

    number: int
    of: int
    seed: int | None = None
    """The seed that the system was given; None if it takes none."""
    set: str = ""
    """A hash of the first repeat's identity, the same in all repeats of the set."""


class Reviewed(Struct, frozen=True):
    """How many questions there are, were drafted by a program, and were confirmed by a person."""

    questions: int
    drafted: int
    confirmed: int


class Score(Struct, frozen=True, omit_defaults=True):
    """Recall Bench's rubric: correctness 0–3, completeness 0–2, and 1 for no hallucination."""

    correctness: int
    completeness: int
    hallucination: int
    reasoning: str = ""
    votes: dict[str, float] = {}
    """Each panel judge's score, as a share of the best composite."""

    @property
    def composite(self) -> int:
        return self.correctness + self.completeness + self.hallucination

    @property
    def fails(self) -> bool:
        """Recall Bench's rule for appeals: a low score, a hallucination, or nothing correct."""
        return self.composite < _PASSING or not self.hallucination or not self.correctness


class Grade(Struct, frozen=True, omit_defaults=True):
    """One number for an answer, on the judge's scale, usually from 0 to 1."""

    value: float
    reasoning: str = ""
    votes: dict[str, float] = {}
    """Each panel judge's grade."""
    passing: float = _HALF
    """The answer is right from this value on; from the judge's scale."""
    log_odds: float | None = None
    """How sure a model was that the answer is right: log p(right) − log p(wrong), if it says so."""

    @property
    def fails(self) -> bool:
        return self.value < self.passing


class Verdict(
    Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="phase",
    tag="judge",
):
    """The journal's line for the verdict on an answer."""

    scenario: str
    question: str
    score: Score | None = None
    """The final score; None if judging failed, which is unjudged, not zero."""
    primary: Score | None = None
    """The first judge's score, if the verdict was appealed."""
    error: str = ""
    checkpoint: str = ""
    grade: Grade | None = None
    """Replaces the score for judges that give one number."""
    primary_grade: Grade | None = None

    @property
    def final(self) -> Score | Grade | None:
        """The final score or grade; None if the answer is unjudged."""
        return self.score if self.score is not None else self.grade


class Usage(Struct, frozen=True, omit_defaults=True):
    """Requests to language models, and their cost."""

    requests: int = 0
    """Requests that were sent."""
    cached: int = 0
    """Replies that were taken from the cache."""
    retries: int = 0
    input_tokens: int = 0
    """Tokens of all replies, cached ones included."""
    output_tokens: int = 0
    cost: float = 0.0
    """The price of all replies, cached ones included, in US dollars."""
    paid: float = 0.0
    """The price of the requests that were sent."""
    estimated: bool = False
    """Whether token counts were estimated, because a server does not report them."""


class Timing(Struct, frozen=True, omit_defaults=True):
    """Times and sizes; kept in a separate file, so that everything else is reproducible."""

    scenario: str
    question: str = ""
    checkpoint: str = ""
    recall_ms: float | None = None
    answer_ms: float | None = None
    judge_ms: float | None = None
    index_ms: float | None = None
    index_bytes: int | None = None
    counters: dict[str, int] = {}
    """The system's counters while it indexed this scenario, such as texts embedded."""
    usage: Usage | None = None
    """The requests to language models in the timed phase."""


class Isolation(Struct, frozen=True, omit_defaults=True):
    """What kept the labels from a system while it ran."""

    hosting: str
    """Where the system's code ran: built-in, worker, child or server."""
    level: int | None
    """0 within reach, 1 not given, 2 locked out, 3 locked out with decoys; None if it is ours."""
    mechanism: str = ""
    """What enforces the lock, with its version."""
    starts: int = 0
    passed: int = 0
    """How many of the starts of a child passed the self-test of its lock."""
    why: str = ""
    """Why the level is not higher."""
    sees_labels: bool = False
    """Whether the system is given the labels on purpose, as the oracle is."""
    decoys_sha256: str = ""
    """The hash of the secret that the decoys are drawn with."""
    left_behind: tuple[str, ...] = ()
    """The names of processes that left the system's process group and were ended with it."""


TOLD_IN = "told_in"
"""The metadata field of a memory that lists, with commas, the sessions in which it may be told."""


class System(Protocol):
    """A memory system under test."""

    def remember(self, memories: Sequence[Memory]) -> Receipt | None:
        """Ingest memories, in time order. None means that all were stored in full."""
        ...

    def recall(self, query: Query, k: int) -> Sequence[Hit]:
        """Return up to k hits, best first. The rank is the position; scores are not used."""
        ...


CORE_CATEGORIES = (
    "factual-recall",
    "temporal-reasoning",
    "decision-tracking",
    "contradiction-resolution",
    "cross-reference",
    "recency-bias-resistance",
    "synthesis",
    "negative-recall",
)
"""Categories that are asked of every persona."""
GROUP_CATEGORIES = ("group-session-attribution", "information-boundary")
"""Categories that need several sessions, and are asked only on request."""
CATEGORIES = (*CORE_CATEGORIES, *GROUP_CATEGORIES)
