"""The rules that draw right and wrong answers, and the profile that weights them."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from random import Random

import pytest
from tests.judges.test_drawn_exam import scenarios

from mnemoscope.judges import right_variants as right
from mnemoscope.judges import wrong_variants as wrong
from mnemoscope.judges.answer_profile import PROFILE, WORDS_BESIDE, shares_of_words
from mnemoscope.judges.drawn_exam import draw
from mnemoscope.judges.variant_source import Rule, Source
from mnemoscope.text.reference_types import (
    BESIDE,
    LENGTHS,
    SHARED,
    find_date,
    list_items,
    shared_words,
    words_beside,
)

OTHERS = ("a wooden boat", "Lisbon", "9 June 2022", "chess, fencing", "the old mill", "Monday")


def source(question: str, reference: str) -> Source:
    return Source(question, reference, OTHERS, (), ())


def drawn(rule: Rule, question: str, reference: str, draws: int = 40) -> set[str]:
    found = (rule(source(question, reference), Random(seed)) for seed in range(draws))
    return {one for one in found if one is not None}


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        # 14 August 2023 was a Monday, 23 July a Sunday.
        ("The Friday before 14 August 2023", "11 August 2023"),
        ("the Monday before 14 August 2023", "7 August 2023"),
        ("Tuesday after 14 August 2023", "15 August 2023"),
        ("The week before 9 June 2023", "the week of 29 May 2023"),
        ("The weekend before 22 July 2023", "the weekend of 15 July 2023"),
        ("The weekend after 18 July 2023", "the weekend of 22 July 2023"),
    ],
)
def test_relative_dates_are_resolved_by_the_calendar(reference: str, expected: str) -> None:
    assert expected in drawn(right.resolved_date, "When?", reference)


@pytest.mark.parametrize("reference", ["14 August 2023", "two weeks before 9 June 2023", "Oslo"])
def test_other_dates_are_not_resolved(reference: str) -> None:
    assert not drawn(right.resolved_date, "When?", reference)


def test_a_shorter_answer_keeps_what_turns_counts_or_names() -> None:
    asked = "What did Odile say about the harbour?"
    assert drawn(right.fewer_words, asked, "it is not far from the three old boats") == {
        "not far from three old boats"
    }
    for answer in drawn(right.fewer_words, "Who helped Odile?", "her mother, Ivo, and the postman"):
        assert sorted(list_items(answer)) == ["Ivo", "mother", "postman"]
    assert not drawn(right.fewer_words, "How long?", "over a year") & {"year", "a year"}
    # The question names both answers, so no word of it may be dropped.
    assert not drawn(right.fewer_words, "Is it the mill or the harbour?", "the old harbour")


def test_yes_and_no_keep_their_meaning() -> None:
    yes = drawn(right.yes_or_no, "Would Odile move?", "Likely yes, she likes the sea")
    no = drawn(right.yes_or_no, "Would Odile move?", "No; she likes the mill")
    assert "Yes, Odile would." in yes and "No, Odile would not." in no
    assert not any("no" in answer.lower().split() for answer in yes)
    assert not any("yes" in answer.lower() for answer in no)


def test_reworded_answers_share_fewer_words_and_names_stay() -> None:
    reference = "The Big Film, a small party to share stories"
    for rule in (right.paraphrase, right.reworded):
        for answer in drawn(rule, "What happened?", reference):
            assert "Big Film" in answer
            assert shared_words(answer, reference) not in ("same", "all")


def test_a_wrong_date_is_not_in_the_week_that_the_reference_means() -> None:
    reference = "The week before 9 June 2023"
    answers = drawn(wrong.other_date, "When?", reference, draws=400)
    alone = [one for one in answers if "week" not in one]
    assert len(alone) > 20
    for answer in alone:
        found = find_date(answer)
        assert found is not None
        day = date(found.year or 1, found.month or 1, found.day or 1)
        assert not date(2023, 5, 29) <= day < date(2023, 6, 9)


def test_another_detail_changes_one_thing_and_keeps_the_others() -> None:
    for answer in drawn(wrong.other_detail, "What?", "rowing, judo and tennis"):
        kept = {"rowing", "judo", "tennis"} & set(list_items(answer))
        assert len(kept) == 2 and len(list_items(answer)) == 3
    for answer in drawn(wrong.other_detail, "What?", "a tin box with letters"):
        words = set(answer.split())
        assert len({"a", "tin", "box", "with", "letters"} - words) == 1


def test_some_words_and_others_lack_what_the_reference_is() -> None:
    asked, reference = "What did Ivo find?", "a tin box with letters"
    answers = drawn(wrong.other_words, asked, reference, draws=200)
    assert len(answers) > 5
    for answer in answers:
        assert "letters" not in answer.lower() and "tin" in answer.lower()
        assert shared_words(answer, reference) in ("most", "half", "few")
    short = drawn(wrong.other_words, asked, "tin letters", draws=200)
    assert {words_beside(answer, "tin letters") for answer in short} == {"few", "some"}
    items = "rowing, judo and tennis"
    for answer in drawn(wrong.other_words, "What?", items, draws=200):
        kept = {"rowing", "judo", "tennis"} & set(list_items(answer))
        assert 1 <= len(kept) <= 2 and len(list_items(answer)) >= 3


@pytest.mark.parametrize(
    "reference", ["14 August 2023", "The week before 9 June 2023", "June 2022", "2021"]
)
def test_a_date_with_words_around_it_is_another_one(reference: str) -> None:
    answers = drawn(wrong.other_words, "When?", reference, draws=200)
    assert answers
    own = find_date(reference)
    for answer in answers:
        found = find_date(answer)
        assert found is not None and own is not None and not found.same_as(own)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The blue vase.", "few"),
        ("blue vase, glass", "few"),
        ("a blue glass vase, cracked", "some"),
        ("it was a red pot", "many"),
        ("it was the red pot that her mother gave her", "most"),
    ],
)
def test_how_many_other_words_an_answer_has(answer: str, expected: str) -> None:
    assert words_beside(answer, "a blue vase") == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The blue vase.", "same"),
        ("blue vase", "same"),
        ("It was a blue vase", "all"),
        ("the vase", "half"),
        ("azure pot", "none"),
    ],
)
def test_how_many_words_an_answer_shares(answer: str, expected: str) -> None:
    assert shared_words(answer, "a blue vase") == expected


def test_the_profile_has_every_stratum_and_its_shares_sum_to_one() -> None:
    types = ("date", "list", "number", "text", "yes-no")
    for acceptable, strata in PROFILE.items():
        assert set(strata) == {f"{kind}, {length}" for kind in types for length in LENGTHS}
        for stratum in strata:
            shares = shares_of_words(acceptable, stratum)
            assert set(shares) == {(shared, beside) for shared in SHARED for beside in BESIDE}
            assert sum(shares.values()) == pytest.approx(1)


def test_both_tables_of_the_profile_count_the_same_answers() -> None:
    for acceptable, by_length in WORDS_BESIDE.items():
        for length in LENGTHS:
            strata = [own for name, own in PROFILE[acceptable].items() if name.endswith(length)]
            for shared, counts in zip(SHARED, zip(*strata, strict=True), strict=True):
                own = by_length[length].get(shared, (0, 0, 0, 0))
                assert sum(counts) == sum(own), (acceptable, length, shared)


def test_an_exam_weighs_as_many_words_as_real_answers_have() -> None:
    exam = draw(scenarios()[:2], seed="one", per_kind=15, budget=200)
    totals: dict[tuple[bool, str], dict[tuple[str, str], dict[str, float]]] = defaultdict(dict)
    for probe in exam.probes:
        if probe.shared and probe.weight:
            side = totals[probe.acceptable, probe.stratum]
            side.setdefault((probe.shared, probe.beside), {})[probe.kind] = probe.weight
    assert totals
    for (acceptable, stratum), own in totals.items():
        found = {words: sum(kinds.values()) for words, kinds in own.items()}
        shares = shares_of_words(acceptable, stratum)
        assert sum(found.values()) == pytest.approx(1)
        for shared in SHARED:
            drawn_of = {words: part for words, part in found.items() if words[0] == shared}
            if {words[0] for words in found} == set(SHARED):
                expected = sum(part for words, part in shares.items() if words[0] == shared)
                assert sum(drawn_of.values()) == pytest.approx(expected)
            if {words[1] for words in drawn_of} == set(BESIDE):  # each goes to its own
                for words, part in drawn_of.items():
                    assert part >= shares[words] - 1e-9  # type: ignore[index]


def test_a_judge_cannot_pass_by_the_words_of_the_reference_alone() -> None:
    """The cheat that the first rules let pass: most right answers had every word."""
    reference = "a small party to share their stories"
    kinds = [right.paraphrase, right.reworded, right.fewer_words]
    answers = [one for rule in kinds for one in drawn(rule, "What did Ivo host?", reference)]
    assert answers
    assert not any(shared_words(one, reference) in ("same", "all") for one in answers)
