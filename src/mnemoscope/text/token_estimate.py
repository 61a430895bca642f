"""Estimated context tokens: four characters per token, rounded up.

Exact counts depend on the model and need its vocabulary. Budgets only compare systems with each
other, so one fixed rule is enough.
"""

from __future__ import annotations

CHARACTERS_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)
