"""The table of docs/recall-bench.md from Recall Bench's commands to ours is complete and works.

Every row is parsed; those that need no other server are run in the order of the table, with the
scripted author in place of `claude`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.personas.scripted_author import author
from tests.scripted_server import ScriptedServer

from mnemoscope.cli.app import app, invoke
from mnemoscope.personas.audit.findings import CODES

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "recall-bench.md").read_text()
THEIRS = {
    "create-persona": "prompt model persona",
    "generate": "persona model start end arcs timeout temperature max-tokens",
    "generate-conversations": "persona model start end format",
    "generate-tool-calls": "persona model",
    "generate-qa": "persona model interval mode",
    "list": "data",
    "ranges": "",
    "run": "adapter data profile judge appellate-judge judge-memory-window personas ranges arcs "
    "sample groups-enabled seed parallelism timeout grpc-timeout dry-run skip-preflight json "
    "heatmap json-out no-heatmap-png question-log no-question-log progress-jsonl resume "
    "skip-catchup-ingest",
    "scripts/generate-heatmap.mjs": "",
}
"""Every command and flag of seed 002, its CLI reference and its chapters on generation."""
WITHOUT_A_FLAG = {"--adapter", "--temperature", "--max-tokens", "--grpc-timeout"}
WITHOUT_A_FLAG |= {"--no-question-log", "--skip-catchup-ingest"}
"""Their flags that have no flag of the same name here."""
ELSEWHERE = re.compile(r"openai:|anthropic:|grpc:")


class Row(NamedTuple):
    theirs: list[str]
    ours: list[str]

    def __str__(self) -> str:
        return " ".join(self.theirs)


def _rows() -> list[Row]:
    table = PAGE.partition("## Recall Bench's commands\n")[2].partition("\n## ")[0]
    found = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", table, re.MULTILINE)
    return [Row(theirs.split(), shlex.split(ours)) for theirs, ours in found]


ROWS = _rows()
RUN_HERE = [row for row in ROWS if not any(map(ELSEWHERE.search, row.ours))]


def test_the_table_has_every_command_and_flag_of_recall_bench() -> None:
    named: dict[str, set[str]] = {}
    for row in ROWS:
        named.setdefault(row.theirs[0], set()).update(row.theirs[1:])
    assert named == {
        command: {f"--{flag}" for flag in flags.split()} for command, flags in THEIRS.items()
    }


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_every_command_of_the_table_parses(row: Row) -> None:
    assert row.ours[0] == "mnemoscope"
    command, _, ignored = app.parse_args(row.ours[1:], exit_on_error=False, print_error=False)
    assert callable(command) and not ignored
    same = set(row.theirs[1:]) - WITHOUT_A_FLAG
    assert same <= set(row.ours)


def test_the_commands_of_the_table_run_in_order(
    write_persona: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [data] = {row.ours[row.ours.index("--data") + 1] for row in ROWS if "--data" in row.ours}
    for id in ("backend-eng-saas", "er-physician"):
        write_persona(tmp_path / data, days=2, id=id)
    (tmp_path / "bench.yaml").write_text(
        f"persona: {{id: er-physician, dir: {data}}}\nharness: {{adapter: bm25}}\n"
        "run: {sample: 5}\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(tmp_path / "cache"))
    with ScriptedServer(author) as server:
        said = {"claude": f"toy@{server.url}", "arcs-180d.yaml": "arcs-2d.yaml"}
        failed = [str(row) for row in RUN_HERE if invoke(_quick(row, said)) != 0]

    assert failed == []
    assert len(RUN_HERE) > 30
    assert len(list(tmp_path.glob("written/scientist/memories-60d/*.md"))) == 49


def _quick(row: Row, said: dict[str, str]) -> list[str]:
    """The row's command without slow parts; each run after the first gets its own folder."""
    words = [said.get(word, word) for word in row.ours[1:]]
    if words[0] == "run":
        quick = ["--no-arms", "--workers", "1", "--no-heatmap-png"]
        words += [word for word in quick if word not in words or word == "1"]
        if Path("runs").exists() and "--resume" not in words:
            words += ["--out", f"runs-{'-'.join(row.theirs)}"]
    return words


def test_the_page_names_every_code_of_the_audit() -> None:
    page = (DOCS / "writing-personas.md").read_text()
    table = page.partition("## The audit\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE) == list(CODES)
