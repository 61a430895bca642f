"""No claim about a stratum whose questions break its rules: in runs, comparisons and checks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mnemoscope as ms
from mnemoscope.analysis.plan import told_apart
from mnemoscope.cli.app import invoke
from mnemoscope.stats.power import Components, simulated_detectable

REASON = "1 of 3 questions of paraphrase share too many words with their memory"


@pytest.fixture
def planted(store: Path) -> Path:
    """A store with three paraphrases, of which one copies its memory and denies it."""
    ms.draft_questions(store, per_stratum=3)
    path = store / "queries.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    copied = next(line for line in lines if line["stratum"] == "paraphrase")
    memories = map(json.loads, (store / "corpus.jsonl").read_text().splitlines())
    texts = {memory["id"]: memory["content"] for memory in memories}
    copied |= {"text": texts[copied["relevant_ids"][0]], "_jaccard": 0.0}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return store


def test_figures_of_a_broken_stratum_are_withheld_everywhere(
    planted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "runs"
    asked = ["run", "strata", "--data", str(planted), "--out", str(out), "--workers", "1"]
    assert invoke([*asked, "-s", "bm25", "-s", "dense", "--no-baselines", "--full"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"withheld: {REASON}" in told
    assert "0 of 12 drafted questions confirmed by a person" in told
    assert "! questions of exact favour keyword search" in told
    least = f"{told_apart(9):.2f} or more"
    assert f"9 questions with evidence tell two systems apart that differ by {least}" in told

    results = ms.load(out)
    bm25, dense = results["bm25"], results["dense"]
    assert sorted(bm25.metrics["by_category"]) == ["exact", "multihop", "update"]
    assert bm25.metrics["withheld"] == {"paraphrase": REASON}
    assert "paraphrase" not in {row.category for row in bm25.figures()}
    assert f"withheld: {REASON}" in (out / "bm25" / "report.md").read_text()

    found = ms.compare(bm25, dense).paired
    assert found is not None
    assert "paraphrase" not in {row.scope for row in found.rows}
    assert f"withheld: {REASON}" in found.notes
    assert invoke(["questions", str(out), "--limit", "0"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "paraphrase 3 withheld" in told
    assert f"withheld: {REASON}" in told
    gates = {gate.name: gate.passed for gate in ms.verify(bm25).gates}
    assert gates["figures"]

    manifest = out / "bm25" / "manifest.json"
    manifest.write_text(manifest.read_text().replace("share too many", "share few"))
    assert invoke(["report", str(out / "bm25")]) == 4  # edited


def test_the_check_names_the_question_and_the_rule(
    planted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["datasets", "check", "strata", "--data", str(planted), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    [broken] = found["broken"]
    assert broken["question"].startswith("paraphrase_")
    assert "at most 0.18" in broken["detail"]
    assert found["problems"] == [f"withheld: {REASON}"]
    assert invoke(["datasets", "check", "strata", "--data", str(planted)]) == 1
    assert broken["question"] in capsys.readouterr().out


def test_a_part_of_the_questions_withholds_as_the_whole_does(planted: Path, tmp_path: Path) -> None:
    results = ms.run(
        "strata", data=planted, systems="bm25", baselines=False, out=tmp_path, questions=6
    )
    assert results["bm25"].metrics["withheld"] == {"paraphrase": REASON}


def test_questions_of_a_person_need_no_confirmation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example = Path(__file__).parents[2] / "examples" / "strata"
    ms.run("strata", data=example, systems="bm25", baselines=False, out=tmp_path, workers=1)
    report = (tmp_path / "bm25" / "report.md").read_text()
    assert "confirmed by a person" not in report
    assert "withheld" not in report
    assert "keyword search" not in report


def test_a_table_of_exact_questions_alone_says_whom_it_favours(store: Path, tmp_path: Path) -> None:
    ms.draft_questions(store, per_stratum=3, strata=["exact"])
    ms.run("strata", data=store, systems="bm25", baselines=False, out=tmp_path / "o", workers=1)
    report = (tmp_path / "o" / "bm25" / "report.md").read_text()
    assert "all questions with evidence are exact, which favours keyword search" in report


@pytest.mark.parametrize("questions", [20, 50, 200])
def test_what_is_told_apart_is_what_the_rule_finds_in_a_simulation(questions: int) -> None:
    simulated = simulated_detectable([1.0] * questions, Components(0.0, 0.2), draws=4000)
    assert told_apart(questions) == pytest.approx(simulated, rel=0.1)


def test_too_few_questions_tell_nothing_apart() -> None:
    assert [told_apart(n) for n in (0, 1, 5, 6)] == [None] * 4
