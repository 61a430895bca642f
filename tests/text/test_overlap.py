"""Overlap of words: ROUGE-L against the rouge-score package, LoCoMo's F1 against hand counts."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.text.overlap import (
    Tokens,
    answer_tokens,
    locomo_f1,
    normal_answer,
    rouge_l,
    rouge_l_recall,
    token_f1,
)
from mnemoscope.text.porter import porter_stem


def _table_lcs(one: Sequence[str], other: Sequence[str]) -> int:
    """The longest common subsequence as the textbook has it."""
    row = [0] * (len(other) + 1)
    for token in one:
        before = row[:]
        for place, wanted in enumerate(other, 1):
            grown = before[place - 1] + 1 if token == wanted else 0
            row[place] = max(before[place], row[place - 1], grown)
    return row[-1]


def _check_against_package(pairs: Sequence[tuple[str, str]]) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"], use_stemmer=False)
    for candidate, reference in pairs:
        theirs = scorer.score(reference, candidate)["rougeL"]
        assert rouge_l(candidate, reference) == pytest.approx(theirs.fmeasure, abs=1e-12)
        assert rouge_l_recall(candidate, reference) == pytest.approx(theirs.recall, abs=1e-12)


def test_rouge_l_agrees_with_the_rouge_score_package_on_random_texts() -> None:
    draw = random.Random(5)
    alphabet = ["Piano", "piano's", "a", "the", "12:30", "b-c", "Ünder", "é", "x_y", "…", "7%", ""]

    def text() -> str:
        return " ".join(draw.choices(alphabet, k=draw.randint(0, 30)))

    _check_against_package([(text(), text()) for _ in range(1_000)])


def test_rouge_l_agrees_with_the_rouge_score_package_on_tofu(
    shared_data: Callable[[str], Path],
) -> None:
    lines = (shared_data("tofu") / "full.json").read_text().splitlines()
    answers = [json.loads(line)["answer"] for line in lines]
    draw = random.Random(6)
    near = draw.sample(range(len(answers) - 1), 350)  # answers about the same author
    pairs = [(answers[at], answers[at + 1]) for at in near]
    pairs += [(draw.choice(answers), draw.choice(answers)) for _ in range(350)]
    _check_against_package(pairs)


@given(st.lists(st.sampled_from("abcdef"), max_size=90), st.lists(st.sampled_from("abcdef")))
def test_rouge_l_is_the_textbook_subsequence(one: list[str], other: list[str]) -> None:
    common = _table_lcs(one, other)
    both = len(one) + len(other)
    expected = 2 * common / both if one and other else 0.0
    assert rouge_l(" ".join(one), " ".join(other)) == pytest.approx(expected)


@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from(["words", "whitespace"]))
def test_rouge_l_is_symmetric_and_within_bounds(one: str, other: str, tokens: Tokens) -> None:
    value = rouge_l(one, other, tokens)
    assert 0 <= value <= 1
    assert value == rouge_l(other, one, tokens)
    assert rouge_l_recall(one, one, tokens) in (0.0, 1.0)


def test_whitespace_tokens_keep_their_punctuation() -> None:
    # words: red, kite / red, kite. whitespace: red, kite! / red, kite.
    assert rouge_l("Red kite!", "red kite.") == 1.0
    assert rouge_l("Red kite!", "red kite.", "whitespace") == pytest.approx(0.5)


def test_recall_is_the_share_of_the_reference_that_is_said() -> None:
    # LCS "the red kite" = 3 of the reference's 4 words; the candidate has 6.
    assert rouge_l_recall("I saw the red kite flying", "the big red kite") == pytest.approx(3 / 4)
    assert rouge_l("I saw the red kite flying", "the big red kite") == pytest.approx(6 / 10)


def test_empty_texts_have_no_overlap() -> None:
    assert rouge_l("", "") == rouge_l("?!", "word") == rouge_l_recall("word", "") == 0.0
    assert token_f1("", "") == token_f1("the", "a") == 0.0


def test_normal_answers_lose_case_punctuation_articles_and_the_word_and() -> None:
    assert normal_answer(" The  Cat, AND a dog's 1,000 toys! ") == "cat dogs 1000 toys"


@pytest.mark.parametrize("category", ["2", "4", "temporal-reasoning", ""])
def test_plain_categories_take_the_f1_of_stemmed_bags_of_words(category: str) -> None:
    # {7, may, 2023} against {on, 7, may, 2023}: 3 shared, 2 * 3 / (3 + 4).
    assert locomo_f1("7 May, 2023", "On the 7 May 2023", category) == pytest.approx(6 / 7)
    # running and runs have one stem; "and" and "the" do not count: {run, jump} twice.
    assert locomo_f1("Running and jumping", "the runs jump", category) == 1.0
    # Repetitions count as often as both have them: 1 shared, 2 * 1 / (3 + 1).
    assert locomo_f1("tea tea tea", "tea", category) == pytest.approx(1 / 2)
    assert locomo_f1("coffee", "tea", category) == 0.0


def test_plain_categories_do_not_cut_at_semicolons() -> None:
    # {green} against {green, blue}: 2 * 1 / 3.
    assert locomo_f1("green", "green; blue", "4") == pytest.approx(2 / 3)


def test_category_3_takes_the_reference_up_to_its_first_semicolon() -> None:
    # {like, yes} against {like, yes}: what stands behind the first semicolon does not count.
    assert locomo_f1("yes, likely", "Likely yes; she paints; she sings", "3") == 1.0
    # {no} against {like, no}: 2 * 1 / 3.
    assert locomo_f1("No", "Likely no; because of the dog", "3") == pytest.approx(2 / 3)


def test_category_1_takes_the_best_part_for_each_part_of_the_reference() -> None:
    # potteri: 1; camp: {went, camp} 2 * 1 / 3; swim: 0. Mean 5/9.
    value = locomo_f1("pottery, went camping", "pottery, camping, swimming", "1")
    assert value == pytest.approx((1 + 2 / 3 + 0) / 3)
    # More parts than asked for cost nothing here: that is the official rule.
    assert locomo_f1("pottery, camping, chess", "camping", "1") == 1.0
    # The order of parts does not count, one long part does: {tea, cake} against each, 2/3 and 2/3.
    assert locomo_f1("cake, tea", "tea, cake", "1") == 1.0
    assert locomo_f1("tea and cake", "tea, cake", "1") == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("prediction", "value"),
    [
        ("No information available.", 1.0),
        ("That is NOT MENTIONED in the conversation", 1.0),
        ("I do not know", 0.0),
        ("A red kite", 0.0),
        ("", 0.0),
    ],
)
def test_category_5_wants_one_of_two_phrases(prediction: str, value: float) -> None:
    assert locomo_f1(prediction, "a red kite", "5") == value


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("dies", "died"),
        ("ties", "tied"),
        ("lies", "lied"),
        ("pies", "pie"),
        ("skies", "sky"),
        ("dying", "die"),
        ("lying", "lie"),
        ("tying", "tie"),
        ("innings", "inning"),
        ("outings", "outing"),
        ("tries", "try"),
        ("enjoyment", "enjoys"),
    ],
)
def test_words_that_nltk_takes_for_one_are_one(one: str, other: str) -> None:
    assert token_f1(one, other) == 1.0


@pytest.mark.parametrize(
    ("one", "other"),
    [("news", "new"), ("outing", "out"), ("is", "i"), ("us", "use"), ("on", "one"), ("ate", "at")],
)
def test_words_that_nltk_keeps_apart_are_two(one: str, other: str) -> None:
    assert token_f1(one, other) == 0.0


def test_short_and_listed_words_are_their_own_stems() -> None:
    kept = ["us", "as", "is", "by", "news", "howe", "proceed", "exceed", "succeed", "sky"]
    assert answer_tokens(" ".join(kept)) == kept


def _nltk_stem() -> Callable[[str], str]:
    # The rouge-score package brings it along.
    from nltk.stem.porter import PorterStemmer  # type: ignore[import-untyped]

    stem: Callable[[str], str] = PorterStemmer().stem
    return stem


def test_stems_are_those_of_nltk_on_every_word_of_locomo(
    shared_data: Callable[[str], Path],
) -> None:
    text = (shared_data("locomo") / "locomo10.json").read_text()
    words = sorted(set(normal_answer(text.replace("\\n", " ")).split()))
    theirs = _nltk_stem()
    assert len(words) > 5000
    assert [porter_stem(word) for word in words] == [theirs(word) for word in words]


def test_stems_are_those_of_nltk_on_made_up_words() -> None:
    draw = random.Random(7)
    ends = (
        "ational tional enci anci izer bli alli entli eli ousli ization ation ator alism iveness "
        "fulness ousness aliti iviti biliti fulli logi icate ative alize iciti ical ful ness al "
        "ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize ed ing ies "
        "ied eed y s sses ll e é 9"
    ).split()
    theirs = _nltk_stem()
    for _ in range(20_000):
        start = "".join(draw.choices("aeioubcdlstyzwx", k=draw.randint(0, 4)))
        word = start + draw.choice(ends) + draw.choice(["", "", *ends])
        assert porter_stem(word) == theirs(word), word
