"""What others published: a registry of their numbers, what may be compared, what adds up.

Nothing here was measured by us. Numbers are quoted, their units made equal, their arithmetic
checked.
"""

from mnemoscope.published.arithmetic_audit import Audit, OverallCheck, audit
from mnemoscope.published.cohorts import Cohort, cohort_of, differences, same_cohort
from mnemoscope.published.published_results import Category, Printed, Published, load

__all__ = [
    "Audit",
    "Category",
    "Cohort",
    "OverallCheck",
    "Printed",
    "Published",
    "audit",
    "cohort_of",
    "differences",
    "load",
    "same_cohort",
]
