"""The speed page has one row for each goal, and cannot be written without a result for each."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from speed_goals import GOALS, SECTIONS, Goal  # noqa: E402
from speed_page import Finding, page  # noqa: E402

PAGE = ROOT / "docs" / "speed.md"


def rows(text: str) -> list[tuple[str, ...]]:
    """What is compared, with what, and the goal."""
    lines = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [
        (cells[0].removeprefix("| "), cells[1], cells[2])
        for cells in lines
        if len(cells) == 6 and cells[0] != "| what"
    ]


def expected() -> list[tuple[str, ...]]:
    return [
        (goal.compared, goal.against, goal.words)
        for section in SECTIONS
        for goal in GOALS
        if goal.section == section
    ]


def results(ratio: float = 1.0) -> dict[str, Finding]:
    return {goal.key: Finding(ratio, (ratio, 2 * ratio)) for goal in GOALS}


def test_a_page_has_the_goals_in_the_order_of_the_sections() -> None:
    text = page(results())
    assert rows(text) == expected()
    assert len(rows(text)) == len(GOALS), "every goal belongs to a section"
    assert "1.00 to 2.00, 2 rounds" in text


def test_the_written_page_has_the_goals_of_today() -> None:
    if not PAGE.exists():
        pytest.skip("docs/speed.md is not written yet: make bench")
    assert rows(PAGE.read_text(encoding="utf-8")) == expected()


def test_a_goal_without_a_result_is_not_left_out() -> None:
    found = results()
    del found["metrics/found"]
    with pytest.raises(SystemExit, match="no result for metrics/found"):
        page(found)


def test_a_goal_that_is_missed_is_marked() -> None:
    most, least = (Goal("a/b", "x", "y", sense, 2.0) for sense in ("at most", "at least"))
    assert (most.ratio(3, 1), least.ratio(1, 3)) == (3, 3)
    assert (most.holds(3), least.holds(3)) == (False, True)
    assert page(results(0.01)).count("**no** |") == sum(
        goal.sense == "at least" and goal.limit is not None for goal in GOALS
    )
