"""The exam: what a judge says of answers that are known to be right or wrong.

The probes and their facts are invented; no dataset's text is in them. A judge passes that seldom
accepts a wrong answer, seldom rejects a right one, nearly always comes to a verdict, and is not
blind to a whole kind of answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from mnemoscope._store.errors import DataError, MnemoscopeError, UsageError
from mnemoscope._store.fingerprint import fingerprint
from mnemoscope._store.jsonl import printable, write_json
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
"""A judge that passes accepts at most this share of the wrong answers, and rejects of the right."""
MOST_UNJUDGED = 0.05
MOST_OF_A_KIND = 0.5
"""The same for the wrong, and for the right, answers of each kind: few probes, so much is allowed,
but the totals would let a judge pass that is taken in by every answer of a small kind."""


class Probe(Struct, frozen=True, forbid_unknown_fields=True):
    """An answer of which it is known whether a judge must accept it."""

    id: str
    kind: Kind
    type: str
    """LongMemEval's type of the question, for judges that go by it."""
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
    """So many of so many."""

    count: int
    of: int
    rate: float
    """0 of nothing."""


class KindResult(Struct, frozen=True):
    """How the probes of one kind were judged."""

    probes: int
    false_accepts: int
    false_rejects: int
    unjudged: int
    wrong: int
    """Wrong answers among them that it came to a verdict on."""
    right: int

    @property
    def blind(self) -> bool:
        """Whether it mostly errs here."""
        most = MOST_OF_A_KIND
        return self.false_accepts > most * self.wrong or self.false_rejects > most * self.right


class Mistake(Struct, frozen=True, omit_defaults=True):
    """A probe that was judged wrongly or not at all."""

    probe: str
    kind: Kind
    what: Literal["false accept", "false reject", "unjudged"]
    reasoning: str = ""


class ExamResult(Struct, frozen=True):
    """How a judge did; shares are of the probes that it came to a verdict on."""

    passed: bool
    false_accept: Share
    """Wrong answers that it accepted."""
    false_reject: Share
    """Right answers that it rejected."""
    unjudged: Share
    kinds: dict[str, KindResult]
    mistakes: tuple[Mistake, ...]
    limits: dict[str, float]
    reasons: tuple[str, ...]
    """Why it did not pass, in words."""
    probes_sha256: str
    usage: Usage | None = None


@cache
def load_probes() -> tuple[Probe, ...]:
    """The probes of the package."""
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
    """Put every probe to the judge, `parallelism` at a time; `tell` is called after each.

    What stops a run stops the exam: an endpoint that is down, a missing key, or that the next
    request could make it cost more than `max_cost` dollars. What was replied is in the cache then.
    """
    if parallelism < 1:
        raise UsageError(f"a parallelism of {parallelism} asks nothing; give 1 or more")
    if getattr(judge, "wants_recalled", False):
        raise UsageError("this judge looks at what was recalled, not at answers: no exam fits it")
    judge.begin(Scenario("exam", (), ()))

    def mark(probe: Probe) -> tuple[Mistake | None, list[Usage]]:
        with metered() as usages:
            return _mark(judge, probe), usages

    mistakes: list[Mistake] = []
    usages: list[Usage] = []
    with _at_most(max_cost), ThreadPoolExecutor(parallelism) as pool:
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
def _at_most(dollars: float | None) -> Iterator[None]:
    """While the block runs, models may not cost more."""
    if dollars is None:
        yield
        return
    if not dollars > 0:
        raise UsageError(f"--max-cost {dollars}: more than 0 dollars")
    lock = default_cache_dir() / "exams" / ".purse.lock"
    open_budget(Budget(dollars, already=0.0, slots=1, lock=lock))
    try:
        yield
    finally:
        open_budget(None)


def record(result: ExamResult, identity: Mapping[str, Any]) -> Path:
    """Keep the result under the judge's identity and the probes' hash; the file that holds it."""
    place = _place(identity, result.probes_sha256)
    write_json(place, {"identity": identity, "result": result})
    return place


def recorded(identity: Mapping[str, Any]) -> ExamResult | None:
    """The result of the judge with exactly this identity, on the probes as they are now."""
    place = _place(identity, probes_sha256(load_probes()))
    try:
        content = msgspec.json.decode(place.read_bytes(), type=dict[str, msgspec.Raw])
        return msgspec.json.decode(content["result"], type=ExamResult)
    except (OSError, KeyError, msgspec.DecodeError):
        return None  # not taken, or of no use any more: it can be taken again


def _place(identity: Mapping[str, Any], probes: str) -> Path:
    key = fingerprint({"judge": identity, "probes": probes})
    return default_cache_dir() / "exams" / f"{key}.json"


def _mark(judge: Judge, probe: Probe) -> Mistake | None:
    """None where the judge is right about the probe."""
    try:
        said = ask(judge, probe.case)
    except MnemoscopeError:
        raise
    except Unjudged as error:
        return Mistake(probe.id, probe.kind, "unjudged", printable(str(error)))
    except Exception as error:  # a judge of one's own that breaks has given no verdict
        broke = printable(f"{type(error).__name__}: {error}")
        return Mistake(probe.id, probe.kind, "unjudged", broke)
    if said.fails != probe.acceptable:
        return None
    what: Literal["false accept", "false reject"]
    what = "false reject" if probe.acceptable else "false accept"
    return Mistake(probe.id, probe.kind, what, printable(said.reasoning))


def _result(
    probes: Sequence[Probe], mistakes: Sequence[Mistake], usage: Usage | None
) -> ExamResult:
    silent = {mistake.probe for mistake in mistakes if mistake.what == "unjudged"}
    judged = [probe for probe in probes if probe.id not in silent]
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
    unjudged = _share(len(silent), len(probes))
    kinds: dict[str, KindResult] = {
        kind: of_kind(kind) for kind in dict.fromkeys(probe.kind for probe in probes)
    }
    reasons = _reasons(accepts, rejects, unjudged, kinds)
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
        unjudged,
        kinds,
        tuple(mistakes),
        limits,
        reasons,
        probes_sha256(probes),
        usage,
    )


def _reasons(
    accepts: Share, rejects: Share, unjudged: Share, kinds: Mapping[str, KindResult]
) -> tuple[str, ...]:
    """Why a judge that did so cannot pass; nothing where it can."""
    found = []
    if accepts.rate > MOST_WRONG:
        found.append("it accepts too many wrong answers")
    if rejects.rate > MOST_WRONG:
        found.append("it rejects too many right answers")
    if unjudged.rate > MOST_UNJUDGED:
        found.append("too often it comes to no verdict")
    if blind := [name for name, kind in kinds.items() if kind.blind]:
        found.append(f"it errs in more than half of a kind: {', '.join(blind)}")
    if not found and not (accepts.of and rejects.of):
        sort = "wrong" if rejects.of else "right" if accepts.of else "such"
        found.append(f"there are no {sort} answers that it judged")
    return tuple(found)


def _share(count: int, of: int) -> Share:
    return Share(count, of, count / of if of else 0.0)
