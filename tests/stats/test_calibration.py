"""A fast slice of the calibration grid, its twins of the product's rules, and its page."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from mnemoscope.stats.clustered import (
    ClusterSums,
    Floats,
    beyond_these,
    cluster_sums,
    critical_value,
    difference,
    level,
    tail,
)
from mnemoscope.stats.families import max_t
from mnemoscope.stats.groups import all_pairs
from mnemoscope.stats.verdicts import holm

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import calibration
import calibration_families as families
import calibration_grid as grid
import calibration_rules as rules
import calibration_systems as systems
from calibration_cells import Bound, Cell, Facts, Plan, Task
from calibration_models import DESIGNS, LOCOMO, VERY_UNEQUAL, Changes, hits

PAGE = Path(__file__).parents[2] / "docs" / "calibration.md"
STALE = "run: python benchmarks/calibration.py --write docs/calibration.md"
TASKS = {(task.section, task.name): task for task in calibration.tasks()}


def cell(section: str, name: str, repetitions: int | None = None) -> Cell:
    (found,) = TASKS[section, name].run(repetitions)
    assert isinstance(found, Cell)
    return found


def column(sizes: Floats, sums: Floats, squares: Floats) -> ClusterSums:
    return ClusterSums(*(part[:, None] for part in (sizes, sums, squares)))


# The rule holds what it says.


@pytest.mark.parametrize("deff", ["1", "2.5", "10"])
def test_intervals_of_differences_hold_the_truth(deff: str) -> None:
    found = cell(grid.DIFFERENCES, f"LoCoMo, normal, {deff}", 10_000)
    assert found.rate == pytest.approx(0.95, abs=0.015)


def test_very_unequal_conversations_are_covered() -> None:
    assert cell(grid.DIFFERENCES, "10 very unequal (900…7), normal, 10", 10_000).rate >= 0.94


@pytest.mark.parametrize(
    "name",
    [
        "LoCoMo, 0.5, 0",
        "LoCoMo, 0.8, 0.01",
        "LoCoMo, 0.9, 0.05",
        "10 very unequal (900…7), 0.95, 0.05",
        "5 equal, 0.7, 0.01",
        "5 unequal (400…10), 0.6, 0.05",
    ],
)
def test_intervals_of_levels_hold_the_truth(name: str) -> None:
    assert cell(grid.LEVELS, name, 10_000).rate >= 0.925


def test_families_of_metrics_keep_their_error_rate() -> None:
    found = {
        one.labels[1]: one.rate
        for one in TASKS[families.NULL, "strong clustering"].run(800)
        if isinstance(one, Cell)
    }
    assert found["gate + max-T: any false verdict"] <= 0.065
    assert found["secondaries alone, simultaneous"] <= 0.065
    assert found["guard of a release: false HOLD"] <= 0.065
    # The procedure that ignores conversations shows that the simulation can see the error.
    assert found["Holm over 36, p ignores clusters"] > 0.2


@pytest.mark.parametrize("name", list(families.SETTINGS)[:6])
def test_planned_power_is_the_power_of_the_rule(name: str) -> None:
    (found,) = TASKS[families.PLANNED, name].run(20_000)
    assert isinstance(found, Plan)
    assert found.planned == pytest.approx(found.actual, abs=0.03)


# The vectorised rules are those of the product.


@pytest.mark.parametrize("sizes", [LOCOMO, VERY_UNEQUAL], ids=["LoCoMo", "very unequal"])
def test_the_twin_of_differences(sizes: Floats) -> None:
    sums, squares, _ = Changes(0.2, 0.03, 0.05).draw(sizes, np.random.default_rng(1), 20)
    rows = rules.differences(sizes, sums)
    of_these = rules.differences_of_these(sizes, sums, squares)
    for place in range(20):
        one = column(sizes, sums[place], squares[place])
        expected = difference(one)
        assert (rows.delta[place], rows.se[place]) == pytest.approx((expected.delta, expected.se))
        assert of_these.se[place] == pytest.approx(difference(one, these_only=True).se)


def test_the_twin_of_the_interval_for_other_conversations() -> None:
    sizes = DESIGNS["3 unequal (300, 60, 20)"]
    sums, squares, _ = Changes(0.2, 0.03, 0.05).draw(sizes, np.random.default_rng(1), 5)
    rows = rules.differences(sizes, sums)
    critical = critical_value(0.05, sizes.tolist())
    for place in range(5):
        found = beyond_these(column(sizes, sums[place], squares[place]))
        assert found is not None
        assert found.high == pytest.approx(rows.delta[place] + critical * rows.se[place])


@pytest.mark.parametrize(
    "design", ["LoCoMo", "5 unequal (400…10)", "3 equal", "469 single questions"]
)
@pytest.mark.parametrize("p", [0.5, 0.95, 0.9999])
def test_the_twin_of_levels(design: str, p: float) -> None:
    sizes = DESIGNS[design]
    sums, _ = hits(sizes, p, 0.05, np.random.default_rng(2), 10)
    low, high = rules.levels_of_hits(sizes, sums)
    for place in range(10):
        expected = level(column(sizes, sums[place], sums[place]))
        assert (low[place], high[place]) == pytest.approx(expected)


@pytest.mark.parametrize(("design", "columns"), [("LoCoMo", 5), ("5 unequal (400…10)", 3)])
def test_the_twin_of_max_t(design: str, columns: int) -> None:
    sizes = DESIGNS[design]
    random = np.random.default_rng(3)
    means = random.normal(0, 0.02, (40, len(sizes), columns)) + random.normal(0, 0.02, (40, 1, 1))
    twin = rules.MaxT(sizes, columns)
    rows = rules.differences(sizes, np.moveaxis(means * sizes[:, None], 1, 2))
    decided = twin.decided(means, rows.statistic)
    for place in range(3):
        table = ClusterSums(
            np.repeat(sizes[:, None], columns, axis=1),
            means[place] * sizes[:, None],
            means[place] ** 2 * sizes[:, None],
        )
        row = difference(table.column(0))
        critical = max_t(table).critical(row)
        assert twin.critical(means[place]) == pytest.approx(critical)
        assert twin.lowest < critical < twin.highest
    # The shortcut decides as the critical value of each table does.
    exact = [rows.statistic[place] > twin.critical(means[place]) for place in range(40)]
    assert (decided == np.array(exact)).all()


def test_the_twins_of_p_values() -> None:
    from scipy.stats import binomtest, ttest_1samp

    random = np.random.default_rng(4)
    deltas = random.choice([-1.0, 0.0, 1.0], (3, 60), p=[0.05, 0.8, 0.15])
    sums, squares = deltas.sum(axis=1), (deltas**2).sum(axis=1)
    gained, lost = (deltas == 1).sum(axis=1).tolist(), (deltas == -1).sum(axis=1).tolist()
    expected = [binomtest(up, up + down).pvalue for up, down in zip(gained, lost, strict=True)]
    assert rules.mcnemar(sums, squares) == pytest.approx(expected)
    t_test = rules.paired_t(sums, squares, np.full(3, 60.0))
    assert t_test == pytest.approx(ttest_1samp(deltas, 0, axis=1).pvalue)
    p = random.random((5, 36)) ** 4
    rejected = [[value <= 0.05 for value in holm(one.tolist())] for one in p]
    assert rules.holm(p).tolist() == rejected
    sizes = VERY_UNEQUAL.tolist()
    grid_of_t = np.array([0.31, 1.97, 5.555, 17.3])
    found = rules.Tail(sizes)(grid_of_t)
    assert found == pytest.approx([tail(t, sizes) for t in grid_of_t.tolist()], rel=1e-3)


@pytest.mark.parametrize("noise", [0.0, 0.4], ids=["similar", "not similar"])
def test_the_twin_of_all_pairs(noise: float) -> None:
    names = [str(place) for place, size in enumerate(LOCOMO) for _ in range(int(size))]
    random = np.random.default_rng(5)
    values = random.random((len(names), systems.SYSTEMS)) * 0.1
    shift = noise * random.random(len(LOCOMO))
    values[:, :5] += np.repeat(shift, LOCOMO.astype(int))[:, None]
    table = cluster_sums(values, names)
    found = systems.decide("LoCoMo", table.means.T[None])
    assert (found.rule == found.bonferroni).all() == bool(noise)
    for place, pair in enumerate(all_pairs(values, names)):
        reach = (pair.interval.high - pair.interval.low) / 2
        assert reach == pytest.approx(found.rule[0, place])


# The page was written by this code.


def sections() -> Iterator[tuple[str, list[list[str]]]]:
    """The title of each section of the page with the rows of its table."""
    for part in PAGE.read_text(encoding="utf-8").split("\n## "):
        title, _, body = part.partition("\n")
        lines = re.findall(r"^\| (.+) \|$", body, re.MULTILINE)
        yield title, [line.split(" | ") for line in lines[1:]]


def test_the_page_was_written_with_the_present_rule() -> None:
    told = {row[0]: row[1] for row in dict(sections())["Written with"]}
    assert told.pop("simulations") == calibration.fingerprint(), STALE
    present = calibration.written_with()
    assert told.keys() == present.keys(), STALE
    assert {name: float(value) for name, value in told.items()} == pytest.approx(
        present, abs=2e-6
    ), STALE


@pytest.mark.parametrize(
    "key",
    [
        (grid.DIFFERENCES, "LoCoMo, normal, 2.5"),
        (grid.DIFFERENCES, "10 very unequal (900…7), normal, 10"),
        (grid.CHANGES, "LoCoMo, skewed, 30 %, 10.0 pp, 9.0 pp"),
        (grid.LEVELS, "LoCoMo, 0.99, 0.05"),
        (grid.FEW, "3 equal, others"),
        (grid.EQUIVALENCE, "LoCoMo, 2.5, 1"),
        (systems.PAIRS, "5 equal, equal spread"),
    ],
)
def test_cells_of_the_page_are_simulated_again(key: tuple[str, str]) -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    for found in TASKS[key].run():
        assert calibration.row_of(found) in lines, STALE


def test_the_page_has_the_present_texts() -> None:
    written = PAGE.read_text(encoding="utf-8")
    for part in calibration.TEXTS.read_text(encoding="utf-8").split("\n## "):
        assert part.partition("\n")[2].strip() in written, STALE


def test_the_page_has_every_simulation() -> None:
    counted = {title: len(rows) for title, rows in sections()}
    per_task = {
        families.NULL: 7,
        families.POWER: 4,
        systems.FOUND: 2,
        grid.EQUIVALENCE: 2,
    }
    for section in set(calibration.SECTIONS) - {grid.FEW}:
        simulations = sum(task.section == section for task in TASKS.values())
        assert counted[section] == simulations * per_task.get(section, 1)


def test_marks_of_the_page_follow_from_its_rates() -> None:
    """A rate outside its bound cannot stand there as one that holds."""
    checked = 0
    for title, rows in sections():
        if title not in calibration.COLUMNS:
            continue
        for row in rows:
            rate, required = float(row[-6]), row[-3]
            if required == "–":
                continue
            bound, holds = required.rsplit(" ", 1)
            ends = [float(end) for end in re.findall(r"[\d.]+", bound)]
            low = ends[0] if not bound.startswith("≤") else 0
            high = ends[-1] if not bound.startswith("≥") else 100
            if min(abs(rate - low), abs(rate - high)) > 0.005:
                assert holds == ("yes" if low <= rate <= high else "**no**"), row
            checked += 1
    assert checked > 100


def test_required_bounds_hold_on_the_page() -> None:
    """What the rule claims without reservation: no cell of these sections may miss its bound."""
    found = dict(sections())
    for section in calibration.COLUMNS:
        assert not [row for row in found[section] if "**no**" in row[-3]]
    held = [row for row in found[families.PLANNED] if row[7] == "yes"]
    assert len(held) >= 6
    assert not [row for row in found[families.PLANNED] if row[7] == "**no**"]


def test_a_cell_is_compared_with_bound_and_facts() -> None:
    one = Cell("s", ("a",), 0.93, 10_000, Bound(0.94), Facts(0.95, 0.96, 2_000))
    assert one.holds is False
    assert one.z == pytest.approx(-(0.9495 - 0.93) / np.hypot(0.00255, 0.0049), rel=0.01)
    assert one.agrees is False
    assert calibration.row_of(one) == (
        "| a | 93.00 | 0.26 | 10,000 | ≥ 94.0 **no** | 95.0–96.0 | **no**, z −3.5 |"
    )
    inside = one._replace(rate=0.955)
    assert (inside.holds, inside.z) == (True, 0)
    assert one._replace(facts=Facts(0.95, 0.96, 2_000, comparable=False)).agrees is None


def test_the_seed_of_a_simulation_is_its_own() -> None:
    task = TASKS[grid.DIFFERENCES, "LoCoMo, normal, 1"]
    assert task.run(500) == task.run(500)
    other = Task(task.section, "another name", task.repetitions, task.simulate)
    assert other.run(5_000) != task.run(5_000)
