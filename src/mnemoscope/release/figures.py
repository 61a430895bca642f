"""The figures of a release: every benchmark compared, corrected as one family.

The process corrects across all tests of a report; with two benchmarks that is more than one
comparison, so the correction is made again over all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from mnemoscope._store.jsonl import write_atomically
from mnemoscope.analysis.compare import Comparison, Row, compare
from mnemoscope.release.state import Release
from mnemoscope.stats import Interval, holm, verdict

ALPHA = 0.05
Standing = Literal["improved", "regressed", "neutral"]


def standing(row: Row) -> Standing:
    """How a metric fared.

    An improvement needs a corrected p below alpha and an interval above zero; for a regression
    the p is enough, as the process writes it: doubt counts against the candidate.
    """
    if row.verdict == "better":
        return "improved"
    return "regressed" if row.p_corrected < ALPHA and row.delta < 0 else "neutral"


def comparisons(release: Release) -> list[Comparison]:
    """One for each benchmark, on the protocol's metrics, Holm over all tests of the release."""
    release.ensure_unedited()
    found = [
        compare(
            release.run(pair.base),
            release.run(pair.cand),
            metrics=release.protocol.benchmark(pair.benchmark).metrics,
        )
        for pair in release.state.pairs
    ]
    return as_one_family(found)


def as_one_family(found: Sequence[Comparison]) -> list[Comparison]:
    p_values = iter(holm([row.p_raw for one in found for row in one.rows]).tolist())
    return [
        msgspec.structs.replace(one, rows=[_corrected(row, next(p_values)) for row in one.rows])
        for one in found
    ]


def basis(found: Sequence[Comparison]) -> str:
    """The hash of the figures, which a decision or re-derivation is about."""
    return hashlib.sha256(b"".join(map(_encoded, found))).hexdigest()


def write_comparisons(release: Release, found: Sequence[Comparison]) -> None:
    for one in found:
        write_atomically(release.folder / _name(one), _encoded(one))


def unwritten(release: Release, found: Sequence[Comparison]) -> list[str]:
    """Comparison files that are missing, or are not what the runs give."""
    files = [(release.folder / _name(one), _encoded(one)) for one in found]
    return [file.name for file, content in files if _bytes(file) != content]


def _corrected(row: Row, p: float) -> Row:
    return msgspec.structs.replace(row, p_corrected=p, verdict=verdict(Interval(*row.ci95), p))


def _name(one: Comparison) -> str:
    return f"comparison-{one.benchmark}.json"


def _encoded(one: Comparison) -> bytes:
    return msgspec.json.format(msgspec.json.encode(one), indent=2) + b"\n"


def _bytes(file: Path) -> bytes:
    return file.read_bytes() if file.exists() else b""
