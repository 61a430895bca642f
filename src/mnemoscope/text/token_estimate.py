"""Context tokens, estimated: four characters a token, rounded up.

An estimate on purpose. Exact counts differ from model to model and need a vocabulary that is
downloaded; budgets compare systems with each other, and for that one fixed rule is enough.
"""

from __future__ import annotations

CHARACTERS_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)
