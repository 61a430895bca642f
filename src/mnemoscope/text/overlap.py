"""Word overlap of two texts: ROUGE-L, and LoCoMo's F1 with its rules by category.

Pure functions on strings, with values in [0, 1].
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
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_ABSTENTIONS = ("no information available", "not mentioned")


def rouge_l(candidate: str, reference: str, tokens: Tokens = "words") -> float:
    """F1 of the longest common subsequence: 2 L / (m + n) for m and n tokens.

    "words" are runs of [a-z0-9] in lower case, like the rouge-score package without its stemmer;
    "whitespace" splits at white space only, like Nexus. 0 if either text has no tokens.
    """
    one, other = _tokens(candidate, tokens), _tokens(reference, tokens)
    return 2 * _common_subsequence(one, other) / (len(one) + len(other)) if one and other else 0.0


def rouge_l_recall(candidate: str, reference: str, tokens: Tokens = "words") -> float:
    """The share of the reference's tokens that the candidate has in the same order: L / n."""
    one, other = _tokens(candidate, tokens), _tokens(reference, tokens)
    return _common_subsequence(one, other) / len(other) if one and other else 0.0


def locomo_f1(prediction: str, reference: str, category: str) -> float:
    """LoCoMo's official score of an answer, by the category number of the question.

    1 (multi-hop): the mean over the comma-separated parts of the reference, each with its best part
    of the prediction. 3 (open-domain): the reference up to its first semicolon. 5 (adversarial): 1
    if the prediction contains one of two phrases for "nothing known". Others: token F1.
    """
    if category == "5":
        plain = prediction.lower()
        return float(any(phrase in plain for phrase in _ABSTENTIONS))
    if category == "1":
        predicted = [answer_tokens(part) for part in prediction.split(",")]
        expected = [answer_tokens(part) for part in reference.split(",")]
        best = [max(_f1(one, other) for one in predicted) for other in expected]
        return sum(best) / len(best)
    if category == "3":
        reference = reference.partition(";")[0]
    return token_f1(prediction, reference)


def token_f1(prediction: str, reference: str) -> float:
    """F1 of the two bags of normalised, stemmed words; 0 if either is empty."""
    return _f1(answer_tokens(prediction), answer_tokens(reference))


def normal_answer(text: str) -> str:
    """The answer without case, punctuation, articles, "and" and extra white space."""
    plain = text.lower().translate(_PUNCTUATION)
    return " ".join(_DROPPED.sub(" ", plain).split())


def without_articles(text: str) -> str:
    """The answer without case, punctuation, articles and extra white space, as SQuAD compares."""
    plain = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", plain).split())


def answer_tokens(text: str) -> list[str]:
    """The stems of the normalised answer, like LoCoMo's: Porter's stemmer with NLTK's changes.

    The official scorer uses the installed version of NLTK. Ours is tested against NLTK 3.10, on
    every word of LoCoMo and on random words.
    """
    return [porter_stem(word) for word in normal_answer(text).split()]


def _f1(one: Sequence[str], other: Sequence[str]) -> float:
    same = (Counter(one) & Counter(other)).total()
    return 2 * same / (len(one) + len(other)) if same else 0.0


def _tokens(text: str, tokens: Tokens) -> list[str]:
    return _WORDS.findall(text.lower()) if tokens == "words" else text.lower().split()


def _common_subsequence(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of the longest common subsequence, with a table row as one integer.

    Hyyrö's bit-vector algorithm (2004): a bit of `row` is 0 where the table value grows. It takes
    one step per token instead of one per cell, which matters for thousands of answers.
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
