"""Columns become categories by arithmetic, and only where it leaves one answer."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import assume, given
from hypothesis import strategies as st
from tools.build_published import assignments, only_assignment

from mnemoscope.published import load
from mnemoscope.published.arithmetic_audit import SIZES, recomputed, tolerance


def keys_of(system: str) -> dict[str, int | None]:
    rows = [row for row in load() if row.group == "core" and row.system == system]
    return {row.category.column: row.category.id for row in rows if row.category}


def test_the_three_namings_in_the_nexus_file_are_told_apart() -> None:
    # trust.md §6.1: official names, Mem0's of 2025, and Zep's columns by number.
    assert keys_of("MemMachine") == {
        "single_hop": 4, "multi_hop": 1, "temporal": 2, "open_domain": 3,
    }  # fmt: skip
    assert keys_of("Mem0 v2") == {
        "single_hop": 1, "multi_hop": 3, "temporal": 2, "open_domain": 4,
    }  # fmt: skip
    assert keys_of("Zep") == {"single_hop": 1, "multi_hop": 2, "temporal": 4, "open_domain": 3}


def test_a_table_that_two_assignments_nearly_reproduce_stays_unknown() -> None:
    columns = {"single": "92.17", "multi": "81.2", "temporal": "82.14", "open": "71.53"}
    first, second, third = assignments(columns, "86.75")[:3]
    assert (round(first.misses, 3), round(second.misses, 3)) == (Decimal("0.010"), Decimal("0.034"))
    assert third.misses > 1
    assert only_assignment(columns, "86.75") is None
    assert set(keys_of("MemR3+RAG").values()) == {None}


def test_columns_without_overall_or_company_stay_unknown() -> None:
    rows = [row for row in load() if row.group == "reflective_memory" and row.category]
    assert len(rows) == 4
    assert all(row.category and row.category.keying == "unknown" for row in rows)
    assert all("category unknown" in row.notes for row in rows)


def test_rounding_is_judged_by_the_finest_place_of_the_table() -> None:
    assert tolerance(["75.1", "74.1", "66.0"]) == Decimal("0.1")
    assert tolerance(["64.2", "61.7", "58.26"]) == Decimal("0.02")


def test_what_the_survey_keyed_is_confirmed_except_for_four_tables() -> None:
    unconfirmed = {row.system for row in load() if row.category and row.category.keying == "survey"}
    assert unconfirmed == {
        "Zep (2026 research page)",  # one decimal: a second assignment fits
        "Memori (self-reported)",  # none fits
        "Nemori v5",  # the overall was made from the categories
        "MemR3+RAG",  # see above
    }


def test_every_category_of_a_table_is_given_once() -> None:
    tables: dict[object, list[int]] = {}
    for row in load():
        if row.category and row.category.id and row.category.id in SIZES:
            tables.setdefault(row.table, []).append(row.category.id)
    assert len(tables) == 63 + 3
    assert all(sorted(found) == list(SIZES) for found in tables.values())


points = st.decimals("0", "100", places=2)


@given(st.tuples(points, points, points, points), st.permutations(list(SIZES)))
def test_the_assignment_that_made_a_table_is_found_or_none(
    values: tuple[Decimal, ...], order: list[int]
) -> None:
    columns = dict(zip("abcd", map(str, values), strict=True))
    true = dict(zip(columns, order, strict=True))
    overall = recomputed({true[name]: value for name, value in columns.items()})
    found = only_assignment(columns, str(overall.quantize(Decimal("0.01"))))
    assert found in (None, true)


@given(st.permutations(list(SIZES)))
def test_values_far_apart_are_always_placed(order: list[int]) -> None:
    columns = {"a": "10.00", "b": "37.50", "c": "61.25", "d": "94.00"}
    true = dict(zip(columns, order, strict=True))
    overall = recomputed({true[name]: value for name, value in columns.items()})
    printed = str(overall.quantize(Decimal("0.01")))
    near = assignments(columns, printed)[1].misses
    assume(near > Decimal("0.05"))
    assert only_assignment(columns, printed) == true
