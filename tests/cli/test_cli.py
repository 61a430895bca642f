"""The command line as people and programs use it: every command, its output and its exit code."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cyclopts import App
from msgspec import structs

import mnemoscope
from mnemoscope.cli.app import app, invoke
from mnemoscope.datasets.base import PinnedFile
from mnemoscope.datasets.strata import Strata
from mnemoscope.reports import figures as pictures
from mnemoscope.systems import SYSTEMS

Shared = Callable[[str], Path]
SCRIPT = Path(sys.executable).with_name("mnemoscope")

CORPUS = (
    {"id": 1, "content": "Anna adopted a dog called Rex", "importance": 0.9, "tags": "pets"},
    {"id": 2, "content": "Rex swallowed a silver key", "importance": None, "category": None},
    {"id": 3, "content": "Bob plays chess every Sunday"},
    {"id": 4, "content": "The weather in Oslo is cold"},
    {"id": 5, "content": "Carla bought a piano"},
    {"id": 6, "content": "Train tickets to Rome are dear"},
)
QUERIES = (
    {"query_id": "e1", "text": "Who adopted Rex?", "stratum": "exact"},
    {"query_id": "p1", "text": "Which board game is Bob fond of?", "stratum": "paraphrase"},
    {"query_id": "m1", "text": "What did the dog of Anna swallow?", "stratum": "multihop"},
)
QRELS = (
    {"query_id": "e1", "relevant_ids": [1]},
    {"query_id": "p1", "relevant_ids": [3]},
    {"query_id": "m1", "relevant_ids": [1, 2]},
)


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """Everything it printed, with line breaks replaced by spaces."""
        return " ".join(f"{self.out} {self.err}".split())


Command = Callable[..., Outcome]


@pytest.fixture(scope="module")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MNEMOSCOPE_CACHE", str(tmp_path_factory.mktemp("cli-cache")))
        yield


@pytest.fixture
def mnemo(
    _cache: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Command:
    """Call a command in this process, in an empty folder, without any default data."""
    monkeypatch.delenv("MNEMOSCOPE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no-cache"))
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Outcome:
        capsys.readouterr()
        code = invoke([str(argument) for argument in arguments])
        return Outcome(code, *capsys.readouterr())

    return call


def script(*arguments: object, cwd: Path, **environment: str) -> Outcome:
    """Run the installed command."""
    done = subprocess.run(
        [SCRIPT, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def strata(folder: Path, corpus: tuple[dict[str, Any], ...] = CORPUS) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("corpus", corpus), ("queries", QUERIES), ("qrels", QRELS)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return strata(tmp_path / "data")


def folders(path: Path) -> set[str]:
    return {entry.name for entry in path.iterdir() if entry.is_dir()}


# Help.


def commands(node: App = app, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], App]]:
    below = [name for name in node if not name.startswith("-")]
    if not below or (node.default_command is not None and path):
        yield path, node
    for name in below:
        yield from commands(node[name], (*path, name))


COMMANDS = dict(commands())
EXAMPLES = [
    line.strip()
    for node in COMMANDS.values()
    for line in (inspect.getdoc(node.default_command) or "").replace("\\\n", " ").splitlines()
    if line.startswith("    mnemoscope ")
]


def test_the_commands_are_those_that_are_documented() -> None:
    assert set(COMMANDS) >= {
        ("run",),
        ("score",),
        ("report",),
        ("demo",),
        ("datasets", "list"),
        ("datasets", "fetch"),
        ("datasets", "check"),
        ("datasets", "export"),
        ("systems", "list"),
        ("personas", "simulate"),
        ("personas", "list"),
        ("ranges",),
        ("canaries",),
    }


def test_the_help_of_run_lists_the_options_of_personas(mnemo: Command) -> None:
    for benchmark in ("personas", "locomo"):
        done = mnemo("run", benchmark, "--help")
        assert done.code == 0
        for flag in ("--ranges", "--lifecycle", "--judge-memory-window", "--json-out", "--profile"):
            assert flag in done.out
        assert "--arms" not in done.out  # the old name is a hidden alias


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_shows_an_example(mnemo: Command, path: tuple[str, ...]) -> None:
    done = mnemo(*path, "--help")
    assert done.code == 0
    assert f"For example: mnemoscope {' '.join(path)}" in done.said


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_in_the_help_is_understood(example: str) -> None:
    app.parse_args(shlex.split(example)[1:], exit_on_error=False, print_error=False)


def test_the_main_help_describes_every_command_and_a_first_step(mnemo: Command) -> None:
    for done in (mnemo("--help"), mnemo()):
        assert done.code == 0
        assert "mnemoscope demo" in done.said
        for name in {path[0] for path in COMMANDS}:
            assert re.search(rf"^│ {name} +[A-Z]", done.out, re.MULTILINE), name


def test_version(mnemo: Command) -> None:
    assert mnemo("--version").out.strip() == mnemoscope.__version__


def test_bm25_does_not_import_numba_or_scipy() -> None:
    program = "import sys, mnemoscope.systems.builtin.bm25;"
    program += "assert not {'numba', 'scipy'} & set(sys.modules); import numba, scipy"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    program = """
        import sys
        import mnemoscope.cli
        from mnemoscope.cli.app import invoke
        for path in (["--help"], ["run", "--help"], ["score", "--help"], ["datasets", "--help"]):
            assert invoke(path) == 0
        heavy = {"scipy", "wordllama", "onnxruntime", "openai", "bm25s", "matplotlib"}
        print("LOADED", sorted(heavy & set(sys.modules)))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "LOADED []"


