"""`mnemoscope demo`: a simulated history of 180 days, three systems, one heatmap, offline."""

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
    """Simulate a history of 180 days and test three systems on it, offline.

    For example:

        mnemoscope demo

    Parameters
    ----------
    out
        The folder for the simulated history and the run directories.
    """
    from mnemoscope.reports import run_tables
    from mnemoscope.reports.run_view import RunView

    history = out / "life"
    say(err, f"simulating {DAYS} days of {PERSONA} …")
    api.simulate(PERSONA, out=history, days=DAYS, force=True)
    say(err, f"running {', '.join(SYSTEMS)} and the baselines {', '.join(BASELINES)} …")
    with watched() as progress:
        results = api.run(
            "personas",
            systems=SYSTEMS,
            data=history,
            out=out,
            timeout=120.0,
            skip_preflight=True,
            progress=progress,
            ranges=RANGES,
            groups=True,
        )
    # Without an active environment, as after `make demo`, the command needs its path.
    command = "mnemoscope" if which("mnemoscope") else os.path.relpath(sys.argv[0])
    views = [RunView.of(one.directory) for one in results.runs]
    stdout.print(run_tables.shown(views, width=stdout.width, only=["hybrid"]))
    say(
        stdout,
        f"the report:   {out}/hybrid/report.html\n"
        f"the picture:  {out}/hybrid/heatmap.png\n"
        f"a day's log:  {history}/{PERSONA}/memories-{DAYS}d/day-0100.md\n"
        f"every answer: {out}/hybrid/questions.jsonl\n\n"
        "Next: test your own system\n"
        f"  {command} run personas --data {history} --ranges {RANGES} --groups-enabled "
        "--system my_module:MyMemory\n"
        "or simulate a longer history\n"
        f"  {command} personas simulate {PERSONA} --days 1000 --out histories\n"
        "or download a public benchmark\n"
        f"  {command} datasets fetch locomo",
        lines=True,
    )
