"""What the commands that ask for answers share: who reads, who judges, and what it may cost."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from math import inf
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope._store.spec import Spec

if TYPE_CHECKING:
    from mnemoscope._store.run_directory import Manifest
    from mnemoscope.datasets.base import Dataset
    from mnemoscope.runner.pipeline import Compat, Lifecycle, Pipeline

NOBODY = "none"
_log = logging.getLogger(__name__)
SYSTEM = "system"
_JUDGES = {"locomo": "f1", "tofu": "rouge-l"}
"""Who judges where nobody is named: whoever can without a model."""
_READERS = {"tofu": "extractive"}
_SCALES = {
    "ledger": "rubric",
    "rubric": "rubric",
    "binary": "right or wrong",
    "exact": "right or wrong",
    "longmemeval": "right or wrong",
    "f1": "f1",
    "rouge-l": "rouge-l",
    "likelihood": "likelihood",
}
"""What a judge gives; what somebody's own one gives shows when it judges."""
_WITH_READER = ("none", "bm25", "oracle")
"""What stands beside systems whose hits are read: each costs as much as a system does."""
_FORGETTING = ("none", "random")
"""After forgetting there is no evidence for an oracle to hand over."""


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
    """Who answers and who judges; nobody, where nobody is named and recall is all that is asked.

    With `only_count` models are not asked, but what they would be asked is counted.
    """
    from mnemoscope.runner.pipeline import Pipeline, plan_judge, plan_panel, plan_reader

    if parallelism < 1:
        raise UsageError(f"--parallelism {parallelism}: at least one question at a time")
    if window < 0:
        raise UsageError(f"--judge-memory-window {window}: 0 days or more")
    reader = reader or _READERS.get(benchmark, NOBODY)
    if reader != NOBODY and not judges:
        judges = [_default_judge(benchmark)]
    judges = [] if list(judges) == [NOBODY] else list(judges)
    if NOBODY in judges:
        raise UsageError("--judge none stands alone")
    check_judges(benchmark, judges, appellate)
    if reader == NOBODY and judges:
        raise UsageError(f"--judge {judges[0]} has nothing to judge without a --reader")
    if appellate and not judges:
        raise UsageError("--appellate-judge is heard after a --judge")

    def read(part: str) -> Spec:
        return _counting(Spec.parse(part)) if only_count else Spec.parse(part)

    by_reader = reader not in (NOBODY, SYSTEM)
    with redirect_stdout(sys.stderr):
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
    """Refuse judges that cannot judge this benchmark, or whose marks would get a wrong name."""
    names = [one.split(",")[0] for one in judges]
    heard = (appellate or "").split(",")[0]
    everybody = [*names, *filter(None, [heard])]
    if benchmark == "tofu" and everybody and everybody != ["rouge-l"]:
        raise UsageError("forgetting is measured by rouge-l alone; leave the judges away")
    for name in everybody:
        scale = _SCALES.get(name)
        if benchmark == "personas" and scale not in (None, "rubric"):
            raise UsageError(
                f"a life is scored by the rubric, and {name} gives one number: choose "
                "rubric,model=… or, for simulated lives, ledger"
            )
        if name == "ledger" and benchmark != "personas":
            raise UsageError(f"the ledger judge needs a simulated life; {benchmark} has no ledger")
        if name == "longmemeval" and benchmark != "longmemeval":
            raise UsageError(f"the longmemeval judge knows no question types of {benchmark}")
    kinds = {_SCALES.get(name) == "rubric" for name in names if name in _SCALES}
    if len(kinds) > 1:
        raise UsageError(f"{' and '.join(names)} do not measure the same and make no panel")
    scales = {_SCALES[name] for name in everybody if name in _SCALES}
    if heard and len(scales) > 1:
        raise UsageError(
            f"{names[0]} and {heard} do not measure the same: an appeal needs a judge of the same "
            "scale as the first"
        )