# Run.


def test_a_run_writes_a_folder_for_each_system_and_baseline_and_a_summary(
    mnemo: Command, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "runs"
    done = mnemo("run", "strata", "--data", data, "-s", "fts5", "-s", "graph", "--out", out)
    assert done.code == 0, done.err
    assert folders(out) == {"fts5", "graph", "random", "bm25", "oracle"}
    for name in ("fts5", "oracle"):
        held = {entry.name for entry in (out / name).iterdir()}
        assert held >= {
            "manifest.json",
            "metrics.json",
            "questions.jsonl",
            "raw_retrievals.jsonl",
            "report.html",
            "report.md",
            "timing.json",
            "timings.jsonl",
            "trials.jsonl",
        }
    assert set(json.loads((out / "summary.json").read_text())) == folders(out)
    summary = (out / "summary.md").read_text()
    assert all(f"| {name} |" in summary for name in folders(out))
    for word in ("fts5", "graph", "random", "bm25", "oracle", "chance", "recall@5"):
        assert word in done.out
    assert "p95 ms" not in done.out
    assert "p95 ms" in mnemo("report", out, "--full").out
    assert "fts5 cannot be told from bm25: recall@" in done.out
    assert max(map(len, done.out.splitlines())) <= max(80, len(f"reports: {out}") * 2 + 40)
    assert f"{out}/summary.md" in done.out  # in one piece, however long the path


def test_without_baselines_only_the_given_systems_run(
    mnemo: Command, data: Path, tmp_path: Path
) -> None:
    done = mnemo(
        "run", "strata", "--data", data, "-s", "bm25,k1=1.2", "--no-baselines", "--out", "r"
    )
    assert done.code == 0
    assert folders(tmp_path / "r") == {"bm25,k1=1.2"}


@pytest.mark.parametrize("flag", ["--no-baselines", "--no-arms"])
def test_baselines_are_switched_off_by_their_new_name_and_by_their_old_one(
    mnemo: Command, data: Path, tmp_path: Path, flag: str
) -> None:
    assert mnemo("run", "strata", "--data", data, "-s", "fts5", flag, "--out", "r").code == 0
    assert folders(tmp_path / "r") == {"fts5"}


@pytest.mark.parametrize("flag", ["--baselines", "--arms"])
def test_baselines_run_where_they_are_asked_for(
    mnemo: Command, data: Path, tmp_path: Path, flag: str
) -> None:
    assert mnemo("run", "strata", "--data", data, "-s", "fts5", flag, "--out", "r").code == 0
    assert folders(tmp_path / "r") == {"fts5", "random", "bm25", "oracle"}


@pytest.mark.parametrize(
    "flags",
    [
        ("--dry-run",),
        ("--heatmap",),
        ("--lifecycle", "fork"),
        ("--json-out", "result.json"),
        ("--skip-preflight",),
        ("--judge-memory-window", "2"),
    ],
)
def test_flags_for_checkpoints_are_refused_on_other_benchmarks(
    mnemo: Command, data: Path, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    done = mnemo("run", "strata", "--data", data, "-s", "fts5", *flags, "--out", "r")
    assert done.code == 2
    assert f"{flags[0]} is for datasets with checkpoints" in done.said
    assert not (tmp_path / "r").exists()


def test_a_baseline_that_is_given_as_a_system_runs_once(
    mnemo: Command, data: Path, tmp_path: Path
) -> None:
    assert mnemo("run", "strata", "--data", data, "-s", "bm25", "--out", "r").code == 0
    assert folders(tmp_path / "r") == {"random", "bm25", "oracle"}


def figures(content: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from content["overall"].items()
    for own in content["by_category"].values():
        yield from own.items()


def test_every_figure_has_a_mean_a_count_an_interval_and_a_chance(
    mnemo: Command, data: Path, tmp_path: Path
) -> None:
    mnemo("run", "strata", "--data", data, "-s", "bm25", "--no-baselines", "--out", "r")
    content = json.loads((tmp_path / "r" / "bm25" / "metrics.json").read_text())
    assert set(content["by_category"]) == {"exact", "paraphrase", "multihop"}
    assert {"recall@5", "recall@10", "hit@10", "all@10", "ndcg@10", "mrr@50", "map"} <= set(
        content["overall"]
    )
    names = [name for name, _ in figures(content)]
    assert len(names) > 100
    for name, figure in figures(content):
        assert {"mean", "n", "ci95", "chance"} <= set(figure), name
        low, high = figure["ci95"]
        assert 0 <= low <= figure["mean"] <= high <= 1, name
        assert 0 <= figure["chance"] <= 1, name
        assert isinstance(figure["n"], int), name
    assert content["overall"]["recall@10"]["n"] == 3


NOISY = """
print("on import")
class Noisy:
    def __init__(self):
        print("while built")
    def remember(self, memories):
        print("while remembering")
        self.ids = [memory.id for memory in memories]
    def recall(self, query, k):
        print("while recalling")
        return self.ids[:k]
"""


def test_json_output_is_nothing_but_json_even_if_a_system_prints(data: Path) -> None:
    folder = data.parent
    (folder / "noisy_memory.py").write_text(NOISY)
    done = script(
        *("run", "strata", "--data", data, "-s", "noisy_memory:Noisy", "--out", "r", "--json"),
        cwd=folder,
    )
    assert done.code == 0, done.err
    content = json.loads(done.out)
    assert content == json.loads((folder / "r" / "summary.json").read_text())
    assert set(content) == {"noisy_memory-Noisy", "random", "bm25", "oracle"}
    assert content["oracle"]["overall"]["recall@10"]["mean"] == 1.0


def test_a_system_in_the_current_folder_is_found_and_does_not_shadow_the_library(
    data: Path,
) -> None:
    """Users often have a random.py or a json.py in the current folder."""
    folder = data.parent
    (folder / "my_memory.py").write_text(
        "def recall(query, k):\n    return ['1'] if 'Rex' in query.text else []\n"
    )
    for name in ("random", "json", "statistics"):
        (folder / f"{name}.py").write_text("raise RuntimeError('the wrong module')\n")
    done = script(
        *("run", "strata", "--data", data, "-s", "my_memory:recall", "--no-baselines"),
        *("--out", "r", "--json"),
        cwd=folder,
    )
    assert done.code == 0, done.err
    figures = json.loads(done.out)["my_memory-recall"]
    assert figures["by_category"]["exact"]["recall@1"]["mean"] == 1.0
    assert figures["statuses"] == {"answered": 1, "empty": 2}


FAILING = """
class Fails:
    def remember(self, memories): pass
    def recall(self, query, k): raise RuntimeError("out of order")
class NeverIndexes(Fails):
    def remember(self, memories): raise RuntimeError("no disk")
class CannotBeBuilt(Fails):
    def __init__(self): raise RuntimeError("no server")
class NoRecall:
    def remember(self, memories): pass
"""


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "failing_memory.py").write_text(FAILING)
    monkeypatch.syspath_prepend(tmp_path / "lib")
    return "failing_memory"


@pytest.mark.parametrize("flags", [(), ("--no-baselines",)])
@pytest.mark.parametrize("system", ["Fails", "NeverIndexes"])
def test_a_system_that_always_fails_is_reported_and_the_tables_are_printed(
    mnemo: Command, data: Path, tmp_path: Path, failing: str, system: str, flags: tuple[str, ...]
) -> None:
    spec = f"{failing}:{system}"
    done = mnemo("run", "strata", "--data", data, "-s", spec, "--out", "r", *flags)
    assert done.code == 1  # no question was measured
    assert "Traceback" not in done.err
    assert "3 of 3 questions were not measured" in done.said
    own = tmp_path / "r" / f"{failing}-{system}"
    assert json.loads((own / "metrics.json").read_text())["overall"] == {}
    assert f"| {own.name} |" in (tmp_path / "r" / "summary.md").read_text()
    reasons = [json.loads(line)["error"] for line in (own / "questions.jsonl").open()]
    assert len(reasons) == 3
    assert all("RuntimeError: " in reason for reason in reasons)
    assert mnemo("report", tmp_path / "r").code == 0


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        ("CannotBeBuilt", "cannot build failing_memory:CannotBeBuilt: RuntimeError: no server"),
        ("NoRecall", "NoRecall has no recall(query, k) method"),
        ("Nowhere", "module 'failing_memory' has no 'Nowhere'"),
    ],
)
def test_a_system_that_cannot_run_is_one_error_before_anything_runs(
    mnemo: Command, data: Path, tmp_path: Path, failing: str, system: str, expected: str
) -> None:
    done = mnemo("run", "strata", "--data", data, "-s", f"{failing}:{system}", "--out", "r")
    assert done.code == 2
    assert expected in done.said
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("run", "strata", "-s", "bm52"), "unknown system 'bm52': did you mean 'bm25'?"),
        (("run", "locomo", "--sytem", "bm25"), "unknown option --sytem: did you mean --system?"),
        (("run", "locomo", "-s", "bm25", "--baselin", "no"), "did you mean --baselines?"),
        (("run", "locomo", "-s", "bm25", "--no-baseline"), "did you mean --no-baselines?"),
        (("run", "strata", "-s", "nowhere:X"), "cannot import system 'nowhere:X'"),
        (("run", "strata", "-s", "bm25,k=1"), "has no option 'k': did you mean 'k1'?"),
        (("run", "strata", "-s", "bm25,k1"), "write name,key=value"),
        (("run", "strata", "-s", "bm25", "-s", "bm25"), "bm25 is given twice"),
        (("run", "strata", "-s", "bm25=fts5"), "bm25 is the name of a system"),
        (("run", "strata", "-s", "bm25", "--seed", "-1"), "seed -1: must be 0 or more"),
        (("run", "strata", "-s", "bm25", "--timeout", "0"), "a time limit of 0 seconds"),
        (("run", "strata", "-s", "bm25", "--remember-timeout", "nan"), "a time limit of nan"),
        (("run", "strata", "-s", "bm25", "--twin", "none"), "did you mean 'twins'?"),
        (("run", "strata", "-s", "bm25", "--twins", "all"), "none, expand"),
        (("run", "strata", "-s", "bm25", "--depth", "0"), "ask for at least one hit"),
        (("run", "strata", "-s", "bm25", "--depth", "deep"), "deep"),
        (("run", "strata"), "--system"),
        (("datasets", "check", "stratta"), "did you mean 'strata'?"),
        (("datasets", "check", "strata", "--splitt", "x"), "has no option 'splitt'"),
    ],
)
def test_a_typing_error_gets_a_suggestion_and_exit_code_2(
    mnemo: Command, data: Path, tmp_path: Path, arguments: tuple[str, ...], expected: str
) -> None:
    out = ("--out", "r") if arguments[0] == "run" else ()
    done = mnemo(*arguments, "--data", data, *out)
    assert done.code == 2
    assert expected in done.said
    assert done.out == ""
    assert "Traceback" not in done.err
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("run", "locomoo", "-s", "bm25"), "unknown dataset 'locomoo': did you mean 'locomo'?"),
        (("rum",), "rum"),
        (("run",), "BENCHMARK requires an argument. `mnemoscope COMMAND --help`"),
        (
            ("run", "--ranges", "30d", "60d", "personas", "-s", "bm25"),
            "--ranges takes all words that follow it, up to the next flag: write `mnemoscope run "
            "BENCHMARK --ranges …`",
        ),
        (("run", "--personas=a", "personas"), "`mnemoscope run BENCHMARK --personas …`"),
        (("x[/]",), "x[/]"),
        (("run", "[bold]", "-s", "bm25"), "unknown dataset '[bold]'"),
        (("datasets", "fetch", "strata"), "downloadable datasets: locomo, longmemeval"),
        (("datasets", "fetch", "locomo", "--files", "x"), "it has locomo10.json"),
    ],
)
def test_wrong_names_are_errors_with_exit_code_2(
    mnemo: Command, arguments: tuple[str, ...], expected: str
) -> None:
    done = mnemo(*arguments)
    assert done.code == 2
    assert expected in done.said


