"""The long-horizon benchmark discriminates; benchmarks/discriminate.py shows it at full length."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from mnemoscope.datasets.personas import Personas

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import discriminate

DAYS = 300
PERSONAS = ["executive-assistant"]


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Personas:
    folder = tmp_path_factory.mktemp("lives")
    discriminate.lives(folder, PERSONAS, DAYS, seed=42)
    return Personas(folder, ranges=f"90d,{DAYS}d", groups=True)


@pytest.fixture(scope="module")
def late(lives: Personas, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    systems = ("hybrid", "none", "recency", "oracle")
    figures = discriminate.measured(lives, tmp_path_factory.mktemp("runs"), systems)
    return {system: points[-1] for system, points in figures.items()}


def test_references_are_judged_right_and_other_questions_references_wrong(lives: Personas) -> None:
    ceiling, floor = discriminate.judge_bounds(lives)
    assert ceiling >= 5.9
    assert floor <= 1.5


def test_who_is_handed_the_evidence_is_best_in_every_answerable_category(
    late: dict[str, dict[str, Any]],
) -> None:
    for category, figure in late["oracle"]["categories"].items():
        if category not in discriminate.UNANSWERABLE:
            others = [late[system]["categories"][category]["mean"] for system in late]
            assert figure["mean"] == max(others), category


def test_silence_earns_what_honest_silence_earns(late: dict[str, dict[str, Any]]) -> None:
    for category, figure in late["none"]["categories"].items():
        if category not in discriminate.UNANSWERABLE:
            assert figure["mean"] == 1.0, category
    assert late["none"]["categories"]["negative-recall"]["mean"] == 6.0
    assert late["none"]["hallucination"]["rate"] == 0.0


def test_who_sees_only_what_is_new_loses_what_is_old(late: dict[str, dict[str, Any]]) -> None:
    old = "recency-bias-resistance"
    assert late["recency"]["categories"][old]["mean"] <= 1.5
    assert late["hybrid"]["categories"][old]["mean"] >= 3.0
