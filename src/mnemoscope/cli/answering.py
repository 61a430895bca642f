"""What the commands that ask for answers share: who reads, who judges, and what it may cost."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec

from mnemoscope.cli.console import err, say
from mnemoscope.cli.console import out as stdout
from mnemoscope.core.errors import UsageError
from mnemoscope.core.spec import Spec

if TYPE_CHECKING:
    from mnemoscope.core.dataset import Dataset
    from mnemoscope.core.rundir import Manifest
    from mnemoscope.engine.parts import Compat, Lifecycle, Procedure
    from mnemoscope.engine.run import Settings

NOBODY = "none"
SYSTEM = "system"
_JUDGES = {"locomo": "f1", "tofu": "rouge-l"}
"""Who judges where nobody is named: whoever can without a model."""
_READERS = {"tofu": "extractive"}
_MEASURES = ("f1", "rouge-l", "likelihood")
_WITH_READER = ("none", "bm25", "oracle")
"""What stands beside systems whose hits are read: each costs as much as a system does."""
_FORGETTING = ("none", "random")
"""After forgetting there is no evidence for an oracle to hand over."""


def procedure_for(
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
) -> Procedure:
    """Who answers and who judges; nobody, where nobody is named and recall is all that is asked.

    With `only_count` models are not asked, but what they would be asked is counted.
    """
    from mnemoscope.engine.parts import Procedure, plan_judge, plan_panel, plan_reader

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
        return Procedure(
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
    """Refuse judges whose marks would be put under a wrong name."""
    names = [one.split(",")[0] for one in judges]
    if benchmark == "tofu" and names and names != ["rouge-l"]:
        raise UsageError("forgetting is measured by rouge-l; leave --judge away")
    heard = (appellate or "").split(",")[0]
    if heard and any((name in _MEASURES) != (heard in _MEASURES) for name in names):
        raise UsageError(
            f"{heard} and {names[0]} do not measure the same: an appeal needs a judge of the same "
            "scale as the first"
        )


def arms_for(benchmark: str, procedure: Procedure, retrieval: Sequence[str]) -> Sequence[str]:
    """Which sanity arms run beside the systems, `retrieval` being those of recall alone."""
    if benchmark == "tofu":
        return _FORGETTING
    if procedure.system_answers:  # the arms cannot
        return ()
    return _WITH_READER if procedure.reader is not None else retrieval


def _default_judge(benchmark: str) -> str:
    if benchmark not in _JUDGES:
        raise UsageError(
            f"who judges the answers on {benchmark}? Say --judge NAME: `mnemoscope judges list` "
            "shows them, --judge none leaves them unjudged"
        )
    return _JUDGES[benchmark]


def _counting(spec: Spec) -> Spec:
    """The same reader or judge, with a model that only counts what it would be asked."""
    from mnemoscope.llm.models import names_a_model

    if names_a_model(spec.name):
        return Spec(f"estimate:{spec.name}", spec.args)
    if "model" in spec.args:
        return Spec(spec.name, {**spec.args, "model": f"estimate:{spec.args['model']}"})
    return spec


def estimate(
    dataset: Dataset,
    specs: Sequence[Spec],
    settings: Settings,
    procedure: Procedure,
    arms: Sequence[Spec] = (),
) -> None:
    """Print what it would take, phase by phase. What a system's own models take is not known."""
    from rich import box
    from rich.table import Table

    from mnemoscope.cli.run import watched
    from mnemoscope.engine.run import run
    from mnemoscope.systems.python import plan

    if not any("estimate" in str(part) for part in procedure.identity().values()):
        raise UsageError(
            "--estimate counts what models would be asked, and here is none: name one, as in "
            "--reader openai:gpt-4o-mini"
        )
    with redirect_stdout(sys.stderr):
        plans = [plan(spec) for spec in (*specs, *arms)]
    table = Table(box=box.SIMPLE_HEAD, title="estimate", title_justify="left", title_style="bold")
    for name in ("system", "phase", "requests", "input tokens", "output tokens", "cost"):
        table.add_column(name, justify="left" if name in ("system", "phase") else "right")
    total = 0.0
    with (
        TemporaryDirectory(prefix="mnemoscope-estimate-") as folder,
        watched(dataset, len(plans)) as advance,
    ):
        for directory in run(dataset, plans, Path(folder), settings, advance, procedure=procedure):
            for phase, use in directory.read_json("timing.json")["accounts"]["phases"].items():
                if use["requests"]:
                    total += use["cost"]
                    tokens = (f"{use['input_tokens']:,}", f"{use['output_tokens']:,}")
                    counted = (f"{use['requests']:,}", *tokens, f"${use['cost']:.4f}")
                    table.add_row(directory.label, phase, *counted)
    stdout.print(table)
    say(stdout, f"about ${total:.2f} in all; no model was asked, retries are not counted")


def reopened(manifest: Manifest, data: Path | None) -> Dataset:
    """The dataset that a run was made from, with its options."""
    from mnemoscope.datasets import open_dataset
    from mnemoscope.datasets.sampled import Sampled

    about: Mapping[str, Any] = manifest.identity["benchmark"]
    options = dict(about["options"])
    number, seed = options.pop("questions", None), options.pop("questions_seed", 0)
    whole = open_dataset(str(about["name"]), data, options)
    return whole if number is None else Sampled(whole, int(number), int(seed))


def exams_of(procedure: Procedure) -> dict[str, dict[str, Any]]:
    """How the judges did in their exams; one that asks a model and took none is told of."""
    from mnemoscope.judges.exam import recorded

    found: dict[str, dict[str, Any]] = {}
    for spec, identity in procedure.judges().items():
        if (exam := recorded(identity)) is not None:
            found[spec] = msgspec.to_builtins(exam)
            found[spec].pop("mistakes")
        elif "model" in identity.get("arguments", {}):
            advice = f"mnemoscope judges exam {spec}"
            said = f"this judge took no exam, so its verdicts cannot be VERIFIED: {advice}"
            say(err, said, before="[yellow]note:[/] ")
    return found
