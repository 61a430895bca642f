"""Credit for what came back: places of sources, texts that carry, and systems that overclaim."""

from __future__ import annotations

import msgspec
import pytest

from mnemoscope.analysis.credit import hit_places, places_of, tokens_of_places
from mnemoscope.analysis.measure import Depth, Metrics, evidence_ranks, measure
from mnemoscope.runner.pipeline import Ask
from mnemoscope.runner.trial_builder import TrialBuilder
from mnemoscope.types import Hit, Memory, Question, Scenario, Trial

_SUBJECTS = (
    "lighthouse keeper violin orchard sandstone accordion meadow telescope harbour compass "
    "blanket saffron chimney tortoise windmill pepper lantern glacier ribbon anchor"
).split()
MEMORIES = tuple(
    Memory(
        f"m{n}", f"Ivo: my {subject} has number {n + 100} and came from uncle {chr(65 + n)}ndor."
    )
    for n, subject in enumerate(_SUBJECTS)
)
QUESTIONS = tuple(
    Question(
        f"q{n}",
        f"Which number has the {subject}?",
        reference=str(n + 100),
        evidence=(f"m{n}",),
    )
    for n, subject in enumerate(_SUBJECTS)
)
SCENARIO = Scenario("s", MEMORIES, QUESTIONS)
ALL = tuple(memory.id for memory in MEMORIES)


def trial(question: Question, *hits: Hit, scenario: Scenario = SCENARIO) -> Trial:
    return TrialBuilder(scenario).trial(Ask("", question), hits)


def figures(*hits: Hit) -> Metrics:
    """The figures of a system that returns the same hits for every question."""
    return measure([trial(question, *hits) for question in QUESTIONS], [], Depth(10))


def recall(found: Metrics) -> float:
    return found["overall"]["recall@10"]["mean"]


def chance(found: Metrics) -> float | None:
    return found["overall"]["recall@10"]["chance"]


@pytest.mark.parametrize("text", ["", "\n".join(memory.text for memory in MEMORIES)])
def test_everything_in_one_hit_is_chance_in_every_metric(text: str) -> None:
    found = figures(Hit("all", text=text, sources=ALL))
    for name, figure in found["overall"].items():
        assert figure["mean"] == pytest.approx(figure["chance"]), name


def test_everything_in_one_text_without_sources_is_chance() -> None:
    found = figures(Hit("all", text="\n".join(memory.text for memory in MEMORIES)))
    assert recall(found) == pytest.approx(chance(found))


def test_all_sources_with_a_text_that_says_nothing_get_nothing() -> None:
    found = figures(Hit("all", text="ok", sources=ALL))
    assert recall(found) == 0
    assert found["credit"]["claimed"]["recall@10"]["mean"] == pytest.approx(chance(found))
    assert found["credit"]["questions"] == len(QUESTIONS)
    assert found["credit"]["recall_per_1000_tokens"]["carried"] == 0


def test_ten_hits_of_a_tenth_each_with_the_text_summary_are_not_above_chance() -> None:
    found = figures(*(Hit(f"part {n}", text="summary", sources=ALL[n::10]) for n in range(10)))
    assert recall(found) == 0
    claimed = found["credit"]["claimed"]["recall@10"]["mean"]
    assert claimed == pytest.approx(chance(found), abs=0.01)


def test_repeating_the_question_or_listing_words_gets_nothing() -> None:
    words = " ".join(sorted({word for m in MEMORIES for word in m.text.split()}))
    for text_of in (lambda question: question.text, lambda question: words):
        trials = [trial(q, Hit("h", text=text_of(q), sources=(q.evidence[0],))) for q in QUESTIONS]
        assert recall(measure(trials, [], Depth(10))) == 0


def test_a_little_of_every_memory_in_one_text_is_near_chance() -> None:
    text = ". ".join(f"{s} number {n + 100}" for n, s in enumerate(_SUBJECTS))
    found = figures(Hit("all", text=text))
    expected = chance(found)
    assert expected is not None
    assert recall(found) <= expected + 0.05


def test_a_stated_order_of_sources_is_the_ranking() -> None:
    ranked = ("m3", "m1", "m2")
    ordered = [trial(q, Hit("h", sources=ranked, ordered=True)) for q in QUESTIONS[:4]]
    plain = [trial(q, *map(Hit, ranked)) for q in QUESTIONS[:4]]
    theirs, ours = (measure(trials, [], Depth(10))["overall"] for trials in (plain, ordered))
    assert ours == theirs


def test_a_rewritten_fact_is_credited_with_and_without_its_source() -> None:
    question, text = QUESTIONS[1], "Ivo has a keeper with the number 101, from uncle Bndor."
    for hit in (
        Hit("fact", text=text, sources=("m1",)),
        Hit("fact", text=text),
        Hit("m1", text=text),
    ):
        one = trial(question, hit)
        assert measure([one], [], Depth(10))["overall"]["mrr@10"]["mean"] == 1, hit
        assert list(evidence_ranks(one)) == [1]
        assert one.unknown == 0


