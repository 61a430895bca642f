"""Spools are merged into the journals once, however often a kill interrupts the merging."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mnemoscope._store.journal_chain import seal_spool
from mnemoscope._store.jsonl import encode_lines, read_records
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.runner.merge import JournalMerger, timing_key
from mnemoscope.runner.pipeline import Pipeline
from mnemoscope.runner.run import paid
from mnemoscope.runner.work_unit import spool_of
from mnemoscope.types import (
    Answer,
    Ingestion,
    Question,
    Scenario,
    Timing,
    Trial,
    Usage,
    Verdict,
)

SCENARIO = Scenario("s", (), (Question("q", "where?"), Question("r", "when?")))
TIMINGS = [
    Timing("s", index_ms=9.0),
    Timing("s", "q", recall_ms=1.0),
    Timing("s", "q", answer_ms=2.0, usage=Usage(requests=1, paid=0.25)),
    Timing("s", "q", judge_ms=3.0, usage=Usage(requests=1, paid=0.5)),
    Timing("s", "r", recall_ms=4.0),
    Timing("s", "r", answer_ms=5.0, usage=Usage(requests=1, paid=1.0)),
    Timing("s", counters={"restarts": 1}),
]
LINES: list[Trial | Answer | Verdict | Ingestion] = [
    Ingestion("s", 0),
    Trial("s", "q", "empty"),
    Answer("s", "q", "answered", "here"),
    Verdict("s", "q"),
    Trial("s", "r", "empty"),
    Answer("s", "r", "answered", "now"),
]


def merged(folder: Path, lines: Sequence[object], timings: Sequence[Timing]) -> RunDirectory:
    """A run whose journals contain these lines before the unit's spool is merged."""
    run = RunDirectory(folder, checked=False)
    spool = spool_of(folder / "units", 0)
    spool.trials.parent.mkdir(parents=True)
    for path, records in (
        (run.trials_path, lines),
        (run.timings_path, timings),
        (spool.trials, LINES),
        (spool.timings, TIMINGS),
    ):
        path.write_bytes(encode_lines(records))
    for path in spool:
        seal_spool(path)
    merger = JournalMerger(run, Pipeline())
    merger.finished(merger.unit(0, 0, SCENARIO))
    merger.close()
    assert not (folder / "units").exists()
    return run


@pytest.mark.parametrize("already", range(len(TIMINGS) + 1))
def test_a_second_merge_adds_the_timings_that_are_missing_and_no_other(
    already: int, tmp_path: Path
) -> None:
    """Costs are computed from the timings: none may be lost or counted twice."""
    run = merged(tmp_path, [], TIMINGS[:already])

    assert list(run.timings()) == TIMINGS
    assert paid(tmp_path) == 1.75


@pytest.mark.parametrize("already", range(len(LINES) + 1))
def test_a_second_merge_adds_the_lines_that_are_missing_and_no_other(
    already: int, tmp_path: Path
) -> None:
    run = merged(tmp_path, LINES[:already], TIMINGS)

    assert list(run.journal()) == LINES
    assert list(run.timings()) == TIMINGS


def test_every_phase_of_a_question_has_its_own_timing() -> None:
    keys = [timing_key(timing) for timing in TIMINGS]

    assert len(set(keys)) == len(keys)
    assert [key[-1] for key in keys] == [
        "index",
        "recall",
        "answer",
        "judge",
        "recall",
        "answer",
        "",
    ]


def test_units_wait_for_those_before_them(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path, checked=False)
    merger = JournalMerger(run, Pipeline())
    for order in (1, 0):
        scenario = Scenario(f"s{order}", (), ())
        spool = spool_of(tmp_path / "units", order)
        spool.trials.parent.mkdir(parents=True, exist_ok=True)
        spool.trials.write_bytes(encode_lines([Ingestion(scenario.id, 0)]))
        seal_spool(spool.trials)
        merger.finished(merger.unit(0, order, scenario))
        if order:
            assert not list(run.journal())

    merger.close()
    assert [line.scenario for line in read_records(run.trials_path, Ingestion)] == ["s0", "s1"]
