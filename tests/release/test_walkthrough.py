"""The commands of docs/release.md run, with the exit codes and the output on the page."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "release.md"
LATER = re.compile(r"# (\d+) hours later")
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _commands(block: str) -> list[tuple[str, int]]:
    """The commands of a block, continued lines joined, with the exit code each says it has."""
    lines = block.replace("\\\n", " ").splitlines()
    said = [re.search(r"# exits (\d+)$", line) for line in lines]
    return [
        (line, int(code[1]) if code else 0)
        for line, code in zip(lines, said, strict=True)
        if line.strip()
    ]


DRIVER = """
import datetime, json, os, sys
import mnemoscope.analysis.verify, mnemoscope.api, mnemoscope.cli.release, mnemoscope.cli.run
import mnemoscope.cli.verify, mnemoscope.release.checklist, mnemoscope.release.rederive
import mnemoscope.reports.render_terminal, mnemoscope.reports.run_report
from mnemoscope.cli import main
from mnemoscope.release import state
clock, later = state.clock, datetime.timedelta()
for line in sys.stdin:
    words = json.loads(line)
    if not isinstance(words, list):
        later += datetime.timedelta(hours=words)
        state.clock = lambda: clock() + later
        os.write(1, b"0\\n")
        continue
    child = os.fork()
    if child == 0:
        said = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(said, 1)
        os.dup2(said, 2)
        sys.argv = words
        main()
    _, status = os.waitpid(child, 0)
    os.write(1, b"%d\\n" % os.waitstatus_to_exitcode(status))
"""


@pytest.fixture
def run_command(
    tmp_path: Path, shared_data: Callable[[str], Path]
) -> Iterator[Callable[[str], tuple[int, str]]]:
    """Runs a line of the page; our commands are forked from one process that imported it all."""
    environment = {
        **os.environ,
        "MNEMOSCOPE_DATA": str(shared_data("locomo").parent),
        "COLUMNS": "300",
    }
    said = tmp_path / "said"
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(said)],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as driver:
        assert driver.stdin is not None and driver.stdout is not None

        def run(command: str) -> tuple[int, str]:
            words = shlex.split(command, comments=True)
            if hours := LATER.fullmatch(command):
                print(hours[1], file=driver.stdin, flush=True)
                assert driver.stdout is not None
                return int(driver.stdout.readline()), ""
            if words[0] != "mnemoscope":
                done = subprocess.run(
                    ["bash", "-c", command],
                    cwd=tmp_path,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                return done.returncode, done.stdout + done.stderr
            print(json.dumps(words), file=driver.stdin, flush=True)
            assert driver.stdout is not None
            return int(driver.stdout.readline()), said.read_text(encoding="utf-8")

        yield run
        driver.stdin.close()


def test_the_walk_through_reaches_tag_allowed_and_an_edited_run_takes_it_back(
    run_command: Callable[[str], tuple[int, str]], tmp_path: Path
) -> None:
    output = ""
    for kind, block in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if kind == "text":
            for line in block.splitlines():
                assert _flat(line) in _flat(output), f"not in the output:\n{line}\n\n{output}"
            continue
        output = ""
        for command, expected in _commands(block):
            code, said = run_command(command)
            output += said
            assert code == expected, f"{command}\n{said}"
    code, said = run_command("mnemoscope release check releases/v0.2.0")
    assert (code, said.rstrip().endswith("tag allowed: v0.2.0")) == (0, True)
    assert (tmp_path / "CITATION.cff").read_text().startswith("cff-version: 1.2.0")

    code, said = run_command("mnemoscope release check releases/v0.2.0 --at 2999-01-01")
    assert code == 1
    assert said.rstrip().endswith(
        "as if it were 2999-01-01 00:00 UTC: the tag v0.2.0 would be allowed"
    )

    rankings = tmp_path / "runs" / "locomo" / "hybrid" / "raw_retrievals.jsonl"
    rankings.write_bytes(rankings.read_bytes().replace(b"D1", b"D2", 1))
    code, said = run_command("mnemoscope release check releases/v0.2.0")
    assert code == 1
    assert "raw_retrievals.jsonl was edited after the release was started" in _flat(said)
