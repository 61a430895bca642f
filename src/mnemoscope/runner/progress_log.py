"""progress.jsonl: a line for each finished checkpoint of a persona, in Recall Bench's format.

It contains times and is read while the run goes on. No figure is computed from it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from mnemoscope._store.jsonl import Journal
from mnemoscope._store.run_directory import JournalLine, Manifest, RunDirectory
from mnemoscope.analysis.question_records import QuestionRecord, assemble
from mnemoscope.analysis.recall_bench_format import (
    Header,
    progress_checkpoint,
    progress_header,
    progress_summary,
)
from mnemoscope.runner.spool_lines import RecallReply, SpoolReader, decode_line
from mnemoscope.runner.work_unit import WorkUnit, spool_of
from mnemoscope.types import Timing


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class ProgressLog:
    """The progress log of one run."""

    def __init__(self, run: RunDirectory, manifest: Manifest, copy: Path | None = None) -> None:
        self.path = run.path / "progress.jsonl"
        self._copy = copy
        self._manifest = manifest
        self._started = time.monotonic()
        self._journal: Journal | None = None
        self._tails: dict[str, _Tail] = {}

    @cached_property
    def _written(self) -> set[tuple[str, str]]:
        """Persona and checkpoint of the lines in the file; unreadable lines are skipped."""
        written: set[tuple[str, str]] = set()
        if self.path.exists():
            for line in self.path.read_bytes().splitlines():
                with suppress(ValueError, RecursionError):
                    record = msgspec.json.decode(line)
                    if isinstance(record, dict) and record.get("type") == "checkpoint":
                        point = record.get("range")  # older versions wrote its label only
                        label = point.get("label") if isinstance(point, dict) else point
                        written.add((str(record.get("personaId")), str(label)))
        return written

    def checkpoint_done(self, unit: WorkUnit, checkpoint: str) -> None:
        """Write the line of a finished checkpoint, once."""
        scenario = unit.scenario
        if (scenario.id, checkpoint) in self._written:
            return
        if self._journal is None:  # the header comes first, as in Recall Bench
            self._journal = Journal(self.path)
            plan = {scenario.id: scenario.checkpoints}
            header = header_of(self._manifest)
            self._append(progress_header(header, plan, timestamp=now()))
        tail = self._tails.get(scenario.id) or _Tail(unit)
        self._tails[scenario.id] = tail
        records, ingest_ms = tail.at(checkpoint)
        self._append(
            progress_checkpoint(
                records,
                scenario.checkpoints,
                tail.places[checkpoint],
                scenario.id,
                timestamp=now(),
                ingest_ms=ingest_ms,
            )
        )
        self._written.add((scenario.id, checkpoint))

    def finished(self, unit: WorkUnit, recorded: Sequence[JournalLine]) -> None:
        """Write the lines of a finished persona that are not written yet."""
        scenario = unit.scenario
        if not scenario.checkpoints:
            return
        tail = self._tails.setdefault(scenario.id, _Tail(unit))
        tail.lines.put(recorded)
        for checkpoint in scenario.checkpoints:
            self.checkpoint_done(unit, checkpoint.label)
        del self._tails[scenario.id]

    def close(self, records: Iterable[QuestionRecord] | None = None) -> None:
        """Close the log, with a summary if the run is complete."""
        if self._journal is None:
            if self._copy is not None:
                self._make_copy()
            return
        if records is not None:
            took = (time.monotonic() - self._started) * 1000
            self._append(progress_summary(list(records), timestamp=now(), duration_ms=round(took)))
        self._journal.close()
        self._journal = None

    def _append(self, line: dict[str, Any]) -> None:
        assert self._journal is not None
        self._journal.append(line)
        self._make_copy()

    def _make_copy(self) -> None:
        if self._copy is not None and self.path.exists():
            self._copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.path, self._copy)


class _Tail:
    """The lines added to a unit's spools since they were last read."""

    def __init__(self, unit: WorkUnit) -> None:
        spool = spool_of(unit.folder, unit.order)
        self._questions = {question.id: question for question in unit.scenario.questions}
        self.places = {one.label: place for place, one in enumerate(unit.scenario.checkpoints)}
        self._replies = SpoolReader(unit.scenario)
        self.lines = _GrowingFile(spool.trials, self._line)
        self._timings = _GrowingFile(spool.timings, msgspec.json.Decoder(Timing).decode)

    def _line(self, line: bytes) -> JournalLine:
        found = decode_line(line)
        return self._replies.trial(found) if isinstance(found, RecallReply) else found

    def at(self, checkpoint: str) -> tuple[list[QuestionRecord], float]:
        """The checkpoint's records, and the milliseconds of its ingestion."""
        lines, timings = self.lines.take(checkpoint), self._timings.take(checkpoint)
        took = sum(timing.index_ms or 0.0 for timing in timings)
        return assemble(lines, self._questions, timings), round(took, 3)


class _GrowingFile:
    """A growing file, read on from the last position."""

    def __init__(self, path: Path, decode: Callable[[bytes], Any]) -> None:
        self._path = path
        self._decode = decode
        self._offset = 0
        self._waiting: dict[str, list[Any]] = {}

    def put(self, records: Iterable[Any]) -> None:
        for record in records:
            self._waiting.setdefault(record.checkpoint, []).append(record)

    def take(self, checkpoint: str) -> list[Any]:
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._offset += len(line)
                    record = self._decode(line)
                    self._waiting.setdefault(record.checkpoint, []).append(record)
        return self._waiting.pop(checkpoint, [])


def header_of(manifest: Manifest) -> Header:
    """The header of Recall Bench's files, from the run's identity."""
    identity: Mapping[str, Any] = manifest.identity
    options = identity["benchmark"]["options"]
    return Header(
        adapter_name=identity["system"]["spec"],
        groups_enabled=bool(options.get("groups")),
        sample=options.get("sample") or None,
        judge_memory_window=identity.get("judge_memory_window"),
        synthesis_model=_spec(identity.get("reader")),
        embedding_model=identity["system"].get("embedder"),
        judge_model=_spec(identity.get("judge")),
        appellate_judge_model=_spec(identity.get("appellate_judge")),
    )


def _spec(part: dict[str, str] | str | None) -> str | None:
    return part["spec"] if isinstance(part, dict) else part
