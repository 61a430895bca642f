"""The reader and the judges of a run, checked against what the dataset and the judges declare."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import Manifest
from mnemoscope._store.spec import Spec
from mnemoscope.analysis.entitled import COMBINED
from mnemoscope.datasets import dataset_info, open_dataset
from mnemoscope.datasets.base import Dataset
from mnemoscope.datasets.subset import part_of
from mnemoscope.judges import RUBRIC, judge_class, needs_of, scale_of
from mnemoscope.models.http_errors import without_keys
from mnemoscope.models.model_loader import check_models as check_models
from mnemoscope.models.model_loader import names_a_model
from mnemoscope.models.model_loader import priced as priced
from mnemoscope.runner.pipeline import (
    Compat,
    Lifecycle,
    Pipeline,
    plan_judge,
    plan_panel,
    plan_reader,
)

if TYPE_CHECKING:
    from mnemoscope.judges.exam_record import ExamRecord

NONE = "none"
"""The name for "without a reader" and "without a judge"."""
_NEEDS_NO_EXAM = ("f1", "rouge-l", "likelihood", "ledger")
SYSTEM = "system"
"""The reader name that means: the system answers."""


class Exams(NamedTuple):
    """The exam results of a run's judges, and notes about judges without an exam."""

    results: dict[str, dict[str, Any]]
    notes: list[str]


def pipeline_for(
    benchmark: str,
    *,
    reader: str | None = None,
    judges: Sequence[str] = (),
    appellate: str | None = None,
    window: int = 0,
    lifecycle: Lifecycle = "auto",
    compat: Compat = "",
    parallelism: int = 1,
    only_count: bool = False,
) -> Pipeline:
    """The pipeline with the given reader and judges, or with those of the dataset's record.

    With `only_count` models are not called, but their prompts are counted.
    """
    if parallelism < 1:
        raise UsageError(f"--parallelism {parallelism}: must be 1 or more")
    if window < 0:
        raise UsageError(f"--judge-memory-window {window}: must be 0 days or more")
    reader = reader or dataset_info(benchmark).answers.reader
    if reader != NONE and not judges:
        judges = [_default_judge(benchmark)]
    judges = [] if list(judges) == [NONE] else list(judges)
    if NONE in judges:
        raise UsageError("--judge none cannot be combined with another judge")
    check_judges(benchmark, judges, appellate)
    if reader == NONE and judges:
        raise UsageError(f"--judge {judges[0]} needs a --reader: there are no answers to judge")
    if appellate and not judges:
        raise UsageError("--appellate-judge needs a --judge")

    def read(part: str) -> Spec:
        return _counting(Spec.parse(part)) if only_count else Spec.parse(part)

    by_reader = reader not in (NONE, SYSTEM)
    with redirect_stdout(sys.stderr):  # what a reader or judge prints is not a result
        return Pipeline(
            lifecycle=lifecycle,
            reader=plan_reader(read(reader), benchmark) if by_reader else None,
            system_answers=reader == SYSTEM,
            judge=plan_panel([read(one) for one in judges], benchmark) if judges else None,
            appellate=plan_judge(read(appellate), benchmark) if appellate else None,
            window=window,
            compat=compat,
            parallelism=parallelism,
        )


def check_judges(benchmark: str, judges: Sequence[str], appellate: str | None) -> None:
    """Refuse judges that cannot judge this dataset, or whose scales differ."""
    dataset = dataset_info(benchmark).answers
    names = [one.split(",")[0] for one in judges]
    second = (appellate or "").split(",")[0]
    everyone = [*names, *filter(None, [second])]
    if dataset.judges and everyone and tuple(everyone) != dataset.judges:
        raise UsageError(dataset.otherwise)
    classes = {name: judge_class(name) for name in everyone}
    scales = {name: scale.name for name in everyone if (scale := scale_of(classes[name]))}
    for name in everyone:
        if dataset.scales and scales.get(name, dataset.scales[0]) not in dataset.scales:
            raise UsageError(dataset.otherwise.format(judge=name))
        for need, refusal in needs_of(classes[name]).items():
            if need not in (*dataset.provides, *dataset.may_provide):
                raise UsageError(refusal.format(dataset=benchmark))
    kinds = {scales[name] == RUBRIC.name for name in names if name in scales}
    if len(kinds) > 1:
        raise UsageError(f"{' and '.join(names)} have different scales and cannot form a panel")
    if second and len(set(scales.values())) > 1:
        raise UsageError(
            f"{names[0]} and {second} have different scales: an appellate judge needs the scale "
            "of the first judge"
        )


