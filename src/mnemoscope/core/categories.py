"""Recall Bench's kinds of memory work, in the order in which it shows them."""

CORE_CATEGORIES = (
    "factual-recall",
    "temporal-reasoning",
    "decision-tracking",
    "contradiction-resolution",
    "cross-reference",
    "recency-bias-resistance",
    "synthesis",
    "negative-recall",
)
"""Asked of every persona."""
GROUP_CATEGORIES = ("group-session-attribution", "information-boundary")
"""Need several sessions, and are asked on request."""
CATEGORIES = (*CORE_CATEGORIES, *GROUP_CATEGORIES)
