"""A judge that failed its exam, or sat none, gives no headline: in no report, file or command."""

from __future__ import annotations

import json
import re
import runpy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.passed_exams import every_judge_passes, exam_summary

import mnemoscope
from mnemoscope._store.errors import DataError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.jsonl import write_json
from mnemoscope._store.run_directory import Manifest, RunDirectory
from mnemoscope.analysis.answers import ANSWERS
from mnemoscope.analysis.compare import compare
from mnemoscope.analysis.entitled import COMBINED, corrected, same_family, withheld
from mnemoscope.analysis.hand_labels import correct_by_labels
from mnemoscope.analysis.question_records import records_of
from mnemoscope.analysis.verify import verify
from mnemoscope.cli.app import invoke
from mnemoscope.stats.corrected import JudgeErrors, prediction_powered, rogan_gladen

_PLACE = Path(__file__).resolve().parents[2] / "benchmarks/corrected_accuracy.py"
corrected_accuracy: dict[str, Any] = runpy.run_path(str(_PLACE))
PROFILES: dict[str, tuple[float, float]] = corrected_accuracy["PROFILES"]
YES = "tests.judges.lenient_judges:SaysYes"
NO_HEADLINE = re.compile(r"accuracy[^\n|]{0,60}(?<![\d.])(?:1\.0+|100 ?%)")


