"""The errors of a judge in its exam: rates with intervals, by kind of answer and over all kinds.

An exam draws answers by kind, more of rare kinds than a benchmark holds. So a rate over all kinds
is a weighted mean, and its interval is Wilson's with the number of answers that the weights are
worth. The rule for passing is here, because the files of runs are checked with it, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from typing import NamedTuple

from mnemoscope.stats.clustered import Interval
from mnemoscope.stats.distributions import normal_quantile

MOST_WRONG = 0.10
"""To pass, the upper ends of false accepts and of false rejects are at most this."""
MOST_OF_A_KIND = 0.25
"""The same for each kind of answer."""
MOST_UNJUDGED = 0.05
LEAST_OF_A_KIND = 20
"""A kind with fewer answers in the whole benchmark is not judged by itself."""
_Z = normal_quantile(0.975)


class ErrorCell(NamedTuple):
    """The verdicts on answers of one kind and one stratum (type of reference and length)."""

    kind: str
    acceptable: bool
    stratum: str
    n: int
    """Answers with a verdict."""
    errors: int
    unjudged: int
    weight: float
    """The share of the cell among the right, or the wrong, answers of the stratum."""
    shared: str = ""
    """How many of the reference's words the answers have; empty in older exams."""
    beside: str = ""
    """How many other words the answers have; empty in older exams."""


class ErrorRate(NamedTuple):
    """A rate of errors with its interval; `n` is what the weighted answers are worth."""

    rate: float
    low: float
    high: float
    n: float
    errors: int
    of: int

    @property
    def text(self) -> str:
        return f"{self.errors} of {self.of}"


def error_rate(cells: Iterable[ErrorCell], shares: Mapping[str, float]) -> ErrorRate:
    """The weighted rate over cells of right or of wrong answers; `shares` are those of the strata.

    Strata without answers in the exam are left out, and the others weigh more.
    """
    judged = [cell for cell in cells if cell.n]
    weights = _weights(judged, shares)
    errors, of = sum(cell.errors for cell in judged), sum(cell.n for cell in judged)
    if not judged or not weights:
        return ErrorRate(0.0, 0.0, 1.0, 0.0, errors, of)
    rate, variance = _mean(judged, weights)
    if 0 < rate < 1:
        n = rate * (1 - rate) / variance
    else:
        n = 1 / sum(w * w / cell.n for cell, w in zip(judged, weights, strict=True))
    n = min(n, float(of))
    return ErrorRate(rate, *_wilson(rate, n), n, errors, of)


def mix_range(cells: Iterable[ErrorCell], shares: Mapping[str, float]) -> Interval:
    """The interval of the rate if it is not known how near the answers are to their references.

    A judge of words errs on wrong answers that are nearly right, and sets hold more or fewer of
    these. So the shares of answers with all, most, half, few or none of the
    reference's words are taken as drawn: around the exam's, and as widely as if any shares were as
    likely as any others (a Dirichlet distribution with as many counts as there are shares).
    """
    judged = [cell for cell in cells if cell.n]
    weights = _weights(judged, shares)
    if not judged or not weights:
        return Interval(0.0, 1.0)
    rate, variance = _mean(judged, weights)
    if not 0 < rate < 1:
        found = error_rate(judged, shares)
        return Interval(found.low, found.high)
    parts: dict[str, list[float]] = {}
    for cell, w in zip(judged, weights, strict=True):
        if w:
            own = parts.setdefault(cell.shared, [0.0, 0.0])
            own[0] += w
            own[1] += w * cell.errors / cell.n
    spread = sum(errors * errors / w for w, errors in parts.values()) - rate * rate
    variance += max(0.0, spread) / (len(parts) + 1)
    return _wilson(rate, rate * (1 - rate) / variance)


def _mean(cells: Sequence[ErrorCell], weights: Sequence[float]) -> tuple[float, float]:
    """The weighted rate, and the variance that it has because the exam's answers were drawn."""
    pairs = list(zip(cells, weights, strict=True))
    rate = min(1.0, max(0.0, sum(w * cell.errors / cell.n for cell, w in pairs)))
    if all(cell.errors == cell.n for cell, w in pairs if w):
        rate = 1.0  # the sum of the weights may be a little less
    variance = 0.0
    for cell, w in pairs:
        # A cell without an error is not without variance: it borrows from the overall rate.
        own = (cell.errors + rate) / (cell.n + 1)
        variance += w * w * own * (1 - own) / cell.n
    return rate, variance


