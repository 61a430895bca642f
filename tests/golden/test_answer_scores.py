"""LoCoMo's answer scoring on its own references: the best answer there is, and one at random."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pytest

from mnemoscope.datasets import open_dataset
from mnemoscope.text.overlap import locomo_f1, normal_answer
from mnemoscope.types import Question

SIZES = {"1": 282, "2": 321, "3": 96, "4": 841}


@pytest.fixture(scope="module")
def answerable(shared_data: Callable[[str], Path]) -> list[Question]:
    dataset = open_dataset("locomo", shared_data("locomo"), {})
    questions = [question for scenario in dataset.scenarios() for question in scenario.questions]
    return [question for question in questions if question.category in SIZES]


def scored(question: Question, answer: str) -> float:
    return locomo_f1(answer, question.reference, question.category)


def test_there_are_1540_questions_with_an_answer(answerable: list[Question]) -> None:
    assert Counter(question.category for question in answerable) == SIZES
    assert all(question.reference.strip() for question in answerable)


def test_the_reference_is_a_full_answer_but_where_it_gives_its_reason(
    answerable: list[Question],
) -> None:
    values = {question.id: scored(question, question.reference) for question in answerable}
    short = [q for q in answerable if values[q.id] < 1]
    # The official rule takes an open-domain reference up to its semicolon; whoever repeats the
    # reason that follows is marked down for words too many.
    assert {question.category for question in short} == {"3"}
    assert all(";" in question.reference for question in short)
    assert len(short) == 11
    assert all(scored(q, q.reference.partition(";")[0]) == 1.0 for q in short)


def test_no_reference_is_empty_once_it_is_normal(answerable: list[Question]) -> None:
    assert all(normal_answer(question.reference) for question in answerable)


def test_the_means_of_the_references_stay_at_one(answerable: list[Question]) -> None:
    by_category = defaultdict(list)
    for question in answerable:
        by_category[question.category].append(scored(question, question.reference))
    means = {category: fmean(values) for category, values in by_category.items()}
    assert (means["1"], means["2"], means["4"]) == (1.0, 1.0, 1.0)
    assert means["3"] == pytest.approx(0.927, abs=0.001)


def test_the_reference_of_another_question_earns_next_to_nothing(
    answerable: list[Question],
) -> None:
    draw = random.Random(7)
    by_category = defaultdict(list)
    for question in answerable:
        kin = [q.reference for q in answerable if q.reference != question.reference]
        by_category[question.category].append(scored(question, draw.choice(kin)))
    means = {category: fmean(values) for category, values in by_category.items()}
    assert fmean(value for values in by_category.values() for value in values) < 0.02
    assert max(means.values()) < 0.05


def test_another_date_earns_more_than_another_fact(answerable: list[Question]) -> None:
    """Dates share months and years: a wrong one of the right kind is still a tenth right."""
    draw = random.Random(7)
    means = {}
    for category in SIZES:
        own = [question for question in answerable if question.category == category]
        others = [
            (q, draw.choice([o.reference for o in own if o.reference != q.reference])) for q in own
        ]
        means[category] = fmean(scored(question, answer) for question, answer in others)
    assert 0.08 < means.pop("2") < 0.17
    assert max(means.values()) < 0.05
