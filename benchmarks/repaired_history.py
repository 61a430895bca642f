"""How do the repairs of Recall Bench's published 180 days move figures and ranks?

    python benchmarks/repaired_history.py DATA [--keep DIR]

Every system is asked all 316 questions over all 180 days, as published and with repairs. One table
of both with 95 % intervals, the ranks, and recall@10 by category. The two are different
benchmarks: no difference between them is tested.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from mnemoscope import api

SYSTEMS = ("bm25,tokens=plain", "bm25", "fts5", "dense", "hybrid", "recency", "oracle")
METRICS = ("recall@10", "mrr@50")

Figures = Mapping[str, Mapping[str, Any]]
"""System to its metrics.json."""


def figures(data: Path, folder: Path, repairs: bool) -> Figures:
    results = api.run(
        "personas",
        systems=list(SYSTEMS),
        data=data,
        out=folder,
        baselines=False,
        ranges="none",
        repairs=repairs,
    )
    return {run.label: run.directory.read_json("metrics.json") for run in results.runs}


def shown(cell: Mapping[str, Any]) -> str:
    low, high = cell["ci95"]
    return f"{cell['mean']:.3f} [{low:.3f}, {high:.3f}]"


def ranks(found: Figures, metric: str) -> dict[str, int]:
    order = sorted(found, key=lambda system: -found[system]["overall"][metric]["mean"])
    return {system: place for place, system in enumerate(order, 1)}


def overall_table(published: Figures, repaired: Figures, metric: str) -> Table:
    table = Table("system", "published", "repaired", "rank", title=metric)
    before, after = ranks(published, metric), ranks(repaired, metric)
    for system in published:
        cells = (shown(found[system]["overall"][metric]) for found in (published, repaired))
        table.add_row(system, *cells, f"{before[system]} → {after[system]}")
    return table


def category_table(published: Figures, repaired: Figures) -> Table:
    table = Table("category", "system", "published", "n", "repaired", "n", title="recall@10")
    for category in published[SYSTEMS[0]]["by_category"]:
        for system in published:
            row: list[str] = []
            for found in (published, repaired):
                cell = found[system]["by_category"][category]["recall@10"]
                row += [shown(cell), str(cell["n"])]
            table.add_row(category, system, *row)
        table.add_section()
    return table


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    asked.add_argument("data", type=Path, help="the folder of the published history")
    asked.add_argument("--keep", type=Path, help="keep the runs in this folder")
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        published = figures(options.data, folder / "published", repairs=False)
        repaired = figures(options.data, folder / "repaired", repairs=True)
    console = Console(width=140)
    for metric in METRICS:
        console.print(overall_table(published, repaired, metric))
    console.print(category_table(published, repaired))


if __name__ == "__main__":
    main()
