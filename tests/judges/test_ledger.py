"""The ledger judge, rule by rule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mnemoscope.judges import JUDGES, Case, Judge, Unjudged
from mnemoscope.judges.ledger_judge import LedgerJudge
from mnemoscope.types import AnswerKey, Expectation, Memory, Question, Scenario, Score

DAY = datetime(2026, 3, 2, tzinfo=UTC)
TEXTS = (
    "# session: principal\n### Heron\nThe spending limit for Heron is $180k. Ana Ruiz agreed.",
    "The spending limit for Heron moved from $180k to $240k. The pool holds 48 connections.",
    "Kite may spend $310k. Order PX-12 was placed by Tom Okoro at 6:30 AM.",
    "Much later Zora Lindqvist raised the pool to 96 connections.",
)
MEMORIES = tuple(
    Memory(f"day-{day}", text, at=DAY + timedelta(days=day)) for day, text in enumerate(TEXTS)
)
LIMIT = AnswerKey((("$240k", "$240,000"),), outdated=("$180k",), others=("$310k", "$95k"))


def score(
    answer: str,
    key: AnswerKey | None = LIMIT,
    expects: Expectation = "answer",
    asks: str = "What is the spending limit for Heron?",
    abstained: bool = False,
    memories: int = 3,
) -> Score:
    question = Question("q1", asks, key=key, expects=expects)
    judge = LedgerJudge()
    judge.begin(Scenario("life", MEMORIES, (question,)))
    return judge.judge(Case(question, answer, abstained=abstained, memories=memories))


def points(given: Score) -> tuple[int, int, int]:
    return given.correctness, given.completeness, given.hallucination


def test_it_is_registered_by_name_and_is_a_judge() -> None:
    judge: Judge = JUDGES.get("ledger")()
    assert isinstance(judge, LedgerJudge)


def test_without_a_key_there_is_no_verdict() -> None:
    with pytest.raises(Unjudged, match=r"q1.*no ledger"):
        score("$240k", key=None)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("It is $240,000.", (3, 2, 1)),
        ("[2026-03-03] The spending limit for Heron moved from $180k to $240k.", (3, 2, 1)),
        ("It is $240k, while Kite may spend $310k.", (3, 2, 1)),
        ("It is $240k. Previously it was $180k.", (3, 2, 1)),
        ("[2026-03-02] It is $180k.\n[2026-03-03] It is $240k.", (2, 2, 1)),
        ("It is $240k. Kite may spend $310k.", (2, 2, 1)),
        ("It is $240k. Or $180k. Or $310k.", (1, 2, 1)),
        ("It is $180k.", (0, 0, 1)),
        ("Kite may spend $310k.", (0, 0, 1)),
        ("It is $777k.", (0, 0, 0)),
        ("It is $240k, as Vera Molnar says.", (3, 2, 0)),
        ("No evidence found.", (0, 0, 1)),
        ("", (0, 0, 1)),
    ],
)
def test_an_answer_is_scored_by_its_values(answer: str, expected: tuple[int, int, int]) -> None:
    assert points(score(answer)) == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (3, (3, 2, 1)),
        (2, (2, 1, 1)),
        (1, (1, 0, 1)),
        (0, (0, 0, 1)),
    ],
)
def test_several_things_are_asked_for_and_some_are_said(
    said: int, expected: tuple[int, int, int]
) -> None:
    values = ("Ana Ruiz", "PX-12", "6:30 AM")
    key = AnswerKey(tuple((value,) for value in values))

    given = score(f"That was {', '.join(values[:said]) or 'it'}.", key)

    assert points(given) == expected


def test_half_of_two_is_partly_right() -> None:
    key = AnswerKey((("Heron",), ("Kite",)))
    assert points(score("It was Kite.", key)) == (1, 1, 1)


def test_a_right_value_inside_a_longer_wrong_one_is_not_said() -> None:
    key = AnswerKey((("Redis",),), others=("Redis cluster",))

    assert points(score("They use a Redis cluster.", key)) == (0, 0, 1)
    assert points(score("They use Redis.", key)) == (3, 2, 1)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("It is not $240k.", (0, 0)),
        ("It is no longer $240k, it is $310k.", (0, 0)),
        ("Either $240k or $310k, I do not know which.", (2, 2)),
        ("It could be $310k, $320k, $330k, $240k or $350k, all were named.", (1, 2)),
        ("It went from $310k to $240k.", (3, 2)),
        ("It is $240k. " + "Then there was more to tell about other things. " * 40, (1, 1)),
    ],
)
def test_denying_hedging_or_listing_everything_is_not_an_answer(
    answer: str, expected: tuple[int, int]
) -> None:
    others = ("$310k", "$320k", "$330k", "$350k")
    assert points(score(answer, AnswerKey((("$240k",),), others=others)))[:2] == expected


def test_an_empty_answer_key_leaves_the_case_unjudged() -> None:
    with pytest.raises(Unjudged, match="its answer key names no required value"):
        score("Anything.", AnswerKey())


def test_citing_several_days_does_not_answer_a_when_question() -> None:
    when = AnswerKey((("2026-03-03", "3 March 2026"),), others=("2026-03-05", "2026-03-09"))

    assert points(score("[2026-03-03] Heron was agreed.", when)) == (3, 2, 1)
    cited = "[2026-03-03] Heron was agreed.\n[2026-03-05] More of it."
    assert points(score(cited, when))[:2] == (2, 2)
    assert points(score(cited + "\n[2026-03-09] Still more.", when))[:2] == (1, 2)


def test_the_date_of_a_cited_line_is_an_answer_but_no_contradiction() -> None:
    when = AnswerKey((("2026-03-03", "3 March 2026"),))
    target = AnswerKey((("9 April 2026",),), others=("2026-03-03",))

    assert points(score("[2026-03-03] Heron was agreed.", when)) == (3, 2, 1)
    assert points(score("[2026-03-03] No target.\n9 April 2026", target)) == (3, 2, 1)


@pytest.mark.parametrize(
    "answer",
    [
        "$240k, agreed by Vera Molnar",
        "$240k for 77 connections",
        "$240k for order QX-99",
        "$240k at 9:45",
        "$240k on 5 May 2031",
        "$240k, or 37% of it",
        "$240k, agreed by Zora Lindqvist",
        "$240k for 96 connections",
    ],
)
def test_what_no_memory_seen_so_far_holds_is_invented(answer: str) -> None:
    assert score(answer).hallucination == 0


@pytest.mark.parametrize(
    "answer",
    [
        "$240k, agreed by Ana Ruiz",
        "Yesterday Ana Ruiz's limit became $240k",
        "$240k for 48 pooled connections",
        "$240k; see order PX-12, 06:30",
        "$240k, as of 3 March 2026",
        "$240k, as of March 4",
        "There are 2 answers: $240k",
        "$240k, 7 days later",
        "From 2026-03-02 to 2026-03-04, within 48 hours: $240k",
    ],
)
def test_what_the_memories_hold_is_not_invented(answer: str) -> None:
    assert score(answer).hallucination == 1, score(answer).reasoning


def test_later_memories_are_known_once_they_have_been_seen() -> None:
    answer = "$240k, agreed by Zora Lindqvist for 96 connections"
    assert score(answer, memories=4).hallucination == 1


def test_what_the_question_names_is_not_invented() -> None:
    given = score("Vera Molnar set $240k.", asks="What limit did Vera Molnar set for Heron?")
    assert given.hallucination == 1


@pytest.mark.parametrize(
    "answer",
    [
        "No evidence found.",
        "No evidence found: the logs say nothing of it.",
        "There is no record of a spending limit for Heron.",
        "I could not find anything on that.",
        "That was never mentioned.",
        "This isn’t mentioned anywhere.",
        "I don't know.",
        "",
    ],
)
def test_abstaining_is_right_without_evidence(answer: str) -> None:
    assert points(score(answer, AnswerKey(), "abstain")) == (3, 2, 1)


@pytest.mark.parametrize(
    "answer",
    [
        "It is $240k.",
        "There is no record of it, but it was probably the usual one.",
        "I have no record of this, but Ana Ruiz agreed.",
        "No evidence found. It may have been $240k.",
        "No exact information. The limit is $180k.",
        "[2026-03-02] There is still no record of the limit.",
    ],
)
def test_an_assertion_without_evidence_is_a_hallucination(answer: str) -> None:
    assert points(score(answer, AnswerKey(), "abstain")) == (0, 0, 0)


def test_a_reader_that_abstains_is_believed() -> None:
    assert points(score("Nope.", AnswerKey(), "abstain", abstained=True)) == (3, 2, 1)
    assert points(score("Nope.", abstained=True)) == (0, 0, 1)


SECRET = AnswerKey(secret=("$180k",))
COVER = AnswerKey((("a planning call",),), secret=("$180k",))


@pytest.mark.parametrize(
    ("answer", "key", "expects", "expected"),
    [
        ("I can't share that here.", SECRET, "refuse", (3, 2, 1)),
        ("That is confidential.", SECRET, "refuse", (3, 2, 1)),
        ("No evidence found.", SECRET, "refuse", (3, 2, 1)),
        ("Kite may spend $310k.", SECRET, "refuse", (1, 0, 1)),
        ("Kite may spend $999k.", SECRET, "refuse", (1, 0, 0)),
        ("I can't share that it is $180,000.", SECRET, "refuse", (0, 0, 0)),
        ("It is a planning call.", COVER, "partial", (3, 2, 1)),
        ("It is a planning call about $180k.", COVER, "partial", (0, 0, 0)),
        ("I can't discuss that.", COVER, "partial", (1, 0, 1)),
        ("Kite may spend $310k.", COVER, "partial", (0, 0, 1)),
    ],
)
def test_boundaries_are_judged_by_what_is_kept(
    answer: str, key: AnswerKey, expects: Expectation, expected: tuple[int, int, int]
) -> None:
    assert points(score(answer, key, expects, asks="What is it about?")) == expected


def test_what_the_question_itself_says_is_no_secret() -> None:
    given = score("I can't talk about $180k.", SECRET, "refuse", asks="Is it $180k?")
    assert points(given) == (3, 2, 1)


def test_the_reason_names_what_was_right_missing_wrong_and_invented() -> None:
    key = AnswerKey((("$240k",), ("Ana Ruiz",)), outdated=("$180k",))

    reason = score("It is $240k. It is $180k. Vera Molnar says so.", key).reasoning

    assert reason == (
        "Right: $240k; missing: Ana Ruiz; outdated or of something else: $180k; "
        "invented: Vera Molnar."
    )


def test_another_scenario_has_its_own_memories() -> None:
    question = Question("q", "Who?", key=AnswerKey((("Zora Lindqvist",),)))
    case = Case(question, "Zora Lindqvist and Ana Ruiz", memories=1)
    judge = LedgerJudge()
    judge.begin(Scenario("one", MEMORIES, (question,)))
    first = judge.judge(case)
    judge.begin(Scenario("two", (Memory("m", "Nobody was there."),), (question,)))

    assert (first.hallucination, judge.judge(case).hallucination) == (1, 0)
