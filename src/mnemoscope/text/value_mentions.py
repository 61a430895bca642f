"""Which of two values an answer tells: the right one, one of another time, or both.

Stricter than a judge of content: an answer that names both values must say which one is past.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from mnemoscope.text.matching import Sentence, normal_wording, sentences, spans

Told = Literal["right", "outdated", "mixed", "neither"]
"""The value that an answer tells as the one that was asked for."""

_NOT = r"n't|\bnot|\bnever|\bno longer|\binstead of|\brather than"
_PAST = (
    r"\bprevious(?:ly)?|\bformer(?:ly)?|\boriginal(?:ly)?|\binitial(?:ly)?|\bat first|\bused to|"
    r"\bearlier|\bbefore|\boutdated|\bold|\buntil|\breplac(?:es|ed|ing)|\bsupersed(?:es|ed)"
)
_FROM = r"\bfrom"
_WAS = r"\bwas|\bwere|\bhad been"
_LATER = r"\bnow|\btoday|\bcurrent(?:ly)?|\blater|\bsince|\bafterwards|\bto|\bbecame|\bbecomes"
_WITHIN = r" (?:(?:the|a|an|at|on|in|our|about|be|been|it|is|was|were|set|as|given|noted|then) )*$"
"""Between a marker and the value it marks."""
_DENIED = re.compile(f"(?:{_NOT}){_WITHIN}")
_CALLED_PAST = re.compile(f"(?:{_NOT}|{_PAST}|{_FROM}){_WITHIN}")
_IN_PAST_TENSE = re.compile(f"(?:{_NOT}|{_PAST}|{_FROM}|{_WAS}){_WITHIN}")
_OF_ANOTHER_DAY = re.compile(f"(?:{_NOT}|{_PAST}|{_FROM}|{_LATER}){_WITHIN}")


def told(
    answer: str, right: Iterable[str], others: Iterable[str], *, about_past: bool = False
) -> Told:
    """Which value the answer tells.

    `others` are values of other times. `about_past` is for questions about an earlier day: there
    another value may be named if it is marked as that of another day.
    """
    said = sentences(answer)
    own = list(dict.fromkeys(map(normal_wording, right)))
    wrong = [value for value in dict.fromkeys(map(normal_wording, others)) if value not in own]
    if about_past:
        tells_right = _asserts(said, own, wrong, _DENIED)
        tells_other = _asserts(said, wrong, own, _OF_ANOTHER_DAY)
    else:
        tells_right = _asserts(said, own, wrong, _CALLED_PAST)
        # "It was 180, it is 240" tells 240; "it was 180, it was 240" tells both.
        in_present = _asserts(said, own, wrong, _IN_PAST_TENSE)
        tells_other = _asserts(said, wrong, own, _IN_PAST_TENSE if in_present else _CALLED_PAST)
    if tells_right:
        return "mixed" if tells_other else "right"
    return "outdated" if tells_other else "neither"


def names(text: str, values: Iterable[str]) -> bool:
    """Whether the text contains one of the values, however it is meant."""
    return _asserts(sentences(text), [normal_wording(value) for value in values], (), None)


def _asserts(
    said: Sequence[Sentence],
    values: Sequence[str],
    rivals: Sequence[str],
    excused: re.Pattern[str] | None,
) -> bool:
    """Whether a sentence names a value without a marker in front of it.

    A value inside a longer rival ("Redis" in "Redis cluster") does not count.
    """
    for part in said:
        longer = [
            span
            for rival in rivals
            if any(value in rival for value in values)
            for span in spans(part.text, rival)
        ]
        for value in values:
            for start, end in spans(part.text, value):
                if any(a <= start and end <= b for a, b in longer):
                    continue
                if excused is None or not excused.search(part.text[:start]):
                    return True
    return False