def make(data: Path, out: Path, patch: pytest.MonkeyPatch, **exam: Any) -> Path:
    if exam:
        every_judge_passes(patch, **exam)
    systems = ["--system", "bm25", "--system", "recency"]
    parts = ["--reader", "extractive", "--judge", YES, "--no-arms", "--workers", "1"]
    assert invoke(["run", "locomo", "--data", str(data), *systems, *parts, "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def runs(
    write_locomo: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """Runs of a judge that accepts everything: with no exam, a failed one and a passed one."""
    place = tmp_path_factory.mktemp("entitled")
    data = write_locomo(place / "locomo10.json", conversations=6)
    for name, exam in {
        "none": {},
        "failed": {"false_accepts": 86, "of": 86},
        "doubtful": {"false_accepts": 120, "of": 300},
        "passed": {"false_accepts": 3, "false_rejects": 6},
    }.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MNEMOSCOPE_CACHE", str(place / "cache"))
            make(data, place / name, patch, **exam)
    yield place


WHY = "withheld: the judge accepts wrong answers too often (86 of 86)"


@pytest.mark.parametrize("file", ["report.md", "report.html"])
def test_the_reports_of_a_failed_judge_have_no_headline(runs: Path, file: str) -> None:
    text = (runs / "failed/bm25" / file).read_text()
    assert WHY in text
    assert not NO_HEADLINE.search(text)


def test_the_summary_has_none(runs: Path) -> None:
    text = (runs / "failed/summary.md").read_text()
    assert WHY in text and not NO_HEADLINE.search(text)
    content = json.loads((runs / "failed/summary.json").read_text())["bm25"]["answers"]
    assert content["withheld"] == WHY
    assert content["figures"]["answerable"]["mean"] is None
    assert content["raw"]["figures"]["answerable"]["mean"] == 1.0


def test_the_terminal_has_none_unless_raw_is_asked_for(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["report", str(runs / "failed")]) in (0, None)
    shown = " ".join(capsys.readouterr().out.split())
    assert WHY in shown and "withheld" in shown
    assert not NO_HEADLINE.search(shown) and "answers better" not in shown
    assert invoke(["report", str(runs / "failed"), "--raw"]) in (0, None)
    shown = capsys.readouterr().out
    assert " 1.000 " in shown and "raw figures of bm25, recency: without --raw" in shown


def test_raw_also_says_what_the_failed_exam_would_correct_it_to(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The errors of a judge that failed are known as well as those of one that passed."""
    sheet = RunDirectory(runs / "doubtful/bm25").read_json(ANSWERS)
    assert sheet["figures"]["all"]["mean"] is None and "corrected" not in sheet["figures"]
    assert sheet["raw"]["corrected"]["answerable"]["ci95"][0] < 0.99
    assert not NO_HEADLINE.search((runs / "doubtful/bm25/report.html").read_text())
    invoke(["report", str(runs / "doubtful"), "--raw"])
    assert "exam that it failed, accuracy" in " ".join(capsys.readouterr().out.split())
    invoke(["report", str(runs / "doubtful")])
    assert "exam that it failed, accuracy" not in " ".join(capsys.readouterr().out.split())
    for other in ("failed", "none"):  # its verdicts say nothing, or it sat no exam
        assert "corrected" not in RunDirectory(runs / other / "bm25").read_json(ANSWERS)["raw"]


def test_a_run_of_a_version_without_that_correction_is_still_verified(
    runs: Path, tmp_path: Path
) -> None:
    run = RunDirectory(shutil.copytree(runs / "doubtful/bm25", tmp_path / "bm25"))
    assert verify(run).gate("figures").passed
    sheet, changed = run.read_json(ANSWERS), run.manifest()
    del sheet["raw"]["corrected"]
    write_json(run.path / ANSWERS, sheet)
    changed.files[ANSWERS] = sha256_file(run.path / ANSWERS)
    run.save(changed)
    assert verify(run).gate("figures").passed


def test_the_list_of_missed_questions_does_not_count_them(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["show", str(runs / "passed/bm25"), "--failed"]) in (0, None)
    assert "missed 0 of" in capsys.readouterr().out
    assert invoke(["show", str(runs / "failed/bm25"), "--failed"]) in (0, None)
    shown = capsys.readouterr().out
    assert "by verdicts without a figure" in shown and "0 of" not in shown
    assert "0 of" not in repr(mnemoscope.show_failed(runs / "failed/bm25"))


def test_a_judge_without_an_exam_has_none(runs: Path) -> None:
    text = (runs / "none/bm25/report.md").read_text()
    assert "withheld: the judge has sat no exam on locomo (mnemoscope judges exam" in text
    assert not NO_HEADLINE.search(text)


def test_a_comparison_and_a_gate_have_none(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, cand = (RunDirectory(runs / "failed" / name) for name in ("bm25", "recency"))
    found = compare(base, cand)
    assert "accuracy" not in {row.metric for row in found.rows}
    assert any(WHY in note for note in found.notes)
    code = invoke(["gate", str(base.path), str(cand.path), "--metric", "accuracy"])
    assert code not in (0, None)


def test_the_api_has_none(runs: Path) -> None:
    result = mnemoscope.load(runs / "failed/bm25").runs[0]
    assert result.answers is not None
    assert result.answers["figures"]["all"]["mean"] is None
    rows = [row for row in result.figures() if row.metric == "accuracy"]
    assert rows and all(row.mean is None for row in rows)


def test_a_file_of_an_older_version_is_withheld_when_it_is_read(runs: Path) -> None:
    run = RunDirectory(runs / "failed/bm25")
    sheet = run.read_json(ANSWERS)
    from mnemoscope.analysis.answers import entitled_sheet

    older: Any = {**sheet, **sheet["raw"]}
    older.pop("withheld")
    older.pop("raw")
    assert older["figures"]["answerable"]["mean"] == 1.0
    shown = entitled_sheet(older, run.manifest())
    assert shown["figures"]["answerable"]["mean"] is None and shown["withheld"] == WHY


def test_a_judge_that_passed_gives_a_corrected_headline(runs: Path) -> None:
    figures = RunDirectory(runs / "passed/bm25").read_json(ANSWERS)["figures"]
    fixed = figures["corrected"]["answerable"]
    assert figures["answerable"]["mean"] == 1.0
    assert fixed["mean"] == 1.0 and fixed["ci95"][0] < 1
    assert "corrected for the judge's errors" in (runs / "passed/bm25/report.md").read_text()


# The cheats


def manifest(**more: Any) -> Manifest:
    identity = {
        "benchmark": {"name": "locomo", "sha256": ["d"], "options": {}},
        "judge": {"spec": "binary,model=m"},
        **more.pop("identity", {}),
    }
    made = msgspec.convert(
        {"fingerprint": "f", "identity": identity, "versions": {}, "state": "complete"},
        Manifest,
        strict=False,
    )
    made.exams = more.get("exams", {})
    return made


@pytest.mark.parametrize(
    ("exam", "why"),
    [
        (exam_summary(data=["d"]), ""),
        ({**exam_summary(data=["d"], false_accepts=300), "passed": True}, "300 of 300"),
        (exam_summary("longmemeval", ["d"]), "its exam is of longmemeval"),
        (exam_summary(data=["other"]), "other data of locomo"),
        (exam_summary(data=["d"], seed_given=True), "known beforehand"),
        ({"passed": True, "false_accept": {"count": 0, "of": 88}}, "sat no exam"),
        ({**exam_summary(data=["d"]), "cells": []}, "judged no wrong answers"),
        ({**exam_summary(data=["d"]), "cells": [[1]]}, "cannot be read"),
    ],
)
def test_only_a_passed_exam_of_this_benchmark_counts(exam: dict[str, Any], why: str) -> None:
    found = withheld(manifest(exams={"binary,model=m": exam}))
    assert (why in found) if why else not found


@pytest.mark.parametrize("seed_given", [False, True])
def test_a_failed_exam_corrects_only_if_it_could_have_counted(runs: Path, seed_given: bool) -> None:
    run = RunDirectory(runs / "doubtful/bm25")
    own, records = run.manifest(), records_of(run)
    (exam,) = own.exams.values()
    exam["seed_given"] = seed_given
    assert corrected(records, own) is None
    assert (corrected(records, own, though_failed=True) is None) == seed_given


def test_the_exam_of_another_judge_does_not_count() -> None:
    assert "sat no exam" in withheld(manifest(exams={"binary,model=n": exam_summary(data=["d"])}))


def test_a_plug_in_cannot_take_the_name_of_a_measure_that_needs_no_exam() -> None:
    own = {"spec": "f1", "scale": {"name": "f1"}, "source": "mine"}
    assert withheld(manifest(identity={"judge": own}))
    assert not withheld(manifest(identity={"judge": {"spec": "f1"}}))


def test_a_panel_needs_the_exam_of_all_its_judges_together() -> None:
    judge = {"spec": "a + b", "panel": {"a": {}, "b": {}}}
    each = {"a": exam_summary(data=["d"]), "b": exam_summary(data=["d"])}
    assert "not all sat" in withheld(manifest(identity={"judge": judge}, exams=each))
    whole = {**each, COMBINED: exam_summary(data=["d"])}
    assert not withheld(manifest(identity={"judge": judge}, exams=whole))


def test_reader_and_judge_of_one_family_are_a_warning() -> None:
    reader = {"spec": "llm,model=openai:gpt-4o-mini,prompt=p"}
    same = manifest(identity={"reader": reader, "judge": {"spec": "binary,model=openai:gpt-4o"}})
    assert "one family (GPT)" in same_family(same)
    other = manifest(identity={"reader": reader, "judge": {"spec": "binary,model=anthropic:x"}})
    assert same_family(other) == ""


# The correction


def test_rogan_and_gladen_by_hand() -> None:
    found = rogan_gladen(
        [1.0] * 60 + [0.0] * 40,
        [f"c{n % 10}" for n in range(100)],
        JudgeErrors(0.10, 1000, 0.05, 1000),
    )
    assert found is not None
    assert found.accuracy == pytest.approx((0.60 - 0.10) / 0.85)
    assert found.low < found.accuracy < found.high


def test_a_judge_without_information_gives_no_accuracy() -> None:
    assert rogan_gladen([1.0, 0.0], ["a", "b"], JudgeErrors(0.99, 86, 0.0, 49)) is None
    assert rogan_gladen([], [], JudgeErrors(0.1, 9, 0.1, 9)) is None


def test_the_interval_is_wider_with_a_smaller_exam_and_with_fewer_conversations() -> None:
    rng = np.random.default_rng(1)
    verdicts = (rng.random(600) < 0.7).astype(float)

    def width(exam: int, conversations: int) -> float:
        clusters = [f"c{n * conversations // 600}" for n in range(600)]
        found = rogan_gladen(verdicts, clusters, JudgeErrors(0.05, exam, 0.05, exam))
        assert found is not None
        return found.high - found.low

    assert width(60, 60) > width(2000, 60)


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_corrected_accuracy_covers_the_truth(profile: str) -> None:
    shares = [
        corrected_accuracy["coverage"](one, PROFILES[profile], 150, seed=3)[0]
        for one in (0.2, 0.65, 0.95)
    ]
    # 450 repeats: 95 % with a standard error of 1 %.
    assert 0.92 <= sum(shares) / 3 <= 0.98


def test_labels_correct_any_judge() -> None:
    rng = np.random.default_rng(2)
    right = rng.random(1000) < 0.6
    labels = [float(one) if n % 4 == 0 else None for n, one in enumerate(right)]
    clusters = [f"c{n % 10}" for n in range(1000)]
    found = prediction_powered([1.0] * 1000, labels, clusters)  # says yes to everything
    assert found is not None
    assert found.low < right.mean() < found.high
    good = prediction_powered(right.astype(float), labels, clusters)
    assert good is not None
    assert good.high - good.low < found.high - found.low
    assert prediction_powered([1.0, 0.0], [None, None], ["a", "b"]) is None


# Labels by hand


def test_labels_of_the_random_sample_correct_a_judge_that_says_yes(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs / "failed/bm25"
    assert invoke(["judges", "sample", str(run), "--n", "40"]) in (0, None)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 40
    for number, line in enumerate(lines):
        line["correct"] = number % 4 == 0
    place = tmp_path / "labels.jsonl"
    place.write_text("\n".join(map(json.dumps, lines)))
    found = correct_by_labels(run, place)
    assert found.labels == 40
    assert found.low < 0.25 < found.high < 0.6
    chosen = [line for line in lines if line["correct"]] * 4  # only what suits
    place.write_text("\n".join(map(json.dumps, [*chosen[:10], *lines[:29]])))
    with pytest.raises(DataError, match=r"random sample|too few"):
        correct_by_labels(run, place)
    lines[0]["correct"] = None
    place.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(DataError, match=r"line 1: .* has no label"):
        correct_by_labels(run, place)