def _default_judge(benchmark: str) -> str:
    """The dataset's judge; an error if it needs what only a part of the data has."""
    dataset = dataset_info(benchmark).answers
    if not dataset.judge or not needs_of(judge_class(dataset.judge)).keys() <= {*dataset.provides}:
        raise UsageError(
            f"{benchmark} has no default judge: give --judge NAME (`mnemoscope judges list` "
            "shows them), or --judge none to leave the answers unjudged"
        )
    return dataset.judge


def _counting(spec: Spec) -> Spec:
    """The same reader or judge, with a model that only counts its prompts."""
    if names_a_model(spec.name):
        return Spec(f"estimate:{spec.name}", spec.args)
    if "model" in spec.args:
        return Spec(spec.name, {**spec.args, "model": f"estimate:{spec.args['model']}"})
    return spec


def models_of(*parts: str | None) -> list[str]:
    """The models that these readers and judges call, as written in their specs."""
    found = []
    for part in filter(None, parts):
        if without_keys(part) != part:
            raise UsageError(
                "the spec contains an API key, and specs are recorded; set it in the environment"
            )
        spec = Spec.parse(part)
        if names_a_model(spec.name):
            found.append(spec.name)
        elif "model" in spec.args:
            found.append(str(spec.args["model"]))
    return list(dict.fromkeys(found))


def reopened(manifest: Manifest, data: Path | None) -> Dataset:
    """The dataset that a run was made from, with its options."""
    from mnemoscope.datasets.asked_only import ASKED, AT, asked_only
    from mnemoscope.datasets.dated_texts import DATED_TEXTS, with_dates

    about: Mapping[str, Any] = manifest.identity["benchmark"]
    options = dict(about["options"])
    parts = [options.pop(name, None) for name in ("scenarios", "questions", "questions_seed")]
    draw = options.pop("questions_draw", "random")
    asked, at = options.pop(ASKED, None), options.pop(AT, "")
    dated = options.pop(DATED_TEXTS, False)
    whole = with_dates(open_dataset(str(about["name"]), data, options), on=dated)
    return part_of(asked_only(whole, asked, at), parts[0], parts[1], parts[2] or 0, draw)


def exams_of(pipeline: Pipeline, dataset: Dataset) -> Exams:
    """The kept exams of the judges on this dataset; a note for each that may give no headline.

    The exam of a panel, or of a judge with its appellate judge, follows from the verdicts of all.
    """
    found = Exams({}, [])
    if pipeline.judge is None:
        return found
    from mnemoscope.judges.exam_record import combined  # most runs have no judge
    from mnemoscope.judges.exam_store import kept

    name, data = dataset.name, [file.sha256 for file in dataset.files()]
    judges: dict[str, dict[str, Any]] = {}
    for plan in filter(None, (pipeline.judge, pipeline.appellate)):
        judges |= plan.identity.get("panel") or {str(plan.spec): plan.identity}
    records = {}
    for spec, identity in judges.items():
        # A judge sees no memories in its exam, so the result does not apply with a window.
        one = kept(identity, name, data)
        if one.record is not None and not pipeline.window:
            records[spec] = one.record
            found.results[spec] = one.record.summary()
        elif one.problem:
            found.notes.append(f"{spec}: {one.problem}")
        elif identity.get("name") not in _NEEDS_NO_EXAM:
            found.notes.append(
                f"this judge has sat no exam on {name}, so the figures of its verdicts are "
                f"withheld: mnemoscope judges exam {quote(spec)} --benchmark {name}"
            )
    if len(judges) > 1 and len(records) == len(judges):
        exam: ExamRecord | None
        own = [records[spec] for spec in judges]
        if pipeline.appellate is None:
            exam = combined(own, rule="majority")
        else:
            first = own[0] if len(own) == 2 else combined(own[:-1], rule="majority")
            exam = combined([first, own[-1]], rule="appeal") if first else None
        if exam is not None:
            found.results[COMBINED] = exam.summary()
    return found
