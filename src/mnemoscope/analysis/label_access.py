"""What a run's isolation allows to be said of its figures, and whether decoys were followed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from mnemoscope._store.errors import DataError, MnemoscopeError
from mnemoscope._store.jsonl import read_records
from mnemoscope._store.run_directory import Manifest, RunDirectory
from mnemoscope.isolation.decoys import (
    DECOYS_FILE,
    Decoy,
    DecoyCount,
    count_decoys,
    decoy_sentence,
    follows_decoys,
    secret_hash,
)
from mnemoscope.isolation.levels import DECOYS, LOCKED, recorded_isolation, sentence
from mnemoscope.types import Trial

GATE = "isolation"


class IsolationFinding(NamedTuple):
    """The isolation of a run as `verify` sees it."""

    level: int | None
    """None for built-in systems."""
    passed: bool
    why: str
    follows_decoys: bool = False


def check_isolation(
    run: RunDirectory, manifest: Manifest, trials: Iterable[Trial], *, demanded: bool
) -> IsolationFinding:
    """Check the recorded isolation; `demanded`: the protocol asks for a lock."""
    record = recorded_isolation(manifest.isolation, manifest.identity)
    level, why = record.level, sentence(record)
    if level is None:
        return IsolationFinding(level, True, why)
    if level >= LOCKED and not 0 < record.starts == record.passed:
        return IsolationFinding(level, False, f"{why}: not every start passed the self-test")
    if level >= DECOYS:
        try:
            counts = decoy_counts(run, record.decoys_sha256, trials)
        except (MnemoscopeError, OSError, ValueError, TypeError, LookupError) as error:
            return IsolationFinding(level, False, f"the decoys cannot be counted: {error}")
        said = decoy_sentence(counts)
        if follows_decoys(counts):
            why = f"{said}: the system read planted labels, which only a search for labels finds"
            return IsolationFinding(level, False, why, follows_decoys=True)
        why = f"{why}; {said}"
    if demanded and level < LOCKED:
        return IsolationFinding(level, False, f"{why}; the protocol demands level {LOCKED}")
    return IsolationFinding(level, True, why)


def decoy_counts(run: RunDirectory, sha256: str, trials: Iterable[Trial]) -> Sequence[DecoyCount]:
    """How often the run follows its decoys, which were fixed when it began."""
    place = run.path / DECOYS_FILE
    lines = read_records(place, dict)
    secret = next(lines, {}).get("secret", "")
    if secret_hash(bytes.fromhex(secret)) != sha256:
        raise DataError("its secret is not the one that the manifest names", file=place)
    planted = (msgspec.convert(line, Decoy) for line in lines)
    return count_decoys(trials, {decoy.question: decoy for decoy in planted})


def isolation_caveat(manifest: Manifest) -> str:
    """What readers must know if labels were not locked away; empty if they were."""
    record = manifest.isolation
    if record is None or record.level is None or record.level >= LOCKED:
        return ""
    return f"isolation {sentence(record)}"
