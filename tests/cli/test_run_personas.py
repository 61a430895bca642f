"""`mnemoscope run personas` from the outside: flags, files, mistakes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mnemoscope.cli.app import invoke

WATCHED = Path(__file__).parents[1] / "runner"


@pytest.fixture(scope="module")
def life(write_persona: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_persona(tmp_path_factory.mktemp("personas"))


@pytest.fixture
def broken(life: Path, tmp_path: Path) -> Path:
    """A copy of the persona that a test may spoil."""
    shutil.copytree(life, tmp_path / "broken")
    return tmp_path / "broken"


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(WATCHED))


def run(data: Path, *more: object, system: str = "bm25") -> int:
    arguments: list[object] = ["run", "personas", "--data", data, "--system", system]
    if "--ranges" not in more:
        arguments += ["--ranges", "6d,full"]
    return invoke([str(argument) for argument in (*arguments, "--no-heatmap-png", *more)])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_system_and_arm_leaves_recall_bench_s_files(
    life: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(life) == 0

    said = capsys.readouterr().out
    assert "OVERALL" in said and "oracle" in said
    folders = {path.name for path in Path("runs").iterdir() if path.is_dir()}
    assert folders == {"bm25", "none", "random", "oracle"}
    assert "At the last checkpoint" in Path("runs/summary.md").read_text()
    own = Path("runs/bm25")
    result = json.loads((own / "result.json").read_text())
    assert [one["range"] for one in result["personas"][0]["rangeResults"]] == ["6d", "full"]
    asked = lines(own / "questions.jsonl")
    assert {line["checkpoint"] for line in asked} == {"6d", "full"}
    assert {line["status"] for line in asked} <= {"answered", "abstained"}
    kinds = [line["type"] for line in lines(own / "progress.jsonl")]
    assert kinds == ["header", "checkpoint", "checkpoint", "summary"]
    assert all(line["appellateScore"] is None for line in lines(own / "failures.jsonl"))
    assert "## By checkpoint" in (own / "report.md").read_text()


def test_results_go_where_they_are_asked_for(life: Path, tmp_path: Path) -> None:
    places = ("--question-log", "log/q.jsonl", "--progress-jsonl", "log/p.jsonl")
    assert run(life, "--json-out", "drafts/result.json", *places, "--no-arms") == 0

    assert json.loads(Path("drafts/result.json").read_text())["adapterName"] == "bm25"
    for sibling in ("progress.jsonl", "questions.jsonl", "failures.jsonl"):
        assert (Path("drafts") / sibling).exists()
    own = Path("runs/bm25")
    assert Path("log/q.jsonl").read_bytes() == (own / "questions.jsonl").read_bytes()
    assert Path("log/p.jsonl").read_bytes() == (own / "progress.jsonl").read_bytes()


def test_json_is_all_that_is_printed_where_it_is_asked_for(
    life: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(life, "--json", "--no-arms") == 0
    assert json.loads(capsys.readouterr().out)["metadata"]["uniqueQAPairCount"] == 24


def test_heatmap_prints_the_grid_and_nothing_else(
    life: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(life, "--heatmap", "--no-arms") == 0
    said = capsys.readouterr().out
    assert "OVERALL" in said
    assert "report" not in said


def test_a_dry_run_keeps_nothing(life: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(life, "--dry-run") == 0
    assert not Path("runs").exists()
    captured = capsys.readouterr()
    assert "6d" in captured.out and "full" not in captured.out
    assert "nothing was kept" in captured.err


def test_flags_win_over_the_profile(life: Path, tmp_path: Path) -> None:
    profile = tmp_path / "bench.yaml"
    profile.write_text(
        f"persona: {{id: tester, dir: {life}}}\n"
        "run: {systems: [recency], ranges: [3, 6], seed: 7, sample: 5, timeout: 9000, out: here}\n"
    )
    given = ["run", "personas", "--profile", str(profile), "--no-arms", "--no-heatmap-png"]
    assert invoke([*given, "--seed", "8", "--system", "bm25"]) == 0

    identity = json.loads((tmp_path / "here/bm25/manifest.json").read_text())["identity"]
    options = identity["benchmark"]["options"]
    assert (options["seed"], options["sample"], options["ranges"]) == (8, 5, "3,6")
    assert identity["limits"]["recall"] == 9.0


def test_resume_goes_on_with_what_is_there_and_refuses_what_is_not(
    life: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(life, "--no-arms", "--out", "first") == 0
    before = Path("first/bm25/trials.jsonl").read_bytes()
    assert run(life, "--no-arms", "--resume", "first/bm25/progress.jsonl") == 0
    assert Path("first/bm25/trials.jsonl").read_bytes() == before
    assert not Path("runs").exists()
    assert run(life, "--no-arms", "--resume", "nowhere") == 1
    assert "there is no run to continue" in capsys.readouterr().err


def test_recall_alone_can_be_measured(life: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(life, "--reader", "none", "--no-arms") == 0
    assert "recall@10" in capsys.readouterr().out
    assert not [line for line in lines(Path("runs/bm25/trials.jsonl")) if line["phase"] == "answer"]


def test_the_first_personas_alone_can_be_run(
    life: Path, write_persona: Callable[..., Path], tmp_path: Path
) -> None:
    both = tmp_path / "both"
    shutil.copytree(life, both)
    write_persona(both, id="other")
    assert run(both, "--scenarios", "1", "--no-arms") == 0
    metrics = json.loads(Path("runs/bm25/metrics.json").read_text())
    assert metrics["questions"]["asked"] == 24


@pytest.mark.parametrize("granularity", ["session", "section"])
def test_smaller_memories_count_for_their_day(life: Path, granularity: str) -> None:
    assert run(life, "--granularity", granularity, "--no-arms") == 0
    metrics = json.loads(Path("runs/bm25/metrics.json").read_text())
    assert metrics["overall"]["hit@1"]["mean"] == 1.0
    assert metrics["overall"]["hit@1"]["chance"] is None


def test_a_system_that_fails_on_everything_is_shown_and_told(
    life: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(life, system="hostile_systems:RaisesAlways") == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "RaisesAlways" in said
    assert "36 of 36 questions failed and are left out (36 error)" in said
    assert "36 × ValueError: no idea" in said


# Mistakes.


def spoil_questions(folder: Path, **changes: Any) -> None:
    path = folder / "tester/qa-12d/questions.yaml"
    questions = json.loads(path.read_text())
    questions[2] |= changes
    path.write_text(json.dumps(questions))


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda f: (f / "tester/persona.yaml").unlink(), "persona.yaml"),
        (lambda f: (f / "tester/arcs-12d.yaml").unlink(), "arcs"),
        (lambda f: shutil.rmtree(f / "tester/memories-12d"), "memories-12d"),
        (lambda f: (f / "tester/qa-12d/questions.yaml").write_text("- {"), "questions.yaml"),
        (lambda f: spoil_questions(f, category="gossip"), "category"),
        (lambda f: spoil_questions(f, relevant_days=[0]), "relevant_days"),
        (lambda f: spoil_questions(f, question=None), "question"),
        (lambda f: spoil_questions(f, key=["f99.value"]), "f99"),
        (lambda f: (f / "tester/qa-12d/ledger.jsonl").write_text("{}\n"), "ledger.jsonl"),
    ],
)
def test_preflight_names_the_file_and_the_field(
    spoil: Callable[[Path], Any], told: str, broken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(broken)
    assert run(broken) in (1, 2)
    said = capsys.readouterr().err
    assert told in said
    assert "error:" in said and "Traceback" not in said
    assert not Path("runs").exists()


def test_preflight_tells_all_that_is_wrong_at_once(
    broken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil_questions(broken, category="gossip")
    shutil.rmtree(broken / "tester/memories-12d")
    assert run(broken) == 1
    said = capsys.readouterr().err
    assert "category" in said and "memories-12d" in said


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--ranges", "soon"), "soon"),
        (("--ranges", ""), "range"),
        (("--ranges", "none", "--judge", "ledger"), "no checkpoint at which answers are judged"),
        (("--reader", "system"), "has no answer(query)"),
        (("--judge", "gpt-4o"), "names a model without its provider"),
        (("--judge", "rubric"), "needs the option 'model'"),
        (("--judge", "ledger", "--appellate-judge", "f1"), "scored by the rubric"),
        (("--depth", "0"), "at least one hit"),
        (("--timeout", "0"), "more than 0"),
        (("--restarts", "-1"), "-1 restarts"),
        (("--judge-memory-window", "-1"), "must be 0 days or more"),
        (("--personas", "nobody"), "nobody"),
        (("--reader", "none", "--judge", "ledger"), "nothing to judge"),
        (("--judge", "none", "--appellate-judge", "ledger"), "needs a --judge"),
        (("--parallelism", "0"), "at least one"),
        (("--system", "dense", "--json-out", "x.json"), "of one system"),
        (("--lifecycle", "eternal"), "eternal"),
    ],
)
def test_nonsense_is_refused_before_anything_runs(
    flags: tuple[str, ...], told: str, life: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(life, *flags) in (1, 2)
    assert told in capsys.readouterr().err
    assert not Path("runs").exists()


def test_a_system_that_only_answers_is_told_how_to_be_asked(
    life: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(life, system="watched_systems:Answers") == 2
    assert "give --reader system" in capsys.readouterr().err
    assert run(life, "--reader", "system", system="watched_systems:Answers") == 0
    captured = capsys.readouterr()
    assert "the baselines have no answer(query)" in captured.err
    assert "1 × RuntimeError: lost for words" in captured.out.replace("2 ×", "1 ×")


def test_a_finished_run_is_left_as_it_is(life: Path) -> None:
    assert run(life, "--no-arms") == 0
    before = {path.name: path.read_bytes() for path in Path("runs/bm25").iterdir()}
    assert run(life, "--no-arms", "--progress-jsonl", "copy.jsonl") == 0
    after = {path.name: path.read_bytes() for path in Path("runs/bm25").iterdir()}
    changed = {name for name in before if before[name] != after[name]}
    assert changed <= {"manifest.json"}
    assert Path("copy.jsonl").read_bytes() == before["progress.jsonl"]


def test_the_ledger_judge_needs_a_ledger(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (broken / "tester/qa-12d/ledger.jsonl").unlink()
    assert run(broken, "--judge", "ledger") == 1
    assert "tester has no ledger.jsonl" in " ".join(capsys.readouterr().err.split())
    assert run(broken) == 0
    assert "answers are not judged" in " ".join(capsys.readouterr().err.split())


def test_canaries_follow_questions_through_runs(
    life: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(life) == 0
    capsys.readouterr()
    assert invoke(["canaries", "runs/none", "runs/bm25", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["counts"]["never"] + found["counts"]["newly"] == 24
    assert invoke(["canaries", "runs/none"]) == 2
