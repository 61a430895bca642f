"""The types that all rooms share: a Memory is the same on disk, on the wire and in the code.

Small immutable structs without behaviour. Nothing here knows a dataset, a system or a metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct

Expectation = Literal["answer", "abstain", "refuse", "partial"]
Scalar = str | int | float | bool

Status = Literal["answered", "abstained", "empty", "error", "timeout", "not-indexed", "unjudged"]
"""How a trial ended. An error is a status of its own, never a score of zero."""

FAILED: frozenset[Status] = frozenset({"error", "timeout", "not-indexed"})
"""The statuses that say the question was never fairly put."""


class Memory(Struct, frozen=True, omit_defaults=True):
    """One unit to be remembered."""

    id: str
    """Unique in the whole dataset, neutral: it must not tell whether it is evidence."""
    text: str
    at: datetime | None = None
    """When it happened, on the scenario's own clock, in UTC."""
    session: str = ""
    speaker: str = ""
    metadata: dict[str, Scalar] = {}
    part_of: str = ""
    """The id that evidence names it by, where it is a piece of something larger, as of a day."""


class Query(Struct, frozen=True, omit_defaults=True):
    """What a system is told of a question: no id, no category, no evidence."""

    text: str
    now: datetime | None = None
    session: str = ""


class AnswerKey(Struct, frozen=True, omit_defaults=True):
    """What a ledger knows of the right answer, so that it can be judged without a model."""

    required: tuple[tuple[str, ...], ...] = ()
    """What must be said: an entry for each thing, with every wording that counts as saying it."""
    outdated: tuple[str, ...] = ()
    """What was true once and was superseded before the question is asked."""
    others: tuple[str, ...] = ()
    """Near misses: what is true of something else of the same kind."""
    secret: tuple[str, ...] = ()
    """What may not be said from the session that the question is asked from."""


class Question(Struct, frozen=True, omit_defaults=True):
    """One question with everything the harness knows about it."""

    id: str
    text: str
    now: datetime | None = None
    reference: str = ""
    category: str = ""
    evidence: tuple[str, ...] = ()
    """Ids of the memories that hold the answer; empty where no memory does."""
    grades: dict[str, int] = {}
    """Degrees of relevance where the labels have them; without them each evidence counts 1."""
    expects: Expectation = "answer"
    session: str = ""
    difficulty: str = ""
    expires_after: datetime | None = None
    cluster: str = ""
    """Questions of one cluster share a history and are not independent; default: the scenario."""
    relevant_days: tuple[int, ...] = ()
    """The days of a persona's life that hold the answer, counted from 1."""
    forbidden: tuple[str, ...] = ()
    """Sessions whose content may not be told where the question is asked."""
    key: AnswerKey | None = None


class Checkpoint(Struct, frozen=True, omit_defaults=True):
    """A moment of a scenario at which a system that has seen exactly so much is questioned."""

    label: str
    days: int
    """The cut-off as it was asked for; it may lie beyond the last day there is."""
    memories: int
    """How many of the scenario's memories, from the first, have happened by then."""
    questions: tuple[str, ...]
    """Ids, in the order they are asked."""
    now: datetime | None = None
    ingested_days: int = 0
    eligible: dict[str, int] = {}
    """Category to how many questions could be asked, before sampling and switches."""
    new: int = 0
    """How many of the questions asked can be asked here for the first time."""
    historical: int = 0
    """How many could be asked at an earlier checkpoint already; sampling draws from these."""
    forget: tuple[str, ...] = ()
    """Ids of the memories that the system is told to forget before anything is asked here."""


class Scenario(Struct, frozen=True, omit_defaults=True):
    """One isolated history: memories in time order and the questions asked of it."""

    id: str
    memories: tuple[Memory, ...]
    questions: tuple[Question, ...]
    checkpoints: tuple[Checkpoint, ...] = ()
    """When to ask which questions; none means all of them, once, after the last memory."""


class Hit(Struct, frozen=True, omit_defaults=True):
    """One thing a system recalled; its rank is its position, its score is decoration."""

    id: str
    score: float | None = None
    text: str = ""
    sources: tuple[str, ...] = ()
    """Ids of the memories it was made from, where that is not the one memory `id`."""


class Selector(Struct, frozen=True, omit_defaults=True):
    """What a system is told to forget: these memories, given whole so that it can find them."""

    memories: tuple[Memory, ...]

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(memory.id for memory in self.memories)


class Receipt(Struct, frozen=True, omit_defaults=True):
    """What a system did with the memories it was given; silence means stored whole."""

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
    """The journal's line for a scenario that was given to a system."""

    scenario: str
    memories: int
    receipt: Receipt = Receipt()
    error: str = ""
    checkpoint: str = ""
    """By which checkpoint the system held these, counted from the first memory."""


