"""How far a run in progress is, from its journal and its spools; the run does not notice.

Files are read on from where the last reading ended. A line without its newline is being written
and is read the next time.
"""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mnemoscope._store.run_directory import Manifest
from mnemoscope._store.watched_run import expected_questions, open_regular
from mnemoscope.runner.spool_lines import hashed
from mnemoscope.types import FAILED

_WINDOW = 120.0
"""Seconds of progress from which the time left is estimated."""


class _Line(msgspec.Struct):
    """What is read here of a line of the journal."""

    phase: str
    scenario: str = ""
    checkpoint: str = ""
    question: str = ""
    status: str = ""
    memories: int = 0
    score: Any = None
    grade: Any = None


class LiveProgress(NamedTuple):
    """How far a run is."""

    done: int
    """Questions; a question counts at each checkpoint that asks it."""
    total: int | None
    is_estimate: bool
    seconds_left: float | None
    """An estimate from the last two minutes; None if it is not known yet."""
    statuses: dict[str, int]
    """How the questions that are done ended, by status."""
    memories: int
    """Memories that were ingested, over all scenarios and checkpoints."""


class RunWatcher:
    """Reads on in the files of one unfinished run."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.id = manifest.id
        self._path = path
        identity: dict[str, Any] = manifest.identity
        self._answers, self._judges = "reader" in identity, "judge" in identity
        self._compat = bool(identity.get("compat"))
        self._offsets: dict[str, int] = {}
        self._done: dict[tuple[str, str, str], str] = {}
        self._statuses: dict[tuple[str, str, str], str] = {}
        self._ingested: dict[tuple[str, str], int] = {}
        self._seen: deque[tuple[float, int]] = deque()
        self._decoder = msgspec.json.Decoder(_Line)

    def progress(self) -> LiveProgress:
        """Read what was written since the last call."""
        for place in self._journals():
            self._read(place)
        done = len(self._done)
        expected = expected_questions(self._path)
        total = max(expected.total, done) if expected else None
        return LiveProgress(
            done,
            total,
            expected.is_estimate if expected else False,
            self._seconds_left(done, total),
            dict(sorted(Counter(self._done.values()).items())),
            sum(self._ingested.values()),
        )

    def _journals(self) -> list[Path]:
        """The spools first: their lines move to the journal, and none may be missed."""
        try:
            with os.scandir(self._path / "units") as entries:
                spools = [one.name for one in entries if one.name.endswith(".trials.jsonl")]
        except OSError:
            spools = []
        return [*(self._path / "units" / name for name in sorted(spools)), self._journal]

    @property
    def _journal(self) -> Path:
        return self._path / "trials.jsonl"

    def _read(self, place: Path) -> None:
        key = str(place)
        try:
            file = open_regular(place)
        except OSError:  # merged and deleted in the meantime, or a link
            return
        with file:
            start = self._offsets.get(key, 0)
            if os.fstat(file.fileno()).st_size < start:  # begun anew
                start = 0
            file.seek(start)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._take(line)
                start += len(line)
            self._offsets[key] = start

    def _take(self, content: bytes) -> None:
        try:
            line = self._decoder.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        if line.phase == "remember":
            self._ingested[line.scenario, line.checkpoint] = line.memories
            return
        # A reply in a spool has the hash of the id, and its line in the journal has the id.
        question = line.question if line.phase == "reply" else hashed(line.question)
        key = (line.scenario, line.checkpoint, question)
        if line.status:
            self._statuses[key] = line.status
        failed = line.status == "not-indexed" or (line.status in FAILED and not self._compat)
        if line.phase == "judge":
            unjudged = line.score is None and line.grade is None
            self._done[key] = "unjudged" if unjudged else self._statuses.get(key, "answered")
        elif failed or (line.phase == "answer" and not self._judges) or not self._answers:
            self._done[key] = line.status

    def _seconds_left(self, done: int, total: int | None) -> float | None:
        now = time.monotonic()
        if not self._seen or done > self._seen[-1][1]:
            self._seen.append((now, done))
        while len(self._seen) > 2 and now - self._seen[0][0] > _WINDOW:
            self._seen.popleft()
        started, before = self._seen[0]
        if total is None or done <= before or now <= started:
            return None
        return (total - done) * (now - started) / (done - before)
