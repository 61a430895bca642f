"""Twenty systems on LoCoMo in one table with groups, and whether the groups are stable.

    python benchmarks/many_systems.py --data locomo10.json [--out DIR] [--draws 200]

The conversations are drawn again with replacement. Printed is how many of the pairs that were told
apart are so again in the same direction, how many are not, and how many are reversed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from mnemoscope import api
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.system_groups import question_values, system_groups
from mnemoscope.reports.group_tables import group_blocks
from mnemoscope.reports.render_terminal import render
from mnemoscope.stats.clustered import Floats
from mnemoscope.stats.groups import all_pairs

SYSTEMS = (
    *("bm25", "bm25,k1=0.9,b=0.4", "bm25,k1=2.5", "bm25,b=0.3", "bm25,b=1.0", "bm25,tokens=plain"),
    *("fts5", "fts5,variant=product", "dense", "dense,chunk=50", "dense,chunk=200"),
    *("hybrid", "hybrid,weight=0.25", "hybrid,weight=0.75", "hybrid,fusion=rrf"),
    *("hybrid,graph=0.3", "graph", "recency", "random", "random,seed=7"),
)
SEED = 42


def directions(values: Floats, clusters: Sequence[str]) -> Floats:
    """1 or -1 for each pair that is told apart, 0 for the others."""
    return np.array(
        [np.sign(pair.row.delta) if pair.decided else 0 for pair in all_pairs(values, clusters)]
    )


def resampled(
    values: Floats, clusters: Sequence[str], random: np.random.Generator
) -> tuple[Floats, list[str]]:
    """The values of conversations drawn with replacement; each draw counts as another one."""
    names = list(dict.fromkeys(clusters))
    member = np.array(clusters)
    rows, drawn = [], []
    for place, name in enumerate(random.choice(names, len(names))):
        own = np.flatnonzero(member == name)
        rows.append(own)
        drawn += [f"{place}"] * len(own)
    return values[np.concatenate(rows)], drawn


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--draws", type=int, default=200)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        out = given.out or Path(folder)
        done = api.run("locomo", systems=SYSTEMS, data=given.data, baselines=False, out=out)
        runs = [RunDirectory(run.path) for run in done.runs]
        Console(width=80).print(render(group_blocks(system_groups(runs))))
        values, clusters = question_values(runs)
    before = directions(values, clusters)
    told = before != 0
    random = np.random.default_rng(SEED)
    again = np.array([directions(*resampled(values, clusters, random)) for _ in range(given.draws)])
    kept = (again[:, told] == before[told]).mean()
    reversals = int((again[:, told] == -before[told]).sum())
    new = (again[:, ~told] != 0).mean() if (~told).any() else 0.0
    print(f"{given.draws} draws of conversations with replacement, {told.sum()} pairs told apart:")
    print(f"  told apart again in the same direction: {kept:.1%}")
    print(f"  reversed: {reversals} of {told.sum() * given.draws}")
    print(f"  of the other pairs, told apart in a draw: {new:.1%}")
    return int(reversals > 0)


if __name__ == "__main__":
    sys.exit(main())
