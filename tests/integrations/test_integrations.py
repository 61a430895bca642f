"""The small integrations, really run: the contract, a survey, a benchmark run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console
from tests.described import described
from tests.integrations.needed import IN_CI, need

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.cli.app import invoke
from mnemoscope.connectors.child_process import Child
from mnemoscope.integrations.integration import Integration
from mnemoscope.integrations.memory_adapters.langgraph import distinct_texts
from mnemoscope.reports import render_markdown, render_terminal, survey_table
from mnemoscope.reports.run_view import dataset_title
from mnemoscope.runner.conformance import check_system
from mnemoscope.systems.loader import plan
from mnemoscope.types import Memory, Query

_VECTORS = "sqlite-vec,legs=vector"
_NAMED = f"{_VECTORS} · wordllama"
CHECKS = ("read-back", "losses", "ids", "isolation", "fresh", "forget")


@pytest.mark.parametrize("name", sorted(IN_CI))
def test_it_passes_the_conformance_checks(name: str) -> None:
    need(name)
    results = check_system(plan(Spec.parse(name)), timeout=120, names=CHECKS)
    assert {result.check: (result.verdict, result.seen) for result in results} == {
        result.check: ("passed", result.seen) for result in results
    }


def test_the_machine_clock_check_does_not_apply_to_a_worker() -> None:
    need("sqlite-vec")
    [result] = check_system(plan(Spec.parse("sqlite-vec")), names=["machine clock"])
    assert result.verdict == "not applicable"


def test_mem0_starts_one_process_for_a_run_with_one_worker(
    tmp_path: Path, write_locomo: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    need("mem0")
    data = write_locomo(tmp_path / "locomo.json", conversations=2, sessions=3, questions=3)
    starts = tmp_path / "starts.txt"
    start = Child.__init__

    def counted(child: Child, *words: Any, **options: Any) -> None:
        with starts.open("a") as log:
            log.write(f"{os.getpid()}\n")
        start(child, *words, **options)

    monkeypatch.setattr(Child, "__init__", counted)
    command = ["run", "locomo", "--data", str(data), "--out", str(tmp_path / "out")]

    assert invoke([*command, "--system", "mem0", "--no-arms", "--workers", "1"]) == 0

    [worker] = starts.read_text().split()
    assert int(worker) != os.getpid()


def test_a_survey_traces_every_hit_and_reports_failures(
    tmp_path: Path,
    write_locomo: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One table: a built-in, a real system in its own environment, and one that is not there."""
    need("sqlite-vec")
    data = write_locomo(tmp_path / "locomo.json", conversations=3, sessions=6, questions=5)
    monkeypatch.setenv("COLUMNS", "120")
    command = ["systems", "survey", "--data", str(data), "--out", str(tmp_path / "survey")]
    command += ["--no-check", "--system", "bm25", "--system", _VECTORS]
    assert invoke([*command, "--system", "letta,model=nonsense"]) == 1
    said = capsys.readouterr()
    assert f"{_NAMED}: the system takes no time for a memory" in " ".join(said.out.split())
    assert "is not the pinned file" in said.out
    assert "letta · nonsense:" in said.out
    rows = msgspec.json.decode((tmp_path / "survey/survey.json").read_bytes())
    real = next(row for row in rows if row["system"] == _VECTORS)
    assert (real["door"], real["untraced"], real["lost"]) == ("stdio", 0, 0)
    assert real["hits"] > 0
    assert real["memories"] == 2 * 6
    assert real["memories_per_s"] > 0
    assert f"| {_NAMED} | stdio | controlled |" in (tmp_path / "survey/survey.md").read_text()

    manifest = RunDirectory(tmp_path / "survey" / _VECTORS).manifest()
    about = manifest.identity["system"]
    assert about["shelf"] == "sqlite-vec"
    assert about["packages_sha256"]
    assert "wordllama" in str(about["embedder"])
    assert about["hello"]["identity"]["versions"]["sqlite-vec"] == "0.1.9"
    assert manifest.notes[1:] == ["the system takes no time for a memory"]
    assert str(Path.home()) not in str(about)


def _markdown(rows: list[survey_table.SurveyRow], of_the_data: Sequence[str] = ()) -> str:
    return render_markdown.render(survey_table.survey("", rows, of_the_data))


