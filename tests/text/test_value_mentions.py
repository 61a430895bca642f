"""Which value an answer tells: naming both is not telling one, unless it says which is past."""

from __future__ import annotations

import pytest

from mnemoscope.text.value_mentions import names, told

NOW = {
    "The fee is 240 euros.": "right",
    "240 euros": "right",
    "It moved from 180 euros to 240 euros.": "right",
    "It was 180 euros and is 240 euros since May.": "right",
    "240 euros, previously 180 euros.": "right",
    "Not 180 euros but 240 euros.": "right",
    "It isn't 180 euros any more. It is 240 euros.": "right",
    "The fee was 240 euros when last noted.": "right",
    "The fee is 180 euros.": "outdated",
    "The fee was 180 euros.": "outdated",
    "It was 240 euros before it was cut: from 240 euros to 180 euros.": "mixed",
    "Previously 240 euros, now 180 euros.": "outdated",
    "Not 240 euros but 180 euros.": "outdated",
    "180 euros, 240 euros": "mixed",
    "Either 180 euros or 240 euros.": "mixed",
    "It was 180 euros. It was 240 euros.": "mixed",
    "[2025-01-03] The fee is 180 euros.\n[2025-02-03] The fee is 240 euros.": "mixed",
    "Formerly 180 euros.": "neither",
    "I do not know.": "neither",
    "1,240 euros": "neither",
    "": "neither",
}
THEN = {
    "On that day it was 180 euros.": "right",
    "It was 180 euros; now it is 240 euros.": "right",
    "180 euros, later raised to 240 euros.": "right",
    "It changed from 180 euros to 240 euros.": "right",
    "240 euros": "outdated",
    "It was 240 euros.": "outdated",
    "180 euros or 240 euros": "mixed",
    "Not 180 euros.": "neither",
}


@pytest.mark.parametrize("answer", NOW)
def test_a_question_about_now(answer: str) -> None:
    assert told(answer, ["240 euros", "€240"], ["180 euros"]) == NOW[answer]


@pytest.mark.parametrize("answer", THEN)
def test_a_question_about_an_earlier_day(answer: str) -> None:
    assert told(answer, ["180 euros"], ["240 euros"], about_past=True) == THEN[answer]


def test_a_value_inside_a_longer_one_is_not_told() -> None:
    assert told("It runs on the Redis cluster.", ["Redis"], ["Redis cluster"]) == "outdated"
    assert told("It runs on Redis.", ["Redis"], ["Redis cluster"]) == "right"


def test_a_value_is_named_in_any_sense() -> None:
    assert names("It was never 180 euros.", ["180 euros"])
    assert not names("It was 1180 euros.", ["180 euros"])
    assert not names("Anything.", [])
