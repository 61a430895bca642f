"""From spools to the journal, in the dataset's order.

Workers finish units in any order and write each to a spool of its own. The journal takes them in
the order of the dataset, so that it has the same bytes however many workers there were and however
often the run was killed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from mnemoscope.core.jsonl import Journal, encode_line, read_records
from mnemoscope.core.nouns import Timing, Trial
from mnemoscope.core.rundir import RunDirectory, read_journal
from mnemoscope.engine.worker import Unit, spool_timings, spool_trials


class Merger:
    """The one writer of a run's journal."""

    def __init__(self, run: RunDirectory) -> None:
        self._folder = run.path / "units"
        self._trials = Journal(run.trials_path)
        self._timings = Journal(run.timings_path)
        self._asked: dict[str, set[str]] = {}
        self._ingested: set[str] = set()
        for line in run.journal():
            if isinstance(line, Trial):
                self._asked.setdefault(line.scenario, set()).add(line.question)
            else:
                self._ingested.add(line.scenario)
        self._timed = {(timing.scenario, timing.question) for timing in run.timings()}
        self._next = 0
        self._waiting: dict[int, Unit] = {}

    def plan(self, unit: Unit) -> Unit:
        """The unit with its spool's place and with all that is recorded of it already."""
        name = unit.scenario.id
        return reread(
            msgspec.structs.replace(
                unit,
                spool=str(self._folder / f"{unit.order:06}"),
                recorded=frozenset(self._asked.get(name, ())),
                ingested=name in self._ingested,
            )
        )

    def finished(self, unit: Unit) -> None:
        """The unit is complete; write it and all that waited for it."""
        self._waiting[unit.order] = unit
        while (ready := self._waiting.pop(self._next, None)) is not None:
            self._merge(ready)
            self._next += 1

    def close(self) -> None:
        self._trials.close()
        self._timings.close()
        if self._folder.exists() and not any(self._folder.iterdir()):
            self._folder.rmdir()

    def _merge(self, unit: Unit) -> None:
        spool = Path(unit.spool)
        trials, timings = spool_trials(spool), spool_timings(spool)
        name = unit.scenario.id
        if name in self._ingested or name in self._asked or (name, "") in self._timed:
            self._timings.append_bytes(b"".join(self._new_timings(timings)))
            self._trials.append_bytes(b"".join(self._new_lines(trials, name)))
        else:
            for spooled, journal in ((timings, self._timings), (trials, self._trials)):
                if spooled.exists():
                    journal.append_bytes(spooled.read_bytes())
        # The spool goes last: a kill before this line merges it again, and finds nothing new.
        trials.unlink(missing_ok=True)
        timings.unlink(missing_ok=True)

    def _new_lines(self, trials: Path, scenario: str) -> Iterator[bytes]:
        """What a kill in the middle of an earlier merge has left out of the journal."""
        if not trials.exists():
            return
        for line in read_journal(trials):
            if isinstance(line, Trial):
                known = line.question in self._asked.get(scenario, ())
            else:
                known = scenario in self._ingested
            if not known:
                yield encode_line(line)

    def _new_timings(self, timings: Path) -> Iterator[bytes]:
        if timings.exists():
            for timing in read_records(timings, Timing):
                if (timing.scenario, timing.question) not in self._timed:
                    yield encode_line(timing)


def reread(unit: Unit) -> Unit:
    """The unit with what its spool records by now, a torn last line cut off."""
    recorded, ingested = set(unit.recorded), unit.ingested
    path = spool_trials(Path(unit.spool))
    if path.exists():
        Journal(path).close()
        Journal(spool_timings(Path(unit.spool))).close()
        for line in read_journal(path):
            if isinstance(line, Trial):
                recorded.add(line.question)
            else:
                ingested = True
    return msgspec.structs.replace(unit, recorded=frozenset(recorded), ingested=ingested)


def is_complete(unit: Unit) -> bool:
    return all(question.id in unit.recorded for question in unit.scenario.questions)