def _weights(cells: Sequence[ErrorCell], shares: Mapping[str, float]) -> list[float]:
    inner: dict[str, float] = {}
    for cell in cells:
        inner[cell.stratum] = inner.get(cell.stratum, 0.0) + cell.weight
    known = sum(shares.get(stratum, 0.0) for stratum, total in inner.items() if total)
    if not known:
        return []
    return [
        shares.get(cell.stratum, 0.0) / known * cell.weight / inner[cell.stratum]
        if inner[cell.stratum]
        else 0.0
        for cell in cells
    ]


def length_rates(cells: Sequence[ErrorCell], shares: Mapping[str, float]) -> dict[str, ErrorRate]:
    """The weighted rate of plain, sentence and long answers, where there are several lengths."""
    lengths = dict.fromkeys(
        cell.stratum.rpartition(", ")[2] for cell in cells if ", " in cell.stratum
    )
    if len(lengths) < 2:
        return {}
    return {
        length: error_rate([c for c in cells if c.stratum.endswith(f", {length}")], shares)
        for length in lengths
    }


def kind_rates(cells: Iterable[ErrorCell]) -> dict[str, ErrorRate]:
    """The unweighted rate of each kind."""
    counts: dict[str, tuple[int, int]] = {}
    for cell in cells:
        errors, of = counts.get(cell.kind, (0, 0))
        counts[cell.kind] = errors + cell.errors, of + cell.n
    return {
        kind: ErrorRate(
            errors / of if of else 0.0, *_wilson(errors / of if of else 0.0, of), of, errors, of
        )
        for kind, (errors, of) in counts.items()
    }


def reasons_to_fail(
    cells: Sequence[ErrorCell], shares: Mapping[str, float], held: Mapping[str, int]
) -> list[str]:
    """Why a judge with these verdicts fails its exam, as sentences; empty if it passes.

    `held` is how many answers of each kind the benchmark could give.
    """
    reasons: list[str] = []
    for acceptable, error in ((False, "accepts wrong answers"), (True, "rejects right answers")):
        own = [cell for cell in cells if cell.acceptable is acceptable]
        found = error_rate(own, shares)
        if not found.of:
            reasons.append(f"it judged no {'right' if acceptable else 'wrong'} answers")
            continue
        if found.high > MOST_WRONG:
            reasons.append(_too_often(f"it {error}", found, MOST_WRONG))
        else:
            # Else a judge that errs on short answers could pass by long ones.
            reasons += [
                _too_often(f"it {error} ({length})", rate, MOST_WRONG)
                for length, rate in length_rates(own, shares).items()
                if rate.high > MOST_WRONG
            ]
        for kind, rate in kind_rates(own).items():
            if held.get(kind, rate.of) < LEAST_OF_A_KIND:
                continue
            if rate.high > MOST_OF_A_KIND:
                reasons.append(_too_often(f"it {error} of the kind {kind}", rate, MOST_OF_A_KIND))
    unjudged, asked = sum(c.unjudged for c in cells), sum(c.unjudged + c.n for c in cells)
    if asked and unjudged > MOST_UNJUDGED * asked:
        reasons.append(f"it gives no verdict too often ({unjudged} of {asked})")
    return reasons


def _too_often(what: str, found: ErrorRate, limit: float) -> str:
    if found.rate <= limit:
        return (
            f"{what} at a rate that may lie above {limit:.0%} ({found.text}, at most "
            f"{found.high:.1%}): it needs more exam answers"
        )
    return f"{what} too often ({found.text})"


def _wilson(rate: float, n: float) -> Interval:
    if not n:
        return Interval(0.0, 1.0)
    square = _Z * _Z
    spread = _Z * sqrt(rate * (1 - rate) / n + square / (4 * n * n))
    centre, scale = rate + square / (2 * n), 1 + square / n
    low = 0.0 if rate == 0 else max(0.0, (centre - spread) / scale)
    high = 1.0 if rate == 1 else min(1.0, (centre + spread) / scale)
    return Interval(low, high)
