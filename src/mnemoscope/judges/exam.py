"""The smoke test of a judge: its verdicts on fixed, public answers that are correct or wrong.

The probes and their facts are invented and contain no text of any dataset. They show a judge that
is broken; they entitle to nothing, since they are few and known. `drawn_exam` draws real exams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from mnemoscope._store.errors import DataError, MnemoscopeError, UsageError
from mnemoscope._store.jsonl import printable
from mnemoscope._store.yaml import load_yaml
from mnemoscope.judges import Case, Judge, Unjudged
from mnemoscope.judges.appeal import ask
from mnemoscope.models.budget import Budget, open_budget
from mnemoscope.models.cache import default_cache_dir
from mnemoscope.models.chat import metered, total
from mnemoscope.types import Expectation, Question, Scenario, Usage

Kind = Literal[
    "right-paraphrase",
    "right-verbose",
    "correct-refusal",
    "negated",
    "vague-wrong",
    "specific-wrong",
    "wrong-date",
    "partial-list",
    "wrongly-refused",
    "confabulated",
    "injection",
]
_REFUSED: frozenset[Kind] = frozenset({"correct-refusal", "wrongly-refused"})
MOST_WRONG = 0.10
"""To pass, a judge accepts at most this share of wrong answers and rejects as few correct ones."""
MOST_UNJUDGED = 0.05
MOST_OF_A_KIND = 0.5
"""The same limit within each kind of answer. It is high because a kind has few probes. Without it,
a judge that is wrong about a whole small kind could pass."""


class Probe(Struct, frozen=True, forbid_unknown_fields=True):
    """An answer, and whether a judge must accept it."""

    id: str
    kind: Kind
    type: str
    """The question type of LongMemEval, for judges that depend on it."""
    question: str
    reference: str
    answer: str
    acceptable: bool
    expects: Expectation = "answer"

    @property
    def case(self) -> Case:
        question = Question(
            self.id,
            self.question,
            reference=self.reference,
            category=self.type,
            expects=self.expects,
        )
        return Case(question, self.answer, abstained=self.kind in _REFUSED)


class Share(Struct, frozen=True):
    """A count, a total, and their ratio."""

    count: int
    of: int
    rate: float
    """0 if the total is 0."""


class KindResult(Struct, frozen=True):
    """The verdicts on the probes of one kind."""

    probes: int
    false_accepts: int
    false_rejects: int
    unjudged: int
    wrong: int
    """Wrong answers with a verdict."""
    right: int

    @property
    def blind(self) -> bool:
        """Whether more than half of the verdicts are errors."""
        most = MOST_OF_A_KIND
        return self.false_accepts > most * self.wrong or self.false_rejects > most * self.right


class Mistake(Struct, frozen=True, omit_defaults=True):
    """A probe with a wrong verdict, or with none."""

    probe: str
    kind: Kind
    what: Literal["false accept", "false reject", "unjudged"]
    reasoning: str = ""


class ExamResult(Struct, frozen=True):
    """The result of an exam; shares are of the probes with a verdict."""

    passed: bool
    false_accept: Share
    """Accepted wrong answers."""
    false_reject: Share
    """Rejected correct answers."""
    unjudged: Share
    kinds: dict[str, KindResult]
    mistakes: tuple[Mistake, ...]
    limits: dict[str, float]
    reasons: tuple[str, ...]
    """Why the judge failed, as sentences."""
    probes_sha256: str
    usage: Usage | None = None


@cache
def load_probes() -> tuple[Probe, ...]:
    """The probes that are part of the package."""
    place = Path(str(files(__package__) / "probes.yaml"))
    try:
        probes = msgspec.convert(load_yaml(place), tuple[Probe, ...])
    except msgspec.ValidationError as error:
        raise DataError(str(error), file=place) from None
    if len({probe.id for probe in probes}) < len(probes):
        raise DataError("two probes have the same id", file=place)
    return probes


def probes_sha256(probes: Sequence[Probe]) -> str:
    return sha256(msgspec.json.encode(probes)).hexdigest()


def take(
    judge: Judge,
    probes: Sequence[Probe],
    *,
    parallelism: int = 1,
    max_cost: float | None = None,
    tell: Callable[[], None] = lambda: None,
) -> ExamResult:
    """Judge every probe, `parallelism` at a time, and call `tell` after each.

    The same errors stop a run and an exam: an endpoint that is down, a missing key, or a request
    that could exceed `max_cost` dollars. Replies up to then are in the cache.
    """
    if parallelism < 1:
        raise UsageError(f"parallelism={parallelism}: must be 1 or more")
    if getattr(judge, "wants_recalled", False):
        raise UsageError("this judge scores recalled passages, not answers, so it has no exam")
    judge.begin(Scenario("exam", (), ()))

    def mark(probe: Probe) -> tuple[Mistake | None, list[Usage]]:
        with metered() as usages:
            return _mark(judge, probe), usages

    mistakes: list[Mistake] = []
    usages: list[Usage] = []
    with cost_limit(max_cost), ThreadPoolExecutor(parallelism) as pool:
        marks = [pool.submit(mark, probe) for probe in probes]
        try:
            for done in marks:
                mistake, used = done.result()
                mistakes += [mistake] if mistake else []
                usages += used
                tell()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return _result(probes, mistakes, total(usages))


@contextmanager
def cost_limit(dollars: float | None) -> Iterator[None]:
    """Limit what models may cost while the block runs."""
    if dollars is None:
        yield
        return
    if not dollars > 0:
        raise UsageError(f"--max-cost {dollars}: must be more than 0 dollars")
    lock = default_cache_dir() / "exams" / ".purse.lock"
    open_budget(Budget(dollars, already=0.0, slots=1, lock=lock))
    try:
        yield
    finally:
        open_budget(None)


def _mark(judge: Judge, probe: Probe) -> Mistake | None:
    """None if the verdict is right."""
    try:
        verdict = ask(judge, probe.case)
    except MnemoscopeError:
        raise
    except Unjudged as error:
        return Mistake(probe.id, probe.kind, "unjudged", printable(str(error)))
    except Exception as error:  # a plug-in judge that raises has given no verdict
        failure = printable(f"{type(error).__name__}: {error}")
        return Mistake(probe.id, probe.kind, "unjudged", failure)
    if verdict.fails != probe.acceptable:
        return None
    what: Literal["false accept", "false reject"]
    what = "false reject" if probe.acceptable else "false accept"
    return Mistake(probe.id, probe.kind, what, printable(verdict.reasoning))


def _result(
    probes: Sequence[Probe], mistakes: Sequence[Mistake], usage: Usage | None
) -> ExamResult:
    unjudged = {mistake.probe for mistake in mistakes if mistake.what == "unjudged"}
    judged = [probe for probe in probes if probe.id not in unjudged]
    right = sum(probe.acceptable for probe in judged)
    wrong = len(judged) - right

    def count(what: str, kind: Kind | None = None) -> int:
        return sum(one.what == what and kind in (None, one.kind) for one in mistakes)

    def of_kind(kind: Kind) -> KindResult:
        acceptable = [probe.acceptable for probe in judged if probe.kind == kind]
        return KindResult(
            sum(probe.kind == kind for probe in probes),
            count("false accept", kind),
            count("false reject", kind),
            count("unjudged", kind),
            wrong=len(acceptable) - sum(acceptable),
            right=sum(acceptable),
        )

    accepts = _share(count("false accept"), wrong)
    rejects = _share(count("false reject"), right)
    without = _share(len(unjudged), len(probes))
    kinds: dict[str, KindResult] = {
        kind: of_kind(kind) for kind in dict.fromkeys(probe.kind for probe in probes)
    }
    reasons = []
    if accepts.rate > MOST_WRONG:
        reasons.append("it accepts too many wrong answers")
    if rejects.rate > MOST_WRONG:
        reasons.append("it rejects too many correct answers")
    if without.rate > MOST_UNJUDGED:
        reasons.append("it reaches no verdict too often")
    if blind := [name for name, kind in kinds.items() if kind.blind]:
        reasons.append(f"more than half of its verdicts are wrong for: {', '.join(blind)}")
    if not reasons and not (wrong and right):
        missing = "wrong " if right else "correct " if wrong else ""
        reasons.append(f"it judged no {missing}answers")
    limits = {
        "false_accept": MOST_WRONG,
        "false_reject": MOST_WRONG,
        "unjudged": MOST_UNJUDGED,
        "of_one_kind": MOST_OF_A_KIND,
    }
    return ExamResult(
        not reasons,
        accepts,
        rejects,
        without,
        kinds,
        tuple(mistakes),
        limits,
        tuple(reasons),
        probes_sha256(probes),
        usage,
    )


def _share(count: int, of: int) -> Share:
    return Share(count, of, count / of if of else 0.0)
