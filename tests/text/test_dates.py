"""Dates in text: expectations are computed by other means than those of the module."""

from __future__ import annotations

import calendar
from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.text.dates import find_dates, write_day, write_month

SAID = date(2023, 5, 10)
"""A Wednesday."""
DAYS = st.dates(date(1950, 1, 1), date(2150, 12, 31))


def written(text: str, said: date | None = SAID, *, ahead: bool = False) -> list[str]:
    return [found.written for found in find_dates(text, said, ahead=ahead)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I saw the heron yesterday.", ["9 May 2023"]),
        ("We leave tomorrow.", ["11 May 2023"]),
        ("The roof came off last night", ["9 May 2023"]),
        ("It broke the day before yesterday.", ["8 May 2023"]),
        ("The kiln arrived three days ago.", ["7 May 2023"]),
        ("A couple of days ago we painted it", ["8 May 2023"]),
        ("Last week I moved.", ["the week before 10 May 2023"]),
        ("two weeks ago", ["two weeks before 10 May 2023"]),
        ("a few weeks ago", ["a few weeks before 10 May 2023"]),
        ("last weekend and next weekend", [
            "the weekend before 10 May 2023",
            "the weekend after 10 May 2023",
        ]),
        ("We met last Friday.", ["the Friday before 10 May 2023"]),
        ("Since Tues I limp", ["the Tuesday before 10 May 2023"]),
        ("next Monday", ["the Monday after 10 May 2023"]),
        ("We fly next month.", ["June 2023"]),
        ("He quit this month.", ["May 2023"]),
        ("two months ago", ["March 2023"]),
        ("six months ago", ["November 2022"]),
        ("I began last year", ["2022"]),
        ("ten years ago", ["2013"]),
        ("last summer", ["summer 2022"]),
        ("last spring", ["spring 2022"]),
        ("in March", ["March 2023"]),
        ("in December", ["December 2022"]),
        ("I may go there in May", ["May 2023"]),
        ("since 2016", ["2016"]),
        ("on 7 June 2021", ["7 June 2021"]),
        ("on June 7th, 2021", ["7 June 2021"]),
        ("on 2021-06-07", ["7 June 2021"]),
        ("on May 3rd", ["3 May 2023"]),
        ("on 24 December", ["24 December 2022"]),
    ],
)  # fmt: skip
def test_a_date_is_resolved_against_the_day_it_was_said(text: str, expected: list[str]) -> None:
    assert written(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The sun and the march of time may wed us.",
        "on 31 February 2021",
        "4000 years ago",
        "9999999999999999999999 years ago",
        "in 2020 words",
        "room 2023-99-01",
        "前天我们去了海边",
    ],
)
def test_what_is_no_date_is_left_out(text: str) -> None:
    assert [found.grain for found in find_dates(text, SAID) if found.grain != "year"] == []


def test_in_the_future_a_month_and_a_weekday_are_the_next_ones() -> None:
    assert written("in March", ahead=True) == ["March 2024"]
    assert written("on Friday", ahead=True) == ["the Friday after 10 May 2023"]


def test_without_a_day_only_whole_dates_are_known() -> None:
    assert written("yesterday, last week, in March, on 3 June and on 7 June 2021", None) == [
        "7 June 2021"
    ]


def test_a_date_without_a_year_is_never_far_ahead_unless_said() -> None:
    assert written("on 2 July") == ["2 July 2023"]
    assert written("on 2 September") == ["2 September 2022"]


@given(DAYS, st.integers(2, 400))
def test_days_ago_count_back(said: date, count: int) -> None:
    (found,) = find_dates(f"It was {count} days ago.", said)
    assert (said - found.first).days == count
    assert (found.written.split()) == [
        str(found.first.day),
        calendar.month_name[found.first.month],
        str(found.first.year),
    ]


@given(DAYS, st.sampled_from(list(calendar.day_name)))
def test_the_last_weekday_is_within_a_week_before(said: date, name: str) -> None:
    (found,) = find_dates(f"I was there last {name}.", said)
    assert calendar.day_name[found.first.weekday()] == name
    assert 1 <= (said - found.first).days <= 7
    assert found.written == f"the {name} before {write_day(said)}"


@given(DAYS, st.integers(2, 60))
def test_months_ago_step_back_month_by_month(said: date, count: int) -> None:
    day = said.replace(day=1)
    for _ in range(count):
        day = (day - timedelta(1)).replace(day=1)
    (found,) = find_dates(f"That was {count} months ago.", said)
    assert found.written == write_month(day)
    assert found.first == day
    assert found.last.day == calendar.monthrange(day.year, day.month)[1]


@given(DAYS, st.sampled_from(["last", "this", "next"]))
def test_weeks_begin_on_mondays_and_follow_each_other(said: date, which: str) -> None:
    (found,) = find_dates(f"{which} week", said)
    weeks = {"last": -1, "this": 0, "next": 1}[which]
    own, other = (said + timedelta(7 * weeks)).isocalendar(), found.first.isocalendar()
    assert (own.year, own.week, 1) == (other.year, other.week, other.weekday)
    assert found.last - found.first == timedelta(6)


@given(st.text(), DAYS)
def test_any_text_is_read_without_overlaps(text: str, said: date) -> None:
    found = find_dates(text, said)
    assert all(one.end <= other.start for one, other in pairwise(found))