class Trial(
    Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="phase",
    tag="recall",
):
    """The journal's line for one question put to one system. Self-contained: it can be measured."""

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
    """What was recalled, best first, as it came: repetitions are still in it."""
    scores: tuple[float | None, ...] = ()
    """One for each rank, or none at all where the system gave none."""
    tokens: tuple[int, ...] = ()
    """Estimated context tokens that showing each hit to a reader would cost."""
    sources: dict[str, tuple[str, ...]] = {}
    """Hit id to the memories it was made from, for hits that are not one memory."""
    unknown: int = 0
    """Recalled ids that are no memory of this scenario."""
    first_rank: int | None = None
    """Rank of the first evidence as somebody else's file records it, 0 for none."""
    attempt: int = 1
    error: str = ""
    checkpoint: str = ""
    texts: dict[str, str] = {}
    """Hit id to its text, for hits that are not worded as the memory is."""


class Answer(
    Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="phase",
    tag="answer",
):
    """The journal's line for what was answered, by a reader or by the system itself."""

    scenario: str
    question: str
    status: Status
    text: str = ""
    sources: tuple[str, ...] = ()
    """Ids of the hits that the answer was made from, where the reader says so."""
    error: str = ""
    checkpoint: str = ""
    shown: int | None = None
    """How many hits, best first, the reader was shown; none where it was shown them all."""


_PASSING = 4
_HALF = 0.5


class Scale(Struct, frozen=True):
    """What a judge's numbers mean. Only numbers of the same scale are compared."""

    name: str
    """What the mean of such numbers is called in reports and files."""
    low: float | None = 0.0
    """The worst value; none where there is no limit, and then no right and wrong either."""
    high: float | None = 1.0
    passing: float = _HALF
    """From this value on an answer counts as right."""

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


class Score(Struct, frozen=True, omit_defaults=True):
    """Recall Bench's rubric: correctness 0–3, completeness 0–2, and 1 for no hallucination."""

    correctness: int
    completeness: int
    hallucination: int
    reasoning: str = ""
    votes: dict[str, float] = {}
    """What each judge of a panel said, as a share of the best composite."""

    @property
    def composite(self) -> int:
        return self.correctness + self.completeness + self.hallucination

    @property
    def fails(self) -> bool:
        """Recall Bench's rule for what may be appealed: low, invented, or nothing right."""
        return self.composite < _PASSING or not self.hallucination or not self.correctness


class Grade(Struct, frozen=True, omit_defaults=True):
    """One number for an answer, on the scale of the judge that gave it; mostly from 0 to 1."""

    value: float
    reasoning: str = ""
    votes: dict[str, float] = {}
    """What each judge of a panel said."""
    passing: float = _HALF
    """From this value on it is right: as the judge's scale says."""

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
    """The journal's line for what a judge said of an answer."""

    scenario: str
    question: str
    score: Score | None = None
    """The final score; none where no judge came to one, which is unjudged and no zero."""
    primary: Score | None = None
    """What the first judge said, where the case was appealed."""
    error: str = ""
    checkpoint: str = ""
    grade: Grade | None = None
    """In place of a score, from judges that give one number."""
    primary_grade: Grade | None = None

    @property
    def final(self) -> Score | Grade | None:
        """What the answer got; none where it is unjudged."""
        return self.score if self.score is not None else self.grade


class Usage(Struct, frozen=True, omit_defaults=True):
    """What language models were asked, and what that costs."""

    requests: int = 0
    """Replies that came over the wire now."""
    cached: int = 0
    """Replies that had come before and were taken from the cache."""
    retries: int = 0
    input_tokens: int = 0
    """Of all replies, from the cache or not."""
    output_tokens: int = 0
    cost: float = 0.0
    """What all replies cost at the model's price, in US dollars."""
    paid: float = 0.0
    """What those cost that came over the wire now."""
    estimated: bool = False
    """Whether a server that reports no token counts made us estimate them."""


class Timing(Struct, frozen=True, omit_defaults=True):
    """What the clock and the disk say; kept apart so that everything else is reproducible."""

    scenario: str
    question: str = ""
    checkpoint: str = ""
    recall_ms: float | None = None
    answer_ms: float | None = None
    judge_ms: float | None = None
    index_ms: float | None = None
    index_bytes: int | None = None
    counters: dict[str, int] = {}
    """What the system counted while it indexed this scenario, e.g. texts embedded."""
    usage: Usage | None = None
    """What the phase that was timed asked of language models."""


class System(Protocol):
    """What is under test: it remembers memories and recalls them."""

    def remember(self, memories: Sequence[Memory]) -> Receipt | None:
        """Take in memories, in time order. None means: all stored, whole."""
        ...

    def recall(self, query: Query, k: int) -> Sequence[Hit]:
        """Up to k hits, best first: rank is position, scores are decoration."""
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
"""Asked of every persona."""
GROUP_CATEGORIES = ("group-session-attribution", "information-boundary")
"""Need several sessions, and are asked on request."""
CATEGORIES = (*CORE_CATEGORIES, *GROUP_CATEGORIES)
