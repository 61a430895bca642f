"""Ranges, eligibility, sampling and order, as Recall Bench's harness has them.

Vectors: ../shared/spec/recall-bench.md §2.4, where Node and Python agreed on them.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope._store.errors import UsageError
from mnemoscope.datasets.checkpoint_plan import (
    FULL,
    PlannedQuestion,
    Range,
    arithmetic,
    is_eligible,
    mulberry32,
    parse_ranges,
    plan_checkpoints,
    sample_by_category,
    shuffled,
)
from mnemoscope.types import CATEGORIES, GROUP_CATEGORIES

Item = tuple[str, int]


# Ranges.


def test_the_five_names_are_the_five_lengths() -> None:
    assert parse_ranges("30d,90d,6mo,1y,full") == (
        Range("30d", 30),
        Range("90d", 90),
        Range("6mo", 180),
        Range("1y", 365),
        Range("full", FULL),
    )


@pytest.mark.parametrize(
    ("text", "label", "days"),
    [
        ("6d", "6d", 6),
        ("6", "6d", 6),
        ("2m", "2m", 60),
        ("2mo", "2mo", 60),
        ("3y", "3y", 1095),
        ("spring:90", "spring", 90),
        (" 6d ", "6d", 6),
    ],
)
def test_a_length_may_be_written_in_many_ways(text: str, label: str, days: int) -> None:
    assert parse_ranges(text) == (Range(label, days),)


def test_ranges_come_by_days_and_each_label_once() -> None:
    assert [one.label for one in parse_ranges("1y,30d,6d,30,30d")] == ["6d", "30d", "1y"]


@pytest.mark.parametrize("text", ["30d,90d,6mo,1y,full", "7-50/7", "spring:90,2m"])
def test_every_range_can_be_written_as_its_label_and_its_days(text: str) -> None:
    ranges = parse_ranges(text)
    assert parse_ranges(",".join(f"{one.label}:{one.days}" for one in ranges)) == ranges


def test_two_names_for_as_many_days_both_stay() -> None:
    assert [one.label for one in parse_ranges("180d,6mo")] == ["180d", "6mo"]


def test_every_seventh_day_of_a_thousand_is_143_checkpoints() -> None:
    ranges = parse_ranges("7-1000/7")
    assert len(ranges) == 143
    assert [one.days for one in ranges[:2]] == [7, 14]
    assert [one.label for one in ranges[-2:]] == ["994d", "1000d"]
    assert parse_ranges("6d-18d/6d") == parse_ranges("6d,12d,18d")


def test_a_profiles_series_ends_where_a_step_falls() -> None:
    assert [one.days for one in arithmetic(7, 1000, 7)][-1] == 994
    assert [one.days for one in arithmetic(6, 18, 6)] == [6, 12, 18]


@pytest.mark.parametrize("text", ["none", " none "])
def test_no_ranges_can_be_asked_for(text: str) -> None:
    assert parse_ranges(text) == ()


@pytest.mark.parametrize("text", ["", "soon", "0", "-3", "5w", "3d,,9d", "9-3/2", "1-9/0", "1.5y"])
def test_an_invalid_range_is_named(text: str) -> None:
    with pytest.raises(UsageError, match="cannot read the range"):
        parse_ranges(text)


# Order.


@pytest.mark.parametrize(
    ("seed", "size", "order"),
    [
        (42, 10, [0, 7, 3, 5, 2, 1, 8, 9, 4, 6]),
        (1, 10, [7, 8, 3, 2, 1, 5, 9, 4, 0, 6]),
        (42, 20, [13, 0, 19, 4, 6, 1, 9, 16, 14, 17, 5, 10, 18, 3, 7, 2, 11, 15, 8, 12]),
    ],
)
def test_the_shuffle_gives_the_references_orders(seed: int, size: int, order: list[int]) -> None:
    assert shuffled(range(size), seed) == order


@given(st.lists(st.integers()), st.integers())
def test_a_shuffle_loses_and_adds_nothing_and_repeats_itself(items: list[int], seed: int) -> None:
    assert Counter(shuffled(items, seed)) == Counter(items)
    assert shuffled(items, seed) == shuffled(items, seed)


@given(st.lists(st.integers()))
def test_seed_zero_leaves_the_order(items: list[int]) -> None:
    assert shuffled(items, 0) == items


@given(st.integers())
def test_numbers_are_drawn_from_zero_up_to_one_and_seeds_count_modulo_32_bits(seed: int) -> None:
    draw, same = mulberry32(seed), mulberry32(seed + 2**32)
    drawn = [draw() for _ in range(20)]
    assert all(0 <= number < 1 for number in drawn)
    assert drawn == [same() for _ in range(20)]


# Eligibility.


@pytest.mark.parametrize(
    ("days", "after", "cutoff", "eligible"),
    [
        ((3, 6), None, 6, True),
        ((3, 7), None, 6, False),
        ((3,), 6, 6, True),
        ((3,), 6, 7, False),
        ((3,), 10_000, FULL, False),
    ],
)
def test_a_question_may_be_asked_once_all_has_happened_and_until_it_expires(
    days: tuple[int, ...], after: int | None, cutoff: int, eligible: bool
) -> None:
    assert is_eligible(days, after, cutoff) is eligible


# Sampling.


def items(**sizes: int) -> list[Item]:
    return [(name, number) for name, size in sizes.items() for number in range(size)]


def category(item: Item) -> str:
    return item[0]


def test_seats_go_by_quota_then_by_remainder() -> None:
    # Quotas 4.17, 4.17 and 1.67: the seat left over goes to the largest remainder.
    drawn = sample_by_category(items(a=25, b=25, c=10), category, 10, 42)
    assert Counter(map(category, drawn)) == {"a": 4, "b": 4, "c": 2}


def test_of_equal_remainders_the_larger_category_wins_then_the_one_seen_first() -> None:
    # Quotas 0.5 and 1.5: both remainders are a half.
    drawn = sample_by_category(items(small=1, large=3), category, 2, 42)
    assert Counter(map(category, drawn)) == {"large": 2}
    drawn = sample_by_category(items(first=3, second=3), category, 3, 42)
    assert Counter(map(category, drawn)) == {"first": 2, "second": 1}


def test_a_category_gives_the_head_of_its_own_shuffle() -> None:
    drawn = sample_by_category(items(a=10, b=10), category, 6, 42)
    assert [number for name, number in drawn if name == "a"] == [0, 7, 3]
    assert [number for name, number in drawn if name == "b"] == [0, 7, 3]


@given(st.lists(st.integers(0, 12), min_size=1, max_size=10), st.integers(0, 60), st.integers())
def test_a_sample_is_as_large_as_asked_and_no_category_gets_more_than_its_quota_rounded_up(
    sizes: list[int], size: int, seed: int
) -> None:
    everything = items(**{f"c{number}": size for number, size in enumerate(sizes)})
    drawn = sample_by_category(everything, category, size, seed)
    total = len(everything)
    assert len(drawn) == len(set(drawn)) == min(size, total)
    assert set(drawn) <= set(everything)
    if size < total:
        for number, held in enumerate(sizes):
            given_seats = sum(category(item) == f"c{number}" for item in drawn)
            assert abs(given_seats - held * size / total) < 1 + 1e-9
            assert given_seats <= held


# Plans.

QUESTIONS = (
    PlannedQuestion("early", "factual-recall", (1,)),
    PlannedQuestion("expires", "factual-recall", (2,), 5),
    PlannedQuestion("group", "information-boundary", (2,)),
    PlannedQuestion("later", "synthesis", (2, 9)),
    PlannedQuestion("beyond", "synthesis", (99,)),
)


def test_a_plan_gives_the_memories_and_questions_of_each_checkpoint() -> None:
    # Two memories on day 1, as sessions or sections are; nothing on days 3 to 8.
    plan = plan_checkpoints(
        [1, 1, 2, 9, 10],
        QUESTIONS,
        parse_ranges("30d,3d,10d"),
        seed=0,
        epoch=date(2026, 1, 1),
    )
    assert [(c.label, c.days, c.memories, c.ingested_days) for c in plan] == [
        ("3d", 3, 3, 3),
        ("10d", 10, 5, 10),
        ("30d", 30, 5, 10),
    ]
    assert [c.questions for c in plan] == [
        ("early", "expires"),
        ("later", "early"),
        ("early", "later"),
    ]
    assert [(c.new, c.historical) for c in plan] == [(2, 0), (1, 1), (0, 2)]
    assert plan[0].now == datetime(2026, 1, 3, 23, 59, 59, tzinfo=UTC)
    assert plan[2].now == datetime(2026, 1, 10, 23, 59, 59, tzinfo=UTC)


def test_categories_of_groups_are_counted_but_asked_only_on_request() -> None:
    days, ranges = [1, 2], parse_ranges("2d")
    [without] = plan_checkpoints(days, QUESTIONS, ranges)
    [allowed] = plan_checkpoints(days, QUESTIONS, ranges, groups=True)
    assert "group" not in without.questions
    assert "group" in allowed.questions
    assert without.eligible == allowed.eligible
    assert tuple(without.eligible) == CATEGORIES
    assert without.eligible["information-boundary"] == 1
    assert without.eligible["synthesis"] == 0


asked_questions = st.lists(
    st.builds(
        lambda category, days, after: (category, tuple(days), after),
        st.sampled_from(CATEGORIES),
        st.lists(st.integers(1, 60), min_size=1, max_size=4),
        st.none() | st.integers(1, 80),
    ),
    max_size=40,
).map(lambda rows: [PlannedQuestion(f"q{number}", *row) for number, row in enumerate(rows)])


@given(
    asked_questions,
    st.lists(st.integers(1, 90), min_size=1, max_size=6, unique=True),
    st.integers(0, 8),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_any_plan_asks_all_that_is_new_and_never_more_old_ones_than_the_sample(
    questions: list[PlannedQuestion], cutoffs: list[int], sample: int, seed: int, groups: bool
) -> None:
    by_id = {question.id: question for question in questions}
    ranges = [Range(f"{days}d", days) for days in cutoffs]
    plan = plan_checkpoints(
        list(range(1, 61)), questions, ranges, sample=sample, seed=seed, groups=groups
    )
    assert [c.days for c in plan] == sorted(cutoffs)
    before: set[str] = set()
    for checkpoint in plan:
        may_be_asked = {
            question.id
            for question in questions
            if is_eligible(question.relevant_days, question.irrelevant_after, checkpoint.days)
            and (groups or question.category not in GROUP_CATEGORIES)
        }
        asked, new = set(checkpoint.questions), may_be_asked - before
        assert len(asked) == len(checkpoint.questions)
        assert new <= asked <= may_be_asked
        assert checkpoint.new == len(new)
        assert checkpoint.historical == len(may_be_asked & before)
        again = len(asked - new)
        assert again == (min(sample, checkpoint.historical) if sample else checkpoint.historical)
        assert checkpoint.memories == min(checkpoint.days, 60)
        kinds = Counter(by_id[id].category for id in asked)
        assert all(checkpoint.eligible[kind] >= count for kind, count in kinds.items())
        before |= may_be_asked


# Cohorts.


@given(asked_questions, st.integers(1, 12), st.integers(0, 5))
def test_a_cohort_comes_after_recall_benchs_sample_and_is_asked_to_the_end(
    questions: list[PlannedQuestion], size: int, sample: int
) -> None:
    ranges = parse_ranges("10-90/20")
    plain = plan_checkpoints([1, 90], questions, ranges, sample=sample)
    plan = plan_checkpoints([1, 90], questions, ranges, sample=sample, cohort=size)
    for before, after in zip(plain, plan, strict=True):
        assert after.questions[: len(before.questions)] == before.questions
        assert set(after.questions) == {*before.questions, *after.cohort}
        assert len(set(after.questions)) == len(after.questions)
        assert (after.new, after.historical) == (before.new, before.historical)
    started = [point for point in plan if point.cohort]
    assert len({point.cohort for point in started}) <= 1
    assert started == list(plan[len(plan) - len(started) :])
    if started:
        assert len(started) > 1
        assert len(started[0].cohort) <= size
        spans = {one.id: one for one in questions}
        for point in started:
            for id in point.cohort:
                one = spans[id]
                assert is_eligible(one.relevant_days, one.irrelevant_after, point.days)


def test_a_cohort_starts_as_early_as_it_has_enough_questions() -> None:
    questions = [PlannedQuestion(f"q{day:02}", "synthesis", (day,)) for day in range(1, 51)]
    ranges = parse_ranges("5-50/5")
    plan = plan_checkpoints([1, 50], questions, ranges, sample=2, cohort=12)
    assert [len(point.cohort) for point in plan] == [0, 0, *[12] * 8]
    many = plan_checkpoints([1, 50], questions, ranges, sample=2, cohort=1000)
    assert [len(point.cohort) for point in many] == [0] * 4 + [25] * 6
    without_groups = plan_checkpoints(
        [1], [PlannedQuestion("g", GROUP_CATEGORIES[0], (1,))], parse_ranges("1d,2d"), cohort=5
    )
    assert [point.cohort for point in without_groups] == [(), ()]