@pytest.mark.parametrize("name", ["locomo", "longmemeval"])
def test_the_error_for_missing_data_names_the_download_command(mnemo: Command, name: str) -> None:
    done = mnemo("run", name, "-s", "bm25")
    assert done.code == 1
    assert f"no {name} data (looked in " in done.said
    assert f"run `mnemoscope datasets fetch {name}`, or pass its file or folder" in done.said


def test_the_error_for_missing_own_data_names_no_download(mnemo: Command) -> None:
    done = mnemo("run", "strata", "-s", "bm25")
    assert done.code == 1
    assert "pass its file or folder with --data" in done.said
    assert "fetch" not in done.said


def test_a_wrong_path_is_named(mnemo: Command) -> None:
    done = mnemo("run", "locomo", "--data", "no/where", "-s", "bm25")
    assert (done.code, done.said) == (1, "error: --data no/where: no such file or folder")


def test_a_bad_file_is_one_line_that_names_file_and_line(mnemo: Command, data: Path) -> None:
    (data / "corpus.jsonl").write_text('{"id": 1, "content": "x"}\n{"id": 2\n')
    done = mnemo("run", "strata", "--data", data, "-s", "bm25", "--out", "r")
    assert done.code == 1
    assert done.err.startswith(f"error: {data / 'corpus.jsonl'}, line 2: ")
    assert len(done.err.splitlines()) == 1


