"""`mnemoscope run personas`: flags, files and errors."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mnemoscope._store.errors import UsageError
from mnemoscope.cli.app import invoke

WATCHED = Path(__file__).parents[1] / "runner"


@pytest.fixture(scope="module")
def history(write_persona: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_persona(tmp_path_factory.mktemp("personas"))


@pytest.fixture
def broken(history: Path, tmp_path: Path) -> Path:
    """A copy of the persona that a test may damage."""
    shutil.copytree(history, tmp_path / "broken")
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


def test_each_system_and_baseline_writes_the_files_of_recall_bench(
    history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(history) == 0

    printed = capsys.readouterr().out
    assert "OVERALL" in printed and "oracle" in printed
    folders = {path.name for path in Path("runs").iterdir() if path.is_dir()}
    assert folders == {"bm25", "none", "random", "oracle"}
    assert "At the last checkpoint" in Path("runs/summary.md").read_text()
    own = Path("runs/bm25")
    result = json.loads((own / "result.json").read_text())
    ranges = [one["range"]["label"] for one in result["personas"][0]["rangeResults"]]
    assert ranges == ["6d", "full"]
    asked = lines(own / "questions.jsonl")
    assert {line["checkpoint"] for line in asked} == {"6d", "full"}
    assert {line["status"] for line in asked} <= {"answered", "abstained"}
    kinds = [line["type"] for line in lines(own / "progress.jsonl")]
    assert kinds == ["header", "checkpoint", "checkpoint", "summary"]
    assert all(line["appellateScore"] is None for line in lines(own / "failures.jsonl"))
    assert "## By checkpoint" in (own / "report.md").read_text()


def test_results_are_copied_to_the_given_paths(history: Path, tmp_path: Path) -> None:
    places = ("--question-log", "log/q.jsonl", "--progress-jsonl", "log/p.jsonl")
    assert run(history, "--json-out", "drafts/result.json", *places, "--no-baselines") == 0

    assert json.loads(Path("drafts/result.json").read_text())["adapterName"] == "bm25"
    for sibling in ("progress.jsonl", "questions.jsonl", "failures.jsonl"):
        assert (Path("drafts") / sibling).exists()
    own = Path("runs/bm25")
    assert Path("log/q.jsonl").read_bytes() == (own / "questions.jsonl").read_bytes()
    assert Path("log/p.jsonl").read_bytes() == (own / "progress.jsonl").read_bytes()


def test_json_prints_only_json(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(history, "--json", "--no-baselines") == 0
    assert json.loads(capsys.readouterr().out)["metadata"]["uniqueQAPairCount"] == 24


def test_heatmap_prints_only_the_grid(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(history, "--heatmap", "--no-baselines") == 0
    printed = capsys.readouterr().out
    assert "OVERALL" in printed
    assert "report" not in printed


def test_a_dry_run_keeps_nothing(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(history, "--dry-run") == 0
    assert not Path("runs").exists()
    captured = capsys.readouterr()
    assert "6d" in captured.out and "full" not in captured.out
    assert "no files were kept" in captured.err


def test_flags_take_precedence_over_the_profile(history: Path, tmp_path: Path) -> None:
    profile = tmp_path / "bench.yaml"
    profile.write_text(
        f"persona: {{id: tester, dir: {history}}}\n"
        "run: {systems: [recency], ranges: [3, 6], seed: 7, sample: 5, timeout: 9000, out: here}\n"
    )
    given = ["run", "personas", "--profile", str(profile), "--no-baselines", "--no-heatmap-png"]
    assert invoke([*given, "--seed", "8", "--system", "bm25"]) == 0

    identity = json.loads((tmp_path / "here/bm25/manifest.json").read_text())["identity"]
    options = identity["benchmark"]["options"]
    assert (options["seed"], options["sample"], options["ranges"]) == (8, 5, "3,6")
    assert identity["limits"]["recall"] == 9.0


def test_resume_continues_a_run_and_refuses_a_missing_one(
    history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(history, "--no-baselines", "--out", "first") == 0
    before = Path("first/bm25/trials.jsonl").read_bytes()
    assert run(history, "--no-baselines", "--resume", "first/bm25/progress.jsonl") == 0
    assert Path("first/bm25/trials.jsonl").read_bytes() == before
    assert not Path("runs").exists()
    assert run(history, "--no-baselines", "--resume", "nowhere") == 1
    assert "there is no run to continue" in capsys.readouterr().err


def test_recall_alone_can_be_measured(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(history, "--reader", "none", "--no-baselines") == 0
    assert "recall@10" in capsys.readouterr().out
    assert not [line for line in lines(Path("runs/bm25/trials.jsonl")) if line["phase"] == "answer"]


def test_a_run_can_be_limited_to_the_first_personas(
    history: Path, write_persona: Callable[..., Path], tmp_path: Path
) -> None:
    both = tmp_path / "both"
    shutil.copytree(history, both)
    write_persona(both, id="other")
    assert run(both, "--scenarios", "1", "--no-baselines") == 0
    metrics = json.loads(Path("runs/bm25/metrics.json").read_text())
    assert metrics["questions"]["asked"] == 24


@pytest.mark.parametrize("granularity", ["session", "section"])
def test_smaller_memories_count_for_their_day(history: Path, granularity: str) -> None:
    assert run(history, "--granularity", granularity, "--no-baselines") == 0
    metrics = json.loads(Path("runs/bm25/metrics.json").read_text())
    assert metrics["overall"]["hit@1"]["mean"] == 1.0
    assert metrics["overall"]["hit@1"]["chance"] is None


def test_a_system_that_fails_on_every_question_is_reported(
    history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(history, system="hostile_systems:RaisesAlways") == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "RaisesAlways" in printed
    assert "36 of 36 questions failed and are left out (36 error)" in printed
    assert "36 × ValueError: no idea" in printed


# Errors.


def spoil_questions(folder: Path, **changes: Any) -> None:
    path = folder / "tester/qa-12d/questions.yaml"
    questions = json.loads(path.read_text())
    questions[2] |= changes
    path.write_text(json.dumps(questions))


@pytest.mark.parametrize(
    ("spoil", "expected"),
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
    spoil: Callable[[Path], Any], expected: str, broken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(broken)
    assert run(broken) in (1, 2)
    printed = capsys.readouterr().err
    assert expected in printed
    assert "error:" in printed and "Traceback" not in printed
    assert not Path("runs").exists()


def test_preflight_reports_all_problems_at_once(
    broken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil_questions(broken, category="gossip")
    shutil.rmtree(broken / "tester/memories-12d")
    assert run(broken) == 1
    printed = capsys.readouterr().err
    assert "category" in printed and "memories-12d" in printed


@pytest.mark.parametrize(
    ("flags", "expected"),
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
        (("--personas", "no-such-persona"), "no-such-persona"),
        (("--reader", "none", "--judge", "ledger"), "there are no answers to judge"),
        (("--judge", "none", "--appellate-judge", "ledger"), "--appellate-judge needs a --judge"),
        (("--parallelism", "0"), "must be 1 or more"),
        (("--system", "dense", "--json-out", "x.json"), "are for one system"),
        (("--lifecycle", "eternal"), "eternal"),
    ],
)
def test_wrong_options_are_refused_before_the_run_starts(
    flags: tuple[str, ...], expected: str, history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(history, *flags) in (1, 2)
    assert expected in capsys.readouterr().err
    assert not Path("runs").exists()


def test_the_error_for_a_system_that_only_answers_names_the_reader_to_use(
    history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(history, system="watched_systems:Answers") == 2
    assert "give --reader system" in capsys.readouterr().err
    assert run(history, "--reader", "system", system="watched_systems:Answers") == 0
    captured = capsys.readouterr()
    assert "the baselines have no answer(query)" in captured.err
    assert "1 × RuntimeError: lost for words" in captured.out.replace("2 ×", "1 ×")


def test_a_finished_run_is_not_changed(history: Path) -> None:
    assert run(history, "--no-baselines") == 0
    before = {path.name: path.read_bytes() for path in Path("runs/bm25").iterdir()}
    assert run(history, "--no-baselines", "--progress-jsonl", "copy.jsonl") == 0
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
    history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(history) == 0
    capsys.readouterr()
    assert invoke(["canaries", "runs/none", "runs/bm25", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["counts"]["never"] + found["counts"]["newly"] == 24
    assert invoke(["canaries", "runs/none"]) == 2


@pytest.mark.parametrize("given", [["3d", "6d"], ["3d,6d"], ["3d", "6d,"]])
def test_ranges_are_separated_by_spaces_or_commas(
    given: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def refuse(benchmark: str, systems: Any, config: Any, options: Any, progress: Any) -> None:
        asked.append((benchmark, list(systems), dict(options)))
        raise UsageError("enough")

    monkeypatch.setattr("mnemoscope.api.run_config", refuse)
    words = ["run", "personas", "--ranges", *given, "--personas", "ann", "bob", "--system", "bm25"]
    assert invoke(words) == 2
    options = {"ranges": ",".join(given), "personas": "ann,bob"}
    assert asked == [("personas", ["bm25"], options)]


def test_ranges_of_several_words_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["ranges", "30d", "2mo,full", "--json"]) == 0
    assert [one["label"] for one in json.loads(capsys.readouterr().out)] == ["30d", "2mo", "full"]


def test_negative_questions_that_list_days_are_counted_and_said(
    broken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = broken / "tester" / "qa-12d" / "questions.yaml"
    text = questions.read_text().replace('"no_evidence": true', '"no_evidence": false')
    questions.write_text(text)
    unjudged = ("--reader", "none", "--judge", "none", "--no-baselines")
    assert run(broken, "--ranges", "12d", *unjudged) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "24 questions with evidence, 24 asked" in said
    assert "3 negative questions list days, which recall counts as their evidence" in said
