"""The extractive reader on small hand-made logs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mnemoscope._store.errors import UsageError
from mnemoscope.readers import READERS, Passage, Reader, Reply
from mnemoscope.readers.extractive import ABSTENTION, Extractive
from mnemoscope.text.token_estimate import estimate_tokens
from mnemoscope.types import Query

FIRST = datetime(2026, 3, 2, tzinfo=UTC)


def passage(day: int, text: str) -> Passage:
    return Passage(f"day-{day}", text, at=FIRST + timedelta(days=day))


MONDAY = passage(
    0,
    "# session: principal\nMonday, 2 March 2026\n\n"
    "### Heron\nThe spending limit for Heron was set at $180k. The kitchen was loud.\n\n"
    "### Routine\nI watered the plants and answered the mail. The lift is broken again.",
)
FRIDAY = passage(
    4,
    "# session: principal\nFriday, 6 March 2026\n\n"
    "### Heron\nThe spending limit for Heron now stands at $240k. "
    "Everybody went home early.\n\n"
    "### Kite\nStill no word on the spending limit for Kite.",
)
GROUP = passage(
    7,
    "# session: board\n### Pricing\n"
    '> Ana Ruiz: "The discount for schools should wait until the audit is over."\n'
    '> Lena Brandt: "The shuttle bus is always late on Thursdays."\n',
)
DELAYS = (
    passage(8, "### Kite\nKite slipped a week because of a lapsed certificate at the gateway."),
    passage(15, "### Osprey\nA lapsed certificate at the gateway also held up Osprey."),
    passage(16, "### Lunch\nThe canteen had soup."),
)


def ask(question: str, *passages: Passage, reader: Extractive | None = None) -> Reply:
    return (reader or Extractive(form="sentences")).read(Query(question), passages)


def test_it_is_registered_by_name_and_is_a_reader() -> None:
    reader: Reader = READERS.get("extractive")()
    assert isinstance(reader, Extractive)


def test_a_fact_is_cited_with_its_date_and_source() -> None:
    reply = ask("What is the spending limit for Heron?", MONDAY)

    assert "[2026-03-02] The spending limit for Heron was set at $180k." in reply.text
    assert reply.sources == ("day-0",)
    assert not reply.abstained


def test_without_a_date_there_is_no_date() -> None:
    reply = ask("What is the spending limit for Heron?", Passage("x", MONDAY.text))
    assert reply.text.startswith("The spending limit")


def test_unrelated_sentences_are_left_out() -> None:
    reply = ask("What is the spending limit for Heron?", MONDAY, *DELAYS)
    assert "plants" not in reply.text
    assert "soup" not in reply.text


def test_the_latest_value_is_preferred_where_it_is_asked_for() -> None:
    reply = ask("What is the current spending limit for Heron?", MONDAY, FRIDAY)

    assert "$240k" in reply.text
    assert "$180k" not in reply.text


def test_a_question_about_the_course_cites_both_values_in_time_order() -> None:
    reply = ask("How did the spending limit for Heron change over time?", FRIDAY, MONDAY)

    assert 0 <= reply.text.find("$180k") < reply.text.find("$240k")
    assert reply.sources == ("day-4", "day-0") or set(reply.sources) == {"day-0", "day-4"}


def test_two_things_with_one_cause_are_both_named() -> None:
    reply = ask("Which two efforts were held up by a lapsed certificate at the gateway?", *DELAYS)

    assert "Kite" in reply.text
    assert "Osprey" in reply.text
    assert "soup" not in reply.text


def test_a_quote_is_cited_with_who_said_it() -> None:
    one = Extractive(form="sentences", sentences=1)
    reply = ask("Who argued that the discount for schools should wait?", GROUP, reader=one)
    assert reply.text.startswith('[2026-03-09] Ana Ruiz: "The discount')


@pytest.mark.parametrize(
    "question",
    [
        "Which vendor delivers the microscopes for the Osaka laboratory?",
        "What did Priya Nair decide about the marathon?",
        "When was the yacht insured?",
    ],
)
def test_it_abstains_where_nothing_fits(question: str) -> None:
    assert ask(question, MONDAY, FRIDAY, GROUP) == Reply(ABSTENTION, abstained=True)


def test_it_abstains_without_passages_and_without_words() -> None:
    assert ask("What is it?").abstained
    assert ask("What is it?", passage(0, "")).abstained
    assert ask("", MONDAY).abstained


def test_what_settles_a_matter_comes_before_what_leaves_it_open() -> None:
    day = passage(
        3,
        "### Kite\nStill no word on the spending limit for Kite, Ana Ruiz said. "
        "The spending limit for Kite is $310k.",
    )
    reply = ask(
        "What is the spending limit for Kite?",
        day,
        reader=Extractive(form="sentences", sentences=1),
    )
    assert reply.text == "[2026-03-05] The spending limit for Kite is $310k."


def test_only_what_fits_the_budget_is_read() -> None:
    budget = estimate_tokens(MONDAY.text)
    question = "What is the spending limit for Heron?"

    first = ask(question, MONDAY, FRIDAY, reader=Extractive(form="sentences", budget=budget))
    part = ask(question, MONDAY, FRIDAY, reader=Extractive(form="sentences", budget=budget + 45))
    little = ask(question, MONDAY, reader=Extractive(form="sentences", budget=5))

    assert set(first.sources) == {"day-0"}
    assert "$240k" in part.text
    assert little.abstained


def test_repeated_sentences_are_cited_once() -> None:
    again = passage(9, "### Heron\nThe spending limit for Heron was set at $180k.")
    assert ask("What is the spending limit for Heron?", MONDAY, again).text.count("$180k") == 1


def test_no_more_sentences_than_allowed() -> None:
    days = [passage(day, f"Kite was tested in hangar {day + 10}.") for day in range(12)]
    reply = ask("In which hangars was Kite tested, all of them?", *days)
    assert 1 <= len(reply.text.splitlines()) <= 5
    few = ask(
        "In which hangars was Kite tested?", *days, reader=Extractive(form="sentences", sentences=1)
    )
    assert len(few.text.splitlines()) == 1


def test_what_was_read_before_changes_no_answer() -> None:
    question = "What is the spending limit for Heron?"
    reader = Extractive(form="sentences")
    before = reader.read(Query(question), [MONDAY, FRIDAY])
    for day in range(30):
        reader.read(Query(f"What about vessel {day}?"), [passage(day, f"Vessel {day} left pier.")])

    assert reader.read(Query(question), [MONDAY, FRIDAY]) == before
    assert Extractive(form="sentences").read(Query(question), [MONDAY, FRIDAY]) == before


@pytest.mark.parametrize("wrong", [{"budget": 0}, {"sentences": 0}])
def test_impossible_options_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="1 or more"):
        Extractive(**wrong)  # type: ignore[arg-type]
