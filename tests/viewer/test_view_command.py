"""`mnemoscope view` as a process: it prints its address, and Ctrl-C ends it."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.conftest import CommandProcess, StartCommand
from tests.waiting import eventually

from mnemoscope.cli.app import invoke


def printed(command: CommandProcess) -> str:
    try:
        return command.output
    except FileNotFoundError:  # the process has not begun
        return ""


def test_it_prints_its_address_and_ends_with_one_line(
    recorded: Path, start_command: StartCommand
) -> None:
    command = start_command(["view", recorded, "--no-open"])
    assert eventually(lambda: "http://" in printed(command))
    [url] = re.findall(r"http://127\.0\.0\.1:\d+", command.output)
    with urlopen(url, timeout=20) as reply:
        assert "locomo/lexical" in reply.read().decode()
    os.kill(command.pid, signal.SIGINT)
    assert command.wait() == 0
    first, last = command.output.splitlines()
    assert url in first and last == "stopped"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["no-such-folder"], "is not a folder"),
        ([".", "--port", "70000"], "--port 70000"),
        ([".", "--data", "no-such-file"], "no such file or folder"),
    ],
)
def test_wrong_arguments_are_explained(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["view", *arguments]) == 2
    assert expected in capsys.readouterr().err
