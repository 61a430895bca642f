"""The exam: what a judge says of answers that are known to be right or wrong.

The probes and their facts are invented; no dataset's text is in them. A judge passes that seldom
accepts a wrong answer, seldom rejects a right one, and nearly always comes to a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from mnemoscope.core.errors import DataError, MnemoscopeError, UsageError
from mnemoscope.core.fingerprint import fingerprint
from mnemoscope.core.jsonl import printable, write_json
from mnemoscope.core.nouns import Expectation, Grade, Question, Scenario, Score, Usage
from mnemoscope.core.yaml import load_yaml
from mnemoscope.judges import Case, Judge, Unjudged
from mnemoscope.llm.cache import default_cache_dir
from mnemoscope.llm.chat import metered, total

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
    tell: Callable[[], None] = lambda: None,
) -> ExamResult:
    """Put every probe to the judge, `parallelism` at a time; `tell` is called after each.

    What stops a run stops the exam: an endpoint that is down, a missing key.
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
    with ThreadPoolExecutor(parallelism) as pool:
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
        said = judge.judge(probe.case)
        if not isinstance(said, Score | Grade):
            raise Unjudged(f"the judge returned {type(said).__name__}, no Score and no Grade")
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
    right = sum(probe.acceptable for probe in probes if probe.id not in silent)
    wrong = len(probes) - len(silent) - right

    def count(what: str, kind: Kind | None = None) -> int:
        return sum(one.what == what and kind in (None, one.kind) for one in mistakes)

    accepts = _share(count("false accept"), wrong)
    rejects = _share(count("false reject"), right)
    unjudged = _share(len(silent), len(probes))
    kinds: dict[str, KindResult] = {
        kind: KindResult(
            sum(probe.kind == kind for probe in probes),
            count("false accept", kind),
            count("false reject", kind),
            count("unjudged", kind),
        )
        for kind in dict.fromkeys(probe.kind for probe in probes)
    }
    passed = (
        right > 0
        and wrong > 0
        and accepts.rate <= MOST_WRONG
        and rejects.rate <= MOST_WRONG
        and unjudged.rate <= MOST_UNJUDGED
    )
    limits = {
        "false_accept": MOST_WRONG,
        "false_reject": MOST_WRONG,
        "unjudged": MOST_UNJUDGED,
    }
    return ExamResult(
        passed,
        accepts,
        rejects,
        unjudged,
        kinds,
        tuple(mistakes),
        limits,
        probes_sha256(probes),
        usage,
    )


def _share(count: int, of: int) -> Share:
    return Share(count, of, count / of if of else 0.0)
