"""Ship or hold: the process's decision matrix (§5) and its conditional rule (§5.1)."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.analysis.compare import OVERALL, Comparison
from mnemoscope.protocols import Benchmark
from mnemoscope.release.figures import Standing, basis, standing
from mnemoscope.release.state import Decision, Release, Row, Words
from mnemoscope.release.timestamps import Moment

NEUTRAL: Row = "HOLD or SHIP as no-claim"
_CAUTION: tuple[Row, ...] = ("HOLD", "CONDITIONAL SHIP", "SHIP with caveat", "SHIP")
RATIONALE: dict[Row, str] = {
    "SHIP": "clear win: primary and secondary metric improved significantly",
    "SHIP with caveat": "the lead metric improved; the other shows no significant change",
    "CONDITIONAL SHIP": "only the secondary metric improved significantly; §5.1 applies",
    NEUTRAL: "neither metric changed significantly; neutral, no performance claim may be made",
    "HOLD": "a metric regressed significantly; to be resolved, or accepted with a rationale",
}


def matrix_row(comparison: Comparison, rules: Benchmark) -> Row:
    """The row of the matrix that one benchmark falls into."""
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


def together(rows: Sequence[Row]) -> Row:
    """One row for the release: the most cautious of its benchmarks' rows.

    A neutral benchmark does not undo what another one showed, but it is a caveat to it.
    """
    shown = [row for row in rows if row != NEUTRAL]
    if not shown:
        return NEUTRAL
    worst = min(shown, key=_CAUTION.index)
    return "SHIP with caveat" if worst == "SHIP" and len(shown) < len(rows) else worst


def decide(release: Release, found: Sequence[Comparison], when: Moment) -> Decision:
    """Apply the matrix to the figures, and say what the outcome still demands."""
    rows = {
        one.benchmark: matrix_row(one, release.protocol.benchmark(one.benchmark)) for one in found
    }
    row = together(list(rows.values()))
    outcome, demands = _resolved(row, release.state.words)
    return Decision(outcome, rows, demands, when, basis(found))


def is_conditional(decision: Decision | None) -> bool:
    return decision is not None and "CONDITIONAL SHIP" in decision.rows.values()


def _resolved(row: Row, words: Words) -> tuple[str, list[str]]:
    """The outcome once people said what the matrix leaves to them, and what they have yet to."""
    if row == NEUTRAL:
        if words.no_claim:
            return "SHIP as no-claim", []
        return row, ["no_claim: why a neutral version is shipped without any claim; else hold it"]
    if row == "CONDITIONAL SHIP" and not words.theory:
        return row, ["theory: why the secondary metric can gain without the primary one (§5.1)"]
    if row == "HOLD":
        if words.accept_regression:
            return "SHIP with accepted regression", []
        return row, ["accept_regression: the rationale for accepting it; else resolve it"]
    return row, []
