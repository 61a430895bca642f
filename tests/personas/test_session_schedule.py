"""The schedule: which sessions write on which days, and how much."""

from __future__ import annotations

from datetime import date
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.personas.written_persona import PERSONA
from tests.personas.written_persona import arc as written

from mnemoscope.personas.simulate.calendar import date_of_day, is_weekend
from mnemoscope.personas.write.persona_files import Arc, Arcs, Persona
from mnemoscope.personas.write.session_schedule import (
    SessionSchedule,
    active_days,
    density,
    echo_days,
    echoes,
    phase,
)

MONDAY = date(2026, 3, 2)
PEOPLE = msgspec.convert(PERSONA, Persona)


def arc(start: int, end: int, type: str = "project", session: str = "crew", **more: Any) -> Arc:
    return msgspec.convert(written(f"a{start}-{end}", type, start, end, session, **more), Arc)


def calendar(*arcs: Arc, days: int = 28, epoch: date = MONDAY) -> SessionSchedule:
    return SessionSchedule(PEOPLE, Arcs(arcs), days, epoch)


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        (1, "early"),
        (14, "early"),
        (15, "mid"),
        (75, "mid"),
        (76, "late"),
        (90, "late"),
        (91, "concluding"),
        (100, "concluding"),
    ],
)
def test_the_phase_follows_the_share_of_the_arc(day: int, expected: str) -> None:
    assert phase(arc(1, 100), day) == expected
    assert phase(arc(201, 300), day + 200) == expected


def test_an_arc_echoes_on_turning_days_and_every_fortnight() -> None:
    correction = arc(
        3,
        40,
        "correction",
        wrongDay=5,
        correctedDay=30,
        directives=[{"day": 8, "event": "e"}, {"day": 99, "event": "outside"}],
    )
    assert sorted(echo_days(correction)) == [3, 5, 8, 17, 30, 31, 40]


@pytest.mark.parametrize(("length", "every"), [(14, 2), (15, 3), (99, 3), (100, 5)])
def test_longer_arcs_are_written_about_more_rarely(length: int, every: int) -> None:
    one = arc(1, length)
    plain = sorted(active_days(one, MONDAY) - echo_days(one) | {1})
    weekdays = [day for day in range(1, length + 1) if not is_weekend(date_of_day(MONDAY, day))]
    assert set(plain) <= set(weekdays[::every])
    assert active_days(one, MONDAY) == set(weekdays[::every]) | echo_days(one)


@pytest.mark.parametrize(
    ("arcs", "weekend", "expected"),
    [
        ([], False, "quiet"),
        ([arc(1, 100)], False, "normal"),
        ([arc(1, 100)], True, "quiet"),
        ([arc(1, 100, "incident")], True, "busy"),
        ([arc(50, 100)], False, "busy"),
        ([arc(1, 51)], False, "busy"),
        ([arc(1, 100)] * 3, False, "busy"),
        ([arc(1, 100, directives=[{"day": 50, "event": "e"}])], False, "busy"),
        ([arc(1, 100, directives=[{"day": 50, "event": "e"}] * 2)] * 3, False, "dense"),
        ([arc(1, 100, "correction", wrongDay=50, correctedDay=60)], False, "dense"),
        ([arc(1, 100, "correction", wrongDay=50, correctedDay=60)], True, "quiet"),
    ],
)
def test_density(arcs: list[Arc], weekend: bool, expected: str) -> None:
    assert density(arcs, 50, weekend=weekend) == expected


def test_an_arc_of_an_isolated_session_has_no_echoes() -> None:
    told = ["principal", "brokers", "crew"]
    assert echoes(arc(1, 9, referencedSessions=told), PEOPLE) == ["principal", "brokers"]
    assert echoes(arc(1, 9, session="family", referencedSessions=told), PEOPLE) == []
    kept = arc(1, 9, referencedSessions=told, forbiddenSessions=["brokers"])
    assert echoes(kept, PEOPLE) == ["principal"]


def test_sessions_stand_principal_first_and_then_as_declared() -> None:
    arcs = [arc(1, 5, session=id) for id in ("brokers", "principal", "crew")]
    assert calendar(*arcs).sessions(1) == ["principal", "crew", "brokers"]


def test_a_week_with_fewer_than_five_active_days_is_filled_on_weekdays() -> None:
    week = calendar(arc(1, 3), days=7)
    assert [day for day in range(1, 8) if week.sessions(day)] == [1, 2, 3, 4, 5]
    assert week.filler_days == {2, 4, 5}
    assert week.sessions(2) == ["principal"] and week.sessions(3) == ["crew"]


def test_active_weekends_count_and_are_never_filled() -> None:
    events = [{"day": day, "event": "e"} for day in (1, 2, 3, 6, 7)]
    busy = calendar(arc(1, 7, directives=events), days=14)
    assert not [day for day in busy.filler_days if day <= 7]
    assert busy.filler_days == {8, 9, 10, 11, 12}


def test_a_session_that_is_closed_writes_nothing() -> None:
    rooms = [msgspec.structs.replace(room, first_day=3) for room in PEOPLE.sessions]
    late = msgspec.structs.replace(PEOPLE, sessions=tuple(rooms))
    closed = SessionSchedule(late, Arcs((arc(1, 5),)), 5, MONDAY)
    assert [closed.sessions(day) for day in (1, 2)] == [[], []]
    assert closed.sessions(3) == ["crew"]


@given(
    epoch=st.dates(date(2000, 1, 1), date(2090, 1, 1)),
    days=st.integers(1, 90),
    spans=st.lists(st.tuples(st.integers(1, 90), st.integers(0, 60)), max_size=4),
)
def test_every_whole_week_has_five_active_days(
    epoch: date, days: int, spans: list[tuple[int, int]]
) -> None:
    arcs = [arc(start, start + length) for start, length in spans]
    history = calendar(*{one.id: one for one in arcs}.values(), days=days, epoch=epoch)
    assert not any(is_weekend(date_of_day(epoch, day)) for day in history.filler_days)
    for first in range(1, days - 5):
        if date_of_day(epoch, first).weekday() == 0:
            week = range(first, first + 7)
            assert sum(bool(history.sessions(day)) for day in week) >= 5
    assert history.sessions(0) == history.sessions(days + 1) == []


def test_no_clock_change_moves_a_date() -> None:
    dates = [date_of_day(date(2026, 1, 1), day) for day in range(1, 366)]
    assert len(set(dates)) == 365 and dates[-1] == date(2026, 12, 31)
    assert dates[66].isoformat() == "2026-03-08"