def test_figures_have_intervals_and_problems_follow_the_table() -> None:
    row = survey_table.SurveyRow(
        system="x", door="stdio", recall=0.5, low=0.4, high=0.6, hits=1000, untraced=1
    )
    assert "| 0.500 [0.400, 0.600] |" in _markdown([row])
    assert _markdown([row]).splitlines()[4].endswith("| 1 |")
    row = survey_table.SurveyRow(
        system="x", door="stdio", notes=["x: nobody answered"], problem="it died"
    )
    assert _markdown([row], ["other data"]).splitlines()[-3:] == [
        "- other data",
        "- x: nobody answered",
        "- x: it died",
    ]


def test_a_worker_gets_no_keys_and_no_other_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    need("sqlite-vec")
    ours = {"PGPASSWORD": "for a dsn", "MNEMOSCOPE_PGMNEMO": "/there", "LC_ALL": "C"}
    foreign = ("OPENROUTER_API_KEY", "MNEMOSCOPE_MODEL_KEY", "LANGSMITH_TRACING", "HTTP_PROXY")
    for name, value in {**ours, **dict.fromkeys(foreign, "x")}.items():
        monkeypatch.setenv(name, value)
    system = Integration("sqlite-vec", {}, embedder="wordllama")
    try:
        seen = system._environment("/scratch")
    finally:
        system.close()
    assert ours.items() <= seen.items()
    assert not seen.keys() & set(foreign)


def test_wrong_options_are_refused_before_anything_starts() -> None:
    need("mem0")
    with pytest.raises(UsageError, match="has no option 'treshold': did you mean 'threshold'"):
        plan(Spec.parse("mem0,treshold=0.1"))
    with pytest.raises(UsageError, match="mem0,infer=on ingests memories with a language model"):
        described("mem0,infer=on")
    with pytest.raises(UsageError, match="unknown embedding model 'nonsense'"):
        described("mem0,model=nonsense")


def test_a_recall_with_k_zero_does_not_reach_the_backend(capfd: pytest.CaptureFixture[str]) -> None:
    """Qdrant, like many, refuses a limit of 0 and would log a traceback."""
    need("qdrant")
    system = Integration("qdrant", {}, embedder="wordllama")
    try:
        system.reset("here")
        assert system.recall(Query("what of the harbour"), 0) == []
    finally:
        system.close()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("columns", [80, 120])
def test_the_survey_table_fits_the_terminal(columns: int) -> None:
    names = ("mcp-memory-service", "pgmnemo,path=fast,version=0.4.0")
    rows = [
        survey_table.SurveyRow(
            system=name,
            door="stdio",
            conforms=name == names[0],
            failed=["determinism", "machine clock"],
            recall=0.4,
            low=0.026,
            high=1.0,
            p50_ms=12345,
            p95_ms=23456,
            memories_per_s=12345,
            memories=12345,
            lost=123,
            hits=10,
        )
        for name in names
    ]
    shown_on = StringIO()
    console = Console(width=columns, file=shown_on)
    console.print(render_terminal.render(survey_table.survey("", rows)))
    shown = shown_on.getvalue()
    assert max(map(len, shown.splitlines())) <= columns
    assert "…" not in shown
    words = shown.split()
    whole = ("mcp-memory-service", "pgmnemo,", "path=fast,", "version=0.4.0", "determinism")
    for word in (*whole, "0.03–1.00", "12,345", "untraced"):
        assert word in words
    assert "of 12,345" in shown
    assert " ".join(words).endswith("which is wide if there are few scenarios.")


def test_switches_are_written_as_in_a_run() -> None:
    assert dataset_title("locomo", {"dates": False, "x": True, "n": 1, "none": ""}) == (
        "locomo (dates=off, x=on, n=1)"
    )


@pytest.mark.parametrize(
    ("texts", "sizes"), [("abc", [3]), ("abab", [2, 2]), ("aabca", [3, 1, 1]), ("", [])]
)
def test_langgraph_gets_no_equal_texts_in_one_batch(texts: str, sizes: list[int]) -> None:
    """Its store refuses them, and a conversation with "Thanks!" twice was not ingested."""
    memories = [Memory(f"m{number}", text) for number, text in enumerate(texts)]
    batches = distinct_texts(memories)
    assert [len(batch) for batch in batches] == sizes
    assert all(len({one.text for one in batch}) == len(batch) for batch in batches)
    assert sorted(one.id for batch in batches for one in batch) == [one.id for one in memories]
