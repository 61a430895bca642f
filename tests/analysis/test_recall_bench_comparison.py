"""Comparing files of Recall Bench: each comes back to its own scores, and two are paired."""

from __future__ import annotations

import json
import lzma
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mnemoscope as ms
from mnemoscope._store.errors import UsageError
from mnemoscope.analysis.pairing import NotComparable
from mnemoscope.cli.app import invoke
from mnemoscope.reports.recall_bench_report import blocks
from mnemoscope.reports.render_markdown import render

NAMES = {
    "ea-180d-openclaw": (19, 1212, 235),
    "ea-180d-recall-baseline": (30, 1639, 369),
    "ea-60d-recall-rerank-on": (3, 39, 24),
    "ea-60d-recall-supersession-on": (4, 79, 36),
}


@pytest.fixture(scope="module")
def results(shared_data: Callable[[str], Path]) -> Path:
    return shared_data("answers/recall-bench-results")


def content(path: Path) -> Any:
    with lzma.open(path) as file:
        return json.load(file)


@pytest.mark.parametrize("name", NAMES)
def test_each_result_file_comes_back_to_its_own_scores(results: Path, name: str) -> None:
    file = results / f"{name}.result.json.xz"
    run = ms.read_recall_bench(file)
    checkpoints, answers, figures = NAMES[name]
    assert (len(run.printed), len(run.records)) == (checkpoints, answers)
    found = run.reproduced()
    assert len(found) == figures
    assert all(one.is_same for one in found)
    # Independently of our reader: the printed overall score is what its marks give.
    own = {point["label"]: point["overall"]["mean"] for point in run.figures()["checkpoints"]}
    for point in content(file)["personas"][0]["rangeResults"]:
        assert own[point["range"]["label"]] == pytest.approx(point["overallScore"], abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_a_progress_file_gives_the_same_scores_without_intervals(results: Path, name: str) -> None:
    progress = ms.read_recall_bench(results / f"{name}.progress.jsonl.xz")
    whole = ms.read_recall_bench(results / f"{name}.result.json.xz")
    assert progress.records == []
    assert "table below" not in render(blocks(progress))
    assert len(progress.without_marks) == len(progress.printed) == NAMES[name][0]
    for one, other in zip(
        progress.figures()["checkpoints"], whole.figures()["checkpoints"], strict=True
    ):
        assert one["overall"]["mean"] == pytest.approx(other["overall"]["mean"], abs=1e-9)
        assert one["hallucination"]["rate"] == pytest.approx(other["hallucination"]["rate"])
        assert one["overall"]["ci95"] is None


def test_two_files_are_compared_by_question_and_checkpoint(results: Path) -> None:
    base, cand = (
        results / f"ea-180d-{name}.result.json.xz" for name in ("recall-baseline", "openclaw")
    )
    found = ms.compare(base, cand).paired
    assert found is not None
    marks = []
    for file in (base, cand):
        marks.append(
            {
                (point["range"]["label"], one["qa"]["id"]): one
                for point in content(file)["personas"][0]["rangeResults"]
                for one in point["questionResults"]
            }
        )
    shared = marks[0].keys() & marks[1].keys()
    deltas: dict[str, list[int]] = {}
    for key in shared:
        before, after = (own[key]["compositeScore"] for own in marks)
        deltas.setdefault(key[1], []).append(after - before)
    weeks = {(min(marks[0][key]["qa"]["relevantDays"]) - 1) // 7 for key in shared}
    row = found.primary
    assert row is not None
    assert (len(shared), row.n, row.clusters, found.paired) == (491, len(deltas), len(weeks), 293)
    assert row.delta == pytest.approx(sum(sum(own) / len(own) for own in deltas.values()) / 293)
    assert row.verdict == "better"
    assert 0 < row.ci95[0] < row.delta < row.ci95[1]
    assert (found.only_base, found.only_cand) == (1639 - 491, 1212 - 491)
    assert found.row("grounded").verdict == "better"
    assert {row.scope for row in found.rows} >= {"factual-recall", "negative-recall"}


def test_a_file_compared_with_itself_has_no_difference(results: Path) -> None:
    file = results / "ea-180d-openclaw.result.json.xz"
    found = ms.compare(file, file).paired
    assert found is not None
    assert (found.paired, found.row("composite").delta) == (312, 0.0)
    assert found.row("composite").verdict == "cannot tell"
    assert not found.regressed


def test_repeated_answers_to_one_question_do_not_narrow_the_interval(
    results: Path, tmp_path: Path
) -> None:
    """The cheat: ask the same questions again at more checkpoints, to look more certain."""
    base, cand = (
        content(results / f"ea-60d-recall-{name}.result.json.xz")
        for name in ("rerank-on", "supersession-on")
    )
    for whole in (base, cand):
        persona = whole["personas"][0]
        last = next(one for one in persona["rangeResults"] if one["range"]["days"] == 18)
        del persona["totalEvalsRun"], whole["metadata"]["totalEvalsRun"]
        persona["rangeResults"] = [last]
    once = _compared(base, cand, tmp_path).row("composite")
    for whole in (base, cand):
        [last] = whole["personas"][0]["rangeResults"]
        copies = [{**last, "range": {"label": f"{n}d", "days": n}} for n in range(20, 30)]
        whole["personas"][0]["rangeResults"] = [last, *copies]
    often = _compared(base, cand, tmp_path).row("composite")
    assert once == often
    assert once.n == 21


def _compared(base: Any, cand: Any, tmp_path: Path) -> Any:
    for name, whole in (("base", base), ("cand", cand)):
        (tmp_path / f"{name}.json").write_text(json.dumps(whole))
    found = ms.compare(tmp_path / "base.json", tmp_path / "cand.json").paired
    assert found is not None
    return found


def test_an_edited_question_is_left_out_and_counted(results: Path, tmp_path: Path) -> None:
    file = results / "ea-60d-recall-rerank-on.result.json.xz"
    whole = content(file)
    for point in whole["personas"][0]["rangeResults"]:
        for one in point["questionResults"]:
            if one["qa"]["id"].endswith("q002"):
                one["qa"]["question"] += " Really?"
    (tmp_path / "edited.json").write_text(json.dumps(whole))
    found = ms.compare(file, tmp_path / "edited.json").paired
    assert found is not None
    assert found.paired == 24 - 1
    assert any("3 pairs are left out" in note for note in found.notes)


def test_failing_where_answers_would_be_poor_is_said_and_counted(
    results: Path, tmp_path: Path
) -> None:
    """The cheat: time out instead of giving an answer that is not perfect."""
    base = content(results / "ea-60d-recall-supersession-on.result.json.xz")
    cand = json.loads(json.dumps(base))
    asked: dict[str, list[int]] = {}
    lost, kept = 0, set()
    for point in cand["personas"][0]["rangeResults"]:
        for one in point["questionResults"]:
            was = one["compositeScore"]
            if was < 6:
                one |= {"score": None, "compositeScore": None, "status": "timeout"}
                one.pop("primaryScore", None)
                lost += 1
            else:
                kept.add(one["qa"]["id"])
            asked.setdefault(one["qa"]["id"], []).append(-was if was < 6 else 0)
        _count_again(point)
    for place in (cand["metadata"], cand["personas"][0]):
        del place["totalEvalsRun"]
    found = _compared(base, cand, tmp_path)
    assert found.row("composite").delta == 0
    whole = sum(sum(own) / len(own) for own in asked.values()) / len(asked)
    assert (
        f"{lost} pairs are left out because an answer failed or was not judged, 0 in the base and "
        f"{lost} in the candidate; counted as zeros, they make the difference in composite "
        f"{whole:+.4f}"
    ) in found.notes
    assert (found.paired, found.failed) == (len(kept), len(asked) - len(kept)) == (35, 2)
    assert not any("draws its own sample" in note for note in found.notes)


def _count_again(point: dict[str, Any]) -> None:
    """Make a checkpoint's printed figures those of the answers that have marks."""
    judged = [one for one in point["questionResults"] if one["score"]]
    point |= {"questionsEvaluated": len(judged), "overallScore": 6.0, "hallucinationRate": 0.0}
    for cell in point["categoryScores"]:
        n = sum(one["qa"]["category"] == cell["category"] for one in judged)
        cell |= {"questionCount": n, "meanScore": 6.0, "scores": [6] * n}
    for name, cell in point["difficultyScores"].items():
        cell |= {"count": sum(one["qa"]["difficulty"] == name for one in judged), "mean": 6.0}


def test_the_full_comparison_speaks_of_weeks(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [
        str(results / f"ea-60d-recall-{name}.result.json.xz")
        for name in ("rerank-on", "supersession-on")
    ]
    for full in ((), ("--full",)):
        assert invoke(["compare", *files, *full]) == 0
        told = capsys.readouterr().out
        assert "weeks" in told
        assert "conversation" not in told


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("judgeModel", "openai:other", r"judge model: azure:gpt-5\.4-mini → openai:other"),
        ("appellateJudgeModel", None, "appellate judge model"),
        ("judgeMemoryWindow", 3, "judge memory window: 1 → 3"),
    ],
)
def test_files_with_other_judges_are_not_compared(
    results: Path, tmp_path: Path, field: str, value: Any, said: str
) -> None:
    file = results / "ea-60d-recall-rerank-on.result.json.xz"
    whole = content(file)
    whole["metadata"][field] = value
    (tmp_path / "other.json").write_text(json.dumps(whole))
    with pytest.raises(NotComparable, match=said):
        ms.compare(file, tmp_path / "other.json")


def test_aggregates_are_not_paired_and_the_error_says_what_is_needed(results: Path) -> None:
    progress = results / "ea-180d-openclaw.progress.jsonl.xz"
    whole = results / "ea-180d-recall-baseline.result.json.xz"
    with pytest.raises(NotComparable, match=r"aggregates only.*result\.json or the questions"):
        ms.compare(whole, progress)
    assert invoke(["canaries", str(progress), str(whole)]) == 2
    with pytest.raises(UsageError, match="--metrics"):
        ms.compare(whole, whole, metrics=["recall@10"])


def test_canaries_follow_questions_through_two_files(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("recall-baseline", "openclaw")
    files = [str(results / f"ea-180d-{name}.result.json.xz") for name in names]
    assert invoke(["canaries", *files, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    invented = []
    for file in files:
        invented.append(
            {
                one["qa"]["id"]
                for point in content(Path(file))["personas"][0]["rangeResults"]
                for one in point["questionResults"]
                if one["score"]["hallucination"] == 0
            }
        )
    assert {one["question"] for one in found["always"]} == invented[0] & invented[1]
    assert {one["question"] for one in found["newly"]} == invented[1] - invented[0]
    assert {one["question"] for one in found["no_longer"]} == invented[0] - invented[1]
    assert invoke(["canaries", *files]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"and {len(found['always']) - 15} more, which --json lists" in told
    listed = [one for kind in ("always", "newly", "no_longer", "unsteady") for one in found[kind]]
    uneven = [one for one in listed if len({judged for _, judged in one["runs"].values()}) > 1]
    assert f"{len(uneven)} of these questions were judged more often in one run" in told


def test_the_report_of_a_file_shows_both_scores(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = results / "ea-60d-recall-supersession-on.result.json.xz"
    assert invoke(["report", str(file)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "24d 37 5.4054 5.4054 [4.65, 5.76] 10.8%" in said
    assert "the overall score of 4 of 4 checkpoints, and 36 of all 36 printed figures" in said
    assert "negative-recall counts as every other category" in said
    assert invoke(["report", str(file), "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert whole["reproduced"] == {"figures": 36, "same": 36, "different": []}
    assert invoke(["report", str(file), "--full"]) == 2


def test_a_printed_score_that_the_marks_do_not_give_is_shown_and_fails(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = content(results / "ea-60d-recall-rerank-on.result.json.xz")
    whole["personas"][0]["rangeResults"][1]["overallScore"] = 5.9
    place = tmp_path / "result.json"
    place.write_text(json.dumps(whole))
    assert invoke(["report", str(place)]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "12d 12 5.9000 ≠ 5.5000 [3.88, 5.91] 8.3%" in said
    assert (
        "NOT reproduced: overall score at 12d of executive-assistant is printed as 5.9000" in said
    )
    assert "the overall score of 2 of 3 checkpoints" in said
    found = ms.compare(place, results / "ea-60d-recall-rerank-on.result.json.xz").paired
    assert found is not None
    assert found.row("composite").delta == 0
    assert any("1 printed figures are NOT what its marks give" in note for note in found.notes)


def test_a_run_of_ours_is_reported_and_compared_by_its_files(
    write_persona: Callable[..., Path], tmp_path: Path
) -> None:
    data = write_persona(tmp_path)
    done = ms.run(
        "personas",
        systems=["none", "oracle"],
        data=data,
        ranges="6d,12d",
        out=tmp_path / "runs",
        baselines=False,
        heatmap_png=False,
        workers=1,
    )
    folders = [one.path for one in done.runs]
    for name in ("result.json", "questions.jsonl"):
        run = ms.read_recall_bench(folders[1] / name)
        assert len(run.records) == 36
        assert all(one.is_same for one in run.reproduced())
    found = ms.compare(folders[0], folders[1] / "result.json").paired
    assert found is not None
    assert (found.paired, found.row("composite").delta > 0) == (24, True)
    alone = tmp_path / "alone.questions.jsonl"
    shutil.copy(folders[1] / "questions.jsonl", alone)
    assert len(ms.read_recall_bench(alone).records) == 36
