"""Which kind of answer a question asks for."""

from __future__ import annotations

import pytest

from mnemoscope.readers.question_kinds import asked_for


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When did Odile repair the boat?", "date"),
        ("In which year did Odile retire?", "date"),
        ("What month is the regatta?", "date"),
        ("How long has Odile kept bees?", "duration"),
        ("How many weeks did the trip take?", "duration"),
        ("How many hives does Odile have?", "number"),
        ("How often does Bram swim?", "number"),
        ("Who lent Odile the saw?", "person"),
        ("Where did Bram grow up?", "place"),
        ("Which city did Bram visit?", "place"),
        ("Why did Odile sell the van?", "reason"),
        ("What made Bram change his mind?", "reason"),
        ("How does Bram unwind?", "how"),
        ("What instrument does Bram play?", "what"),
        ("What did Odile build?", "thing"),
        ("Did Odile sell the van?", "yes"),
        ("Would Bram enjoy sailing?", "yes"),
        ("I love boats. Is Bram coming?", "yes"),
        ("", "thing"),
        ("奥迪尔什么时候来", "thing"),
    ],
)
def test_the_kind_is_read_off_the_wording(question: str, kind: str) -> None:
    assert asked_for(question).kind == kind


def test_the_focus_is_the_noun_after_what() -> None:
    assert asked_for("What kind of cheese does Bram like?").focus == ("cheese",)
    assert asked_for("Which Baltic ports did Odile visit?").focus[-1] == "ports"
    assert asked_for("Why did Odile leave?").focus == ()


@pytest.mark.parametrize(
    ("question", "several"),
    [
        ("What instruments does Bram play?", True),
        ("Where has Odile sailed?", True),
        ("Which ports did Odile visit?", True),
        ("What did Odile build in May?", False),
        ("Which boat did Odile sell?", False),
    ],
)
def test_plurals_ask_for_several_things(question: str, several: bool) -> None:
    assert asked_for(question).several is several


def test_names_lose_the_possessive_and_the_first_word_is_none() -> None:
    assert asked_for("What is Odile's favourite tune?").names == {"odile"}
    assert asked_for("How many bikes do I own?").mine


def test_subjects_are_the_names_that_a_question_is_about() -> None:
    assert asked_for("What did Odile buy in Gdansk for Bram?").subjects == {"odile"}
    assert asked_for("Where have Odile and Bram sailed?").subjects == {"odile", "bram"}
    assert asked_for("What is Odile's boat called?").subjects == {"odile"}
    assert asked_for("What did the team decide about Heron? Which one?").subjects == set()
    assert asked_for("Note 7: What of the boat?").names == set()
