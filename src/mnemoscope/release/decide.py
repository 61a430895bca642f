"""The figures of a release, and the decision matrix of the process (§5, §5.1).

The process corrects over all tests of a report. A report can have several comparisons, so the
correction is computed again over all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal

import msgspec

from mnemoscope._store.jsonl import write_atomically
from mnemoscope.analysis.compare import OVERALL, Comparison, Row, compare
from mnemoscope.protocols import Benchmark
from mnemoscope.release.state import Decision, MatrixRow, Moment, Release, Words
from mnemoscope.stats import Interval, holm, verdict

ALPHA = 0.05
Standing = Literal["improved", "regressed", "neutral"]
NEUTRAL: MatrixRow = "HOLD or SHIP as no-claim"
_CAUTION: tuple[MatrixRow, ...] = ("HOLD", "CONDITIONAL SHIP", "SHIP with caveat", "SHIP")
RATIONALE: dict[MatrixRow, str] = {
    "SHIP": "clear win: primary and secondary metric improved significantly",
    "SHIP with caveat": "the primary metric improved; the other shows no significant change",
    "CONDITIONAL SHIP": "only the secondary metric improved significantly; §5.1 applies",
    NEUTRAL: "neither metric changed significantly; no performance claim is allowed",
    "HOLD": "a metric regressed significantly; resolve it, or accept it with a rationale",
}


def standing(row: Row) -> Standing:
    """Whether a metric improved, regressed or did neither.

    An improvement needs a corrected p below alpha and an interval above zero. For a regression the
    process asks for the p only: doubt counts against the candidate.
    """
    if row.verdict == "better":
        return "improved"
    return "regressed" if row.p_corrected < ALPHA and row.delta < 0 else "neutral"


def comparisons(release: Release) -> list[Comparison]:
    """A comparison for each benchmark, on the protocol's metrics, Holm over all of them."""
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
    """The hash of the figures that a decision or a re-derivation refers to."""
    return hashlib.sha256(b"".join(map(_encoded, found))).hexdigest()


def is_fresh(release: Release, found: Sequence[Comparison]) -> bool:
    """Whether the recorded re-derivation is of these figures."""
    done = release.state.rederived
    return done is not None and done.basis == basis(found)


def write_comparisons(release: Release, found: Sequence[Comparison]) -> None:
    for one in found:
        write_atomically(release.folder / _name(one), _encoded(one))


def unwritten(release: Release, found: Sequence[Comparison]) -> list[str]:
    """Comparison files that are missing or differ from the runs."""
    files = [(release.folder / _name(one), _encoded(one)) for one in found]
    return [f.name for f, content in files if not f.exists() or f.read_bytes() != content]


def _corrected(row: Row, p: float) -> Row:
    return msgspec.structs.replace(row, p_corrected=p, verdict=verdict(Interval(*row.ci95), p))


def _name(one: Comparison) -> str:
    return f"comparison-{one.benchmark}.json"


def _encoded(one: Comparison) -> bytes:
    return msgspec.json.format(msgspec.json.encode(one), indent=2) + b"\n"


def matrix_row(comparison: Comparison, rules: Benchmark) -> MatrixRow:
    """The row of the matrix for one benchmark."""
    if regressions(comparison):
        return "HOLD"
    primary: Standing = standing(comparison.row(rules.primary))
    secondary: Standing = standing(comparison.row(rules.secondary))
    if primary == "improved":
        return "SHIP" if secondary == "improved" else "SHIP with caveat"
    return "CONDITIONAL SHIP" if secondary == "improved" else NEUTRAL


def regressions(comparison: Comparison) -> list[str]:
    """Every metric that regressed significantly, overall or in a category."""
    return [
        row.metric if row.scope == OVERALL else f"{row.metric} in category {row.scope}"
        for row in comparison.rows
        if standing(row) == "regressed"
    ]


def together(rows: Sequence[MatrixRow]) -> MatrixRow:
    """The row for the release: the most cautious row of its benchmarks.

    A neutral benchmark turns SHIP into SHIP with caveat and changes no other row.
    """
    shown = [row for row in rows if row != NEUTRAL]
    if not shown:
        return NEUTRAL
    worst = min(shown, key=_CAUTION.index)
    return "SHIP with caveat" if worst == "SHIP" and len(shown) < len(rows) else worst


def decide(release: Release, found: Sequence[Comparison], when: Moment) -> Decision:
    """Apply the matrix to the figures, and list what the outcome still needs."""
    rows = {
        one.benchmark: matrix_row(one, release.protocol.benchmark(one.benchmark)) for one in found
    }
    row = together(list(rows.values()))
    outcome, demands = _resolved(row, release.state.words)
    return Decision(outcome, rows, demands, when, basis(found))


def is_conditional(decision: Decision | None) -> bool:
    return decision is not None and "CONDITIONAL SHIP" in decision.rows.values()


def _resolved(row: MatrixRow, words: Words) -> tuple[str, list[str]]:
    """The outcome with people's texts, and the texts that are still missing."""
    if row == NEUTRAL:
        if words.no_claim:
            return "SHIP as no-claim", []
        return row, ["no_claim: why a neutral version ships without a claim; or hold it"]
    if row == "CONDITIONAL SHIP" and not words.theory:
        return row, ["theory: why only the secondary metric can improve (§5.1)"]
    if row == "HOLD":
        if words.accept_regression:
            return "SHIP with accepted regression", []
        return row, ["accept_regression: the rationale for accepting it; or resolve it"]
    return row, []
