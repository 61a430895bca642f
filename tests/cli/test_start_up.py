"""What a process imports before it does its work: modules are counted, seconds are not."""

from __future__ import annotations

import errno
import io
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from rich.console import Console

import mnemoscope
from mnemoscope.cli.app import app
from mnemoscope.cli.overview import COMMANDS, answered, page

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "strata"
LIST = "print(*(name for name, module in sys.modules.items() if module), file=sys.stderr)"
COMMAND = f"""
import sys
from mnemoscope.cli import main
try:
    main()
finally:
    {LIST}
"""
HEAVY = {
    *("scipy", "pandas", "matplotlib", "httpx2", "openai", "onnxruntime", "tokenizers", "grpc"),
    *("mcp", "pydantic", "wordllama", "numba", "pygments", "markdown_it", "asyncio", "yaml"),
}
MOST_OF_A_RUN = 250
"""Modules of ours; 249 when this was written, with the scores of disclosure, change and ageing."""


@pytest.fixture(autouse=True)
def _usual_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")


class Start(NamedTuple):
    out: str
    modules: set[str]

    @property
    def packages(self) -> set[str]:
        return {name.partition(".")[0] for name in self.modules}

    @property
    def ours(self) -> set[str]:
        return {name for name in self.modules if name.partition(".")[0] == "mnemoscope"}


def start(program: str, *arguments: str, folder: Path) -> Start:
    """Run a program that prints the names of its modules as the last line of stderr."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return Start(done.stdout, set(done.stderr.splitlines()[-1].split()))


@pytest.mark.parametrize("asked", [["--version"], ["--help"], []])
def test_version_and_help_import_three_modules_of_ours_and_no_library(
    asked: Sequence[str], tmp_path: Path
) -> None:
    begun = start(COMMAND, *asked, folder=tmp_path)
    assert begun.ours == {"mnemoscope", "mnemoscope.cli", "mnemoscope.cli.overview"}
    assert not begun.packages & {*HEAVY, "numpy", "cyclopts", "rich", "msgspec", "pathlib"}
    shown = f"{mnemoscope.__version__}\n" if "--version" in asked else page(80, in_colour=False)
    assert begun.out == shown


def test_a_small_run_imports_no_heavy_library(tmp_path: Path) -> None:
    asked = ["run", "strata", "--data", str(EXAMPLE), "--system", "bm25", "--no-baselines"]
    begun = start(COMMAND, *asked, "--workers", "1", "--out", "runs", folder=tmp_path)
    assert "recall@10" in begun.out
    assert not begun.packages & HEAVY
    assert "rich.progress" not in begun.modules
    assert len(begun.ours) <= MOST_OF_A_RUN


def test_a_host_process_imports_little(tmp_path: Path) -> None:
    begun = start(f"import sys; from mnemoscope.systems import host; {LIST}", folder=tmp_path)
    assert not begun.packages & {*HEAVY, "numpy", "rich", "cyclopts", "logging", "html"}
    assert len(begun.ours) <= 30


def test_the_stdio_child_imports_only_the_standard_library(tmp_path: Path) -> None:
    program = f"import sys; from mnemoscope.connectors import serve_stdio; {LIST}"
    begun = start(program, folder=tmp_path)
    assert begun.ours == {
        *("mnemoscope", "mnemoscope.connectors", "mnemoscope.connectors.serve_stdio"),
    }
    assert begun.packages - {"mnemoscope"} <= {*sys.stdlib_module_names, *_at_start(tmp_path)}


def _at_start(folder: Path) -> set[str]:
    """What the interpreter of this environment imports by itself."""
    return start(f"import sys; {LIST}", folder=folder).packages


@pytest.mark.parametrize("in_colour", [False, True])
@pytest.mark.parametrize("columns", [60, 80, 133])
def test_the_page_is_the_one_that_cyclopts_draws(columns: int, in_colour: bool) -> None:
    for name in COMMANDS:
        app[name]  # cyclopts lists the line of a command once it is imported
    drawn = io.StringIO()
    console = Console(
        file=drawn,
        width=columns,
        force_terminal=in_colour,
        color_system="standard" if in_colour else None,
        _environ={},
    )
    app.help_print([], console=console)
    assert page(columns, in_colour=in_colour) == drawn.getvalue()


@pytest.mark.parametrize(
    ("name", "value"), [("NO_COLOR", "1"), ("FORCE_COLOR", "1"), ("COLUMNS", "59")]
)
def test_rich_draws_the_page_on_an_unusual_terminal(
    name: str,
    value: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert answered(["--help"])
    assert capsys.readouterr().out == page(80, in_colour=False)
    monkeypatch.setenv(name, value)
    assert not answered(["--help"])
    assert capsys.readouterr().out == ""


def test_what_cannot_be_written_is_left_to_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def flush(self) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    assert not answered(["--version"])