def test_a_text_with_another_number_is_not_credited() -> None:
    text = "Ivo has a keeper with the number 110, from uncle Bndor."
    for hit in (
        Hit("fact", text=text, sources=("m1",)),
        Hit("fact", text=text),
        Hit("m1", text=text),
    ):
        one = trial(QUESTIONS[1], hit)
        assert measure([one], [], Depth(10))["overall"]["recall@10"]["mean"] == 0, hit
        assert not evidence_ranks(one)


def test_a_text_that_names_no_source_takes_a_place_for_each_memory_in_it() -> None:
    text = f"{MEMORIES[0].text} {MEMORIES[1].text} {MEMORIES[2].text}"
    one = trial(QUESTIONS[1], Hit("fact", text=text))
    assert places_of(one, "fact") == 3
    assert measure([one], [], Depth(10))["overall"]["recall@1"]["mean"] == pytest.approx(1 / 3)


def test_memories_as_they_are_leave_no_trace_in_the_journal() -> None:
    hits = [Hit("m1", 0.5), Hit("m2", 0.4, MEMORIES[2].text)]
    one = trial(QUESTIONS[1], *hits)
    assert not {"texts", "carried", "places", "ordered"} & msgspec.to_builtins(one).keys()
    assert "credit" not in measure([one], [], Depth(10))


def test_a_memory_with_a_date_in_front_is_carried_by_definition() -> None:
    one = trial(QUESTIONS[1], Hit("m1", text=f"[2024-01-02] {MEMORIES[1].text}"))
    assert not one.carried
    assert "credit" not in measure([one], [], Depth(10))


def test_parts_of_a_day_take_one_place_each_and_the_day_none() -> None:
    parts = tuple(
        msgspec.structs.replace(memory, part_of=f"day {n // 2}")
        for n, memory in enumerate(MEMORIES)
    )
    question = msgspec.structs.replace(QUESTIONS[0], evidence=("day 0",))
    days = Scenario("s", parts, (question,))
    alone = trial(question, Hit("m5"), Hit("m1"), scenario=days)
    assert [hit.places for hit in hit_places(alone, alone.ranking)] == [1, 1]
    assert measure([alone], [], Depth(10))["overall"]["mrr@10"]["mean"] == 0.5
    both = trial(question, Hit("h", sources=("m4", "m5", "m6")), Hit("m1"), scenario=days)
    assert [hit.places for hit in hit_places(both, both.ranking)] == [3, 1]
    assert measure([both], [], Depth(10))["overall"]["mrr@10"]["mean"] == 0.25
    told = trial(
        question,
        Hit("fact", text="Ivo's lighthouse has the number 100, it came from uncle Andor."),
        scenario=days,
    )
    assert told.carried == {"fact": ("day 0",)}
    assert measure([told], [], Depth(10))["overall"]["mrr@10"]["mean"] == 1


def test_journals_from_before_are_read_with_a_place_for_each_source() -> None:
    line = (
        b'{"phase":"recall","scenario":"s","question":"q0","status":"answered",'
        b'"evidence":["m0"],"pool":20,"reachable":1,"ranking":["all"],"tokens":[1],'
        b'"sources":{"all":["m0","m1"]}}'
    )
    old = msgspec.json.decode(line, type=Trial)
    assert measure([old], [], Depth(10))["overall"]["recall@1"]["mean"] == 0.5


def test_tokens_of_the_first_places_count_a_hit_in_proportion() -> None:
    one = trial(QUESTIONS[0], Hit("h", text="x" * 400, sources=ALL))
    assert tokens_of_places(one, 10) == pytest.approx(50)


def test_expectations_get_an_interval_of_means_not_of_counts() -> None:
    found = figures(Hit("all", sources=ALL))["overall"]["hit@10"]
    assert found["mean"] == pytest.approx(0.5)
    # Every question has the same expectation, which does not show how others would vary.
    assert found["ci95"][0] < 0.4 and found["ci95"][1] > 0.6


def test_hits_with_one_id_take_the_places_of_all_that_they_name() -> None:
    """The first names everything, the last one memory; a text carries one of two evidences."""
    question = msgspec.structs.replace(QUESTIONS[1], evidence=("m1", "m2"))
    hits = [Hit("x", text=MEMORIES[1].text, sources=names) for names in (ALL, ("m9",))]

    for order in (hits, hits[::-1]):
        one = trial(question, *order)
        assert places_of(one, "x") == len(ALL)
        found = measure([one], [], Depth(10))["overall"]
        assert found["recall@1"]["mean"] == pytest.approx(0.5 / len(ALL))
