"""The run directory: the files of one run, which reports, comparisons and releases read.

`trials.jsonl` is the journal. Everything except the manifest and `timings.jsonl` can be rebuilt
from it. One process at a time may write: it holds a lock while the run is open.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from mnemoscope._store.errors import DataError, MissingData, RunConflict
from mnemoscope._store.fingerprint import differences, fingerprint, sha256_file
from mnemoscope._store.jsonl import read_records, write_json
from mnemoscope._store.private_files import make_private, open_private
from mnemoscope.types import Answer, Ingestion, Isolation, Timing, Trial, Verdict

JournalLine = Trial | Answer | Verdict | Ingestion

SCHEMA = 1
State = Literal["running", "interrupted", "complete"]
RECORDED = ("trials.jsonl", "raw_retrievals.jsonl", "questions.jsonl", "metrics.json")
"""The files whose hashes are in a finished run's manifest."""


class Manifest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=False):
    """What was run, with which data, and its state."""

    fingerprint: str
    identity: dict[str, Any]
    schema: int = SCHEMA
    state: State = "running"
    started: datetime | None = None
    finished: datetime | None = None
    environment: dict[str, Any] = {}
    notes: list[str] = []
    """Caveats for readers of the numbers, such as a dataset that is a subset."""
    protocol: dict[str, str] = {}
    """`id` and `sha256` of the run's protocol, if it has one."""
    deviations: list[str] = []
    """Each deviation from the protocol, with the declared reason."""
    findings: dict[str, int] = {}
    """How many repairs and losses the loader counted in the data, by kind."""
    leaks: int = 0
    """How many findings of the leakage scan were accepted on request."""
    arm: bool = False
    """Whether the system ran as a baseline beside the systems that were asked for."""
    exams: dict[str, dict[str, Any]] = {}
    """Each judge's spec to its exam result; a judge without an exam is absent."""
    category_names: dict[str, str] = {}
    checkpoints: list[str] = []
    """Labels of the checkpoints, in order; figures without a label are those of the last."""
    isolation: Isolation | None = None
    """What kept the labels from the system; None in runs of older versions."""
    counts: dict[str, int] = {}
    files: dict[str, str] = {}


