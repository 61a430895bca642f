"""Only numbers whose stated conditions agree stand in one column."""

from __future__ import annotations

from collections import defaultdict

import pytest

from mnemoscope.published import Published, cohort_of, differences, load, same_cohort
from mnemoscope.published.published_results import Category, Printed
from mnemoscope.published.spread import family, spread


def row(
    *,
    variant: str = "cats 1-4 (n=1540)",
    metric: str = "accuracy_llm_judge",
    n: int | None = 1540,
    answer_model: str | None = "gpt-4o-mini",
    judge_model: str | None = "gpt-4o-mini",
    source: str = "one",
    category: Category | None = None,
) -> Published:
    return Published(
        collection="survey",
        system="S",
        benchmark="LoCoMo",
        variant=variant,
        metric=metric,
        value=0.5,
        unit="fraction",
        as_printed=Printed(metric, "50", "percent"),
        category=category,
        n=n,
        answer_model=answer_model,
        judge_model=judge_model,
        source=source,
        source_basis="stated",
        reported_by="self",
    )


def retrieved(variant: str, metric: str, source: str = "one") -> Published:
    return row(
        variant=variant, metric=metric, n=1982, answer_model="none", judge_model="none",
        source=source,
    )  # fmt: skip


def test_equal_conditions_of_different_sources_are_one_cohort() -> None:
    assert same_cohort(row(), row(source="other"))
    assert cohort_of(row()).id == cohort_of(row(source="other")).id


@pytest.mark.parametrize("name", ["gpt-4o-mini-2024-07-18", "openai:gpt-4o-mini", "GPT-4o-mini"])
def test_a_model_is_known_by_its_family(name: str) -> None:
    assert same_cohort(row(), row(judge_model=name, source="other"))


@pytest.mark.parametrize("name", ["gpt-4o", "gpt-4.1-mini", "gpt-4o-mini x3", "none", None])
def test_another_judge_is_another_cohort(name: str | None) -> None:
    assert not same_cohort(row(), row(judge_model=name))


@pytest.mark.parametrize("vague", [None, "pinned", "gemini", "llm judge", "a-1 (x) / b-2 (y)"])
def test_what_is_not_stated_equals_only_itself_in_the_same_source(vague: str | None) -> None:
    ours = row(judge_model=vague)
    assert same_cohort(ours, row(judge_model=vague))
    assert not same_cohort(ours, row(judge_model=vague, source="other"))
    assert list(
        differences(cohort_of(ours), cohort_of(row(judge_model=vague, source="other")))
    ) == ["judge_model"]


def test_two_prompts_of_one_unnamed_judge_are_two_cohorts() -> None:
    vendor, strict = (
        [one for one in load() if one.judge_model == f"({prompt} prompt)"]
        for prompt in ("vendor", "strict")
    )
    assert vendor[0].source == strict[0].source
    assert not same_cohort(vendor[0], strict[0])


def test_any_hit_fractional_and_unnamed_recall_are_kept_apart() -> None:
    session = "session level, 1982 q"
    names = ["recall_any@10", "recall_frac@10", "recall_all@10", "recall@10", "recall_any@5"]
    cohorts = {cohort_of(retrieved(session, name)) for name in names}
    assert len(cohorts) == len(names)
    assert same_cohort(retrieved(session, "hit@10"), retrieved("session, 1982 q", "recall_any@10"))
    assert not same_cohort(
        retrieved(session, "recall@10"), retrieved(session, "recall@10", source="other")
    )


def test_granularity_and_haystack_part_retrieval_results() -> None:
    variants = [
        "session level, 1982 q",
        "turn level, 1982 q",
        "session level, pooled 272, 1982 q",
        "1982 q",
    ]
    assert len({cohort_of(retrieved(one, "hit@5")) for one in variants}) == 4
    assert not same_cohort(
        retrieved("1982 q", "hit@5"), retrieved("1982 q", "hit@5", source="other")
    )


def test_a_category_of_unknown_or_unconfirmed_key_is_comparable_with_no_other_source() -> None:
    sure = Category("multi", "arithmetic", 1, "multi-hop")
    told = Category("multi", "survey", 1, "multi-hop")
    lost = Category("multi", "unknown")
    assert same_cohort(row(category=sure, n=282), row(category=sure, n=282, source="other"))
    for unsure in (told, lost):
        assert not same_cohort(row(category=sure), row(category=unsure))
        assert not same_cohort(row(category=unsure), row(category=unsure, source="other"))


def test_differently_named_columns_of_one_category_are_one_cohort() -> None:
    one = Category("single", "arithmetic", 1, "multi-hop")
    other = Category("multi", "same table", 1, "multi-hop")
    assert same_cohort(row(category=one), row(category=other, source="other"))


def test_short_ids_are_unique_in_the_registry() -> None:
    cohorts = {cohort_of(one) for one in load()}
    assert len({cohort.id for cohort in cohorts}) == len(cohorts)


def test_no_cohort_of_the_registry_mixes_units_or_hides_something_unstated() -> None:
    cohorts = defaultdict(list)
    for one in load():
        cohorts[cohort_of(one)].append(one)
    for members in cohorts.values():
        assert len({(one.unit, one.benchmark) for one in members}) == 1
        if len({one.source for one in members}) > 1:
            assert all(one.answer_model and one.judge_model and one.n for one in members)


def test_the_original_and_the_cleaned_longmemeval_are_not_one() -> None:
    cleaned, original = (
        {cohort_of(one).variant for one in load() if one.variant == name}
        for name in ("S cleaned (n=500)", "S (n=500)")
    )
    assert cleaned.isdisjoint(original)


@pytest.mark.parametrize(
    ("system", "known_as"),
    [
        ("Zep v3 (edges=20,nodes=20)", "zep"),
        ("LightMem(512,0.7) (LightMem run)", "lightmem"),
        ("EverOS (OmniMemEval run)", "evermemos"),
        ("Basic Memory v0.18.5", "basic memory"),
        ("Full text (LightMem run)", "full-context"),
        ("Full pipeline (CoRef+Decomp)", "full"),
        ("A-MEM (TiMem run)", "a-mem"),
    ],
)
def test_a_system_is_known_without_version_and_runner(system: str, known_as: str) -> None:
    assert family(system) == known_as


def test_spread_of_zep_reaches_from_a_competitor_to_itself() -> None:
    found = spread(one for one in load() if one.benchmark == "LoCoMo")
    (zep,) = [one for one in found if one.system == "Zep"]
    assert (zep.lowest.as_printed.value, zep.lowest.reported_by) == ("33.8", "competitor")
    assert (zep.highest.as_printed.value, zep.highest.reported_by) == ("94.7", "self")
    assert (zep.results, zep.metric) == (13, "judged accuracy")
    assert [one.width for one in found] == sorted((one.width for one in found), reverse=True)
