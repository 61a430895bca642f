"""What reads as an abstention in a model's own words, and what is an answer all the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.text.abstention import says_nothing

PET = "What is the name of Ana's pet?"
GIFT = "What gift did Ana get from her grandmother?"

ABSTENTIONS = [
    ("Unknown.", PET),
    ("unknown", PET),
    ("Not mentioned.", PET),
    ("No information available.", PET),
    ("No information available", GIFT),
    ("N/A", PET),
    ("I don't know.", PET),
    ("I do not know the name of Ana's pet.", PET),
    ("I’m sorry, but I don’t know.", PET),
    ("I'm not sure.", PET),
    ("There is no mention of her pet's name in the provided conversation.", PET),
    ("There is no information about the present that Ana received from a relative.", GIFT),
    ("There was no mention of a gift.", GIFT),
    ("No evidence was found.", GIFT),
    ("No specific gift is mentioned in the excerpts.", GIFT),
    ("The conversation does not mention the name of Ana's pet.", PET),
    ("The provided excerpts do not contain any information about a pet.", PET),
    ("The context doesn't specify what her grandmother gave her.", GIFT),
    ("The memories say nothing about a gift.", GIFT),
    ("It doesn't say.", PET),
    ("It is not specified in the conversation.", PET),
    ("The pet's name is not explicitly mentioned.", PET),
    ("The name of Ana's pet is unknown.", PET),
    ("The specific kind of present she was handed is not stated in the text.", GIFT),
    ("This cannot be determined from the given information.", GIFT),
    ("Based on the conversation between Ana and Bo on 5 July, there is no mention of it.", PET),
    ("I couldn't find any mention of a pet.", PET),
    ("I cannot answer this question from the context provided.", PET),
    ("I have no information about that.", PET),
    ("I do not have enough information to answer.", GIFT),
    ("Not enough information.", GIFT),
    ("The information provided is not enough. You mentioned a cousin but not Ana.", GIFT),
    ("Unable to determine from the excerpts.", GIFT),
    ("You have never told me the name of her pet.", PET),
    ("You did say that Ana has a pet, but its name was never mentioned.", PET),
    ("Sorry, I have nothing on Ana's pet. Let me know if you have more details!", PET),
    ("Not mentioned in the conversation, so I cannot say.", PET),
    ("I do not know whether it was a necklace or a ring.", GIFT),
]

ANSWERS = [
    ("the Tomb of the Unknown Soldier", "Which monument did Ana visit?"),
    ("he didn't tell anyone", "Whom did Bo tell about his illness?"),
    ("not in the mood", "Why did Bo stay at home?"),
    ("not mentioned, so probably blue like hers", "What colour is Bo's car?"),
    ("Not mentioned, but likely Rome.", "Where did Ana spend the summer?"),
    ("Luna", PET),
    ("", PET),
    ("No", "Does Ana have a pet?"),
    ("Nothing.", GIFT),
    ("None", PET),
    ("No one knows about it but Bo", "Who knows of the engagement?"),
    ("She does not know how to swim", "Why does Ana stay out of the water?"),
    ("Ana doesn't remember her father", "What does Ana say of her father?"),
    ("He was not mentioned in the will", "Why was Bo angry?"),
    ("They were not told about the party", "Why did they stay away?"),
    ("The police found no evidence of fraud", "How did the inquiry end?"),
    ("There was no evidence against him", "Why was Bo set free?"),
    ("He has no information about the merger", "Why is Bo nervous?"),
    ("He could not find a parking space", "Why was Bo late?"),
    ("We couldn't find our keys", "Why were they late?"),
    ("She is not known for her patience", "Why did Bo not ask Ana to teach him?"),
    ("Because the shop was unknown to her", "Why did Ana not go there?"),
    ("It isn't explicitly stated, but she probably works as a nurse.", "What is Ana's job?"),
    ("The conversation does not specify the date; however it was early June.", "When was it?"),
    ("There is no explicit mention, but it is likely that she enjoys hiking.", "What does she do?"),
    ("I don't know for sure, but it seems to be a golden retriever.", "Which breed is it?"),
    ("I have no information beyond the fact that she adopted a grey kitten.", "What did she do?"),
    ("A silver necklace from Sweden; the shop is not mentioned.", GIFT),
    ("She adopted a golden retriever whose age is not known.", "What did Ana do in May?"),
    ("She adopted a golden retriever and I don't know its age.", "What did Ana do in May?"),
    ("I do not know. It may have been the silver necklace.", GIFT),
    ("No details are given, so presumably a hand-knitted scarf.", GIFT),
    ("[2026-03-02] I do not know.\n[2026-03-03] Grandmother sent a silver necklace.", GIFT),
    ("No, not sure of the colour, perhaps a dark green.", "What colour is Bo's car?"),
]


def test_both_tables_are_long_enough_to_mean_something() -> None:
    assert len(ABSTENTIONS) >= 25
    assert len(ANSWERS) >= 25


@pytest.mark.parametrize(("text", "question"), ABSTENTIONS)
def test_a_claim_that_nothing_is_known_is_an_abstention(text: str, question: str) -> None:
    assert says_nothing(text, question)


@pytest.mark.parametrize(("text", "question"), ANSWERS)
def test_what_tells_something_is_an_answer(text: str, question: str) -> None:
    assert not says_nothing(text, question)


@pytest.mark.parametrize(("text", "question"), ABSTENTIONS)
def test_an_assertion_beside_the_claim_makes_an_answer_of_it(text: str, question: str) -> None:
    assert not says_nothing(f"{text}. It was a silver bracelet.", question)


@given(st.text(max_size=80), st.text(max_size=40))
def test_any_text_is_handled(text: str, question: str) -> None:
    assert says_nothing(text, question) in (True, False)


def test_no_reference_of_locomo_reads_as_an_abstention_unless_it_says_so(
    shared_data: Callable[[str], Path],
) -> None:
    people = json.loads((shared_data("locomo") / "locomo10.json").read_text())
    known = [
        (str(asked[key]), asked["question"])
        for person in people
        for asked in person["qa"]
        for key in ("answer", "adversarial_answer")
        if asked.get(key) is not None
    ]
    assert len(known) > 1900
    assert {text for text, question in known if says_nothing(text, question)} == {"Not mentioned"}
