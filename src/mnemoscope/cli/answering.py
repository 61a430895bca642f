"""What the commands that ask for answers print: estimates, and judges without an exam."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from mnemoscope._store.errors import UsageError
from mnemoscope._store.spec import Spec
from mnemoscope.cli.console import err, say
from mnemoscope.cli.console import out as stdout

if TYPE_CHECKING:
    from mnemoscope.datasets.base import Dataset
    from mnemoscope.runner.pipeline import Pipeline
    from mnemoscope.runner.run import Settings


def estimate(
    dataset: Dataset,
    specs: Sequence[Spec],
    settings: Settings,
    pipeline: Pipeline,
    arms: Sequence[Spec] = (),
    models: Sequence[str] = (),
) -> None:
    """Print what it would take, phase by phase. What a system's own models take is not known."""
    from rich import box
    from rich.table import Table

    from mnemoscope.cli.run import watched
    from mnemoscope.models.model_loader import load_model
    from mnemoscope.runner.answer_setup import priced
    from mnemoscope.runner.run import run
    from mnemoscope.systems.loader import plan

    if pipeline.system_answers:
        raise UsageError("what a system asks of its own models cannot be estimated beforehand")
    if not any("estimate" in str(part) for part in pipeline.identity().values()):
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
        for directory in run(dataset, plans, Path(folder), settings, advance, pipeline=pipeline):
            for phase, use in directory.read_json("timing.json")["accounts"]["phases"].items():
                if use["requests"]:
                    total += use["cost"]
                    tokens = (f"{use['input_tokens']:,}", f"{use['output_tokens']:,}")
                    counted = (f"{use['requests']:,}", *tokens, f"${use['cost']:.4f}")
                    table.add_row(directory.label, phase, *counted)
    stdout.print(table)
    say(
        stdout,
        f"about ${total:.2f} in all; no model was asked. Neither retries nor what is in the cache "
        "or already recorded is taken into account",
    )
    for model in models:
        if load_model(model).price is None:
            said = f"what {model} costs is not known and counts as 0; say it: '{priced(model)}'"
            say(stdout, said, before="[yellow]note:[/] ")


def exams_of(pipeline: Pipeline) -> dict[str, dict[str, Any]]:
    """How the judges did in their exams; the notes about the others are printed."""
    from mnemoscope.runner import answer_setup

    exams = answer_setup.exams_of(pipeline)
    for note in exams.notes:
        say(err, note, before="[yellow]note:[/] ")
    return exams.results
