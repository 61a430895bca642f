"""How often a run was tried: what the ledger of attempts knows about its fingerprint."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from mnemoscope._store.attempt_ledger import COPY, AttemptLedger, LedgerLine, read_ledger
from mnemoscope._store.run_directory import Manifest
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
    is_known_here: bool = False
    """Whether the user's ledger knows the run, and not only the copy in its folder."""


class _Fate(NamedTuple):
    """What became of one attempt."""

    number: int
    start: LedgerLine
    finish: LedgerLine | None

    def told(self, own_head: str) -> str:
        if self.finish is None:
            what = "was not finished"
        else:
            same = "the same journal" if self.finish.head == own_head else "another journal"
            what = f"was finished with {same}"
        what += "" if self._is_there() else " and is deleted"
        return f"attempt {self.number} {what} ({self.start.path})"

    def _is_there(self) -> bool:
        with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
            content = (Path(self.start.path) / "manifest.json").read_bytes()
            return msgspec.json.decode(content, type=Manifest).id == self.start.id
        return False


def attempts_of(path: Path, manifest: Manifest) -> Attempts:
    """What the ledgers know of the runs with this fingerprint."""
    ledgers = [read_ledger(), read_ledger(path.parent / COPY)]
    problem = "; ".join(filter(None, (one.problem for one in ledgers)))
    own = [one.start_of(manifest.id) for one in ledgers]
    known = [line is not None and line.fingerprint == manifest.fingerprint for line in own]
    if not known[0] and manifest.ledger and manifest.ledger == ledgers[0].id:
        problem = problem or "the ledger of attempts was edited: the start of this run is removed"
    if not manifest.id or not any(known):
        return Attempts(0, 0, "", False, problem)
    # The copy in the run's folder serves on another machine.
    ledger, start = ledgers[known.index(True)], own[known.index(True)]
    assert start is not None
    starts = ledger.starts(manifest.fingerprint, start.same)
    fates = _fates(starts, ledger)
    number = [line.id for line in starts].index(manifest.id) + 1
    end = manifest.chain.get("trials.jsonl")
    head = end.head if end else ""
    differs = any(
        fate.finish is not None and fate.finish.head != head for fate in fates[: number - 1]
    )
    text = ""
    if len(fates) > 1:
        others = [fate for fate in fates if fate.number != number]
        told = [fate.told(head) for fate in others[:_SHOWN]]
        more = [f"{len(others) - _SHOWN} more"] if len(others) > _SHOWN else []
        text = f"attempt {number} of {len(fates)}, the first counts: " + "; ".join(told + more)
    if elsewhere := len(ledger.with_other_code(start)):
        every = len(fates) + elsewhere
        text += ("; " if text else "") + (
            f"{every} attempts of this system on this benchmark ({elsewhere} with other code)"
        )
    renamed = ""
    if others_named := len(ledger.under_other_names(start)):
        runs = "run" if others_named == 1 else "runs"
        renamed = f"{others_named} more {runs} of this code under other names or settings"
    text = "; ".join(filter(None, [text, renamed, _same_as_repeat(manifest, ledgers)]))
    return Attempts(number, len(fates), text, differs, problem, known[0])


def unfinished_before(path: Path, manifest: Manifest) -> int:
    """How many earlier attempts with the run's fingerprint were begun and not finished."""
    for ledger in (read_ledger(), read_ledger(path.parent / COPY)):
        own = ledger.start_of(manifest.id)
        starts = ledger.starts(manifest.fingerprint, own.same if own else "")
        ids = [line.id for line in starts]
        if manifest.id and manifest.id in ids:
            earlier = _fates(starts[: ids.index(manifest.id)], ledger)
            return sum(fate.finish is None for fate in earlier)
    return 0


def _same_as_repeat(manifest: Manifest, ledgers: Sequence[AttemptLedger]) -> str:
    """What to say of a run that is also a repeat of a set that was declared before it."""
    for ledger in ledgers:
        begun = next((line.at for line in ledger.of_run(manifest.id)), None)
        for line in ledger.repeated_as(manifest.fingerprint):
            if line.repeat is not None and begun is not None and line.at < begun:
                return (
                    f"the same as repeat {line.repeat.number} of a set of {line.repeat.of} that "
                    f"was declared before ({line.path}): the set counts, not one of its runs"
                )
    return ""


def attempts_in_order(case: CheckedRun) -> tuple[bool, str]:
    """Whether no earlier attempt with the same fingerprint gave other results."""
    if not case.manifest.id:
        return True, "not counted: no system was asked, or the run is older than the ledger"
    found = attempts_of(case.run.path, case.manifest)
    if found.problem:
        return False, found.problem
    if found.differs:
        return False, found.text
    if not found.is_known_here:
        unknown = "unknown here: the ledger of this machine does not know the run"
        return True, "; in its folder: ".join(filter(None, [unknown, found.text]))
    return True, found.text or "attempt 1 of 1"


def _fates(starts: Sequence[LedgerLine], ledger: AttemptLedger) -> list[_Fate]:
    ends = {line.id: line for line in ledger.lines if line.event == "finish" and line.id}
    return [_Fate(number, start, ends.get(start.id)) for number, start in enumerate(starts, 1)]
