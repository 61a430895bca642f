"""Chooses the reader, the judges and the baselines of a run.

They are checked against the declarations of the dataset and the judges before the run starts.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import Manifest
from mnemoscope._store.spec import Spec
from mnemoscope.datasets import dataset_info, open_dataset
from mnemoscope.datasets.base import Dataset
from mnemoscope.datasets.subset import part_of
from mnemoscope.judges import RUBRIC, judge_class, needs_of, scale_of
from mnemoscope.judges.exam import recorded
from mnemoscope.models.http_errors import without_keys
from mnemoscope.models.model_check import check_models as check_models
from mnemoscope.models.model_check import priced as priced
from mnemoscope.models.model_loader import names_a_model
from mnemoscope.runner.pipeline import (
    Compat,
    Lifecycle,
    Pipeline,
    plan_judge,
    plan_panel,
    plan_reader,
)

NONE = "none"
"""The name that means: no reader, or no judge."""
SYSTEM = "system"
"""The reader name that means: the system answers itself."""


class Exams(NamedTuple):
    """The exam results of a run's judges, and a note for each judge without one."""

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
    """The named reader and judges, or those of the dataset's record; without a reader, recall only.

    With `only_count`, requests to models are counted and not sent.
    """
    if parallelism < 1:
        raise UsageError(f"--parallelism {parallelism}: it must be at least 1")
    if window < 0:
        raise UsageError(f"--judge-memory-window {window}: it must be 0 days or more")
    reader = reader or dataset_info(benchmark).answers.reader
    if reader != NONE and not judges:
        judges = [_default_judge(benchmark)]
    judges = [] if list(judges) == [NONE] else list(judges)
    if NONE in judges:
        raise UsageError("--judge none cannot be combined with another --judge")
    check_judges(benchmark, judges, appellate)
    if reader == NONE and judges:
        raise UsageError(f"--judge {judges[0]} needs answers: name a --reader")
    if appellate and not judges:
        raise UsageError("--appellate-judge needs a --judge whose verdicts it reviews")

    def read(part: str) -> Spec:
        return _counting(Spec.parse(part)) if only_count else Spec.parse(part)

    by_reader = reader not in (NONE, SYSTEM)
    with redirect_stdout(sys.stderr):  # stdout is for results; a reader or judge may print
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
    reviewer = (appellate or "").split(",")[0]
    everyone = [*names, *filter(None, [reviewer])]
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
    if reviewer and len(set(scales.values())) > 1:
        raise UsageError(
            f"{names[0]} and {reviewer} have different scales: the appellate judge must have the "
            "same scale as the first judge"
        )


def baselines_for(benchmark: str, pipeline: Pipeline) -> Sequence[str]:
    """The names of the baselines to run beside the systems."""
    dataset = dataset_info(benchmark)
    if pipeline.system_answers:  # most baselines have no answer()
        return dataset.answers.baselines_if_system_answers
    return dataset.answers.baselines if pipeline.reader is not None else dataset.baselines


def _default_judge(benchmark: str) -> str:
    """The dataset's judge; the user must name one that needs data which may be missing."""
    dataset = dataset_info(benchmark).answers
    if not dataset.judge or not needs_of(judge_class(dataset.judge)).keys() <= {*dataset.provides}:
        raise UsageError(
            f"{benchmark} has no default judge: name one with --judge NAME (`mnemoscope judges "
            "list` shows them), or omit judging with --judge none"
        )
    return dataset.judge


def _counting(spec: Spec) -> Spec:
    """The same reader or judge, with a model that counts requests and sends none."""
    if names_a_model(spec.name):
        return Spec(f"estimate:{spec.name}", spec.args)
    if "model" in spec.args:
        return Spec(spec.name, {**spec.args, "model": f"estimate:{spec.args['model']}"})
    return spec


def models_of(*parts: str | None) -> list[str]:
    """The models that these readers and judges use, as the user wrote them."""
    found = []
    for part in filter(None, parts):
        if without_keys(part) != part:
            raise UsageError(
                "the spec contains an API key and would be recorded; set the key in the environment"
            )
        spec = Spec.parse(part)
        if names_a_model(spec.name):
            found.append(spec.name)
        elif "model" in spec.args:
            found.append(str(spec.args["model"]))
    return list(dict.fromkeys(found))


def reopened(manifest: Manifest, data: Path | None) -> Dataset:
    """Open the dataset of a run again, with the same options."""
    about: Mapping[str, Any] = manifest.identity["benchmark"]
    options = dict(about["options"])
    parts = [options.pop(name, None) for name in ("scenarios", "questions", "questions_seed")]
    whole = open_dataset(str(about["name"]), data, options)
    return part_of(whole, parts[0], parts[1], parts[2] or 0)


def exams_of(pipeline: Pipeline) -> Exams:
    """The exam results of the judges; a note for each model judge without one."""
    found = Exams({}, [])
    for spec, identity in pipeline.judges().items():
        # The exam shows a judge no memories, so it says nothing about a judge that sees some.
        if (exam := None if pipeline.window else recorded(identity)) is not None:
            found.results[spec] = msgspec.to_builtins(exam)
            found.results[spec].pop("mistakes")
        elif "model" in identity.get("arguments", {}):
            advice = f"mnemoscope judges exam {quote(spec)}"
            found.notes.append(
                f"this judge has not taken the exam, so the run cannot be VERIFIED: {advice}"
            )
    return found
