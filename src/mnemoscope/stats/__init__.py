"""Statistics: intervals for clustered samples, a permutation test, power and verdicts."""

from mnemoscope.stats.agreement import Kappa, cohens_kappa
from mnemoscope.stats.correlation import Correlation, pearson, spearman
from mnemoscope.stats.intervals import Bootstrap, Interval, bootstrap, wilson
from mnemoscope.stats.paired import permutation
from mnemoscope.stats.proportions import Effect, ZTest, cohens_h, effect_label, two_proportion_z
from mnemoscope.stats.trend import Trend, linear_trend
from mnemoscope.stats.verdicts import Verdict, holm, verdict_of

__all__ = [
    "Bootstrap",
    "Correlation",
    "Effect",
    "Interval",
    "Kappa",
    "Trend",
    "Verdict",
    "ZTest",
    "bootstrap",
    "cohens_h",
    "cohens_kappa",
    "effect_label",
    "holm",
    "linear_trend",
    "pearson",
    "permutation",
    "spearman",
    "two_proportion_z",
    "verdict_of",
    "wilson",
]
