"""Closed and ASCII streams, names that are not UTF-8, read-only folders: no traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.optional import missing

from mnemoscope.cli.console import show_warning

COMMAND = [sys.executable, "-m", "mnemoscope"]


def _run(
    arguments: list[str | bytes], cwd: Path, before: str = "", **environment: str
) -> tuple[int, bytes, bytes]:
    """Run a command through a shell line such as `exec "$@" >&-`; return code, stdout, stderr."""
    line = f'exec "$@" {before}'
    done = subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND, *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_closed_stdout_is_said_and_the_command_goes_on(tmp_path: Path) -> None:
    code, out, err = _run(["protocols", "list"], tmp_path, ">&-")

    assert (code, out) == (0, b"")
    assert err == b"note: stdout is closed, so results are not printed\n"


def test_all_streams_closed_give_only_an_exit_code(tmp_path: Path) -> None:
    assert _run(["verify", "nothing"], tmp_path, "<&- >&- 2>&-") == (1, b"", b"")


def test_a_reader_that_stops_early_sees_no_traceback(tmp_path: Path) -> None:
    code, _, err = _run(["published", "list", "--json"], tmp_path, "| head -1")

    assert b"Traceback" not in err
    assert code == 0  # that of `head`


def test_ascii_streams_show_escape_sequences(tmp_path: Path) -> None:
    settings = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}

    code, out, err = _run(["verify", "Zürich"], tmp_path, **settings)

    assert (code, out) == (1, b"")
    assert err.startswith(b"error: Z\\xfcrich is not a run directory")


def test_an_ascii_terminal_gets_its_tables(tmp_path: Path) -> None:
    plain = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}

    code, out, err = _run(["protocols", "list"], tmp_path, **plain)

    assert (code, err) == (0, b"")
    assert out.isascii()
    assert b"mnemoscope-retrieval-1" in out


def test_a_path_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    code, out, err = _run(["verify", b"run-\xff"], tmp_path)

    assert (code, out) == (2, b"")
    assert err == b"error: run-\\udcff is not utf-8 text: rename the file or folder\n"


def test_a_read_only_run_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    folder.chmod(0o555)
    words = ["run", "strata", "--data", "data", "--system", "bm25", "--out", "runs"]
    data = tmp_path / "data"
    data.mkdir()
    (data / "corpus.jsonl").write_text('{"id": 1, "content": "a dog"}\n')
    (data / "queries.jsonl").write_text('{"query_id": "e1", "text": "dog?", "stratum": "exact"}\n')
    (data / "qrels.jsonl").write_text('{"query_id": "e1", "relevant_ids": [1]}\n')
    command: list[str] = [*COMMAND, *words]
    if os.geteuid() == 0:  # root writes everywhere, unless it gives that up
        if not shutil.which("setpriv"):
            missing("setpriv, which takes the rights of root away, is not installed")
        command = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-all", *command]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False)

    folder.chmod(0o755)
    assert done.returncode == 1
    assert done.stdout == b""
    assert done.stderr.startswith(b"error: ")
    assert b"Permission denied" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_a_warning_is_a_note_unless_numpy_noted_values_that_no_product_uses(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_warning("a file is left open")
    show_warning(RuntimeWarning("invalid value encountered in matmul"))

    assert capsys.readouterr().err == "note: a file is left open\n"