class RunDirectory:
    """A folder that contains one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.label = path.name
        self.trials_path = path / "trials.jsonl"
        self.timings_path = path / "timings.jsonl"
        self.manifest_path = path / "manifest.json"
        self.lock: int | None = None
        """The file descriptor of the lock while this process holds it."""

    def open(self, identity: dict[str, Any], **about: Any) -> Manifest:
        """Begin a run here, or continue the one that has this identity; refuse any other."""
        # As JSON gives it back, so that the identity of a read manifest compares equal.
        identity = msgspec.json.decode(msgspec.json.encode(identity))
        self._take_lock()
        for draft in self.path.glob(".*.draft"):  # a killed process leaves them
            draft.unlink()
        if self.manifest_path.exists():
            manifest = self.manifest()
            if manifest.fingerprint == fingerprint(identity):
                for field, value in about.items():
                    setattr(manifest, field, value)
                if manifest.state == "interrupted":
                    manifest.state = "running"
                self.save(manifest)
                return manifest
            if self._has_trials():
                changed = differences(_in_short(manifest.identity), _in_short(identity))
                self.release()
                other = ""
                if changed and changed[0].startswith(("judge:", "appellate_judge:")):
                    other = f", judge its answers again with `mnemoscope judge {self.path} …`"
                raise RunConflict(
                    f"{self.path} contains another run; differences: {'; '.join(changed[:5])}. "
                    f"Choose another --out{other}, or delete the folder"
                )
        elif self.trials_path.exists():
            self.release()
            raise RunConflict(
                f"{self.path} contains trials but no manifest.json that describes them. "
                "Choose another --out, or delete the folder"
            )
        manifest = Manifest(fingerprint(identity), identity, started=datetime.now(UTC), **about)
        self.save(manifest)
        return manifest

    def _has_trials(self) -> bool:
        """Whether anything was recorded here that another run must not overwrite."""
        units = self.path / "units"
        recorded = [self.trials_path, *(units.iterdir() if units.exists() else ())]
        return any(path.exists() and path.stat().st_size for path in recorded)

    def manifest(self) -> Manifest:
        try:
            return msgspec.json.decode(self.manifest_path.read_bytes(), type=Manifest)
        except FileNotFoundError:
            raise MissingData(
                f"{self.path} is not a run directory: it has no manifest.json"
            ) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataError(str(error), file=self.manifest_path) from None

    def save(self, manifest: Manifest) -> None:
        write_json(self.manifest_path, manifest)

    def finish(self, manifest: Manifest, also: Sequence[str] = ()) -> None:
        """Mark the run complete, and record the hash of every file."""
        manifest.state = "complete"
        manifest.finished = datetime.now(UTC)
        manifest.files = {
            name: sha256_file(self.path / name)
            for name in (*RECORDED, *also)
            if (self.path / name).exists()
        }
        self.save(manifest)

    def vouch(self, name: str) -> None:
        """Record the hash of one more file, written after the run was finished."""
        manifest = self.manifest()
        manifest.files[name] = sha256_file(self.path / name)
        self.save(manifest)

    def trials(self) -> Iterator[Trial]:
        """The trials of the last checkpoint."""
        return (line for line in self._at_last_checkpoint() if isinstance(line, Trial))

    def ingestions(self) -> Iterator[Ingestion]:
        return (line for line in self._at_last_checkpoint() if isinstance(line, Ingestion))

    def _at_last_checkpoint(self) -> Iterator[JournalLine]:
        checkpoints = self.manifest().checkpoints
        last = checkpoints[-1] if checkpoints else ""
        return (line for line in self.journal() if line.checkpoint == last)

    def journal(self) -> Iterator[JournalLine]:
        """All lines, of every phase and checkpoint."""
        if self.trials_path.exists():
            yield from read_journal(self.trials_path)

    def timings(self) -> Iterator[Timing]:
        if self.timings_path.exists():
            yield from read_records(self.timings_path, Timing)

    def questions(self) -> Iterator[dict[str, Any]]:
        """Id and text of each question at the last checkpoint."""
        checkpoints = self.manifest().checkpoints
        for line in read_records(self.path / "questions.jsonl", dict):
            if not checkpoints:
                yield line
            elif line["checkpoint"] == checkpoints[-1]:
                yield line.get("qa", line)

    def read_json(self, name: str) -> Any:
        path = self.path / name
        try:
            return msgspec.json.decode(path.read_bytes())
        except FileNotFoundError:
            raise MissingData(f"{self.path} has no {name}; is the run complete?") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataError(str(error), file=path) from None

    def _take_lock(self, patience: float = 10.0) -> None:
        # Workers inherit the descriptor: after a killed parent the lock is held until they end.
        lock = open_private(self.path / ".lock", os.O_RDWR)
        if self.manifest_path.exists():
            make_private(self.path)
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    os.close(lock)
                    raise RunConflict(f"another process is writing {self.path}") from None
                time.sleep(0.05)
            else:
                self.lock = lock
                return

    def release(self) -> None:
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None


_PARTS = ("reader", "judge", "appellate_judge")


def _in_short(identity: Mapping[str, Any]) -> dict[str, Any]:
    """The identity with readers and judges shortened to their specs and a hash."""
    short = dict(identity)
    for part in _PARTS:
        if isinstance(about := identity.get(part), Mapping):
            short[part] = f"{about['spec']} ({fingerprint(about)[:6]})"
    if not any(part in identity for part in _PARTS):
        return short
    return {key: value for key, value in short.items() if key not in ("compat", "lifecycle")} | {
        key: short[key] for key in ("compat", "lifecycle") if short.get(key) not in ("", "auto")
    }


def read_journal(path: Path) -> Iterator[JournalLine]:
    """The lines of a journal, or of one unit's spool."""
    kind: Any = JournalLine
    return read_records(path, kind)


def find_runs(path: Path) -> list[RunDirectory]:
    """The run at `path`, or all runs in the folders directly below it."""
    if (path / "manifest.json").exists():
        return [RunDirectory(path)]
    runs = [RunDirectory(folder.parent) for folder in sorted(path.glob("*/manifest.json"))]
    if not runs:
        raise MissingData(f"no run directory at {path} or directly below it")
    return runs
