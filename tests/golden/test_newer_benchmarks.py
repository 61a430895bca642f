"""Runs on parts of the newer benchmarks: the oracle at the ceiling, random at chance."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.datasets.test_realmem import SESSIONS

import mnemoscope as ms

Shared = Callable[[str], Path]


def metrics(benchmark: str, data: Path, out: Path, **more: Any) -> dict[str, dict[str, Any]]:
    """System to the record of its recall@10."""
    runs = {"progress": False, "baselines": False, "workers": 1, **more}
    ms.run(benchmark, systems=["random", "oracle"], data=data, out=out, **runs)
    return {
        system: json.loads((out / system / "metrics.json").read_text())["overall"]["recall@10"]
        for system in ("random", "oracle")
    }


@pytest.mark.parametrize(
    ("benchmark", "options", "measured"),
    [
        ("beam", {"scenarios": 2}, 36),
        ("memoryagentbench", {"size": "6k", "hops": "single"}, 100),
        ("precisionmembench", {}, 43),
        ("rhelm", {"scenarios": 1}, 88),
    ],
)
def test_the_oracle_reaches_the_ceiling_and_random_is_at_chance(
    shared_data: Shared, tmp_path: Path, benchmark: str, options: dict[str, Any], measured: int
) -> None:
    found = metrics(benchmark, shared_data(benchmark), tmp_path / "runs", **options)
    oracle, random = found["oracle"], found["random"]
    assert oracle["n"] == measured
    assert oracle["mean"] == oracle["ceiling"]
    low, high = random["ci95"]
    assert low <= random["chance"] <= high
    assert random["mean"] < 0.5 < oracle["mean"]


def test_realmem_runs_with_a_scenario_for_each_session_that_asks(tmp_path: Path) -> None:
    file = tmp_path / "data" / "Ann_dialogues_256k.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"dialogues": SESSIONS}))
    for granularity in ("session", "turn"):
        out = tmp_path / granularity
        found = metrics("realmem", file.parent, out, granularity=granularity)
        assert (found["oracle"]["n"], found["oracle"]["mean"]) == (2, 1.0)
