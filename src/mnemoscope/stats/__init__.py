"""Statistics: confidence intervals for clustered samples, paired tests, power and verdicts."""

from mnemoscope.stats.agreement import Kappa, cohens_kappa
from mnemoscope.stats.correlation import Correlation, pearson, spearman
from mnemoscope.stats.intervals import Bootstrap, Interval, bootstrap, wilson
from mnemoscope.stats.paired import (
    Test,
    mcnemar_exact,
    paired_bootstrap,
    paired_t,
    permutation,
    wilcoxon,
)
from mnemoscope.stats.power import effective_n, mdd_mcnemar, mdd_paired
from mnemoscope.stats.proportions import Effect, ZTest, cohens_h, effect_label, two_proportion_z
from mnemoscope.stats.trend import Trend, linear_trend
from mnemoscope.stats.verdicts import Verdict, equivalent, holm, verdict

__all__ = [
    "Bootstrap",
    "Correlation",
    "Effect",
    "Interval",
    "Kappa",
    "Test",
    "Trend",
    "Verdict",
    "ZTest",
    "bootstrap",
    "cohens_h",
    "cohens_kappa",
    "effect_label",
    "effective_n",
    "equivalent",
    "holm",
    "linear_trend",
    "mcnemar_exact",
    "mdd_mcnemar",
    "mdd_paired",
    "paired_bootstrap",
    "paired_t",
    "pearson",
    "permutation",
    "spearman",
    "two_proportion_z",
    "verdict",
    "wilcoxon",
    "wilson",
]
