"""docs/field.md is what its command writes from docs/field/, and the data agree with themselves."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from mnemoscope.stats.groups import letters, rank_intervals

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import field as command
from field_data import FieldRow, FieldTable, SecondRun, repeated, tables, write
from field_page import page, real_systems

DATA = Path(__file__).parents[1] / "docs" / "field"
TABLES = tables(DATA)


def test_the_page_is_what_its_command_writes() -> None:
    assert (DATA.parent / "field.md").read_text(encoding="utf-8") == page(DATA)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.title)
def test_groups_and_ranks_follow_from_the_pairs(table: FieldTable) -> None:
    ranked = [row for row in table.rows if row.ranks]
    place = {row.name: number for number, row in enumerate(ranked)}
    assert len(place) == len(ranked)
    assert len(table.pairs) == len(ranked) * (len(ranked) - 1) // 2
    above = [(place[pair.first], place[pair.second]) for pair in table.pairs if pair.decided]
    assert [row.group for row in ranked] == letters(len(ranked), above, range(len(ranked)))
    found = rank_intervals(len(ranked), above)
    assert [row.ranks for row in ranked] == [(one.best, one.worst) for one in found]
    beaten = {worse for better, worse in above if better == 0}
    assert [row.is_best for row in ranked] == [i not in beaten for i in range(len(ranked))]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.title)
def test_intervals_and_differences_are_consistent(table: FieldTable) -> None:
    recall = {row.name: row.recall for row in table.rows}
    for row in table.rows:
        if row.recall is not None:
            assert row.low is not None and row.high is not None
            assert 0 <= row.low <= row.recall <= row.high <= 1, row.name
            assert row.trials_sha256 and row.metrics_sha256 and row.versions
        else:
            assert row.problem or row.unavailable, row.name
    for pair in table.pairs:
        assert pair.low <= pair.delta <= pair.high
        if pair.decided:
            assert not pair.low < 0 < pair.high
        first, second = recall[pair.first], recall[pair.second]
        assert first is not None and second is not None
        assert pair.delta == pytest.approx(first - second, abs=2e-4)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.title)
def test_systems_with_the_same_rankings_have_the_same_figures(table: FieldTable) -> None:
    of_rankings: dict[str, FieldRow] = {}
    for row in table.rows:
        if row.trials_sha256:
            other = of_rankings.setdefault(row.trials_sha256, row)
            assert (other.recall, other.low, other.high) == (row.recall, row.low, row.high)


def test_a_second_run_gave_the_same_figures() -> None:
    found = repeated(DATA)
    assert len({one.system for one in found if one.is_equal}) >= 3
    known = {(table.title, row.system): row for table in TABLES for row in table.rows}
    for one in found:
        # Hindsight ranks differently each time, which the page says.
        assert one.is_equal or one.system.partition(",")[0] == "hindsight", one.system
        assert one.is_equal or one.recall is not None
        assert one.first["metrics.json"] == known[one.table, one.system].metrics_sha256


def test_real_systems_are_counted_once_and_built_in_ones_not() -> None:
    for table in TABLES:
        found = real_systems(table)
        assert len(found) == len(set(found)) > 0
        assert not {"bm25", "dense", "oracle"} & set(found)
        assert {row.name for row in table.rows} >= {"bm25", "dense · wordllama"}


def test_that_defaults_cannot_run_is_said_once_for_each_system() -> None:
    for table in TABLES:
        refused = [row.system.partition(",")[0] for row in table.rows if row.unavailable]
        assert len(refused) == len(set(refused))


def test_a_survey_has_sixteen_real_systems_on_ten_conversations() -> None:
    most = max(TABLES, key=lambda table: len(real_systems(table)))
    assert len(real_systems(most)) >= 16
    assert most.clusters == 10


def test_each_survey_has_its_picture(tmp_path: Path) -> None:
    data = tmp_path / "field"
    data.mkdir()
    for number, table in enumerate(TABLES, start=1):
        write(data / f"table-{number}.json", table)
    assert command.main(["--data", str(data), "page"]) == 0
    said = (tmp_path / "field.md").read_text()
    drawn = sorted((tmp_path / "img").iterdir())
    assert len(drawn) == len(TABLES)
    assert all(f"(img/{one.name})" in said for one in drawn)


def test_a_changed_figure_changes_the_page(tmp_path: Path) -> None:
    table, data = TABLES[0], tmp_path / "field"
    data.mkdir()
    before = data / "table-1.json"
    write(before, table)
    assert command.main(["--data", str(data), "page"]) == 0
    said = (tmp_path / "field.md").read_text()
    changed = replace(table.rows[0], recall=0.5555)
    write(before, replace(table, rows=[changed, *table.rows[1:]]))
    assert page(data) != said


def test_a_differing_second_run_is_said(tmp_path: Path) -> None:
    one = SecondRun("t", "bm25", {"metrics.json": "a"}, {"metrics.json": "b"}, (0.25, 0.5))
    assert not one.is_equal
    write(tmp_path / "second-run.json", [one])
    assert "**differ**: 0.250, then 0.500" in page(tmp_path)
