"""answers.json: two headline figures, three abstention rates, and failures left out."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import JournalLine
from mnemoscope.analysis import answers
from mnemoscope.analysis.question_records import QuestionRecord, assemble
from mnemoscope.stats import wilson
from mnemoscope.types import (
    Answer,
    Expectation,
    Grade,
    Ingestion,
    Question,
    Scale,
    Score,
    Status,
    Trial,
    Verdict,
)


def answer_figures(*arguments: Any, **options: Any) -> dict[str, Any]:
    """Return the figures as plain data, as in answers.json."""
    found: Any = answers.answer_figures(*arguments, **options)
    return dict(found)


def row(
    number: int,
    mark: float | Score | Grade | None = None,
    *,
    status: Status = "answered",
    expects: Expectation = "answer",
    category: str = "",
    words: int = 1,
    primary: Score | Grade | None = None,
    scenario: str = "s",
) -> QuestionRecord:
    """A question that was answered and, if there is a mark, judged."""
    question = Question(f"q{number:03}", "What?", category=category, expects=expects)
    about = (scenario, question.id)
    answer = Answer(*about, status, " ".join(["word"] * words))
    if isinstance(mark, float):
        mark = Grade(mark)
    return QuestionRecord(
        question,
        Trial(*about, "answered"),
        answer,
        Verdict(
            *about,
            score=mark if isinstance(mark, Score) else None,
            primary=primary if isinstance(primary, Score) else None,
            grade=mark if isinstance(mark, Grade) else None,
            primary_grade=primary if isinstance(primary, Grade) else None,
        ),
        scenario,
    )


def failed(number: int, status: Status = "timeout", **about: Any) -> QuestionRecord:
    made = row(number, **about)
    return made._replace(answer=None, verdict=None, trial=Trial("s", made.question.id, status))


def test_right_and_wrong_give_an_accuracy_with_wilsons_interval() -> None:
    figures = answer_figures([row(n, float(n < 7)) for n in range(10)])
    assert (figures["scale"], figures["metric"]) == ("binary", "accuracy")
    assert figures["answerable"]["mean"] == pytest.approx(0.7)
    assert figures["answerable"]["n"] == 10
    assert figures["answerable"]["ci95"] == pytest.approx(wilson(7, 10))
    assert "bounds" not in figures["answerable"]


def test_abstention_questions_are_in_one_headline_and_not_in_the_other() -> None:
    rows = [row(1, 1.0), row(2, 0.0), row(3, 1.0, status="abstained", expects="abstain")]
    figures = answer_figures(rows)
    assert (figures["answerable"]["mean"], figures["answerable"]["n"]) == (0.5, 2)
    assert (figures["all"]["mean"], figures["all"]["n"]) == (pytest.approx(2 / 3), 3)


def test_a_category_without_answerable_questions_has_no_answerable_figure() -> None:
    rows = [row(1, 1.0, category="1"), row(2, 0.0, category="5", expects="abstain")]
    figures = answer_figures(rows)["by_category"]
    assert figures["5"]["answerable"] == {"mean": None, "n": 0, "ci95": None}
    assert (figures["5"]["all"]["mean"], figures["5"]["all"]["n"]) == (0.0, 1)
    assert figures["1"]["answerable"]["mean"] == 1.0


def test_failures_and_unjudged_are_left_out_and_bound_the_figure() -> None:
    rows = [row(1, 1.0), row(2, 1.0), row(3, 0.0), row(4), failed(5), failed(6, "error")]
    figures = answer_figures(rows)
    assert figures["all"]["mean"] == pytest.approx(2 / 3)
    assert figures["all"]["missing"] == 3
    assert figures["all"]["bounds"] == pytest.approx([2 / 6, 5 / 6])
    counts = figures["counts"]
    assert counts["failed"] == {"error": 1, "timeout": 1}
    assert (counts["asked"], counts["answered"], counts["unjudged"]) == (6, 4, 1)
    assert counts["coverage"] == 0.5


def test_a_verdict_on_an_answer_that_failed_does_not_count() -> None:
    figures = answer_figures([row(1, 1.0), row(2, 0.0, status="error")])
    assert (figures["all"]["mean"], figures["all"]["missing"]) == (1.0, 1)


def test_unanswered_questions_are_counted_apart_from_failures() -> None:
    waiting = row(1)._replace(answer=None, verdict=None)
    counts = answer_figures([waiting, row(2, 1.0)])["counts"]
    assert (counts["unanswered"], counts["failed"], counts["unjudged"]) == (1, {}, 0)


def test_a_named_scale_is_a_mean_even_if_all_its_values_are_zero() -> None:
    figures = answer_figures([row(n, 0.0) for n in range(4)], scale=Scale("rouge_l"))
    assert (figures["scale"], figures["metric"]) == ("mean", "rouge_l")
    assert figures["all"]["mean"] == 0.0
    assert figures["all"]["ci95"][0] == 0.0 < figures["all"]["ci95"][1]


def test_few_clusters_give_a_wider_interval_than_as_many_questions() -> None:
    values = [0.1] * 10 + [0.5] * 10 + [0.9] * 10
    alone = [row(n, v, scenario=str(n)) for n, v in enumerate(values)]
    shared = [row(n, v, scenario=str(n // 5)) for n, v in enumerate(values)]
    low, high = answer_figures(alone, scale=Scale("f1"))["all"]["ci95"]
    lower, higher = answer_figures(shared, scale=Scale("f1"))["all"]["ci95"]
    assert lower < low < 0.5 < high < higher


def test_clusters_widen_the_interval_of_an_accuracy() -> None:
    alone = [row(n, float(n % 30 < 20), scenario=str(n)) for n in range(60)]
    shared = [row(n, float(n % 30 < 20), scenario=str(n // 10)) for n in range(60)]
    low, high = answer_figures(alone)["all"]["ci95"]
    lower, higher = answer_figures(shared)["all"]["ci95"]
    assert lower < low < high < higher
    assert answer_figures(shared)["interval"] == "clustered"
    assert answer_figures(shared[:40])["interval"] == "these conversations only"


def test_likelihoods_may_leave_the_range_from_zero_to_one() -> None:
    rows = [row(n, v) for n, v in enumerate([-0.5, 1.5, 3.0, -0.2])]
    figures = answer_figures([*rows, failed(9)], scale=Scale("likelihood", None, None))["all"]
    assert figures["mean"] == pytest.approx(0.95)
    assert figures["ci95"][1] > 1
    assert figures["missing"] == 1 and "bounds" not in figures  # the worst value is unknown


def test_rubric_scores_are_shares_of_six_with_composites_and_hallucinations() -> None:
    rows = [row(1, Score(3, 2, 1)), row(2, Score(0, 0, 0)), row(3, Score(2, 1, 1)), row(4)]
    figures = answer_figures(rows)
    assert figures["metric"] == "composite"
    assert figures["all"]["mean"] == pytest.approx(10 / 18)
    assert figures["composite"]["mean"] == pytest.approx(10 / 3)
    assert figures["composite"]["bounds"] == pytest.approx([10 / 4, 16 / 4])
    assert (figures["hallucination"]["count"], figures["hallucination"]["n"]) == (1, 3)
    assert figures["hallucination"]["bounds"] == [0.25, 0.5]


def test_three_rates_of_abstention_over_what_was_answered() -> None:
    rows = [
        row(1, status="abstained", expects="abstain"),
        row(2, status="abstained", expects="abstain"),
        row(3, status="answered", expects="abstain"),
        row(4, status="empty", expects="abstain"),
        failed(5, expects="abstain"),
        row(6, status="abstained"),
        row(7),
    ]
    rates = answer_figures(rows)["abstention"]
    counted = {name: (own["count"], own["n"]) for name, own in rates.items()}
    assert counted == {
        "correct_abstain": (2, 4),
        "confabulated": (1, 4),
        "false_abstain": (1, 2),
    }
    assert rates["correct_abstain"]["ci95"] == pytest.approx(wilson(2, 4))


def test_rates_without_questions_are_none() -> None:
    rates = answer_figures([])["abstention"]
    assert rates["confabulated"] == {"rate": None, "count": 0, "n": 0, "ci95": None}


def test_longer_answers_with_better_grades_show_as_a_correlation() -> None:
    rows = [row(n, n / 10, words=n + 1) for n in range(10)]
    silent = row(11, 0.0, status="abstained", words=50)
    length = answer_figures([*rows, silent], scale=Scale("f1"))["length"]
    assert (length["mean"], length["median"], length["n"]) == (5.5, 5.5, 10)
    assert length["ci95"][0] < 5.5 < length["ci95"][1]
    assert length["against_grade"]["rho"] == pytest.approx(1.0)


def test_no_answer_can_have_less_than_no_words() -> None:
    rows = [row(n, 1.0, words=words) for n, words in enumerate((1, 1, 1, 1, 1, 90))]
    length = answer_figures(rows, scale=Scale("f1"))["length"]
    assert length["ci95"][0] == 0.0 < length["mean"] < length["ci95"][1]


def test_a_panel_shows_each_judges_mean_their_span_and_how_often_they_agree() -> None:
    votes = [{"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 0.0}, {"a": 1.0, "b": 0.0}, {"a": 0.0}]
    rows = [row(n, Grade(min(vote.values()), votes=vote)) for n, vote in enumerate(votes)]
    panel = answer_figures(rows)["panel"]
    assert panel["judges"]["a"]["mean"] == 0.75
    assert panel["judges"]["b"]["mean"] == pytest.approx(1 / 3)
    assert panel["judges"]["b"]["n"] == 3
    assert panel["span"] == pytest.approx(0.75 - 1 / 3)
    assert (panel["agreement"]["count"], panel["agreement"]["n"]) == (1, 3)


def test_votes_on_a_finer_scale_than_the_verdict_are_averaged_as_they_are() -> None:
    votes = [{"f1": 0.6, "gain": 2.5}, {"f1": 0.8, "gain": -1.0}]
    rows = [row(n, Grade(1.0, votes=vote)) for n, vote in enumerate(votes)]
    figures = answer_figures(rows)
    assert figures["metric"] == "accuracy"
    assert figures["panel"]["judges"]["f1"]["mean"] == pytest.approx(0.7)
    assert figures["panel"]["judges"]["gain"]["mean"] == pytest.approx(0.75)


def test_votes_of_the_rubric_are_shares_of_six() -> None:
    score = Score(3, 2, 1, votes={"a": 1.0, "b": 0.5})
    panel = answer_figures([row(1, score)])["panel"]
    assert panel["span"] == 0.5
    assert {judge: own["mean"] for judge, own in panel["judges"].items()} == {
        "a": 1.0,
        "b": 0.5,
    }


def test_without_votes_and_appeals_panel_and_appeals_are_none() -> None:
    figures = answer_figures([row(1, 1.0)])
    assert figures["panel"] is None
    assert figures["appeals"] is None


def test_appeals_keep_the_first_judges_mean_beside_the_final_one() -> None:
    rows = [
        row(1, 1.0, primary=Grade(0.0)),
        row(2, 0.0, primary=Grade(0.0, "said otherwise")),
        row(3, 1.0),
        row(4, 0.0),
    ]
    appeals = answer_figures(rows)["appeals"]
    assert (appeals["heard"], appeals["changed"], appeals["rescued"]) == (2, 1, 1)
    assert (appeals["primary"]["mean"], appeals["final"]["mean"]) == (0.25, 0.5)
    assert appeals["primary"]["n"] == appeals["final"]["n"] == 4


def test_an_appeal_may_change_a_score_without_rescuing_the_answer() -> None:
    rows = [row(1, Score(1, 1, 1), primary=Score(0, 0, 1))]
    appeals = answer_figures(rows)["appeals"]
    assert (appeals["heard"], appeals["changed"], appeals["rescued"]) == (1, 1, 0)


def test_the_journals_lines_become_one_row_a_question_and_checkpoint() -> None:
    question = Question("q", "What?")
    lines: list[JournalLine] = [
        Ingestion("s", 3),
        Trial("s", "q", "answered", checkpoint="before"),
        Answer("s", "q", "answered", "this", checkpoint="before"),
        Verdict("s", "q", grade=Grade(1.0), checkpoint="before"),
        Trial("s", "q", "error", checkpoint="after"),
    ]
    first, second = assemble(lines, {"q": question})
    assert (first.checkpoint, first.status, first.final) == ("before", "answered", Grade(1.0))
    assert (second.checkpoint, second.status, second.final) == ("after", "error", None)


def test_a_journal_of_other_questions_is_refused() -> None:
    with pytest.raises(UsageError, match="q9"):
        assemble([Trial("s", "q9", "answered")], {})


MARKS = st.one_of(st.none(), st.floats(0, 1), st.sampled_from([0.0, 1.0]))
STATUSES: list[Status] = ["answered", "abstained", "empty", "error", "timeout", "not-indexed"]
EXPECTED: list[Expectation] = ["answer", "abstain", "refuse", "partial"]


@st.composite
def many_rows(draw: st.DrawFn) -> list[QuestionRecord]:
    return [
        row(
            number,
            draw(MARKS),
            status=draw(st.sampled_from(STATUSES)),
            expects=draw(st.sampled_from(EXPECTED)),
            category=draw(st.sampled_from(["", "1", "2"])),
            words=draw(st.integers(0, 5)),
            scenario=draw(st.sampled_from(["a", "b"])),
        )
        for number in range(draw(st.integers(0, 12)))
    ]


SCALES = [Scale(""), Scale("f1"), Scale("likelihood", None, None)]


@settings(max_examples=60, deadline=None)
@given(many_rows(), st.integers(), st.sampled_from(SCALES))
@example([row(0, 0.0), row(1, 3e-275)], 0, SCALES[2])
def test_figures_do_not_depend_on_the_order_of_rows(
    rows: list[QuestionRecord], seed: int, scale: Scale
) -> None:
    shuffled = random.Random(seed).sample(rows, len(rows))
    result = json.dumps(answer_figures(rows, scale=scale), allow_nan=False)
    assert json.dumps(answer_figures(shuffled, scale=scale), allow_nan=False) == result


@settings(max_examples=60, deadline=None)
@given(many_rows())
def test_intervals_and_bounds_hold_the_mean_and_every_row_is_counted_once(
    rows: list[QuestionRecord],
) -> None:
    figures = answer_figures(rows)
    parts = [figures, *figures["by_category"].values()]
    for figure in [own[part] for own in parts for part in ("answerable", "all")]:
        if figure["n"]:
            low, high = figure["ci95"]
            assert 0 <= low <= figure["mean"] <= high <= 1
        if "bounds" in figure:
            low, high = figure["bounds"]
            assert low <= figure["mean"] <= high
    counts = figures["counts"]
    fair = counts["answered"] + counts["abstained"] + counts["empty"]
    assert fair + sum(counts["failed"].values()) + counts["unanswered"] == counts["asked"]
    assert counts["judged"] + counts["unjudged"] == fair
    assert figures["all"]["n"] + figures["all"].get("missing", 0) == len(rows)
