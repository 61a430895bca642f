"""What counts as saying something."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.text.matching import Sentence, normal_wording, normalise, sentences, spans


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("$240k", "$240,000"),
        ("$1.2m", "$1,200,000"),
        ("$1.2 million", "$1,200,000.00"),
        ("240k requests", "240,000 requests"),
        ("24 percent", "24 %"),
        ("6:30 a.m.", "6:30 AM"),
        ("3rd of March 2026", "3 March 2026"),
        ("March 3, 2026", "march 3 2026"),
        ("10–12 weeks", "10-12 weeks"),
        ("the clinic’s “late” list", 'the clinic\'s "late" list'),
        ("12\u202f500 units", "12,500 units"),
        ("5 thousand dollars", "$5,000"),
    ],
)
def test_ways_to_write_the_same_become_the_same(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("24", "It rose to 240."),
        ("24", "It rose to 24%."),
        ("24", "It cost $24."),
        ("30", "They meet at 6:30."),
        ("12", "The part is PX-12."),
        ("PX-12", "The part is PX-123."),
        ("PX-12", "The part is PX-12-b."),
        ("2.3", "Release 2.3.1 went out."),
        ("Ana", "Anabel took it."),
        ("5 m", "It is 5 mm thick."),
        ("5 boxes", "It came in 12.5 boxes."),
        ("12 valves", "The PX-12 valves came."),
        ("24 plans", "The $24 plan is out."),
    ],
)
def test_part_of_a_word_or_number_does_not_say_it(value: str, text: str) -> None:
    assert not Sentence(text).says(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("24", "It rose to 24."),
        ("24 connections", "There is a 24-connection cap."),
        ("Ana Ruiz", "That was Ana Ruiz's idea."),
        ("$240k", "The cap is $240,000 a year."),
        ("PX-12", "(PX-12)"),
        ("06:30", "It starts at 06:30, as before."),
    ],
)
def test_whole_words_say_it_whatever_stands_around(value: str, text: str) -> None:
    assert Sentence(text).says(value)


def test_a_clause_is_said_by_most_of_its_words_in_one_sentence() -> None:
    clause = "cold starts would double the login time for remote staff"

    assert Sentence("Cold starts double login times for the remote staff.").says(clause)
    assert not Sentence("Remote staff would like it.").says(clause)


def test_a_clause_about_another_name_or_number_is_another_clause() -> None:
    clause = "Heron should wait until the yearly vendor audit is over"

    assert Sentence("Heron should wait till the yearly vendor audit is over.").says(clause)
    assert not Sentence("Kite should wait until the yearly vendor audit is over.").says(clause)
    assert not Sentence("It pays back within 9 months of the launch date.").says(
        "it pays back within 7 months of the launch date"
    )


def test_an_answer_is_cut_at_lines_and_full_stops_and_keeps_its_dates() -> None:
    parts = sentences('[2026-03-03] Dr. Moreno agreed. "Fine," she said.\nNo. It is not.')

    assert [part.original for part in parts] == [
        "Dr. Moreno agreed.",
        '"Fine," she said.',
        "No.",
        "It is not.",
    ]
    assert [part.cited for part in parts] == [True, True, False, False]
    assert parts[0].says("2026-03-03")


@given(st.text(max_size=60))
def test_normalising_twice_changes_nothing_for_plain_words(text: str) -> None:
    words = " ".join(word for word in text.split() if word.isascii() and word.isalpha())
    assert normalise(normalise(words)) == normalise(words)


@given(
    st.lists(st.from_regex(r"[a-z]{2,8}", fullmatch=True), min_size=1, max_size=4),
    st.lists(st.from_regex(r"[a-z]{2,8}", fullmatch=True), max_size=4),
)
def test_a_wording_is_found_wherever_its_words_stand_in_a_row(
    wording: list[str], around: list[str]
) -> None:
    text = " ".join([*around, *wording, *around])
    assert spans(normalise(text), normal_wording(" ".join(wording)))
