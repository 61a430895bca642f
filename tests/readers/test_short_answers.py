"""Short answers on invented conversations: one type of question after the other."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope._store.errors import UsageError
from mnemoscope.readers import Passage, Reply
from mnemoscope.readers.extractive import SHORT_ABSTENTION, Extractive
from mnemoscope.types import Query

TOLD = datetime(2024, 3, 13, 9, 30, tzinfo=UTC)
"""A Wednesday."""
NOTHING = Reply(SHORT_ABSTENTION, abstained=True)


def turn(number: int, text: str, at: datetime | None = TOLD) -> Passage:
    return Passage(f"t{number}", text, at)


def ask(question: str, *texts: str, at: datetime | None = TOLD, **options: object) -> Reply:
    passages = [turn(number, text, at) for number, text in enumerate(texts)]
    return Extractive(**options).read(Query(question), passages)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Odile: I sold the old van yesterday!", "12 March 2024"),
        ("Odile: Last week I sold the old van.", "the week before 13 March 2024"),
        ("Odile: I sold the old van last Friday.", "the Friday before 13 March 2024"),
        ("Odile: I sold the old van two weeks ago.", "two weeks before 13 March 2024"),
        ("Odile: I sold the old van last year.", "2023"),
        ("Odile: I sold the old van in January.", "January 2024"),
        ("Odile: I just sold the old van!", "13 March 2024"),
    ],
)
def test_a_date_is_counted_from_the_day_of_the_memory(said: str, answer: str) -> None:
    reply = ask("When did Odile sell the old van?", "Bram: The harbour was calm.", said)
    assert reply.text == answer
    assert reply.sources == ("t1",)


def test_a_month_or_a_year_is_given_where_it_is_asked_for() -> None:
    said = "Odile: I sold the old van on 2 February 2022."
    assert ask("Which month did Odile sell the van?", said).text == "February 2022"
    assert ask("What year did Odile sell the van?", said).text == "2022"


def test_without_any_day_no_date_is_made_up() -> None:
    assert ask("When did Odile sell the van?", "Odile: I sold the van.", at=None) == NOTHING


@pytest.mark.parametrize(
    ("question", "said", "word"),
    [
        ("How many hives does Odile keep?", "Odile: I keep seven hives behind the barn.", "seven"),
        ("How long has Bram played the cello?", "Bram: I've played the cello for nine years.",
         "nine years"),
        ("Who taught Bram the cello?", "Bram: My neighbour Ottoline taught me the cello.",
         "Ottoline"),
        ("Where did Odile find the anchor?", "Odile: I found the anchor in Rotterdam!",
         "Rotterdam"),
        ("What instrument does Bram play?", "Bram: I play the cello every evening.", "cello"),
        ("Why did Odile sell the van?", "Odile: I sold the van because the engine was failing.",
         "engine was failing"),
    ],
)  # fmt: skip
def test_each_type_of_question_gets_its_type_of_answer(question: str, said: str, word: str) -> None:
    reply = ask(question, "Bram: The weather is mild today.", said)
    assert word in reply.text
    assert len(reply.text.split()) <= 12
    assert reply.sources == ("t1",)


def test_yes_and_no_follow_the_polarity_of_the_sentence() -> None:
    question = "Did Odile sell the van?"
    assert ask(question, "Odile: I sold the van at last.").text == "Yes"
    assert ask(question, "Odile: I did not sell the van.").text == "No"
    assert ask("Would Bram enjoy sailing?", "Bram: I love sailing!").text == "Likely yes"
    assert ask("Would Bram enjoy sailing?", "Bram: I never enjoy sailing.").text == "Likely no"


def test_several_things_come_from_several_passages() -> None:
    reply = ask(
        "Which cities has Odile visited?",
        "Odile: I visited Rotterdam in spring.",
        "Odile: I visited Gdansk with Bram.",
        "Bram: I had soup.",
    )
    assert "Rotterdam" in reply.text
    assert "Gdansk" in reply.text
    assert ", " in reply.text
    assert set(reply.sources) == {"t0", "t1"}


def test_a_number_is_never_replaced_by_words() -> None:
    assert ask("How many hives does Odile keep?", "Odile: I keep hives behind the barn.") == NOTHING


def test_what_another_person_says_of_themselves_is_no_answer() -> None:
    said = "Bram: My sister gave me a brass compass for my birthday."
    assert "compass" in ask("What did Bram get for his birthday?", said).text
    assert ask("What did Odile get for her birthday?", said) == NOTHING


def test_the_threshold_decides_about_abstaining() -> None:
    said = "Bram: My sister gave me a brass compass for my birthday."
    question = "What did Odile get for her birthday?"
    assert not ask(question, said, abstain_above=1.0).abstained
    assert ask("What did Bram get for his birthday?", said, abstain_above=0.0) == NOTHING


def test_the_words_of_an_answer_are_those_of_the_text() -> None:
    said = "Odile: We carved a walnut spoon, then varnished the rudder of the boat."
    reply = ask("What did Odile carve?", said)
    assert reply.text in said


@pytest.mark.parametrize(
    "texts",
    [
        (),
        ("",),
        ("   \n\n",),
        ("!!! ??? ...",),
        ("🙂🙂🙂",),
        ("\x00\x01",),
    ],
)
def test_nothing_to_read_is_an_abstention(texts: tuple[str, ...]) -> None:
    assert ask("What did Odile carve?", *texts) == NOTHING


@pytest.mark.parametrize(
    "text",
    [
        "Odile: " + "spoon " * 50_000,
        "Odile: " + "x" * 300_000,
        "Odile: " + "?!. " * 60_000,
        "a: " * 50_000,
        "奥迪尔在鹿特丹雕刻了一把勺子。" * 2_000,
        "\n".join(["Odile: I carved a spoon."] * 20_000),
    ],
)
def test_huge_and_foreign_texts_get_a_short_answer_or_none(text: str) -> None:
    reply = ask("What did Odile carve?", text)
    assert reply.abstained or len(reply.text.split()) <= 12 * 4


@pytest.mark.parametrize(
    "question",
    ["", "?", "which " * 20_000, "what is " + "y" * 100_000, "奥迪尔雕刻了什么?", "a, or b"],
)
def test_odd_questions_are_no_error(question: str) -> None:
    assert ask(question, "Odile: I carved a spoon yesterday.").text


@settings(max_examples=60)
@given(st.text(), st.lists(st.text(), max_size=4))
def test_any_question_and_texts_give_the_same_answer_twice(question: str, texts: list[str]) -> None:
    first = ask(question, *texts)
    assert first.text
    assert ask(question, *texts) == first


def test_other_passages_read_before_change_nothing() -> None:
    said = ("Odile: I keep seven hives behind the barn.", "Bram: I keep bees too.")
    before = ask("How many hives does Odile keep?", *said)
    for number in range(30):
        ask(f"What is word{number}?", f"Odile: word{number} means {number * 'very '}much.")
    assert ask("How many hives does Odile keep?", *said) == before


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"form": "long"}, "form must be short or sentences"),
        ({"items": 0}, "must be 1 or more"),
        ({"sentences": 2}, "sentences needs form=sentences"),
        ({"form": "sentences", "items": 2}, "items needs form=short"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        Extractive(**options)  # type: ignore[arg-type]


def test_the_identity_names_version_and_weights() -> None:
    about = Extractive().identity()
    assert about["version"] == 2
    assert len(about["weights"]) == 64
