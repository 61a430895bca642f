"""`mnemoscope demo`: half a year of a simulated life, three systems, one heatmap, offline."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shutil import which

from mnemoscope import api
from mnemoscope.cli.console import err, say, watched
from mnemoscope.cli.console import out as stdout

PERSONA = "executive-assistant"
DAYS = 180
RANGES = "45d,90d,135d,180d"
SYSTEMS = ("recency", "bm25", "hybrid")
BASELINES = ("none", "random", "oracle")


def demo(*, out: Path = Path("demo-run")) -> None:
    """Simulate a life of 180 days and see what three systems still know of it, offline.

    For example:

        mnemoscope demo

    Parameters
    ----------
    out
        Where the life and the run directories go.
    """
    from mnemoscope.reports import run_tables
    from mnemoscope.reports.run_view import RunView

    life = out / "life"
    say(err, f"simulating {DAYS} days of {PERSONA} …")
    api.simulate(PERSONA, out=life, days=DAYS, force=True)
    say(err, f"asking {', '.join(SYSTEMS)} and the arms {', '.join(BASELINES)} …")
    with watched() as progress:
        results = api.run(
            "personas",
            systems=SYSTEMS,
            data=life,
            out=out,
            timeout=120.0,
            skip_preflight=True,
            progress=progress,
            ranges=RANGES,
            groups=True,
        )
    # Where no environment is active, as after `make demo`, it has to be called by its place.
    command = "mnemoscope" if which("mnemoscope") else os.path.relpath(sys.argv[0])
    views = [RunView.of(one.directory) for one in results.runs]
    stdout.print(run_tables.shown(views, width=stdout.width, only=["hybrid"]))
    say(
        stdout,
        f"the report:   {out}/hybrid/report.md\n"
        f"the picture:  {out}/hybrid/heatmap.png\n"
        f"a day's log:  {life}/{PERSONA}/memories-{DAYS}d/day-0100.md\n"
        f"every answer: {out}/hybrid/questions.jsonl\n\n"
        "Next: put your own system in\n"
        f"  {command} run personas --data {life} --ranges {RANGES} --system my_module:MyMemory\n"
        "or make the life longer\n"
        f"  {command} personas simulate {PERSONA} --days 1000 --out lives\n"
        "or fetch a public benchmark\n"
        f"  {command} datasets fetch locomo",
    )
