"""How far two texts share their words: ROUGE-L, and LoCoMo's F1 with its rules by category.

Pure functions on strings, in [0, 1]. Nothing here knows what a word means.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from mnemoscope.text.porter import porter_stem

Tokens = Literal["words", "whitespace"]

_WORDS = re.compile("[a-z0-9]+")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_DROPPED = re.compile(r"\b(?:a|an|the|and)\b")
_SILENT = ("no information available", "not mentioned")


def rouge_l(candidate: str, reference: str, tokens: Tokens = "words") -> float:
    """F1 of the longest common subsequence: 2 L / (m + n) for m and n tokens.

    "words" are runs of [a-z0-9] in lower case, as the rouge-score package cuts them without its
    stemmer; "whitespace" cuts at white space only, as Nexus does. 0 where either text has none.
    """
    said, wanted = _cut(candidate, tokens), _cut(reference, tokens)
    if not said or not wanted:
        return 0.0
    return 2 * _common_subsequence(said, wanted) / (len(said) + len(wanted))


def rouge_l_recall(candidate: str, reference: str, tokens: Tokens = "words") -> float:
    """The share of the reference's tokens that the candidate has in the same order: L / n."""
    said, wanted = _cut(candidate, tokens), _cut(reference, tokens)
    if not said or not wanted:
        return 0.0
    return _common_subsequence(said, wanted) / len(wanted)


def locomo_f1(prediction: str, reference: str, category: str) -> float:
    """LoCoMo's own score of an answer, by the number of the question's category.

    1 (multi-hop): each part of the reference between commas takes its best part of the prediction,
    then the mean. 3 (open-domain): the reference up to its first semicolon. 5 (adversarial): 1 if
    the prediction says one of two phrases for "nothing known". 2, 4, and whatever else: token F1.
    """
    if category == "5":
        plain = prediction.lower()
        return float(any(phrase in plain for phrase in _SILENT))
    if category == "1":
        said = [answer_tokens(part) for part in prediction.split(",")]
        wanted = [answer_tokens(part) for part in reference.split(",")]
        best = [max(_f1(one, other) for one in said) for other in wanted]
        return sum(best) / len(best)
    if category == "3":
        reference = reference.partition(";")[0]
    return token_f1(prediction, reference)


def token_f1(prediction: str, reference: str) -> float:
    """F1 of the two bags of normalised, stemmed words; 0 where either is empty."""
    return _f1(answer_tokens(prediction), answer_tokens(reference))


def normal_answer(text: str) -> str:
    """The answer without case, punctuation, articles, "and" and superfluous space."""
    plain = text.lower().translate(_PUNCTUATION)
    return " ".join(_DROPPED.sub(" ", plain).split())


def answer_tokens(text: str) -> list[str]:
    """The stems of the normal answer, as LoCoMo takes them: Porter's with NLTK's changes.

    What still may differ from the official scorer: it stems by whatever NLTK is installed with it,
    ours is tested by NLTK 3.10, on every word of LoCoMo and on made-up ones.
    """
    return [porter_stem(word) for word in normal_answer(text).split()]


def _f1(said: Sequence[str], wanted: Sequence[str]) -> float:
    same = (Counter(said) & Counter(wanted)).total()
    return 2 * same / (len(said) + len(wanted)) if same else 0.0


def _cut(text: str, tokens: Tokens) -> list[str]:
    return _WORDS.findall(text.lower()) if tokens == "words" else text.lower().split()


def _common_subsequence(one: Sequence[str], other: Sequence[str]) -> int:
    """Length of the longest common subsequence, a row of the table in one integer.

    Hyyrö's bit-vector form (2004): a bit of `row` is 0 where the table's value grows. One step a
    token instead of one a cell, which a metric over thousands of answers needs.
    """
    places: dict[str, int] = {}
    for position, token in enumerate(other):
        places[token] = places.get(token, 0) | 1 << position
    everything = (1 << len(other)) - 1
    row = everything
    for token in one:
        if matches := places.get(token, 0) & row:
            row = (row + matches | row - matches) & everything
    return len(other) - row.bit_count()
