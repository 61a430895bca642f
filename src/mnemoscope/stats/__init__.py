"""How sure a number is: intervals that know their sample and its clusters, tests, verdicts."""

from mnemoscope.stats.agreement import Kappa, VarianceSplit, cohens_kappa, variance_split
from mnemoscope.stats.corrections import holm
from mnemoscope.stats.correlation import Correlation, pearson, spearman
from mnemoscope.stats.equivalence import Equivalence, Verdict, equivalent, tost, verdict
from mnemoscope.stats.intervals import Bootstrap, Interval, bootstrap, wilson
from mnemoscope.stats.paired import (
    Test,
    mcnemar_exact,
    paired_bootstrap,
    paired_t,
    permutation,
    wilcoxon,
)
from mnemoscope.stats.power import (
    effective_n,
    mdd_mcnemar,
    mdd_paired,
    mdd_unpaired,
    power_paired,
    power_unpaired,
)
from mnemoscope.stats.proportions import (
    Effect,
    ZTest,
    cohens_h,
    effect_label,
    two_proportion_z,
)
from mnemoscope.stats.trend import Trend, linear_trend

__all__ = [
    "Bootstrap",
    "Correlation",
    "Effect",
    "Equivalence",
    "Interval",
    "Kappa",
    "Test",
    "Trend",
    "VarianceSplit",
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
    "mdd_unpaired",
    "paired_bootstrap",
    "paired_t",
    "pearson",
    "permutation",
    "power_paired",
    "power_unpaired",
    "spearman",
    "tost",
    "two_proportion_z",
    "variance_split",
    "verdict",
    "wilcoxon",
    "wilson",
]
