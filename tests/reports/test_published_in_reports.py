"""report.md compares a run with published numbers and names those that are not comparable."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.passed_exams import every_judge_passes, exam_summary
from tests.scripted_server import Request, ScriptedServer

from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.run_directory import RunDirectory, find_runs
from mnemoscope.cli.app import invoke
from mnemoscope.reports.published_comparison import PublishedPage, of_run
from mnemoscope.reports.render_markdown import render
from mnemoscope.reports.run_report import write_report
from mnemoscope.reports.run_view import RunView

TITLE = "## Beside published numbers"
PASSED = exam_summary()


def reply(request: Request) -> str:
    return "CORRECT" if "CORRECT" in request.system else "a garden"


@pytest.fixture(scope="module")
def folder(
    write_locomo: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """Runs of one small file: judged by a model, by F1, and a baseline."""
    place = tmp_path_factory.mktemp("beside")
    data = write_locomo(place / "locomo10.json", conversations=2)
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(reply) as server:
        patch.setenv("MNEMOSCOPE_CACHE", str(place / "cache"))
        every_judge_passes(patch)
        model = f"gpt-4o-mini@{server.url}?tries=2"
        command = ["run", "locomo", "--data", str(data), "--workers", "1", "--system", "bm25"]
        judge = ["--reader", model, "--judge", f"binary,model={model}", "--no-arms"]
        assert invoke([*command, *judge, "--out", str(place / "judged")]) == 0
        assert invoke([*command, "--reader", "extractive", "--out", str(place / "f1")]) == 0
        sample = [*command, *judge, "--questions", "10", "--out", str(place / "sample")]
        assert invoke(sample) == 0
    yield place


@pytest.fixture
def judged(folder: Path) -> RunView:
    return RunView.of(RunDirectory(folder / "judged/bm25"))


def with_identity(view: RunView, **parts: Any) -> RunView:
    identity = {**deepcopy(view.manifest.identity), **parts}
    return replace(view, manifest=msgspec.structs.replace(view.manifest, identity=identity))


def as_if_whole(view: RunView) -> RunView:
    """The view with the number of questions of the real benchmark."""
    answers: Any = deepcopy(view.answers)
    assert answers is not None
    answers["figures"]["answerable"]["n"] = 1540
    return replace(view, answers=answers)


def page_of(view: RunView) -> PublishedPage:
    page = of_run(view)
    assert page is not None
    return page


def overall(view: RunView) -> Mapping[str, Any]:
    (first, *_) = page_of(view).json["figures"]
    found: Mapping[str, Any] = first
    return found


def test_the_report_has_a_section_and_published_json_all_numbers(folder: Path) -> None:
    run = folder / "judged/bm25"
    assert (run / "report.md").read_text().count(TITLE) == 1
    found = json.loads((run / "published.json").read_text())
    assert [figure["run"].get("category") for figure in found["figures"]] == [None, 1, 2, 3, 4]
    seal = json.loads((run / "seal.json").read_text())
    assert seal["published.json"] == [sha256_file(run / "published.json")]


def test_writing_the_report_again_changes_nothing(folder: Path) -> None:
    run = RunDirectory(folder / "judged/bm25")
    names = ("report.md", "published.json")
    before = [(run.path / name).read_bytes() for name in names]
    write_report(run)
    assert [(run.path / name).read_bytes() for name in names] == before


def test_a_complete_run_is_in_the_cohort_of_its_models(judged: RunView) -> None:
    found = overall(as_if_whole(judged))
    assert found["cohort"]["description"] == (
        "LoCoMo · categories 1–4, n=1,540 · judged accuracy · answers: gpt-4o-mini · "
        "judge: gpt-4o-mini"
    )
    assert len(found["comparable"]) == 28
    assert all(row["because"] for row in found["not_comparable"])


def test_a_run_of_other_questions_is_not_comparable(judged: RunView) -> None:
    found = overall(judged)
    assert found["comparable"] == []
    assert "The registry contains no published number of this cohort" in render(
        page_of(judged).blocks
    )


def test_the_section_is_short_and_names_the_command_for_the_rest(judged: RunView) -> None:
    page = page_of(as_if_whole(judged))
    _, _, rest = render(page.blocks).partition("Not comparable, because")
    rows = [line for line in rest.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 15
    assert all("metric:" not in row for row in rows)
    command = (
        "mnemoscope published list --benchmark LoCoMo --metric accuracy_llm_judge --category all"
    )
    assert f"`{command}`" in rest
    assert invoke(command.split()[1:]) == 0


def test_a_model_behind_a_custom_server_is_noted(judged: RunView) -> None:
    notes = " ".join(page_of(judged).json["notes"][:2])
    assert "The answering model 'gpt-4o-mini' is a name of the server at http://127.0.0.1" in notes
    assert "The judge's model 'gpt-4o-mini' is a name of the server" in notes
    assert "tries" not in notes


def test_a_judge_without_a_passed_exam_is_noted(judged: RunView) -> None:
    unexamined = msgspec.structs.replace(judged.manifest, exams={})
    assert "has not taken an exam" in render(page_of(replace(judged, manifest=unexamined)).blocks)
    exams = dict.fromkeys(judged.exams, PASSED)
    manifest = msgspec.structs.replace(judged.manifest, exams=exams)
    assert "exam" not in render(page_of(replace(judged, manifest=manifest)).blocks)


def test_a_sample_says_that_it_is_one(folder: Path) -> None:
    page = page_of(RunView.of(RunDirectory(folder / "sample/bm25")))
    assert page.json["notes"][0].startswith("This run asked a sample of 10 questions")
    assert [figure["comparable"] for figure in page.json["figures"]] == [[]]
    assert "sample, n=" in render(page.blocks)


def test_missing_grades_are_noted(judged: RunView) -> None:
    answers = deepcopy(judged.answers)
    assert answers is not None
    answers["figures"]["all"]["missing"] = 3
    assert "3 questions have no grade" in render(page_of(replace(judged, answers=answers)).blocks)


def test_f1_is_compared_with_token_f1_only(folder: Path) -> None:
    page = page_of(RunView.of(RunDirectory(folder / "f1/bm25")))
    assert "token F1 · answers: without a model · judge: rule" in render(page.blocks)
    assert "exam" not in render(page.blocks)
    rows = [line for line in render(page.blocks).splitlines() if "scoring rule: unstated" in line]
    assert len(rows) == 7
    assert "judged accuracy" not in render(page.blocks)


def test_a_baseline_is_not_compared_with_published_numbers(folder: Path) -> None:
    baselines = [run for run in find_runs(folder / "f1") if run.manifest().arm]
    assert baselines
    for baseline in baselines:
        assert of_run(RunView.of(baseline)) is None
        assert not (baseline.path / "published.json").exists()
        assert TITLE not in (baseline.path / "report.md").read_text()


@pytest.mark.parametrize("role", ["panel", "appellate"])
def test_several_judges_differ_from_each_single_judge(judged: RunView, role: str) -> None:
    judge = judged.manifest.identity["judge"]
    if role == "panel":
        both = {"spec": "a + b", "panel": {"a": judge, "b": judge}}
        changed = with_identity(judged, judge=both)
    else:
        changed = with_identity(judged, appellate_judge=judge)
    assert overall(as_if_whole(changed))["comparable"] == []


def test_an_accuracy_without_a_judge_model_is_not_compared(judged: RunView) -> None:
    assert of_run(with_identity(judged, judge={"spec": "exact", "arguments": {}})) is None


def test_an_audited_key_is_another_benchmark(judged: RunView) -> None:
    about = deepcopy(judged.manifest.identity["benchmark"])
    about["options"]["audit"] = True
    found = overall(as_if_whole(with_identity(judged, benchmark=about)))
    assert found["comparable"] == []
    assert "audited key" in found["cohort"]["description"]


@pytest.mark.parametrize(("n", "others"), [(500, 12), (499, 0)])
def test_longmemeval_is_compared_by_its_split(judged: RunView, n: int, others: int) -> None:
    about = {"name": "longmemeval", "options": {"variant": "s"}, "sha256": []}
    reader = deepcopy(judged.manifest.identity["reader"])
    reader["arguments"]["model"] = "openai:gpt-4.1-mini?temperature=0"
    answers = deepcopy(judged.answers)
    assert answers is not None
    answers["figures"]["all"]["n"] = n
    changed = replace(with_identity(judged, benchmark=about, reader=reader), answers=answers)

    found = overall(changed)

    assert found["cohort"]["description"].startswith(f"LongMemEval · S cleaned, n={n}")
    assert len(found["comparable"]) == others


def test_forgetting_is_compared_with_the_two_nexus_figures(judged: RunView) -> None:
    def after(value: float, n: int) -> dict[str, Any]:
        return {"n": n, "mean_rouge_l": {"mean": value, "ci95": [value - 0.01, value + 0.01]}}

    score: Any = {"after": {"forget": after(0.06, 400), "retain": after(0.35, 3600)}}
    about = {"name": "tofu", "options": {"forget": "10"}, "sha256": []}
    changed = with_identity(judged, benchmark=about)

    page = page_of(replace(changed, forgetting={"score": score, "why": ""}))

    lines = [
        line for line in render(page.blocks).splitlines() if line.startswith("| TOFU baseline")
    ]
    assert [line.split("|")[2].strip() for line in lines] == ["0.12", "0.85"]
    assert all("questions: unstated; answering model: unstated" in line for line in lines)
    assert [figure["comparable"] for figure in page.json["figures"]] == [[], []]
    no_score = replace(changed, forgetting={"score": None, "why": "it cannot"})
    assert of_run(no_score) is None


def test_other_benchmarks_have_no_such_section(judged: RunView) -> None:
    about = {"name": "strata", "options": {}, "sha256": []}
    assert of_run(with_identity(judged, benchmark=about)) is None
