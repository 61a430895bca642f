"""Scores of change: each way to cheat is seen in one of them, and verify recomputes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.change_history import write_change_history

import mnemoscope as ms
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.change_scores import ChangeScores, change_scores, rates_of
from mnemoscope.analysis.question_records import QuestionRecord
from mnemoscope.cli.app import invoke
from mnemoscope.datasets.change import ChangeBenchmark
from mnemoscope.results.run_results import RunResult
from mnemoscope.types import Answer, Question, Scenario, Trial

Ranks = Callable[[Question, str], Sequence[str]]
Tells = Callable[[Question, str], str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_change_history(tmp_path_factory.mktemp("change"))


@pytest.fixture(scope="module")
def scenario(folder: Path) -> Scenario:
    [found] = ChangeBenchmark(folder).scenarios()
    return found


@pytest.fixture(scope="module")
def place(scenario: Scenario) -> dict[str, int]:
    return {memory.id: number for number, memory in enumerate(scenario.memories)}


def played(scenario: Scenario, ranks: Ranks, tells: Tells | None = None) -> ChangeScores:
    """The scores of a system that ranks and answers by these functions."""
    questions = {question.id: question for question in scenario.questions}
    records = []
    for point in scenario.checkpoints:
        for id in point.questions:
            question, about = questions[id], (scenario.id, id, "answered")
            ranking = tuple(ranks(question, point.label))
            trial = Trial(*about, checkpoint=point.label, ranking=ranking)  # type: ignore[arg-type]
            answer = None
            if tells is not None:
                text = tells(question, point.label)
                answer = Answer(*about, text, checkpoint=point.label)  # type: ignore[arg-type]
            records.append(QuestionRecord(question, trial, answer, None, scenario.id, point.label))
    return change_scores(records)


def rate(scores: ChangeScores, name: str, category: str) -> float | None:
    found = {(one, kind): own for one, kind, own in rates_of(scores)}
    return found[name, category]["rate"]


def right(question: Question, at: str) -> Sequence[str]:
    return question.evidence


def value(question: Question, at: str) -> str:
    assert question.key is not None
    return "; ".join(item[0] for item in question.key.required) or "I do not know."


def competing(question: Question) -> list[str]:
    return [*question.evidence, *question.rivals]


def test_a_perfect_system(scenario: Scenario) -> None:
    scores = played(scenario, right, value)
    for category in ("update", "twice-corrected", "as-of", "expired-plan", "cancelled-plan"):
        assert rate(scores, "recall_right_first", category) == 1
        assert rate(scores, "answers_right", category) == 1
    for phase in ("recall", "answers"):
        assert rate(scores, f"{phase}_known", "forgetting") == 1
        assert rate(scores, f"{phase}_obeyed", "forgetting") == 1
        assert rate(scores, f"{phase}_kept", "forgetting") == 1
    assert rate(scores, "two_places", "duplicates") == 0
    assert rate(scores, "both", "contradictions") == 1
    assert rate(scores, "both_told", "contradictions") == 1
    assert all(own["ci95"] for _, _, own in rates_of(scores) if own["n"])
    assert scores["interval"] == "clustered"


def test_a_system_that_fails_where_it_would_tell_is_not_called_obedient(
    scenario: Scenario,
) -> None:
    # The cheat: one request obeyed, and an error for whatever else was to be forgotten.
    questions = {question.id: question for question in scenario.questions}
    forgotten = [one.id for one in scenario.questions if one.category == "forgotten"]
    records = []
    for point in scenario.checkpoints:
        for id in point.questions:
            status = "error" if id in forgotten[1:] and point.label == "after" else "answered"
            trial = Trial(
                scenario.id,
                id,
                status,  # type: ignore[arg-type]
                checkpoint=point.label,
                ranking=questions[id].evidence,
            )
            records.append(
                QuestionRecord(questions[id], trial, None, None, scenario.id, point.label)
            )
    obedience = change_scores(records)["forgetting"]["recall"]
    assert obedience is not None and len(forgotten) > 1
    obeyed = obedience["obeyed"]
    assert (obeyed["count"], obeyed["n"], obeyed.get("missing")) == (1, 1, len(forgotten) - 1)
    assert obeyed.get("bounds") == pytest.approx([1 / len(forgotten), 1])


def test_only_the_newest_fails_as_of_questions_and_contradictions(
    scenario: Scenario, place: dict[str, int]
) -> None:
    def newest(question: Question, at: str) -> Sequence[str]:
        return sorted(competing(question), key=place.__getitem__)[-1:]

    scores = played(scenario, newest)
    assert rate(scores, "recall_right_first", "update") == 1
    assert rate(scores, "recall_right_first", "twice-corrected") == 1
    assert rate(scores, "recall_right_first", "as-of") == 0
    assert rate(scores, "recall_outdated_alone", "as-of") == 1
    assert rate(scores, "both", "contradictions") == 0
    assert rate(scores, "recall_obeyed", "forgetting") == 0


def test_all_values_in_the_order_of_time_are_outdated_first(
    scenario: Scenario, place: dict[str, int]
) -> None:
    def all_values(question: Question, at: str) -> Sequence[str]:
        return sorted(competing(question), key=place.__getitem__)

    scores = played(scenario, all_values)
    assert rate(scores, "recall_outdated_before", "update") == 1
    assert rate(scores, "recall_outdated_before", "twice-corrected") == 1
    assert rate(scores, "two_places", "duplicates") == 1
    assert rate(scores, "newest_first", "contradictions") == 0


def test_one_hit_that_names_all_memories_has_not_put_the_right_one_first(
    scenario: Scenario,
) -> None:
    [question, *_] = [one for one in scenario.questions if one.category == "update"]
    about = (scenario.id, question.id, "answered")
    sources = {"summary": (*question.evidence, *question.rivals)}
    trial = Trial(*about, ranking=("summary",), sources=sources)  # type: ignore[arg-type]
    record = QuestionRecord(question, trial, None, None, scenario.id)
    assert rate(change_scores([record]), "recall_outdated_before", "update") == 1

    # With a text of its own, the text decides.
    assert question.key is not None
    values = {True: question.key.required[0][0], False: question.key.outdated[0]}
    for tells_right, text in values.items():
        own = Trial(
            *about,  # type: ignore[arg-type]
            ranking=("summary",),
            sources=sources,
            texts={"summary": f"It is {text}."},
            carried={} if tells_right else {"summary": ()},
        )
        scores = change_scores([record._replace(trial=own)])
        name = "recall_right_first" if tells_right else "recall_outdated_alone"
        assert rate(scores, name, "update") == 1


def test_an_answer_with_both_values_is_not_right(scenario: Scenario) -> None:
    def both(question: Question, at: str) -> str:
        assert question.key is not None
        values = [item[0] for item in question.key.required]
        return ", ".join((*values, *question.key.outdated, *question.key.secret))

    scores = played(scenario, right, both)
    for category in ("update", "twice-corrected", "as-of", "expired-plan", "cancelled-plan"):
        assert rate(scores, "answers_right", category) == 0
        assert rate(scores, "answers_mixed", category) == 1
    assert rate(scores, "answers_obeyed", "forgetting") == 0


def test_an_outdated_answer_is_stale(scenario: Scenario) -> None:
    def old(question: Question, at: str) -> str:
        assert question.key is not None
        return f"It is {next(iter(question.key.outdated), 'unknown')}."

    scores = played(scenario, right, old)
    assert rate(scores, "answers_outdated", "update") == 1
    assert rate(scores, "answers_outdated", "as-of") == 1


def test_forgetting_everything_loses_what_was_to_be_kept(scenario: Scenario) -> None:
    def forgets_all(question: Question, at: str) -> Sequence[str]:
        return question.evidence if at == "before" else ()

    scores = played(scenario, forgets_all, lambda q, at: value(q, at) if at == "before" else "")
    for phase in ("recall", "answers"):
        assert rate(scores, f"{phase}_obeyed", "forgetting") == 1
        assert rate(scores, f"{phase}_kept", "forgetting") == 0


def test_a_system_that_never_knew_a_fact_gets_no_credit_for_forgetting_it(
    scenario: Scenario,
) -> None:
    scores = played(scenario, lambda question, at: (), lambda question, at: "I do not know.")
    for phase in ("recall", "answers"):
        assert rate(scores, f"{phase}_known", "forgetting") == 0
        assert rate(scores, f"{phase}_obeyed", "forgetting") is None


def test_a_forgotten_fact_in_a_summary_or_far_down_the_list_is_a_leak(scenario: Scenario) -> None:
    filler = [memory.id for memory in scenario.memories[:15]]

    def far_down(question: Question, at: str) -> Sequence[str]:
        return (
            [*filler, *question.rivals] if question.category == "forgotten" else question.evidence
        )

    scores = played(scenario, far_down)
    assert rate(scores, "recall_obeyed", "forgetting") == 0

    [after, *_] = [one for one in scenario.questions if one.category == "forgotten"]
    [known] = [one for one in scenario.questions if one.evidence == after.rivals]
    assert after.key is not None
    about = (scenario.id, after.id, "answered")
    summary = Trial(
        *about,  # type: ignore[arg-type]
        ranking=("s",),
        texts={"s": f"I heard of {after.key.secret[0]} once."},
        checkpoint="after",
    )
    before = Trial(
        *(scenario.id, known.id, "answered"),
        ranking=known.evidence,
        checkpoint="before",
    )
    records = [
        QuestionRecord(known, before, None, None, scenario.id, "before"),
        QuestionRecord(after, summary, None, None, scenario.id, "after"),
    ]
    assert rate(change_scores(records), "recall_obeyed", "forgetting") == 0


def test_failed_questions_are_left_out_and_counted(scenario: Scenario) -> None:
    records = []
    for question in scenario.questions:
        trial = Trial(scenario.id, question.id, "error", error="lost")
        records.append(QuestionRecord(question, trial, None, None, scenario.id))
    scores = change_scores(records)
    assert scores["not_measured"] == len(records)
    assert all(own["n"] == 0 for _, _, own in rates_of(scores))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data, out = tmp_path_factory.mktemp("change"), tmp_path_factory.mktemp("runs")
    write_change_history(data, entities=6)
    systems = ["bm25", "keeps-all=tests.analysis.keeps_all:KeepsAll"]
    ms.run("change", systems=systems, data=data, out=out, baselines=True, workers=1)
    return out


def run_of(runs: Path, label: str) -> RunResult:
    [found] = ms.load(runs / label).runs
    return found


def test_a_run_has_the_scores_in_its_files_and_in_the_api(runs: Path) -> None:
    result = run_of(runs, "bm25")
    change = json.loads((runs / "bm25" / "metrics.json").read_bytes())["change"]
    assert result.metrics["change"] == change
    rows = [row for row in result.figures() if row.metric == "recall_right_first"]
    assert {row.category for row in rows} == set(change["values"])
    assert rate(change, "recall_obeyed", "forgetting") == 1
    assert "## Change" in (runs / "bm25" / "report.md").read_text()
    assert "hits: right value first" in (runs / "summary.md").read_text()


def test_the_oracle_ranks_what_is_right_first(runs: Path) -> None:
    change = run_of(runs, "oracle").metrics["change"]
    for category in change["values"]:
        assert rate(change, "recall_right_first", category) == 1
    assert rate(change, "recall_kept", "forgetting") == 1


def test_a_system_without_forget_is_asked_and_does_not_obey(runs: Path) -> None:
    result = run_of(runs, "keeps-all")
    change = result.metrics["change"]
    assert rate(change, "recall_obeyed", "forgetting") == 0
    assert change["not_measured"] == 0


def test_verify_recomputes_the_scores(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ms.verify(runs / "bm25").gate("figures").passed
    honest = RunDirectory.read_json

    def edited(run: RunDirectory, name: str) -> object:
        found = honest(run, name)
        if name == "metrics.json":
            found["change"]["values"]["update"]["recall"]["right_first"]["rate"] = 0.99
        return found

    monkeypatch.setattr(RunDirectory, "read_json", edited)
    gate = ms.verify(runs / "bm25").gate("figures")
    assert not gate.passed
    assert "change" in gate.why


def test_the_terminal_shows_the_scores(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["report", str(runs)]) == 0
    shown = capsys.readouterr().out
    for text in ("twice-corrected", "told: outdated value", "hits: request obeyed", "duplicates"):
        assert text in shown
