"""The figures of a release, its guard, and the decision matrix of the process (§5, §5.1).

A report can have several benchmarks, and a gain on either may be claimed, so they share alpha.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from mnemoscope._store.jsonl import write_atomically
from mnemoscope.analysis.compare import compare
from mnemoscope.analysis.comparison import OVERALL, Comparison, Declared, Row
from mnemoscope.protocols import Benchmark
from mnemoscope.release.state import Decision, MatrixRow, Moment, Release, Words

ALPHA = 0.05
Standing = Literal["improved", "regressed", "neutral"]
Guard = Literal["hold", "no regression within the margin", "cannot tell"]
POLICY: dict[Guard, str] = {
    "hold": "a metric is worse: the release is held, unless the regression is accepted",
    "no regression within the margin": "every guarded metric fell by less than its margin, if at "
    "all: this may be said",
    "cannot tell": "neither a regression nor its absence is shown: the release is not held, and "
    "must not claim that nothing regressed",
}
"""What follows from the guard. That “cannot tell” does not hold a release is a policy."""
FALSE_HOLD = (
    "A release is held if the simultaneous interval of a declared metric lies below zero. The "
    "intervals of all declared metrics hold at once with 95 %, over all benchmarks of the release, "
    "so a release without any change is held in at most 5 % of cases; docs/calibration.md has the "
    "simulated rate."
)
"""How often the guard holds a release without a regression."""
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
    """Whether a metric improved, regressed or did neither, by the verdict of its comparison."""
    if row.verdict == "better":
        return "improved"
    return "regressed" if row.verdict == "worse" else "neutral"


def guard(comparison: Comparison, margins: Mapping[str, float]) -> Guard:
    """Whether a metric regressed, none did by more than its margin, or neither is shown.

    `margins` has the guarded metrics with the largest drop that does not matter.
    """
    found = comparison.guard(margins).verdict
    return "no regression within the margin" if found == "no regression" else found


def margins(rules: Benchmark) -> dict[str, float]:
    """The margins of all metrics of the protocol: its acceptable variance from run to run.

    A metric without a band of its own has the narrowest one.
    """
    narrowest = min(rules.variance.values(), default=0.0)
    return {metric: rules.variance.get(metric, narrowest) for metric in rules.metrics}


def comparisons(release: Release) -> list[Comparison]:
    """A comparison for each benchmark, on the protocol's metrics; the benchmarks share alpha."""
    release.ensure_unedited()
    pairs = release.state.pairs
    return [
        compare(
            release.run(pair.base),
            release.run(pair.cand),
            declared=_declared(release, pair.benchmark, ALPHA / len(pairs)),
        )
        for pair in pairs
    ]


def _declared(release: Release, benchmark: str, alpha: float) -> Declared:
    rules = release.protocol.benchmark(benchmark)
    others = [name for name in rules.metrics if name != rules.primary]
    return Declared(rules.primary, others, f"protocol {release.protocol.id}", alpha)


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


def _name(one: Comparison) -> str:
    return f"comparison-{one.benchmark}.json"


def _encoded(one: Comparison) -> bytes:
    return msgspec.json.format(msgspec.json.encode(one), indent=2) + b"\n"


def matrix_row(comparison: Comparison, rules: Benchmark) -> MatrixRow:
    """The row of the matrix for one benchmark."""
    if guard(comparison, margins(rules)) == "hold":
        return "HOLD"
    primary: Standing = standing(comparison.row(rules.primary))
    secondary: Standing = standing(comparison.row(rules.secondary))
    if primary == "improved":
        return "SHIP" if secondary == "improved" else "SHIP with caveat"
    return "CONDITIONAL SHIP" if secondary == "improved" else NEUTRAL


def regressions(comparison: Comparison) -> list[str]:
    """Every metric that regressed, by simultaneous intervals; categories are exploratory."""
    return comparison.guard().regressed


def worsened(comparison: Comparison) -> list[Row]:
    """Every row with a lower mean than before, significant or not."""
    return [row for row in comparison.rows if row.delta < 0]


def row_name(row: Row) -> str:
    return row.metric if row.scope == OVERALL else f"{row.metric} in category {row.scope}"


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
