"""A registry of published numbers, their cohorts, and checks of their arithmetic.

We did not measure these numbers. They are quoted, in equal units, with their arithmetic checked.
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
