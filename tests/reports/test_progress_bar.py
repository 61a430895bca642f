"""Progress in questions, as a bar and as lines where there is no terminal."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from mnemoscope.api import ProgressUpdate
from mnemoscope.cli import console
from mnemoscope.cli.app import invoke
from mnemoscope.reports.progress_bar import advance, duration, progress_bar, progress_line
from mnemoscope.runner.question_progress import QuestionProgress

STRATA = Path(__file__).resolve().parents[2] / "examples" / "strata"


@pytest.mark.parametrize(
    ("at", "line"),
    [
        (
            ProgressUpdate("locomo", 3.0, 10.0, 1204, 9910, is_estimate=True, seconds_left=700.0),
            "locomo: 1,204 of about 9,910 questions done (30%), about 12 min left",
        ),
        (
            ProgressUpdate("locomo", 9.5, 10.0, 9900, 9910, seconds_left=3.2),
            "locomo: 9,900 of 9,910 questions done (95%), about 3 s left",
        ),
        (ProgressUpdate("beir", 3.0, None, 120), "beir: 120 questions done"),
        (ProgressUpdate("mine", 0.0, 4.0), "mine: 0 questions done (0%)"),
    ],
)
def test_a_line_says_how_many_questions_are_done(at: ProgressUpdate, line: str) -> None:
    assert progress_line(at) == line


def test_the_time_left_is_rounded() -> None:
    seconds = (0, 89, 90, 3600, 7200, 12_000)
    told = ["0 s", "89 s", "2 min", "60 min", "2 h 0 min", "3 h 20 min"]
    assert [duration(one) for one in seconds] == told


def test_the_bar_shows_questions_within_eighty_columns() -> None:
    drawn = StringIO()
    terminal = Console(file=drawn, force_terminal=True, width=80, color_system=None)
    with progress_bar("longmemeval", 10.0, terminal) as bar:
        advance(bar, ProgressUpdate("longmemeval", 3.0, 10.0, 1204, 9910, is_estimate=True))
    assert "1,204 of about 9,910 questions" in drawn.getvalue()


def test_the_total_is_estimated_until_everything_is_read() -> None:
    counts = QuestionProgress()
    assert counts.total(10) is None and counts.total(None) is None
    counts.units, counts.read = 2, 30
    assert (counts.total(10), counts.total(None), counts.total(1)) == (150, None, 30)
    counts.is_all_read = True
    assert counts.total(10) == counts.total(None) == 30


def test_without_a_terminal_lines_are_printed_at_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["run", "strata", "--data", str(STRATA), "--system", "recency", "--no-baselines"]
    assert invoke([*command, "--out", str(tmp_path / "fast")]) == 0
    assert "questions done" not in capsys.readouterr().err, "short runs print none"

    monkeypatch.setattr(console, "_EVERY", -1.0)
    assert invoke([*command, "--out", str(tmp_path / "long")]) == 0
    assert "strata: 48 of 48 questions done (100%)" in capsys.readouterr().err
