"""How many words real right and wrong answers share with references, and how many they have beside.

Counts of answers of gpt-4o-mini and gpt-4.1-mini to conversations 0, 2, 4, 6 and 8 of LoCoMo, where
three verdicts of another project agree (locomo-audit 9493fb4). `benchmarks/answer_profile.py`
prints the tables. An exam of any benchmark weights its answers by it.
"""

from __future__ import annotations

from collections.abc import Mapping

from mnemoscope.text.reference_types import BESIDE, LENGTHS, SHARED, Beside, Shared

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
WORDS_BESIDE: dict[bool, dict[str, dict[Shared, tuple[int, ...]]]] = {
    True: {
        "plain": {
            "same": (425, 0, 0, 0),
            "all": (70, 76, 36, 3),
            "most": (144, 25, 6, 0),
            "half": (109, 25, 16, 1),
            "few": (114, 39, 8, 0),
            "none": (6, 14, 17, 1),
        },
        "sentence": {
            "all": (0, 3, 75, 171),
            "most": (0, 2, 29, 26),
            "half": (0, 0, 13, 36),
            "few": (0, 0, 4, 13),
            "none": (0, 0, 1, 8),
        },
        "long": {
            "all": (0, 0, 0, 189),
            "most": (0, 0, 0, 68),
            "half": (0, 0, 0, 44),
            "few": (0, 0, 0, 30),
            "none": (0, 0, 0, 15),
        },
    },
    False: {
        "plain": {
            "most": (24, 14, 2, 0),
            "half": (28, 8, 13, 0),
            "few": (43, 38, 6, 0),
            "none": (25, 39, 48, 9),
        },
        "sentence": {
            "all": (0, 0, 0, 2),
            "most": (0, 0, 0, 12),
            "half": (0, 1, 8, 17),
            "few": (0, 0, 1, 17),
            "none": (0, 0, 0, 53),
        },
        "long": {
            "all": (0, 0, 0, 2),
            "half": (0, 0, 0, 12),
            "few": (0, 0, 0, 17),
            "none": (0, 0, 0, 45),
        },
    },
}
"""By side, length and words shared: answers with few, some, many and most other words."""
_BORROWED = 10.0
"""A stratum with few answers borrows as many from the other lengths of its type."""


def shares_of_words(acceptable: bool, stratum: str) -> Mapping[tuple[Shared, Beside], float]:
    """The shares of answers of a side of a stratum, by words shared and words beside.

    Words beside depend on the length and the words shared; types of references share their counts.
    """
    kind, _, length = stratum.rpartition(", ")
    side = PROFILE[acceptable]
    own = side[stratum]
    lengths = [side[f"{kind}, {length}"] for length in LENGTHS]
    of_type = [sum(counts) / sum(map(sum, lengths)) for counts in zip(*lengths, strict=True)]
    total = sum(own) + _BORROWED
    beside = WORDS_BESIDE[acceptable][length]
    found: dict[tuple[Shared, Beside], float] = {}
    for shared, count, share in zip(SHARED, own, of_type, strict=True):
        # Words that no answer of this length shares count as those of all its answers.
        counts = beside.get(shared) or tuple(map(sum, zip(*beside.values(), strict=True)))
        for words, part in zip(BESIDE, counts, strict=True):
            found[shared, words] = (count + _BORROWED * share) / total * part / sum(counts)
    return found