def arms_for(benchmark: str, pipeline: Pipeline, retrieval: Sequence[str]) -> Sequence[str]:
    """Which sanity arms run beside the systems, `retrieval` being those of recall alone."""
    if benchmark == "tofu":
        return _FORGETTING
    if pipeline.system_answers:  # the arms cannot
        return ()
    return _WITH_READER if pipeline.reader is not None else retrieval


def _default_judge(benchmark: str) -> str:
    if benchmark not in _JUDGES:
        raise UsageError(
            f"who judges the answers on {benchmark}? Say --judge NAME: `mnemoscope judges list` "
            "shows them, --judge none leaves them unjudged"
        )
    return _JUDGES[benchmark]


def _counting(spec: Spec) -> Spec:
    """The same reader or judge, with a model that only counts what it would be asked."""
    from mnemoscope.models.model_loader import names_a_model

    if names_a_model(spec.name):
        return Spec(f"estimate:{spec.name}", spec.args)
    if "model" in spec.args:
        return Spec(spec.name, {**spec.args, "model": f"estimate:{spec.args['model']}"})
    return spec


def models_of(*parts: str | None) -> list[str]:
    """The models that these readers and judges ask, as they were written."""
    from mnemoscope.models.http_errors import without_keys
    from mnemoscope.models.model_loader import names_a_model

    found = []
    for part in filter(None, parts):
        if without_keys(part) != part:
            raise UsageError("a key stands in the spec, which is recorded; use the environment")
        spec = Spec.parse(part)
        if names_a_model(spec.name):
            found.append(spec.name)
        elif "model" in spec.args:
            found.append(str(spec.args["model"]))
    return list(dict.fromkeys(found))


def priced(model: str) -> str:
    """How to write the model with its price."""
    return f"{model}{'&' if '?' in model else '?'}price_in=…&price_out=…"


def check_models(models: Sequence[str], max_cost: float | None) -> None:
    """Refuse before anything is written what the first request would be refused for."""
    from mnemoscope.models.model_loader import load_model, missing_keys

    if max_cost is not None and not 0 < max_cost < inf:
        raise UsageError(f"--max-cost {max_cost}: it is more than 0 dollars")
    for model in models:
        if missing := missing_keys(model):
            raise UsageError(f"{model} needs {' and '.join(missing)} in the environment")
        if max_cost is not None and load_model(model).price is None:
            raise UsageError(
                f"what {model} costs is not known, so --max-cost cannot hold; give its price in "
                f"dollars for a million tokens, 0 if it costs nothing: '{priced(model)}'"
            )


def reopened(manifest: Manifest, data: Path | None) -> Dataset:
    """The dataset that a run was made from, with its options."""
    from mnemoscope.datasets import open_dataset
    from mnemoscope.datasets.subset import part_of

    about: Mapping[str, Any] = manifest.identity["benchmark"]
    options = dict(about["options"])
    parts = [options.pop(name, None) for name in ("scenarios", "questions", "questions_seed")]
    whole = open_dataset(str(about["name"]), data, options)
    return part_of(whole, parts[0], parts[1], parts[2] or 0)


def exams_of(pipeline: Pipeline) -> dict[str, dict[str, Any]]:
    """How the judges did in their exams; one that asks a model and took none is told of."""
    from mnemoscope.judges.exam import recorded

    found: dict[str, dict[str, Any]] = {}
    for spec, identity in pipeline.judges().items():
        # In its exam a judge sees no memories; one that does is another judge.
        if (exam := None if pipeline.window else recorded(identity)) is not None:
            found[spec] = msgspec.to_builtins(exam)
            found[spec].pop("mistakes")
        elif "model" in identity.get("arguments", {}):
            advice = f"mnemoscope judges exam {quote(spec)}"
            said = f"this judge took no exam, so its verdicts cannot be VERIFIED: {advice}"
            _log.warning("note: %s", said)
    return found
