"""How chance, values and sentences are made."""

from __future__ import annotations

from datetime import date
from random import Random

import pytest

from mnemoscope.personas.simulate.calendar import WorkCalendar, make_calendar
from mnemoscope.personas.simulate.phrases import (
    RepetitionFilter,
    capital,
    fill,
    is_pending,
    sentence,
    uncapital,
)
from mnemoscope.personas.simulate.rng import Rng, ShuffledCycle
from mnemoscope.personas.simulate.story import StoryFact, Values, shipped_story
from mnemoscope.personas.simulate.timeline import aliases


def fact(**values: object) -> StoryFact:
    return StoryFact("id", "noun", Values(**values), (), ())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "others"),
    [
        ("$240k", {"$240,000"}),
        ("6:30 AM", {"06:30", "6:30 am"}),
        ("11:05 PM", {"23:05", "11:05 pm"}),
        ("1500 rows", {"1,500 rows"}),
        ("12%", {"12 percent"}),
        ("250 ms", {"250 milliseconds"}),
        ("night-ferry", set()),
    ],
)
def test_a_value_has_the_other_wordings_that_people_use(value: str, others: set[str]) -> None:
    assert set(aliases(value, fact(pick=(value,)), WorkCalendar(date(2026, 1, 5), 9), 1)) == others


def test_a_date_has_all_unambiguous_wordings() -> None:
    calendar = WorkCalendar(date(2026, 1, 5), 100)
    found = aliases("3 March 2026", fact(date=(20, 90)), calendar, 1)
    assert set(found) == {"2026-03-03", "March 3, 2026", "3 Mar 2026", "Mar 3, 2026"}


def test_names_of_people_have_no_aliases() -> None:
    person = fact(person=True)
    assert aliases("Ruth Adeyinka", person, WorkCalendar(date(2026, 1, 5), 9), 1) == ()


def test_streams_differ_by_purpose_and_repeat_by_name() -> None:
    first = [Rng(1, "x").stream("days").random() for _ in range(2)]
    assert first[0] == first[1] != Rng(1, "x").stream("facts").random()


def test_every_item_is_drawn_before_any_comes_again() -> None:
    cycle = ShuffledCycle("abcde", Random(1))
    assert sorted(cycle.draw() for _ in range(5)) == list("abcde")


def test_an_avoided_item_is_drawn_only_if_all_are_avoided() -> None:
    cycle = ShuffledCycle("ab", Random(1))
    assert {cycle.draw("a") for _ in range(6)} == {"b"}
    assert cycle.draw("ab") in "ab"


def test_a_sentence_begins_with_a_capital_but_names_keep_their_form() -> None:
    assert sentence("{name} is done.", name="the store") == "The store is done."
    assert capital("eBPF is done.") == "eBPF is done."


def test_a_question_moves_into_the_middle_of_a_sentence() -> None:
    assert uncapital("What is it?") == "what is it?"
    assert uncapital("Heron: what is it?") == "Heron: what is it?"


def test_two_people_in_one_sentence_are_two_people() -> None:
    cycle = ShuffledCycle(["Ada", "Ben"], Random(1))
    text = fill("{person} and {person} met.", cycle, Random(1))
    assert text in ("Ada and Ben met.", "Ben and Ada met.")


def test_a_near_miss_that_says_a_value_is_unknown_is_recognised() -> None:
    assert is_pending("Still no word on the cap for {name}.")
    assert not is_pending("{speaker} asked how the cap for {name} is split.")


def test_the_same_sentence_is_fresh_again_after_a_month() -> None:
    fresh, cycle = RepetitionFilter(), ShuffledCycle(["x"], Random(1))
    said = [day for day in range(1, 70) if fresh.draw(cycle, day, str.upper)]
    assert said == [1, 32, 63]


def test_a_year_has_breaks_of_ten_to_fifteen_days() -> None:
    calendar = make_calendar(shipped_story("backend-eng-saas"), 365, Random(3))
    assert 2 <= len(calendar.breaks) <= 4
    assert all(10 <= away.last - away.first + 1 <= 15 for away in calendar.breaks)
    assert not any(calendar.works(day) for day in range(*calendar.breaks[0][:2]))


def test_people_of_isolated_sessions_only_are_not_named_elsewhere() -> None:
    story = shipped_story("executive-assistant")
    family = next(room for room in story.persona.sessions if room.id == "household")
    assert not set(story.speakers(family)) & set(story.colleagues())