def test_data_is_found_in_the_folder_that_the_environment_names(
    mnemo: Command, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strata(tmp_path / "root" / "strata")
    monkeypatch.setenv("MNEMOSCOPE_DATA", str(tmp_path / "root"))
    assert mnemo("run", "strata", "-s", "fts5", "--no-baselines", "--out", "r").code == 0
    places = {row["name"]: row["place"] for row in json.loads(mnemo_json(mnemo, "datasets"))}
    assert places["strata"] == str(tmp_path / "root" / "strata")


def mnemo_json(mnemo: Command, what: str) -> str:
    done = mnemo(what, "list", "--json")
    assert done.code == 0
    return done.out


def test_the_same_command_again_changes_nothing_and_another_is_refused(
    mnemo: Command, data: Path, tmp_path: Path
) -> None:
    again = ("run", "strata", "--data", data, "-s", "bm25", "--no-baselines", "--out", "r")
    assert mnemo(*again).code == 0
    before = (tmp_path / "r" / "bm25" / "trials.jsonl").read_bytes()
    assert mnemo(*again).code == 0
    assert (tmp_path / "r" / "bm25" / "trials.jsonl").read_bytes() == before
    other = mnemo(*again, "--depth", "5")
    assert other.code == 1
    assert "contains another run; differences: depth: 50 → 5" in other.said


# Reports.


@pytest.fixture
def runs(mnemo: Command, data: Path, tmp_path: Path) -> Path:
    done = mnemo("run", "strata", "--data", data, "-s", "fts5", "--out", tmp_path / "runs")
    assert done.code == 0
    return tmp_path / "runs"


def test_report_prints_and_writes_the_recorded_figures(mnemo: Command, runs: Path) -> None:
    written = (runs / "fts5" / "report.md").read_bytes()
    (runs / "fts5" / "report.md").unlink()
    done = mnemo("report", runs)
    assert done.code == 0
    for word in ("fts5", "bm25", "random", "oracle", "chance", "recall@10"):
        assert word in done.out
    assert (runs / "fts5" / "report.md").read_bytes() == written


def test_report_of_one_run_as_json(mnemo: Command, runs: Path) -> None:
    done = mnemo("report", runs / "fts5", "--json")
    metrics = json.loads((runs / "fts5" / "metrics.json").read_text())
    content = json.loads(done.out)
    assert content["fts5"]["overall"] == metrics["overall"]
    assert set(content["fts5"]) == {*metrics, "timing"}


def test_report_of_something_else_is_an_error(mnemo: Command, tmp_path: Path) -> None:
    done = mnemo("report", tmp_path)
    assert done.code == 1
    assert f"no run directory at {tmp_path} or directly below it" in done.said


def test_report_of_a_run_that_lacks_a_file_says_so(mnemo: Command, runs: Path) -> None:
    (runs / "fts5" / "metrics.json").unlink()
    done = mnemo("report", runs / "fts5")
    assert done.code == 4
    assert "metrics.json is missing" in done.said


# Score.


def test_the_rankings_of_a_run_score_what_the_run_scored(
    mnemo: Command, runs: Path, data: Path
) -> None:
    file = runs / "fts5" / "raw_retrievals.jsonl"
    done = mnemo("score", file, "--dataset", "strata", "--data", data, "--out", "again", "--json")
    assert done.code == 0, done.err
    scored = json.loads(done.out)["overall"]
    recorded = json.loads((runs / "fts5" / "metrics.json").read_text())["overall"]
    shared = set(scored) & set(recorded)
    assert {"recall@1", "hit@1", "map"} <= shared
    for name in shared:
        assert scored[name]["mean"] == pytest.approx(recorded[name]["mean"]), name


def jsonl(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_score_reads_rankings_from_jsonl(mnemo: Command, data: Path, tmp_path: Path) -> None:
    file = jsonl(
        tmp_path / "mine.jsonl",
        {"question": "e1", "ranking": ["1", "2", "3"]},
        {"question": "p1", "ranking": ["5", "3"], "scores": [0.9, 0.8]},
        {"question": "m1", "ranking": ["2", "6", "1"]},
    )
    done = mnemo("score", file, "--dataset", "strata", "--data", data, "--out", "scored")
    assert done.code == 0, done.err
    metrics = json.loads((tmp_path / "scored" / "metrics.json").read_text())
    assert metrics["overall"]["recall@3"]["mean"] == pytest.approx(1)
    assert metrics["overall"]["recall@1"]["mean"] == pytest.approx((1 + 0 + 0.5) / 3)
    assert metrics["overall"]["mrr@3"]["mean"] == pytest.approx((1 + 1 / 2 + 1) / 3)
    assert (tmp_path / "scored" / "report.md").exists()
    assert "scored/report.html" in done.out


def test_a_question_without_a_ranking_does_not_count_as_zero(
    mnemo: Command, data: Path, tmp_path: Path
) -> None:
    file = jsonl(tmp_path / "mine.jsonl", {"question": "e1", "ranking": ["1"]})
    done = mnemo("score", file, "--dataset", "strata", "--data", data, "--out", "s", "--json")
    content = json.loads(done.out)
    assert content["overall"]["recall@1"]["mean"] == 1.0
    assert content["questions"]["measured"] == 1
    assert content["overall"]["recall@1"]["bounds"] == [pytest.approx(1 / 3), 1.0]


@pytest.mark.parametrize(
    ("row", "code", "expected"),
    [
        ({"question": "unknown", "ranking": ["1"]}, 2, "no ranking is for a question of strata"),
        ({"ranking": ["1"]}, 1, "line 1: Object missing required field `question`"),
        ({"question": "e1", "ranking": ["1"], "scores": [1, 2]}, 1, "differ in length"),
        ({"question": "e1", "ranking": "1"}, 1, "Expected `array`, got `str`"),
    ],
)
def test_rankings_that_cannot_be_scored_are_explained(
    mnemo: Command, data: Path, tmp_path: Path, row: dict[str, Any], code: int, expected: str
) -> None:
    file = jsonl(tmp_path / "mine.jsonl", row)
    done = mnemo("score", file, "--dataset", "strata", "--data", data, "--out", "s")
    assert done.code == code
    assert expected in done.said


def test_score_reads_trec(mnemo: Command, tmp_path: Path) -> None:
    qrels, results = tmp_path / "qrels", tmp_path / "run"
    qrels.write_text("t1 0 a 1\nt1 0 b 0\nt2 0 c 1\nt2 0 d 1\n")
    results.write_text("t1 Q0 b 1 2.0 me\nt1 Q0 a 2 1.0 me\nt2 Q0 c 1 9 me\n")
    arguments = ("--dataset", "trec", "--data", qrels, "--format", "trec", "--out", "t", "--json")
    done = mnemo("score", results, *arguments)
    assert done.code == 0, done.err
    overall = json.loads(done.out)["overall"]
    assert overall["map"]["mean"] == pytest.approx((1 / 2 + 1 / 2) / 2)
    assert overall["map"]["chance"] is None


def test_score_reports_the_effect_of_a_projects_rules(mnemo: Command, shared_data: Shared) -> None:
    file = shared_data("pgmnemo/locomo/v0.2.1_session_20260509/raw_retrievals.jsonl")
    done = mnemo(
        *("score", file, "--dataset", "locomo", "--data", shared_data("locomo"), "--out", "s"),
        *("--format", "pgmnemo", "--compat", "pgmnemo"),
    )
    assert done.code == 0, done.err
    assert "recall@10 0.7951 0.7954 +0.0003" in done.said
    assert "scored by pgmnemo's rules" in done.said


def test_the_explanation_of_sound_rules_depends_on_the_dataset(
    mnemo: Command, tmp_path: Path
) -> None:
    session = [{"role": "user", "content": "I study business", "has_answer": True}]
    items = [
        {
            "question_id": id,
            "question_type": "single-session-user",
            "question": "Which degree?",
            "question_date": "2023/05/30 (Tue) 23:40",
            "answer": "Business",
            "answer_session_ids": ["answer_1"],
            "haystack_dates": ["2023/05/20 (Sat) 02:21"],
            "haystack_session_ids": ["answer_1"],
            "haystack_sessions": [session],
        }
        for id in ("one", "one_abs")
    ]
    (tmp_path / "longmemeval_s.json").write_text(json.dumps(items))
    found = {"question": "Which degree?", "retrieved_top10": ["answer_1"], "first_hit_rank": 1}
    missed = {"question": "Which degree?", "retrieved_top10": ["other"], "first_hit_rank": None}
    file = jsonl(tmp_path / "raw.jsonl", {"qid": "one", **found}, {"qid": "one_abs", **missed})
    done = mnemo(
        *("score", file, "--dataset", "longmemeval", "--data", tmp_path, "--out", "s"),
        *("--format", "pgmnemo", "--compat", "pgmnemo"),
    )
    assert done.code == 0, done.err
    assert "hit@1 0.5000 1.0000 +0.5000" in done.said
    assert "abstention questions have no answer session and are not scored" in done.said
    assert "own conversation" not in done.said


def test_score_refuses_rules_that_do_not_go_with_the_format(
    mnemo: Command, data: Path, tmp_path: Path
) -> None:
    file = jsonl(tmp_path / "mine.jsonl", {"question": "e1", "ranking": ["1"]})
    arguments = ("--dataset", "strata", "--data", data, "--out", "s", "--compat", "pgmnemo")
    done = mnemo("score", file, *arguments)
    assert done.code == 2
    assert "--compat pgmnemo needs --format pgmnemo" in done.said


def test_score_of_a_missing_file_is_an_error(mnemo: Command) -> None:
    done = mnemo("score", "nothing.jsonl", "--dataset", "strata", "--out", "s")
    assert (done.code, done.said) == (1, "error: no such file: nothing.jsonl")


# Lists.


def test_systems_list_names_every_system_with_its_options(mnemo: Command) -> None:
    rows = {row["name"]: row for row in json.loads(mnemo_json(mnemo, "systems"))}
    assert set(rows) == set(SYSTEMS.builtin)
    assert set(rows["bm25"]["options"]) == {"k1", "b", "tokens", "cache"}
    assert rows["bm25"]["options"]["k1"] == "1.5"
    table = mnemo("systems", "list").out
    assert all(name in table for name in rows)
    assert "k1=" not in table
    assert "k1=1.5" in mnemo("systems", "list", "bm25").out


def test_datasets_list_names_every_dataset_with_licence_and_place(mnemo: Command) -> None:
    rows = {row["name"]: row for row in json.loads(mnemo_json(mnemo, "datasets"))}
    assert set(rows) >= {"locomo", "longmemeval", "strata", "beir", "trec"}
    assert rows["locomo"]["licence"] == "CC BY-NC 4.0"
    assert rows["locomo"]["options"]["granularity"].startswith("session")
    assert "fetch" in rows["locomo"]["place"]
    assert rows["strata"]["place"] == "your own, with --data"
    table = mnemo("datasets", "list").out
    assert all(name in table for name in rows)


def test_a_closed_pipe_ends_a_command_without_a_message(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    for arguments in (("--help",), ("datasets", "list", "--json")):
        done = subprocess.run(
            [SCRIPT, *arguments],
            stdout=writer,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (1, "")
    os.close(writer)


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that offers two systems, of which one cannot be imported."""
    site = tmp_path / "site"
    about = site / "memory_plugin-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: memory-plugin\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[mnemoscope.systems]\nlast-first = memory_plugin:LastFirst\nbroken = no_such_module:X\n"
    )
    (site / "memory_plugin.py").write_text(
        "class LastFirst:\n"
        "    def __init__(self, most: int = 3):\n"
        "        self.most = most\n"
        "    def remember(self, memories):\n"
        "        self.ids = [memory.id for memory in memories]\n"
        "    def recall(self, query, k):\n"
        "        return self.ids[::-1][:self.most]\n"
    )
    monkeypatch.syspath_prepend(site)


@pytest.mark.usefixtures("plugin")
def test_a_plugin_is_listed_and_runs_by_its_name(
    mnemo: Command, data: Path, tmp_path: Path
) -> None:
    rows = {row["name"]: row for row in json.loads(mnemo_json(mnemo, "systems"))}
    assert rows["last-first"]["options"] == {"most": "3"}
    done = mnemo("run", "strata", "--data", data, "-s", "last-first,most=2", "--out", "r")
    assert done.code == 0, done.err
    kept = json.loads((tmp_path / "r" / "last-first,most=2" / "metrics.json").read_text())
    assert kept["hits"]["returned"] == 6


@pytest.mark.usefixtures("plugin")
def test_a_broken_plugin_is_reported_and_the_others_are_listed(mnemo: Command) -> None:
    rows = {row["name"]: row for row in json.loads(mnemo_json(mnemo, "systems"))}
    assert "cannot import system 'no_such_module:X'" in rows["broken"]["summary"]
    assert set(SYSTEMS.builtin) < set(rows)


@pytest.mark.usefixtures("plugin")
def test_plugins_can_be_switched_off(mnemo: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMOSCOPE_PLUGINS", "0")
    rows = json.loads(mnemo_json(mnemo, "systems"))
    assert {row["name"] for row in rows} == set(SYSTEMS.builtin)


# Datasets: check, fetch, export.


def test_check_passes_sound_data(mnemo: Command, data: Path) -> None:
    done = mnemo("datasets", "check", "strata", "--data", data)
    assert done.code == 0
    assert "leakage scan: no label in the data that systems see" in done.said
    digest = hashlib.sha256((data / "corpus.jsonl").read_bytes()).hexdigest()
    assert f"corpus.jsonl: sha256 {digest}, no pinned hash" in done.out  # in one line


def test_check_fails_on_leaked_labels_and_prints_them(mnemo: Command, tmp_path: Path) -> None:
    leaking = ({**CORPUS[0], "content": "Anna adopted [evidence] Rex"}, *CORPUS[1:])
    done = mnemo("datasets", "check", "strata", "--data", strata(tmp_path / "leaky", leaking))
    assert done.code == 1
    assert "problem: memory 1: its text contains the gold marker '[evidence]'" in done.err


def test_a_run_on_leaking_data_is_refused(mnemo: Command, tmp_path: Path) -> None:
    leaking = ({**CORPUS[0], "content": "Anna adopted [evidence] Rex"}, *CORPUS[1:])
    folder = strata(tmp_path / "leaky", leaking)
    done = mnemo("run", "strata", "--data", folder, "-s", "bm25", "--out", "r")
    assert done.code == 1
    assert "a label leaks into what systems would see" in done.said


def test_check_passes_the_real_locomo_with_every_finding(
    mnemo: Command, shared_data: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEMOSCOPE_DATA", str(shared_data("locomo").parent))
    done = mnemo("datasets", "check", "locomo", "--json")
    assert done.code == 0
    content = json.loads(done.out)
    assert content["counts"]["questions"] == 1_986
    assert content["findings"]["malformed evidence, repaired"] == 6
    assert content["problems"] == []
    table = mnemo("datasets", "check", "locomo", "--granularity", "turn")
    assert table.code == 0
    assert "as pinned" in table.out
    assert "5,882" in table.out


def test_check_fails_on_another_hash_unless_it_is_a_subset(
    mnemo: Command, shared_data: Shared, tmp_path: Path
) -> None:
    samples = json.loads((shared_data("locomo") / "locomo10.json").read_text(encoding="utf-8"))
    part = tmp_path / "locomo10.json"
    part.write_text(json.dumps(samples[:1]))
    done = mnemo("datasets", "check", "locomo", "--data", part)
    assert done.code == 1
    assert "is not the pinned 79fa87e90f04" in done.err
    assert "--subset" in done.err
    assert mnemo("datasets", "check", "locomo", "--data", part, "--subset").code == 0


def test_fetch_downloads_to_the_folder_where_datasets_are_found(
    mnemo: Command, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=data))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    root = f"http://127.0.0.1:{server.server_port}"
    names = ("corpus.jsonl", "queries.jsonl", "qrels.jsonl")
    files = {
        name: PinnedFile(f"{root}/{name}", hashlib.sha256((data / name).read_bytes()).hexdigest())
        for name in names
    }
    files["huge.jsonl"] = PinnedFile(f"{root}/huge.jsonl", optional=True)
    info = structs.replace(Strata.info, licence="MIT", citation="an author, 2026", files=files)
    monkeypatch.setattr(Strata, "info", info)
    try:
        done = mnemo("datasets", "fetch", "strata")
        assert done.code == 0, done.err
        assert "licence MIT" in done.err
        assert done.out.count("verified") == 3
        two = mnemo("datasets", "fetch", "strata", "--files", "q*.jsonl", "--to", "some")
        assert two.out.count("verified") == 2, two.err
        assert mnemo("run", "strata", "-s", "bm25", "--no-baselines", "--out", "r").code == 0
        missing = mnemo("datasets", "fetch", "strata", "--files", "huge.jsonl", "--to", "there")
        assert missing.code == 1
        assert "the server replied 404" in missing.said
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_export_writes_the_memories_that_are_not_sensitive(mnemo: Command, tmp_path: Path) -> None:
    store = sqlite3.connect(tmp_path / "store.db")
    with store:
        store.execute("CREATE TABLE memories (id INTEGER, content TEXT, is_sensitive INTEGER)")
        rows = [(1, "public", 0), (2, "private", 1), (3, "", 0)]
        store.executemany("INSERT INTO memories VALUES (?, ?, ?)", rows)
    store.close()
    done = mnemo("datasets", "export", "store.db", "--to", "mine")
    assert done.code == 0
    assert "1 memories; left out 1 sensitive and 1 without text" in done.said
    assert "private" not in (tmp_path / "mine" / "corpus.jsonl").read_text()


# Demo.


@pytest.fixture(scope="module")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of one demo and its output."""
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run([SCRIPT, "demo"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "demo-run", done.stdout


def test_the_demo_prints_the_heatmap_and_the_paths_of_its_files(
    demo_run: tuple[Path, str],
) -> None:
    folder, printed = demo_run
    systems = {"recency", "bm25", "hybrid", "none", "random", "oracle"}
    assert folders(folder) == systems | {"life"}
    for word in (*systems, "OVERALL", "hallucination", "recency-bias-resistance", "180d", "Next:"):
        assert word in printed
    for file in ("report.md", "heatmap.png", "result.json", "questions.jsonl", "progress.jsonl"):
        assert f"{folder.name}/hybrid/{file}" in printed or (folder / "hybrid" / file).exists()
    assert (folder / "hybrid" / "heatmap.png").read_bytes().startswith(b"\x89PNG")
    # The next command asks the questions of the demo, so that its figures can be compared.
    assert "--ranges 45d,90d,135d,180d --groups-enabled --system" in printed


def test_the_systems_of_the_demo_score_differently(demo_run: tuple[Path, str]) -> None:
    folder, _ = demo_run
    overall = {
        name: json.loads((folder / name / "longitudinal.json").read_text())["checkpoints"][-1][
            "overall"
        ]["mean"]
        for name in ("none", "recency", "bm25", "hybrid", "oracle")
    }
    assert overall["recency"] < overall["bm25"] < overall["oracle"]
    assert overall["none"] < overall["hybrid"] < overall["oracle"]


def test_the_demo_runs_again_with_the_same_figures(
    demo_run: tuple[Path, str], mnemo: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = demo_run
    # Half of the time would go into pictures, which the tests above have seen.
    monkeypatch.setattr(pictures, "_bytes", lambda *given: b"\x89PNG")
    before = (folder / "hybrid" / "longitudinal.json").read_bytes()
    assert mnemo("demo", "--out", folder).code == 0
    assert (folder / "hybrid" / "longitudinal.json").read_bytes() == before
