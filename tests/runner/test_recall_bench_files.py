"""Files of Recall Bench: what does not add up is an error that names the place."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope._store.errors import DataError, MissingData, MnemoscopeError
from mnemoscope.analysis.recall_bench_runs import RecallBenchRun
from mnemoscope.runner.recall_bench_files import kind_of, read_run
from mnemoscope.types import CATEGORIES

RIGHT = {"correctness": 3, "completeness": 2, "hallucination": 1}
WRONG = {"correctness": 0, "completeness": 0, "hallucination": 0}


def answer(number: int, marks: dict[str, Any]) -> dict[str, Any]:
    return {
        "qa": {
            "id": f"p-q{number:03}",
            "question": f"What is {number}?",
            "answer": "This.",
            "category": "negative-recall" if number % 2 else "factual-recall",
            "difficulty": "easy",
            "relevantDays": [number],
        },
        "systemAnswer": "That.",
        "score": marks,
        "compositeScore": sum(marks.values()),
        "latencyMs": 5,
    }


def checkpoint(days: int, answers: list[dict[str, Any]]) -> dict[str, Any]:
    def mean(own: list[dict[str, Any]]) -> float:
        return sum(one["compositeScore"] for one in own) / len(own) if own else 0

    by_category = {
        name: [one for one in answers if one["qa"]["category"] == name] for name in CATEGORIES
    }
    invented = sum(one["score"]["hallucination"] == 0 for one in answers)
    return {
        "range": {"label": f"{days}d", "days": days},
        "daysIngested": days,
        "questionsEvaluated": len(answers),
        "overallScore": mean(answers),
        "categoryScores": [
            {
                "category": name,
                "meanScore": mean(own),
                "questionCount": len(own),
                "scores": [one["compositeScore"] for one in own],
                "eligibleCount": len(own),
            }
            for name, own in by_category.items()
        ],
        "difficultyScores": {"easy": {"mean": mean(answers), "count": len(answers)}},
        "hallucinationRate": 100 * invented / len(answers),
        "questionResults": answers,
    }


POINTS = [
    checkpoint(6, [answer(1, RIGHT), answer(2, WRONG)]),
    checkpoint(12, [answer(1, WRONG), answer(2, RIGHT), answer(7, RIGHT)]),
]
RESULT: dict[str, Any] = {
    "timestamp": "2026-05-01T00:00:00Z",
    "adapterName": "theirs",
    "ranges": [{"label": "6d", "days": 6}, {"label": "12d", "days": 12}],
    "personas": [{"personaId": "p", "rangeResults": POINTS, "totalEvalsRun": 5}],
    "heatmap": [],
    "metadata": {"totalEvalsRun": 5, "judgeModel": "azure:small", "groupsEnabled": False},
}
TIMES = ["2026-05-01T00:10:00.000Z", "2026-05-01T00:20:00.000Z"]
PROGRESS = [
    {"type": "header", "adapterName": "theirs", "ranges": RESULT["ranges"], "judgeModel": "a:b"},
    *(
        {**point, "type": "checkpoint", "personaId": "p", "timestamp": time}
        for point, time in zip(POINTS, TIMES, strict=True)
    ),
    {"type": "summary", "totalEvalsRun": 5},
]
for line in PROGRESS[1:3]:
    line.pop("questionResults")
QUESTIONS = [
    {
        **{name: value for name, value in one.items() if name != "compositeScore"},
        "composite": one["compositeScore"],
        "personaId": "p",
        "timestamp": f"2026-05-01T00:{minutes}:00.000Z",
    }
    for point, minutes in zip(POINTS, ("05", "15"), strict=True)
    for one in point["questionResults"]
]


def lines(content: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(one) + "\n" for one in content)


@pytest.fixture
def read(tmp_path: Path) -> Callable[[Any], RecallBenchRun]:
    def read_content(content: Any) -> RecallBenchRun:
        is_lines = isinstance(content, list)
        place = tmp_path / ("progress.jsonl" if is_lines else "result.json")
        place.write_text(lines(content) if is_lines else json.dumps(content))
        return read_run(place)

    return read_content


def test_the_content_says_which_file_it_is(tmp_path: Path) -> None:
    place = tmp_path / "file"
    for text, kind in (
        (json.dumps(RESULT), "result"),
        (json.dumps(RESULT, indent=2), "result"),
        ("\ufeff" + json.dumps(RESULT), "result"),
        (lines(PROGRESS), "progress"),
        (lines(PROGRESS[1:]), "progress"),
        (lines(QUESTIONS), "questions"),
        ('{"overall": {}}', None),
        ("[]", None),
        ("no JSON", None),
        ("", None),
    ):
        place.write_text(text, encoding="utf-8")
        assert kind_of(place) == kind
    assert kind_of(tmp_path) is None
    with pytest.raises(DataError, match="is not a result"):
        read_run(place)


def test_a_result_is_read_with_its_marks(read: Callable[[Any], RecallBenchRun]) -> None:
    run = read(RESULT)
    assert run.settings.judge_model == "azure:small"
    assert [len(run.records), len(run.printed)] == [5, 2]
    assert {record.cluster for record in run.records} == {"p/week-1"}
    assert {record.question.expects for record in run.records} == {"abstain", "answer"}
    assert [one.is_same for one in run.reproduced()] == [True] * 10


def test_a_range_may_be_a_label(read: Callable[[Any], RecallBenchRun]) -> None:
    whole = deepcopy(RESULT)
    for point in whole["personas"][0]["rangeResults"]:
        point["range"] = point["range"]["label"]
    assert [one.days for one in read(whole).printed] == [6, 12]
    whole["personas"][0]["rangeResults"][0]["range"] = "7d"
    with pytest.raises(DataError, match=r"range is '7d', which is not in ranges"):
        read(whole)


def test_checkpoints_of_a_resumed_run_have_aggregates_only(
    read: Callable[[Any], RecallBenchRun],
) -> None:
    whole = deepcopy(RESULT)
    whole["personas"][0]["rangeResults"][0]["questionResults"] = []
    run = read(whole)
    assert [one.label for one in run.without_marks] == ["6d"]
    first, last = run.figures()["checkpoints"]
    assert (first["overall"]["mean"], first["overall"]["ci95"], first["judged"]) == (3.0, None, 2)
    assert last["overall"]["mean"] == pytest.approx(4.0)
    assert last["overall"]["ci95"] is not None


POINT = ("personas", 0, "rangeResults", 1)
FIRST = (*POINT, "questionResults", 0)


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        ((*FIRST, "score", "correctness"), 4, r"score\.correctness is 4, expected .* 0 to 3"),
        ((*FIRST, "score", "completeness"), -1, r"score\.completeness is -1"),
        ((*FIRST, "score", "hallucination"), 0.5, r"score\.hallucination is 0\.5"),
        ((*FIRST, "score", "hallucination"), True, r"score\.hallucination is true or false"),
        ((*FIRST, "score", "correctness"), "3", r"score\.correctness is a text"),
        ((*FIRST, "score"), [1], "score is an array"),
        ((*FIRST, "score"), None, r"compositeScore is 0, and there are no marks"),
        ((*FIRST, "score", "correctness"), None, r"score\.correctness is None"),
        ((*FIRST, "compositeScore"), 6, r"compositeScore is 6, and the marks add up to 0"),
        ((*FIRST, "primaryScore"), {"correctness": 9}, r"primaryScore\.correctness is 9"),
        ((*FIRST, "status"), "error", "status is error, and there are marks"),
        ((*FIRST, "status"), "fine", "status is 'fine', which is unknown"),
        ((*FIRST, "qa", "category"), "trivia", r"qa\.category is 'trivia', not one of"),
        ((*FIRST, "qa", "id"), "", r"qa\.id is empty"),
        ((*FIRST, "qa", "relevantDays"), [0], r"qa\.relevantDays is 0"),
        ((*FIRST, "qa", "relevantDays"), [99], "p-q001 is asked at day 12, before the last"),
        ((*FIRST, "qa", "question"), "What?", "question 'p-q001' has another text"),
        ((*FIRST, "qa", "id"), "p-q007", "question 'p-q007' is there twice at checkpoint '12d'"),
        ((*FIRST, "systemAnswer"), {}, "systemAnswer is an object"),
        ((*FIRST, "latencyMs"), "soon", "latencyMs is a text"),
        ((*POINT, "questionsEvaluated"), 4, "categoryScores count 3 answers, and .* is 4"),
        ((*POINT, "overallScore"), 7, r"overallScore is 7, expected 0 to 6"),
        ((*POINT, "hallucinationRate"), 101, r"hallucinationRate is 101, expected 0 to 100"),
        ((*POINT, "daysIngested"), 13, "daysIngested is 13, and the checkpoint is at day 12"),
        ((*POINT, "daysIngested"), 1e300, "daysIngested is 1e"),
        ((*POINT, "range", "label"), "6d", "the checkpoint 6d of p is there twice"),
        ((*POINT, "range", "days"), 0, r"range\.days is 0"),
        ((*POINT, "range"), 12, "range is a number"),
        ((*POINT, "difficultyScores", "easy", "count"), 2, "difficultyScores count 2 answers"),
        ((*POINT, "categoryScores", 0, "scores"), [6, 6], "2 scores, and questionCount is"),
        ((*POINT, "categoryScores", 0, "eligibleCount"), 0, "only 0 questions are eligible"),
        ((*POINT, "categoryScores", 0, "category"), "trivia", "category is 'trivia'"),
        ((*POINT, "categoryScores", 1, "category"), "factual-recall", "there twice"),
        ((*POINT, "categoryScores", 0, "meanScore"), -1, "meanScore is -1"),
        (("personas", 0, "totalEvalsRun"), 6, r"personas\[0\]: totalEvalsRun is 6, .* 5 judged"),
        (("metadata", "totalEvalsRun"), 4, "metadata: totalEvalsRun is 4"),
        (("metadata", "judgeModel"), 5, r"settings of the run: .*judgeModel"),
        (("personas",), {}, "personas is an object"),
        (("personas", 0, "rangeResults"), None, "rangeResults is null"),
    ],
)
def test_what_does_not_add_up_is_refused_by_its_place(
    read: Callable[[Any], RecallBenchRun], where: tuple[Any, ...], value: Any, said: str
) -> None:
    whole = deepcopy(RESULT)
    *way, last = where
    inner = whole
    for part in way:
        inner = inner[part]
    inner[last] = value
    with pytest.raises(DataError, match=rf"result\.json: .*{said}"):
        read(whole)


@pytest.mark.parametrize(
    ("where", "field"),
    [
        (FIRST, "qa"),
        (FIRST, "systemAnswer"),
        ((*FIRST, "qa"), "id"),
        ((*FIRST, "qa"), "question"),
        ((*FIRST, "qa"), "relevantDays"),
        ((*FIRST, "qa"), "category"),
        ((*FIRST, "score"), "completeness"),
        (POINT, "range"),
        (POINT, "questionsEvaluated"),
        (POINT, "daysIngested"),
        (POINT, "categoryScores"),
        (POINT, "questionResults"),
        (("personas", 0), "personaId"),
        (("personas", 0), "rangeResults"),
    ],
)
def test_a_missing_field_is_named(
    read: Callable[[Any], RecallBenchRun], where: tuple[Any, ...], field: str
) -> None:
    whole = deepcopy(RESULT)
    inner = whole
    for part in where:
        inner = inner[part]
    del inner[field]
    with pytest.raises(DataError, match=rf"the field {field} is missing"):
        read(whole)


def test_an_answer_that_was_left_out_is_missed(read: Callable[[Any], RecallBenchRun]) -> None:
    """The cheat: delete the worst answers, and print the score of the rest."""
    whole = deepcopy(RESULT)
    point = whole["personas"][0]["rangeResults"][1]
    del point["questionResults"][0]
    point["overallScore"] = 6
    with pytest.raises(DataError, match="questionsEvaluated is 3, and 2 answers have marks"):
        read(whole)
    point["questionsEvaluated"] = 2
    with pytest.raises(DataError, match="categoryScores count 3 answers"):
        read(whole)


def test_a_persona_may_not_be_there_twice(read: Callable[[Any], RecallBenchRun]) -> None:
    whole = deepcopy(RESULT)
    whole["personas"].append(whole["personas"][0])
    with pytest.raises(DataError, match=r"personas\[1\]: personaId is 'p', which is there twice"):
        read(whole)


def test_a_progress_file_has_its_printed_figures(read: Callable[[Any], RecallBenchRun]) -> None:
    run = read(PROGRESS)
    assert (run.kind, run.records) == ("progress", [])
    assert [one.overall for one in run.printed] == [3.0, 4.0]
    figures = run.figures()
    assert [point["overall"]["mean"] for point in figures["checkpoints"]] == [3.0, 4.0]
    assert figures["checkpoints"][1]["categories"]["negative-recall"]["mean"] == 3.0


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ([*PROGRESS, {**PROGRESS[0], "judgeModel": "c:d"}], "line 5: another header"),
        ([*PROGRESS, PROGRESS[1]], "line 5: the checkpoint 6d of p is there twice"),
        ([*PROGRESS[:3], {"type": "summary", "totalEvalsRun": 9}], "totalEvalsRun is 9"),
        ([*PROGRESS, {"type": "footer"}], "line 5: type is 'footer'"),
        ([PROGRESS[0]], "contains no judged answers"),
    ],
)
def test_lines_that_do_not_belong_together_are_refused(
    read: Callable[[Any], RecallBenchRun], changed: list[Any], said: str
) -> None:
    with pytest.raises(DataError, match=said):
        read(changed)


def test_a_resumed_run_repeats_its_header(read: Callable[[Any], RecallBenchRun]) -> None:
    lines_of_both = [*PROGRESS[:2], PROGRESS[0], *PROGRESS[2:]]
    assert len(read(lines_of_both).printed) == 2


def test_the_checkpoint_of_a_question_follows_from_the_times_of_its_progress(
    tmp_path: Path,
) -> None:
    place = tmp_path / "x.questions.jsonl"
    place.write_text(lines(QUESTIONS))
    with pytest.raises(MissingData, match=r"progress\.jsonl of the same run is needed"):
        read_run(place)
    with gzip.open(tmp_path / "x.progress.jsonl.gz", "wt") as file:
        file.write(lines(PROGRESS))
    run = read_run(place)
    assert [record.checkpoint for record in run.records] == ["6d", "6d", "12d", "12d", "12d"]
    assert run.settings.judge_model == "a:b"
    assert all(one.is_same for one in run.reproduced())
    late = {**QUESTIONS[0], "timestamp": "2026-06-01T00:00:00.000Z"}
    place.write_text(lines([*QUESTIONS, late]))
    with pytest.raises(DataError, match=r"line 6: its time .* is after the last checkpoint"):
        read_run(place)
    place.write_text(lines(QUESTIONS[:-1]))
    with pytest.raises(DataError, match="questionsEvaluated is 3, and 2 answers have marks"):
        read_run(place)


def test_lines_that_name_their_checkpoint_need_no_other_file(tmp_path: Path) -> None:
    place = tmp_path / "questions.jsonl"
    place.write_text(lines([{**one, "checkpoint": "12d"} for one in QUESTIONS[2:]]))
    run = read_run(place)
    assert [one.questions for one in run.printed] == [3]
    assert run.reproduced() == []
    assert run.figures()["checkpoints"][0]["overall"]["mean"] == pytest.approx(4.0)


def test_a_number_beyond_all_limits_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "result.json"
    place.write_text(json.dumps(RESULT).replace('"daysIngested": 12', '"daysIngested": 1e999'))
    with pytest.raises(DataError, match=r"result\.json"):
        read_run(place)


@settings(max_examples=50)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=5,
    ),
    st.sampled_from(
        [
            ("personas",),
            ("personas", 0),
            ("metadata",),
            ("ranges",),
            POINT,
            (*POINT, "range"),
            (*POINT, "categoryScores"),
            (*POINT, "difficultyScores"),
            FIRST,
            (*FIRST, "qa"),
            (*FIRST, "score"),
            (*FIRST, "qa", "relevantDays"),
        ]
    ),
)
def test_any_value_anywhere_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, value: Any, where: tuple[Any, ...]
) -> None:
    whole = deepcopy(RESULT)
    *way, last = where
    inner = whole
    for part in way:
        inner = inner[part]
    inner[last] = value
    place = tmp_path_factory.getbasetemp() / "any.json"
    place.write_text(json.dumps(whole))
    try:
        run = read_run(place)
    except MnemoscopeError:
        return
    assert run.records
    run.figures()
