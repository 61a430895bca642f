"""Porter's stemmer with NLTK's changes, which the scoring of LoCoMo's answers uses.

Porter, "An algorithm for suffix stripping" (1980). NLTK's changes: words of two letters stay, "y"
becomes "i" only after a consonant, *dies* and *died* keep their "ie", there are a few more endings,
and a few words are listed. Tested against NLTK on every word of LoCoMo.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import pairwise

_VOWELS = frozenset("aeiou")
_SHORT = 2
_LISTED = dict(
    pair.split(">")
    for pair in (
        "skies>sky sky>sky dying>die lying>lie tying>tie news>news innings>inning inning>inning "
        "outings>outing outing>outing cannings>canning canning>canning howe>howe proceed>proceed "
        "exceed>exceed succeed>succeed"
    ).split()
)
_PLURALS = {"sses": "ss", "ies": "i", "ss": "ss", "s": ""}
# The first matching ending decides, whether it can be changed or not.
_STEP_2 = dict(
    pair.split(">")
    for pair in (
        "ational>ate tional>tion enci>ence anci>ance izer>ize bli>ble alli>al entli>ent eli>e "
        "ousli>ous ization>ize ation>ate ator>ate alism>al iveness>ive fulness>ful ousness>ous "
        "aliti>al iviti>ive biliti>ble fulli>ful"
    ).split()
)
_STEP_3 = dict(
    pair.split(">") for pair in "icate>ic ative> alize>al iciti>ic ical>ic ful> ness>".split()
)
_STEP_4 = dict.fromkeys(
    ("al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize").split(),
    "",
)


@lru_cache(maxsize=1 << 16)
def porter_stem(word: str) -> str:
    """The stem of a word in lower case."""
    if word in _LISTED:
        return _LISTED[word]
    if len(word) <= _SHORT:
        return word
    word = _without_past(_without_plural(word))
    if word.endswith("y") and len(word) > _SHORT and _consonants(word)[-2]:
        word = word[:-1] + "i"
    word = _changed(_step_2(word), _STEP_3, lambda stem, _: _measure(stem) > 0)
    word = _changed(word, _STEP_4, _removable)
    return _without_last(word)


def _without_plural(word: str) -> str:
    if word.endswith("ies") and len(word) == len("dies"):
        return word[:-1]
    return _changed(word, _PLURALS, lambda stem, ending: True)


def _without_past(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == len("died") else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    stem = word.removesuffix("ed") if word.endswith("ed") else word.removesuffix("ing")
    if stem == word or all(_consonants(stem)):
        return word
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if stem[-2:-1] == stem[-1] and _consonants(stem)[-1]:
        return stem if stem[-1] in "lsz" else stem[:-1]
    return stem + "e" if _measure(stem) == 1 and _closed(stem) else stem


def _step_2(word: str) -> str:
    while word.endswith("alli") and _measure(word[:-4]) > 0:
        word = word[:-2]
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    return _changed(word, _STEP_2, lambda stem, _: _measure(stem) > 0)


def _removable(stem: str, ending: str) -> bool:
    return _measure(stem) > 1 and (ending != "ion" or stem[-1] in "st")


def _without_last(word: str) -> str:
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _closed(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _changed(word: str, endings: Mapping[str, str], may: Callable[[str, str], bool]) -> str:
    for ending, instead in endings.items():
        if word.endswith(ending):
            stem = word[: -len(ending)]
            return stem + instead if may(stem, ending) else word
    return word


def _measure(stem: str) -> int:
    """How often a consonant follows a vowel."""
    flags = _consonants(stem)
    return sum(later and not flag for flag, later in pairwise(flags))


def _closed(stem: str) -> bool:
    """Whether it ends like *hop*, but not in w, x or y; or is a word like *us*."""
    end = _consonants(stem)[-3:]
    if len(stem) == _SHORT:
        return end == [False, True]
    return end == [True, False, True] and stem[-1] not in "wxy"


def _consonants(word: str) -> list[bool]:
    """Whether each letter is a consonant; "y" is one unless it follows a consonant."""
    flags: list[bool] = []
    for letter in word:
        vowel = letter in _VOWELS or (letter == "y" and bool(flags) and flags[-1])
        flags.append(not vowel)
    return flags
