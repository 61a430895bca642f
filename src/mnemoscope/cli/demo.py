"""`mnemoscope demo`: a small corpus that comes with the package, three systems, one table."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

from mnemoscope.cli.console import out as stdout
from mnemoscope.cli.console import say
from mnemoscope.cli.run import execute, show
from mnemoscope.core.spec import Spec

SYSTEMS = ("bm25", "dense", "hybrid")
ARMS = ("random", "oracle")


def demo(*, out: Path = Path("demo-run")) -> None:
    """Run three systems on a small built-in corpus, offline, in seconds.

    For example:

        mnemoscope demo

    Parameters
    ----------
    out
        Where the run directories go.
    """
    from mnemoscope.datasets import open_dataset

    with as_file(files("mnemoscope.demo")) as corpus:
        dataset = open_dataset("strata", Path(corpus))
        runs = execute(dataset, list(map(Spec, SYSTEMS)), out, arms=list(map(Spec, ARMS)))
    show(runs, out, as_json=False)
    say(
        stdout,
        "\nNext: put your own system in, mnemoscope run strata --data FOLDER --system module:Name\n"
        "      or fetch a public benchmark, mnemoscope datasets fetch locomo",
    )
