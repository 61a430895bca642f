"""Lets a judge sit a drawn exam, or judge a labelled set of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from mnemoscope._store.errors import DataError, MnemoscopeError, UsageError
from mnemoscope._store.jsonl import printable
from mnemoscope.judges import Judge, Unjudged
from mnemoscope.judges.appeal import ask
from mnemoscope.judges.drawn_exam import RULES, DrawnExam, DrawnProbe
from mnemoscope.judges.exam import cost_limit
from mnemoscope.judges.exam_record import ExamRecord, ProbeVerdict
from mnemoscope.models.chat import metered, total
from mnemoscope.text.abstention import says_nothing
from mnemoscope.text.reference_types import shared_words, stratum_of, words_beside
from mnemoscope.types import Expectation, Question, Scenario, Usage


class LabelledAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """One line of a labelled set: an answer, and whether it is correct."""

    question: str
    reference: str
    answer: str
    correct: bool
    kind: str = ""
    """Your name for this kind of answer; default: `right` or `wrong`."""
    category: str = ""
    """The question's category, for judges that depend on it."""
    expects: Expectation = "answer"
    id: str = ""


def read_labelled(path: Path) -> DrawnExam:
    """The probes of a JSONL file; all kinds weigh as many answers as they have."""
    probes: list[DrawnProbe] = []
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot be read: {error}", file=path) from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            one = msgspec.json.decode(line, type=LabelledAnswer)
        except (msgspec.DecodeError, RecursionError) as error:
            raise DataError(f"{error}", file=path, line=number) from None
        question = Question(
            one.id or f"q{number}",
            one.question,
            reference=one.reference,
            category=one.category,
            expects=one.expects,
        )
        probes.append(
            DrawnProbe(
                one.kind or ("right" if one.correct else "wrong"),
                one.correct,
                "labelled",
                question,
                one.answer,
                stratum_of(question, one.answer),
                1.0,
                shared_words(one.answer, one.reference),
                words_beside(one.answer, one.reference),
                abstained=says_nothing(one.answer, one.question),
            )
        )
    if not probes:
        raise DataError("it has no labelled answers", file=path)
    return _as_exam(probes)


def _as_exam(probes: Sequence[DrawnProbe]) -> DrawnExam:
    """An exam whose strata and kinds weigh as many answers as they have."""
    strata = [probe.stratum for probe in probes]
    cells = [
        (probe.kind, probe.acceptable, probe.stratum, probe.shared, probe.beside)
        for probe in probes
    ]
    weighted = tuple(
        msgspec.structs.replace(probe, weight=float(cells.count(cell)))
        for probe, cell in zip(probes, cells, strict=True)
    )
    kinds = [probe.kind for probe in probes]
    return DrawnExam(
        weighted,
        {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)},
        {stratum: strata.count(stratum) / len(strata) for stratum in dict.fromkeys(strata)},
        (Scenario("labelled", (), tuple(probe.question for probe in probes)),),
    )


def sit(
    judge: Judge,
    exam: DrawnExam,
    *,
    benchmark: str,
    data: Sequence[str],
    seed: str,
    seed_given: bool,
    identity: dict[str, Any] | None = None,
    parallelism: int = 1,
    max_cost: float | None = None,
    tell: Callable[[], None] = lambda: None,
) -> ExamRecord:
    """Judge every probe, `parallelism` at a time, and call `tell` after each.

    The same errors stop a run and an exam; replies up to then are in the cache.
    """
    if parallelism < 1:
        raise UsageError(f"parallelism={parallelism}: must be 1 or more")
    if getattr(judge, "wants_recalled", False):
        raise UsageError("this judge scores recalled passages, not answers, so it has no exam")
    verdicts: list[ProbeVerdict] = []
    usages: list[Usage] = []
    with cost_limit(max_cost), ThreadPoolExecutor(parallelism) as pool:
        for verdict, used in _verdicts(judge, exam, pool):
            verdicts.append(verdict)
            usages += used
            tell()
    return ExamRecord(
        rules=RULES,
        benchmark=benchmark,
        data=tuple(data),
        seed=seed,
        seed_given=seed_given,
        probes_sha256=exam.sha256,
        verdicts=tuple(verdicts),
        held=exam.held,
        shares=exam.shares,
        judge=dict(identity or {}),
        usage=total(usages),
    )


def _verdicts(
    judge: Judge, exam: DrawnExam, pool: ThreadPoolExecutor
) -> Iterator[tuple[ProbeVerdict, list[Usage]]]:
    scenarios = {scenario.id: scenario for scenario in exam.scenarios}
    for id, own in groupby(exam.probes, key=lambda probe: probe.scenario):
        judge.begin(scenarios[id])
        marks = [pool.submit(_mark, judge, probe) for probe in own]
        try:
            for done in marks:
                yield done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _mark(judge: Judge, probe: DrawnProbe) -> tuple[ProbeVerdict, list[Usage]]:
    accepted: bool | None = None
    reasoning = ""
    with metered() as usages:
        try:
            verdict = ask(judge, probe.case)
            accepted, reasoning = not verdict.fails, verdict.reasoning
        except MnemoscopeError:
            raise
        except Unjudged as error:
            reasoning = str(error)
        except Exception as error:  # a plug-in judge that raises has given no verdict
            reasoning = f"{type(error).__name__}: {error}"
    kept = "" if accepted == probe.acceptable else printable(reasoning)
    found = ProbeVerdict(
        probe.id,
        probe.kind,
        probe.acceptable,
        probe.stratum,
        probe.weight,
        accepted,
        kept,
        probe.shared,
        probe.beside,
    )
    return found, usages
