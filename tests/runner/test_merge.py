"""Spools are merged into the journals once, however often a kill interrupts the merging."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from mnemoscope._store.errors import EditedRun
from mnemoscope._store.journal_chain import SpoolJournal, chain_of_spool, seal_spool
from mnemoscope._store.jsonl import encode_lines, read_records
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.runner.merge import JournalMerger, timing_key
from mnemoscope.runner.pipeline import Pipeline
from mnemoscope.runner.run import paid
from mnemoscope.runner.work_unit import Spool, WorkUnit, spool_of
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


# Spools are taken as they are, if their hash chain says that nobody changed them


def written(folder: Path) -> tuple[JournalMerger, Spool]:
    """A merger that waits for the spool of a new unit."""
    merger = JournalMerger(RunDirectory(folder, checked=False), Pipeline())
    spool = spool_of(folder / "units", 0)
    for path, records in ((spool.trials, LINES), (spool.timings, TIMINGS)):
        with SpoolJournal(path) as journal:
            for record in records:
                journal.append(record)
    return merger, spool


def merge(merger: JournalMerger, folder: Path) -> None:
    merger.finished(WorkUnit(0, 0, SCENARIO, str(folder / "units")))


def test_a_spool_is_merged_as_it_is(tmp_path: Path) -> None:
    merger, spool = written(tmp_path)
    before = spool.trials.read_bytes()

    merge(merger, tmp_path)

    assert (tmp_path / "trials.jsonl").read_bytes() == before
    assert not spool.trials.exists()


@pytest.mark.parametrize("which", ["trials", "timings"])
@pytest.mark.parametrize(
    "edit",
    [
        lambda content: content.replace(b'"s"', b'"t"', 1),
        lambda content: content[:-2],
        lambda content: content + b"not a record\n",
        lambda content: content + content.split(b"\n")[-2] + b"\n",
        lambda content: content.split(b"\n", 1)[1],
        lambda content: b"",
    ],
    ids=["changed", "torn", "malformed", "repeated", "first deleted", "empty"],
)
def test_a_spool_that_was_changed_before_its_merge_is_refused(
    which: str, edit: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    merger, spool = written(tmp_path)
    file = getattr(spool, which)
    file.write_bytes(edit(file.read_bytes()))

    with pytest.raises(EditedRun, match="does not match its hash chain"):
        merge(merger, tmp_path)
    assert not (tmp_path / "trials.jsonl").read_bytes()
    assert not (tmp_path / "timings.jsonl").read_bytes()


def test_a_chain_that_was_computed_anew_without_the_key_is_refused(tmp_path: Path) -> None:
    merger, spool = written(tmp_path)
    edited = spool.trials.read_bytes().replace(b"here", b"there")
    spool.trials.write_bytes(edited)
    guess = f"{spool.trials.name}\n{tmp_path.name}\n{'0' * 64}".encode()
    anew = sha256(sha256(guess).digest() + edited).digest()
    chain_of_spool(spool.trials).write_bytes(len(edited).to_bytes(8, "big") + anew + bytes(40))

    with pytest.raises(EditedRun, match="does not match its hash chain"):
        merge(merger, tmp_path)
