"""How often a run was tried: what the ledger of attempts knows about its fingerprint."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from mnemoscope._store.attempt_ledger import COPY, Ledger, LedgerLine, read_ledger
from mnemoscope._store.run_directory import Manifest, RunDirectory
from mnemoscope.analysis.checked_run import CheckedRun

_SHOWN = 5
"""How many other attempts are named."""


class Attempts(NamedTuple):
    """The attempts with a run's fingerprint."""

    number: int
    """Which of them the run is; 0 if that is unknown."""
    total: int
    text: str
    """What a reader must know, as one sentence; empty if it is the only attempt."""
    differs: bool
    """Whether an earlier attempt was finished with other lines in its journal."""
    problem: str
    """Why the ledger cannot be believed; empty if it can."""


class _Fate(NamedTuple):
    """What became of one attempt."""

    number: int
    path: str
    finish: LedgerLine | None
    is_there: bool

    def told(self, own_head: str) -> str:
        if self.finish is None:
            what = "was not finished" if self.is_there else "was not finished and is deleted"
        else:
            same = "the same journal" if self.finish.head == own_head else "another journal"
            what = f"was finished with {same}" + ("" if self.is_there else " and is deleted")
        return f"attempt {self.number} {what} ({self.path})"


def attempts_of(path: Path, manifest: Manifest) -> Attempts:
    """What the ledgers know of the runs with this fingerprint."""
    ledger = read_ledger()
    if not ledger.of_run(manifest.id):
        copy = read_ledger(path.parent / COPY)
        if manifest.ledger and manifest.ledger == ledger.id:
            problem = "the ledger of attempts was edited: the lines of this run were removed"
            return Attempts(0, 0, "", False, problem)
        ledger = copy
    if not manifest.id or not ledger.of_run(manifest.id):
        return Attempts(0, 0, "", False, ledger.problem)
    fates = [_fate(start, ledger) for start in ledger.starts(manifest.fingerprint)]
    starts = [line.id for line in ledger.starts(manifest.fingerprint)]
    number = starts.index(manifest.id) + 1
    end = manifest.chain.get("trials.jsonl")
    head = end.head if end else ""
    differs = any(
        fate.finish is not None and fate.finish.head != head for fate in fates[: number - 1]
    )
    text = ""
    if len(fates) > 1:
        others = [fate.told(head) for fate in fates if fate.number != number]
        more = [f"{len(others) - _SHOWN} more"] if len(others) > _SHOWN else []
        text = f"attempt {number} of {len(fates)}, the first counts: " + "; ".join(
            others[:_SHOWN] + more
        )
    return Attempts(number, len(fates), text, differs, ledger.problem)


def attempts_in_order(case: CheckedRun) -> tuple[bool, str]:
    """Whether no earlier attempt with the same fingerprint gave other results."""
    if not case.manifest.id:
        return True, "not counted: no system was asked, or the run is older than the ledger"
    found = attempts_of(case.run.path, case.manifest)
    if found.problem:
        return False, found.problem
    if not found.number:
        return True, "unknown here: the ledger of this machine does not know the run"
    if found.differs:
        return False, found.text
    return True, found.text or "attempt 1 of 1"


def _fate(start: LedgerLine, ledger: Ledger) -> _Fate:
    ends = [line for line in ledger.of_run(start.id) if line.event == "finish"]
    is_there = False
    with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
        content = (RunDirectory(Path(start.path)).manifest_path).read_bytes()
        is_there = msgspec.json.decode(content, type=Manifest).id == start.id
    number = ledger.starts(start.fingerprint).index(start) + 1
    return _Fate(number, start.path, ends[-1] if ends else None, is_there)
