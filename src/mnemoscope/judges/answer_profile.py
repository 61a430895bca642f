"""How many words real right and wrong answers share with their references.

Counts of answers of gpt-4o-mini and gpt-4.1-mini to conversations 0, 2, 4, 6 and 8 of LoCoMo, where
three verdicts of another project agree (locomo-audit 9493fb4). `benchmarks/answer_profile.py`
prints the table. An exam of any benchmark weights its answers by it.
"""

from __future__ import annotations

from collections.abc import Mapping

from mnemoscope.text.reference_types import LENGTHS, SHARED, Shared

PROFILE: dict[bool, dict[str, tuple[int, ...]]] = {
    True: {
        "date, long": (0, 5, 1, 1, 1, 0),
        "date, plain": (37, 33, 32, 34, 10, 7),
        "date, sentence": (0, 34, 13, 17, 1, 4),
        "list, long": (0, 36, 40, 24, 20, 3),
        "list, plain": (96, 33, 73, 68, 76, 7),
        "list, sentence": (0, 50, 24, 18, 12, 0),
        "number, long": (0, 9, 1, 1, 0, 2),
        "number, plain": (15, 9, 1, 6, 2, 3),
        "number, sentence": (0, 7, 1, 1, 0, 0),
        "text, long": (0, 134, 24, 14, 8, 10),
        "text, plain": (277, 108, 64, 36, 65, 20),
        "text, sentence": (0, 153, 19, 11, 3, 5),
        "yes-no, long": (0, 5, 2, 4, 1, 0),
        "yes-no, plain": (0, 2, 5, 7, 8, 1),
        "yes-no, sentence": (0, 5, 0, 2, 1, 0),
    },
    False: {
        "date, long": (0, 0, 0, 2, 4, 9),
        "date, plain": (0, 0, 31, 23, 34, 16),
        "date, sentence": (0, 0, 11, 9, 9, 12),
        "list, long": (0, 0, 0, 2, 3, 4),
        "list, plain": (0, 0, 7, 13, 24, 30),
        "list, sentence": (0, 0, 1, 8, 1, 4),
        "number, long": (0, 0, 0, 1, 1, 3),
        "number, plain": (0, 0, 0, 9, 2, 9),
        "number, sentence": (0, 0, 0, 5, 1, 1),
        "text, long": (0, 2, 0, 7, 8, 27),
        "text, plain": (0, 0, 2, 4, 25, 63),
        "text, sentence": (0, 2, 0, 4, 7, 30),
        "yes-no, long": (0, 0, 0, 0, 1, 2),
        "yes-no, plain": (0, 0, 0, 0, 2, 3),
        "yes-no, sentence": (0, 0, 0, 0, 0, 6),
    },
}
"""By side and stratum: answers with the same, all, most, half, few and none of the words."""
_BORROWED = 10.0
"""A stratum with few answers borrows as many from the other lengths of its type."""


def shares_of_shared(acceptable: bool, stratum: str) -> Mapping[Shared, float]:
    """The shares of answers of a side of a stratum, by how many words they share."""
    kind = stratum.rpartition(", ")[0]
    side = PROFILE[acceptable]
    own = side[stratum]
    lengths = [side[f"{kind}, {length}"] for length in LENGTHS]
    of_type = [sum(counts) / sum(map(sum, lengths)) for counts in zip(*lengths, strict=True)]
    total = sum(own) + _BORROWED
    return {
        shared: (count + _BORROWED * share) / total
        for shared, count, share in zip(SHARED, own, of_type, strict=True)
    }
