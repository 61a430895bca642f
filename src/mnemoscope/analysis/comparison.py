"""What a comparison of two runs consists of: its declaration, its rows, its guard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope.stats.clustered import ALPHA, Interval
from mnemoscope.stats.verdicts import Verdict

OVERALL = "overall"

Role = Literal["primary", "secondary", "category", "chosen after looking"]


class Declared(msgspec.Struct, frozen=True):
    """What was declared before the runs: which metric decides, and which follow."""

    primary: str
    secondaries: list[str]
    source: str
    """Where it was declared, such as `protocol mnemoscope-retrieval-2:sound`."""
    alpha: float = ALPHA
    refused: str = ""
    """Why the declaration does not count, such as a plan that is younger than the run: then no
    metric has a verdict."""


class Row(msgspec.Struct, frozen=True):
    """One metric over all questions or in one category, base against candidate."""

    scope: str
    metric: str
    role: Role
    n: int
    clusters: int
    base: float
    cand: float
    delta: float
    se: float
    ci95: tuple[float, float]
    """The interval that decides: 95 % for the primary metric, categories and metrics chosen after
    looking, simultaneous for the secondary metrics (1 - alpha if a plan has another alpha). It is
    not clipped: `shown` is."""
    critical: float
    """Half the interval in standard errors."""
    p: float
    """The interval read backwards; adjusted for the number of secondary metrics."""
    verdict: Verdict | None
    """None for categories and metrics that were chosen after looking."""
    confirmed: bool | None
    """For secondary metrics: whether the primary metric is better or worse."""
    effect: float
    effect_name: str
    """`h` is Cohen's h, for proportions; `d_z` is mean / standard deviation of the differences."""
    effect_label: str
    detectable: float | None
    """The difference that this rule finds with power 0.8; None where no question changed, since
    the variance of the differences is then unknown, and where it exceeds the metric's range."""
    detectable_range: tuple[float, float] | None
    """Its 80 % limits: the standard error is itself an estimate."""
    these_only: bool
    """Whether the interval speaks of these clusters only, because they are fewer than five."""
    beyond_these: tuple[float, float] | None
    """With two to four clusters: the interval for other clusters, which no verdict uses."""
    effective_clusters: float
    """How many equally large clusters weigh as these do."""
    largest_share: float
    """The share of the questions that the largest cluster has."""
    span: float = 1.0
    gained: int | None = None
    lost: int | None = None
    p_sign_flips: float | None = None
    """A check from sign flips of whole clusters, if there are at least six: it assumes only that
    clusters are independent and symmetric."""

    @property
    def units(self) -> tuple[str, str]:
        """What `n` and `clusters` count."""
        return "question", "conversation"

    @property
    def shown(self) -> Interval:
        """The interval within the range that the metric has."""
        low, high = self.ci95
        return Interval(max(-self.span, low), min(self.span, high))


class ClusterDelta(msgspec.Struct, frozen=True):
    """The difference in the primary metric in one cluster."""

    cluster: str
    n: int
    delta: float


class Guarded(msgspec.Struct, frozen=True):
    """One metric of the guard against regressions."""

    metric: str
    delta: float
    simultaneous: tuple[float, float]
    """Its interval together with those of all guarded metrics."""
    own: tuple[float, float]
    """Its own 95 % interval, for the claim that nothing regressed."""


class Guard(NamedTuple):
    """Whether the candidate regressed; a decision with an error budget of its own."""

    verdict: Literal["hold", "no regression", "cannot tell"]
    regressed: list[str]
    """Metrics whose simultaneous interval lies below zero: each holds the release."""
    open: list[str]
    """Metrics whose own interval reaches below their margin; empty without margins."""


class Discordant(msgspec.Struct, frozen=True):
    """A question that one run hit and the other missed."""

    question: str
    category: str
    text: str
    change: Literal["gained", "lost"]


class Comparison(msgspec.Struct, frozen=True):
    """The full result of `mnemoscope compare`."""

    base: str
    cand: str
    benchmark: str
    paired: int
    only_base: int
    only_cand: int
    failed: int
    """Shared questions that failed in at least one of the runs; they are left out."""
    clusters: int
    band: float | None
    declared: Declared
    rows: list[Row]
    guarded: list[Guarded]
    """The primary and the secondary metrics, with intervals that hold for all of them at once."""
    by_cluster: list[ClusterDelta]
    """The primary metric in each cluster, if there are at most twenty."""
    notes: list[str]
    discordant: list[Discordant] = []

    @property
    def regressed(self) -> bool:
        """Whether the primary metric is worse or the guard holds: then the exit code is 1."""
        return bool(self.regressions)

    @property
    def regressions(self) -> list[str]:
        """The primary metric if its verdict is worse, and every metric that the guard names.

        The intervals of the guard are simultaneous, hence wider than that of the primary metric.
        """
        primary = self.primary
        worse = [primary.metric] if primary is not None and primary.verdict == "worse" else []
        return list(dict.fromkeys([*worse, *self.guard().regressed]))

    def guard(self, margin: float | Mapping[str, float] | None = None) -> Guard:
        """Whether a declared metric regressed, or surely none by more than the margin.

        `hold` uses the simultaneous intervals. `no regression` needs every metric's own interval
        above -margin (one margin, or one for each metric); all must pass, so it needs no
        correction. What follows from `cannot tell` is a policy.
        """
        regressed = [one.metric for one in self.guarded if one.simultaneous[1] < 0]
        if regressed:
            return Guard("hold", regressed, [])
        if margin is None or not self.guarded:
            return Guard("cannot tell", [], [])
        margins = (
            margin
            if isinstance(margin, Mapping)
            else dict.fromkeys((one.metric for one in self.guarded), margin)
        )
        open = [one.metric for one in self.guarded if not one.own[0] > -margins.get(one.metric, 0)]
        return Guard("cannot tell" if open else "no regression", [], open)

    @property
    def primary(self) -> Row | None:
        return next((row for row in self.rows if row.role == "primary"), None)

    def row(self, metric: str, scope: str = OVERALL) -> Row:
        for row in self.rows:
            if (row.metric, row.scope) == (metric, scope):
                return row
        raise UsageError(f"the comparison has no {metric} in {scope}")
