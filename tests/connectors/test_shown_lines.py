"""Lines of children are shown once for all workers of a run."""

from __future__ import annotations

import os

import pytest

from mnemoscope.connectors.child_process import ChildStderr
from mnemoscope.connectors.shown_lines import ShownLines


def test_a_warning_of_a_child_is_shown_once_although_times_and_ids_differ(
    capfd: pytest.CaptureFixture[str],
) -> None:
    words = ["server", "of", "warnings"]
    for pid in (17, 18):
        child = ChildStderr(words)
        for second in range(3):
            child.add(b"12:00:0%d [%d] WARNING: no GPU at 0x%x" % (second, pid, pid))
        child.add(b"ready")
        child.add(b"ready")
    shown = capfd.readouterr().err.splitlines()
    assert (
        shown
        == ["[server of warnings] 12:00:00 [17] WARNING: no GPU at 0x11"]
        + ["[server of warnings] ready"] * 2
    )
    ChildStderr(["another"]).add(b"12:00:00 [17] WARNING: no GPU at 0x11")
    assert "[another]" in capfd.readouterr().err


def test_workers_that_were_forked_share_what_was_shown() -> None:
    lines = ShownLines()
    reading, writing = os.pipe()
    for _ in range(4):
        if os.fork() == 0:
            new = lines.add(["server"], b"WARNING: once")
            os.write(writing, b"1" if new else b"0")
            os._exit(0)
    for _ in range(4):
        os.wait()
    assert sorted(os.read(reading, 4)) == sorted(b"1000")
    assert not lines.add(["server"], b"WARNING: once")
    for descriptor in (reading, writing):
        os.close(descriptor)
