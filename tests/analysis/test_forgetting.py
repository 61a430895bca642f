"""forgetting.json: mean ROUGE-L and the share above half, leaks, and when there is no score."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from mnemoscope.analysis.forgetting import NO_FORGET, forgetting, rouge_of, status_of
from mnemoscope.analysis.question_records import QuestionRecord
from mnemoscope.types import Answer, Grade, Question, Score, Status, Trial, Verdict

AUTHORS = 10
EACH = 4


def row(
    author: int,
    number: int,
    point: str,
    value: float | None,
    *,
    trial: Trial | None = None,
    status: Status = "answered",
) -> QuestionRecord:
    """A question of an author; every second author is to be forgotten."""
    about = ("tofu", f"a{author}/q{number}")
    kind = "forget" if author % 2 else "retain"
    evidence = (f"a{author}/p{number}",)
    asked = trial or Trial(*about, "answered", kind, evidence=evidence, checkpoint=point)
    grade = None if value is None else Grade(value)
    question = Question(
        about[1],
        "What do they sell?",
        category=kind,
        cluster=f"a{author}",
        reference=f"the {number} brothers of author {author} sell lemons",
    )
    return QuestionRecord(
        question,
        asked,
        Answer(*about, status, "something", checkpoint=point),
        Verdict(*about, grade=grade, checkpoint=point),
        about[0],
        point,
    )


def rows(
    values: Callable[[int, int, str], float | None], **trials: Callable[[int, int], Trial]
) -> list[QuestionRecord]:
    return [
        row(
            author,
            number,
            point,
            values(author, number, point),
            trial=trials[point](author, number) if point in trials else None,
        )
        for point in ("before", "after")
        for author in range(AUTHORS)
        for number in range(EACH)
    ]


def good(author: int, number: int, point: str) -> float:
    """The forget set falls from about 0.8 to 0.1; the retain set stays."""
    spread = (author + number) % 3 / 10
    return 0.1 + spread / 10 if author % 2 and point == "after" else 0.7 + spread


def recalled(author: int, number: int, ranking: tuple[str, ...], **more: Any) -> Trial:
    evidence = (f"a{author}/p{number}",)
    about = ("tofu", f"a{author}/q{number}")
    return Trial(*about, "answered", evidence=evidence, ranking=ranking, **more)


def score(found: Mapping[str, Any]) -> dict[str, Any]:
    assert found["score"] is not None, found["why"]
    result: dict[str, Any] = found["score"]
    return result


def test_the_mean_and_the_share_above_half_are_two_figures() -> None:
    def half(author: int, number: int, point: str) -> float:
        return (0.5, 0.51, 0.2, 0.9)[number]

    result = score(forgetting(rows(half)))["before"]["retain"]
    assert result["n"] == 20
    assert result["clusters"] == 5
    assert result["mean_rouge_l"]["mean"] == pytest.approx(2.11 / 4)
    assert result["share_above_half"]["share"] == 0.5  # 0.5 itself is not above it
    assert result["share_above_half"]["above"] == 10
    # Wilson, 10 of 20: centre 0.5, half-width c sqrt(0.25 / 20 + c² / 1600) / (1 + c² / 20), with
    # Student's c of five authors, because they are all alike and do not show how others vary.
    assert result["share_above_half"]["ci95"] == pytest.approx([0.2362749, 0.7637251], abs=1e-6)
    low, high = result["mean_rouge_l"]["ci95"]
    assert 0 < low < 2.11 / 4 < high < 1


def test_the_interval_of_the_mean_comes_from_authors() -> None:
    def by_author(author: int, number: int, point: str) -> float:
        return 0.9 if author < 5 else 0.1

    def by_question(author: int, number: int, point: str) -> float:
        return 0.9 if number < 2 else 0.1

    def width(values: Callable[[int, int, str], float]) -> float:
        low, high = score(forgetting(rows(values)))["after"]["retain"]["mean_rouge_l"]["ci95"]
        return float(high - low)

    assert width(by_author) > 1.5 * width(by_question) > 0


def test_a_system_that_forgets_well_falls_and_stays() -> None:
    result = score(forgetting(rows(good)))
    assert result["forget_falls"] is True
    assert result["retain_stays"] is True
    change = result["change"]["forget"]
    assert change["n"] == 20
    before, after = (result[p]["forget"]["mean_rouge_l"]["mean"] for p in ("before", "after"))
    assert change["mean_rouge_l"]["mean"] == pytest.approx(after - before)
    assert change["share_above_half"]["mean"] == -1
    stayed = result["change"]["retain"]["mean_rouge_l"]
    assert stayed["mean"] == 0
    # Nothing changed in 20 questions of five authors: 2.776 sqrt(2) / 20.
    assert stayed["ci95"] == pytest.approx([-0.1963243, 0.1963243], abs=1e-6)


def test_a_system_that_forgets_everything_does_not_stay() -> None:
    result = score(forgetting(rows(lambda *about: 0.0 if about[2] == "after" else good(*about))))
    assert result["forget_falls"] is True
    assert result["retain_stays"] is False


def test_a_system_that_forgets_nothing_does_not_fall() -> None:
    result = score(forgetting(rows(lambda author, number, _: good(author, number, "before"))))
    assert result["forget_falls"] is False
    assert result["retain_stays"] is True


def test_changes_are_paired_and_need_both_values() -> None:
    def gaps(author: int, number: int, point: str) -> float | None:
        missing = (author == 1 and point == "before") or (author == 3 and point == "after")
        return None if missing else good(author, number, point)

    found = forgetting(rows(gaps))
    assert score(found)["change"]["forget"]["n"] == 12
    assert found["coverage"]["before"] == {"forget": 0.8, "retain": 1}
    assert found["statuses"]["after"] == {
        "forget": {"answered": 16, "unjudged": 4},
        "retain": {"answered": 20},
    }


def test_failures_are_left_out_and_bounds_give_their_range() -> None:
    some = rows(lambda author, number, point: 0.6)
    failed = [
        row(1, 0, "after", 0.6, status="error")
        if (r.question.id, r.checkpoint) == ("a1/q0", "after")
        else r
        for r in some
    ]
    found = forgetting(failed)
    result = score(found)["after"]["forget"]
    assert (result["asked"], result["n"]) == (20, 19)
    assert result["mean_rouge_l"]["mean"] == pytest.approx(0.6)
    assert result["mean_rouge_l"]["bounds"] == pytest.approx([0.57, 0.62])
    assert result["share_above_half"]["bounds"] == [0.95, 1]
    assert "bounds" not in score(found)["before"]["forget"]["mean_rouge_l"]
    assert found["statuses"]["after"]["forget"] == {"answered": 19, "error": 1}


def test_recalling_only_retained_memories_is_not_a_leak() -> None:
    def kept(author: int, number: int) -> Trial:
        return recalled(author, number, ("a0/p0", "a2/p1"))

    leak = score(forgetting(rows(good, after=kept)))["leak"]
    assert (leak["n"], leak["leaked"], leak["share"]) == (20, 0, 0)
    assert leak["ci95"][0] == 0 < leak["ci95"][1] < 0.3


def test_a_forgotten_memory_leaks_by_its_id_whatever_its_author() -> None:
    def another(author: int, number: int) -> Trial:
        return recalled(author, number, ("a0/p0", "a3/p2") if (author, number) == (1, 1) else ())

    leak = score(forgetting(rows(good, after=another)))["leak"]
    assert (leak["leaked"], leak["by_id"], leak["by_text"]) == (1, 1, 0)
    assert leak["questions"] == ["a1/q1"]
    assert leak["share"] == 0.05


def test_a_forgotten_memory_leaks_by_what_a_hit_was_made_from() -> None:
    def merged(author: int, number: int) -> Trial:
        return recalled(author, number, ("sum",), sources={"sum": ("a0/p0", "a9/p3")})

    leak = score(forgetting(rows(good, after=merged)))["leak"]
    assert (leak["leaked"], leak["by_id"]) == (20, 20)
    assert len(leak["questions"]) == 10


def test_a_forgotten_answer_leaks_by_the_text_of_a_hit() -> None:
    def reworded(author: int, number: int) -> Trial:
        said = f"I gather the {number} brothers of author {author} used to sell lemons."
        if number == 0:
            said = "The brothers of somebody sell pears."
        return recalled(author, number, ("note",), texts={"note": said})

    leak = score(forgetting(rows(good, after=reworded)))["leak"]
    assert (leak["leaked"], leak["by_id"], leak["by_text"]) == (15, 0, 15)


def test_the_text_comparison_can_be_replaced() -> None:
    def noted(author: int, number: int) -> Trial:
        return recalled(author, number, ("note",), texts={"note": "secret"})

    found = forgetting(rows(good, after=noted), covers=lambda text, _: float(text == "secret"))
    assert score(found)["leak"]["by_text"] == 20


def test_recalling_before_forgetting_or_for_the_retain_set_is_not_a_leak() -> None:
    def everything(author: int, number: int) -> Trial:
        return recalled(author, number, ("a1/p0", "a3/p0"))

    def only_elsewhere(author: int, number: int) -> Trial:
        return recalled(author, number, () if author % 2 else ("a1/p0",))

    found = forgetting(rows(good, before=everything, after=only_elsewhere))
    assert score(found)["leak"]["leaked"] == 0


def test_the_ids_that_were_to_be_forgotten_can_be_given() -> None:
    def one(author: int, number: int) -> Trial:
        return recalled(author, number, ("profile-7",))

    asked = rows(good, after=one)
    assert score(forgetting(asked))["leak"]["leaked"] == 0
    assert score(forgetting(asked, forgotten=["profile-7"]))["leak"]["leaked"] == 20


def test_leaks_are_counted_over_the_measured_questions() -> None:
    def mixed(author: int, number: int) -> Trial:
        trial = recalled(author, number, ("a1/p0",))
        if number:
            return trial
        return Trial(trial.scenario, trial.question, "timeout", evidence=trial.evidence)

    leak = score(forgetting(rows(good, after=mixed)))["leak"]
    assert (leak["n"], leak["leaked"], leak["share"]) == (15, 15, 1)


def test_a_system_that_answers_by_itself_has_an_unknown_leak() -> None:
    silent = [r._replace(trial=None) for r in rows(good)]
    result = score(forgetting(silent))
    assert result["leak"]["share"] is None
    assert result["forget_falls"] is True


def test_a_system_that_cannot_forget_says_so_and_gets_no_score() -> None:
    found = forgetting(rows(good), can_forget=False)
    assert found["score"] is None
    assert found["why"] == NO_FORGET
    assert found["statuses"]["before"]["forget"] == {"answered": 20}


def test_without_questions_on_both_sides_there_is_no_score() -> None:
    before = [r for r in rows(good) if r.checkpoint == "before"]
    for some in ([], before, [r for r in rows(good) if r.question.category == "retain"]):
        found = forgetting(some)
        assert found["score"] is None
        assert "were asked" in found["why"]


def test_if_every_question_failed_after_forgetting_the_reason_is_the_error() -> None:
    def lost(author: int, number: int) -> Trial:
        about = ("tofu", f"a{author}/q{number}")
        return Trial(*about, "not-indexed", error="it would not forget", checkpoint="after")

    asked = [
        r._replace(answer=None, verdict=None) if r.checkpoint == "after" else r
        for r in rows(good, after=lost)
    ]
    found = forgetting(asked)
    assert found["score"] is None
    assert found["why"].endswith("measured after forgetting: it would not forget")
    assert found["coverage"]["after"] == {"forget": 0, "retain": 0}
    assert found["statuses"]["after"]["retain"] == {"not-indexed": 20}


def test_rubric_scores_are_not_taken_for_rouge() -> None:
    [first, *rest] = rows(good)
    scored = first._replace(verdict=Verdict("tofu", first.question.id, Score(3, 2, 1)))
    assert rouge_of(scored) is None
    found = forgetting([scored, *rest])
    assert found["score"] is None
    assert "rubric" in found["why"]


def test_an_abstention_counts_with_the_value_it_got() -> None:
    silent = row(1, 0, "after", 0.0, status="abstained")
    assert (status_of(silent), rouge_of(silent)) == ("abstained", 0.0)


def test_the_interval_of_one_question_is_almost_the_whole_scale() -> None:
    few = [r for r in rows(good) if r.question.id in ("a0/q0", "a1/q0")]
    result = score(forgetting(few))
    low, high = result["after"]["forget"]["mean_rouge_l"]["ci95"]
    assert low < 0.01 and high > 0.8
    assert result["interval"] == "these conversations only"
    assert result["change"]["forget"]["mean_rouge_l"]["ci95"] == [-1, 1]
    assert result["forget_falls"] is False


def test_the_figures_are_plain_data_and_the_same_each_time() -> None:
    found = forgetting(rows(good))
    assert json.loads(json.dumps(found)) == found == forgetting(rows(good))
