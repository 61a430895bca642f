"""Examine a judge: by an exam drawn from a benchmark, or by a labelled set of the user's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mnemoscope._store.errors import UsageError
from mnemoscope._store.spec import Spec
from mnemoscope.api.arguments import Where, optional_path
from mnemoscope.types import Scalar, Scenario

if TYPE_CHECKING:
    from mnemoscope.judges.drawn_exam import DrawnExam
    from mnemoscope.judges.exam_record import ExamRecord
    from mnemoscope.systems.loader import Plan


class Examination(NamedTuple):
    """The record of an exam, and where it is kept."""

    record: ExamRecord
    file: Path | None
    """None for labelled sets and seeds of the user's own, which entitle to nothing."""
    reused: bool = False


def examine(
    judge: str,
    *,
    benchmark: str = "",
    data: Where | None = None,
    options: Mapping[str, Scalar] = {},
    probes: Where | None = None,
    budget: float | None = None,
    dollars: float | None = None,
    seed: str | None = None,
    fresh: bool = False,
    parallelism: int = 8,
    max_cost: float | None = None,
    begin: Callable[[int], None] = lambda probes: None,
    tell: Callable[[], None] = lambda: None,
) -> Examination:
    """Let a judge sit an exam, or reuse its kept one.

    `budget` limits the number of probes, `dollars` what they may cost by the price of the first of
    each kind. A kept exam is reused if it has at least as many probes.
    """
    from mnemoscope.judges.exam_store import exam_identity, installation_seed, keep, kept
    from mnemoscope.judges.sit_exam import read_labelled, sit
    from mnemoscope.runner.pipeline import plan_judge

    if bool(benchmark) == bool(probes):
        raise UsageError("name either a benchmark or a file of labelled answers (--probes)")
    if budget is not None and not budget >= 1:
        raise UsageError(f"--budget {budget}: must be at least 1 probe")
    plan = plan_judge(Spec.parse(judge), benchmark)
    identity = exam_identity(plan.identity)
    if probes is not None:
        own = optional_path(probes)
        assert own is not None
        labelled = read_labelled(own)
        begin(len(labelled.probes))
        record = sit(
            plan.build(),
            labelled,
            benchmark=own.name,
            data=[labelled.sha256],
            seed="",
            seed_given=True,
            identity=identity,
            parallelism=parallelism,
            max_cost=max_cost,
            tell=tell,
        )
        return Examination(record, None)
    from mnemoscope.datasets import open_dataset
    from mnemoscope.judges.drawn_exam import draw

    dataset = open_dataset(benchmark, optional_path(data), options)
    hashes = [file.sha256 for file in dataset.files()]
    known = kept(plan.identity, dataset.name, hashes).record
    chosen = seed if seed is not None else installation_seed(dataset.name, hashes)
    most = None if budget is None else math.floor(budget)
    scenarios = list(dataset.scenarios())
    _refuse_omissions(benchmark, data, options, hashes, scenarios)
    exam = draw(scenarios, seed=chosen, budget=most)
    if not exam.probes:
        raise UsageError(f"{benchmark} has no questions with references to draw an exam from")
    if dollars is not None:
        affordable = _affordable(plan, exam, dollars, parallelism)
        exam = draw(scenarios, seed=chosen, budget=affordable)
    if known and seed is None and not fresh and len(known.verdicts) >= len(exam.probes):
        return Examination(known, None, reused=True)
    begin(len(exam.probes))
    record = sit(
        plan.build(),
        exam,
        benchmark=dataset.name,
        data=hashes,
        seed=chosen,
        seed_given=seed is not None,
        identity=identity,
        parallelism=parallelism,
        max_cost=max_cost if dollars is None else min(max_cost or math.inf, dollars),
        tell=tell,
    )
    return Examination(record, None if seed is not None else keep(record))


def _refuse_omissions(
    benchmark: str,
    data: Where | None,
    options: Mapping[str, Scalar],
    hashes: Sequence[str],
    scenarios: Sequence[Scenario],
) -> None:
    """Refuse options that leave out questions: the judge would not be asked all kinds of answers.

    The exam counts for every run on these files. An option that chooses other files is no omission.
    """
    from mnemoscope.datasets import open_dataset

    asked = {question.id for one in scenarios for question in one.questions}
    for name in options:
        others = {key: value for key, value in options.items() if key != name}
        whole = open_dataset(benchmark, optional_path(data), others)
        if [file.sha256 for file in whole.files()] != hashes:
            continue
        every = {question.id for one in whole.scenarios() for question in one.questions}
        if every - asked:
            raise UsageError(
                f"--{name} leaves out {len(every - asked):,} of {len(every):,} questions: an exam "
                f"is drawn from all questions of {benchmark}, so omit the option"
            )


def _affordable(plan: Plan, exam: DrawnExam, dollars: float, parallelism: int) -> int:
    """How many probes the money is for, by what one probe of each kind costs."""
    from mnemoscope.judges.sit_exam import sit

    if not dollars > 0:
        raise UsageError(f"--budget ${dollars}: must be more than 0 dollars")
    first = {probe.kind: probe for probe in reversed(exam.probes)}
    few = [probe for probe in exam.probes if first[probe.kind] is probe]
    pilot = sit(
        plan.build(),
        type(exam)(tuple(few), exam.held, exam.shares, exam.scenarios),
        benchmark="",
        data=[],
        seed="",
        seed_given=True,
        parallelism=parallelism,
        max_cost=dollars,
    )
    cost = pilot.usage.cost if pilot.usage else 0.0
    if not cost:
        return len(exam.probes)
    # A tenth is left for probes that cost more than the first of their kind.
    return max(len(few), min(len(exam.probes), math.floor(0.9 * dollars / (cost / len(few)))))
