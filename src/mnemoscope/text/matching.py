"""Whether a text contains a wording: normalises both and compares whole words.

It knows nothing about questions or scores.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cached_property, lru_cache

from mnemoscope.text.english import stem_words

_MONTHS = "january february march april may june july august september october november december"
_MONTH = "|".join([*_MONTHS.split(), *(name[:3] for name in _MONTHS.split())])
_CURRENCIES = "$€£"
_CHARACTERS = str.maketrans(
    {
        **dict.fromkeys("\u00a0\u2009\u202f", " "),
        **dict.fromkeys("‐‑‒–−", "-"),
        "—": " - ",
        **dict.fromkeys("’‘ʼ`", "'"),
        **dict.fromkeys("“”„«»", '"'),
    }
)
_THIN_THOUSANDS = re.compile("(?<=\\d)[\u00a0\u2009\u202f](?=\\d{3}(?!\\d))")
_THOUSANDS = re.compile(r"(?<=\d)[,'](?=\d{3}(?!\d))")
_SCALE = {"k": 3, "thousand": 3, "m": 6, "mn": 6, "million": 6, "bn": 9, "billion": 9}
_SCALED = re.compile(
    r"([$€£]) ?(\d+(?:\.\d+)?) ?(k|thousand|m|mn|million|bn|billion)\b"
    r"|(?<![\w.])()(\d+(?:\.\d+)?)(k\b| thousand\b| million\b| billion\b)"
)
_REWRITES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?<![\w.])(\d[\d.]*) (?:us dollars|dollars|usd)\b"), r"$\1"),
    (re.compile(r"(?<![\w.])(\d[\d.]*) (?:euros?|eur)\b"), r"€\1"),
    (re.compile(r"(?<=\d) ?(?:percent\b|per cent\b|%)"), "%"),
    (re.compile(r"(?<=\d) ?([ap])\.?m\b\.?"), r" \1m"),
    (re.compile(r"(?<=\d)(?:st|nd|rd|th)\b"), ""),
    (re.compile(rf"(?<=\d) of (?=(?:{_MONTH})\b)"), " "),
    (re.compile(rf"\b({_MONTH}) (\d{{1,2}}), (?=\d{{4}}\b)"), r"\1 \2 "),
    (re.compile(r"([$€£]\d+)\.00\b"), r"\1"),
    (re.compile(r"\s+"), " "),
)
_DATED = re.compile(r"\s*(?:[-*•] )?\[\d{4}-\d\d-\d\d\]\s*")
_STOP = re.compile(
    r"(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bSt\.)(?<!\bvs\.)(?<!\be\.g\.)"
    r"(?<!\bi\.e\.)(?<!\b[A-Z]\.)(?:(?<=[.!?])|(?<=[.!?][\"'”’)\]]))\s+(?=[\"'“‘(\[]?[A-Z0-9$€£])"
)
# 24-connection is two words; PX-12, 12.5, 6:30, $24 and 24% are one.
_TOKEN = re.compile(r"[$€£]?[^\W_]+(?:[-.:/](?=[^\W_]*\d)[^\W_]+)*%?")
_FUNCTION_WORDS = frozenset(
    (
        "a an and are as at be because been being but by can could did do does for from had has "
        "have he her his i if in into is it its me my no not of on or our she should so than that "
        "the their them then there they this to too until us was we were what when which while who "
        "will with would you your s t"
    ).split()
)
_CLAUSE_WORDS = 4
_CLAUSE_SHARE = 0.8


def normalise(text: str) -> str:
    """The same text for all variants in case, dashes, quotes, and amounts (`$240k`, `$240,000`)."""
    text = _THIN_THOUSANDS.sub("", text).translate(_CHARACTERS)
    text = unicodedata.normalize("NFKC", text).casefold()
    text = _SCALED.sub(_written_out, _THOUSANDS.sub("", text))
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    return text.strip()


def _written_out(match: re.Match[str]) -> str:
    sign, number, scale = match.group(1, 2, 3) if match.group(1) else match.group(4, 5, 6)
    whole, _, fraction = number.partition(".")
    places = _SCALE[scale.strip()]
    if len(fraction) > places:
        return match.group()
    return f"{sign}{int(whole + fraction.ljust(places, '0'))}"


@lru_cache(maxsize=1 << 16)
def normal_wording(text: str) -> str:
    """`normalise` with a cache: many questions share the same similar values."""
    return normalise(text).rstrip(".")


def spans(text: str, wording: str) -> list[tuple[int, int]]:
    """The positions of a normalised wording in a normalised text, as whole words."""
    found = []
    start = text.find(wording) if wording else -1
    while start >= 0:
        end = start + len(wording)
        if _begins(text, start) and _ends(text, end):
            found.append((start, end))
        start = text.find(wording, start + 1)
    return found


def _begins(text: str, start: int) -> bool:
    if start == 0 or not text[start].isalnum():
        return True
    before = text[start - 1]
    if before.isalnum() or before == "_":
        return False
    if text[start].isdigit():
        # 6:30, PX-30, 2.30 and $30 do not contain 30.
        joined = before in "-.:/" and start > 1 and text[start - 2].isalnum()
        return not joined and before not in _CURRENCIES
    return True


def _ends(text: str, end: int) -> bool:
    if end == len(text) or not text[end - 1].isalnum():
        return True
    after = text[end]
    if after.isalnum() or after == "_":
        return False
    if text[end - 1].isdigit():
        joined = after in "-.:/," and end + 1 < len(text) and text[end + 1].isalnum()
        return not joined and after != "%"
    return True


class Sentence:
    """One sentence of an answer; a date in brackets in front is its label, not its content."""

    def __init__(self, text: str) -> None:
        label = _DATED.match(text)
        self.cited = label is not None
        """Whether it is a dated line from a log."""
        self.label = normalise(label.group()) if label else ""
        self.original = text[label.end() :] if label else text
        self.text = normalise(self.original)

    @cached_property
    def _stems(self) -> list[str]:
        return stems(self.text)

    def says(self, wording: str) -> bool:
        """Whether it contains the wording, an inflection of it, or most words of a clause."""
        plain = normal_wording(wording)
        if spans(self.text, plain) or (self.label and spans(self.label, plain)):
            return True
        if " " not in plain:
            return False
        shape = _shape(wording)
        if f" {shape.phrase} " in f" {' '.join(self._stems)} ":
            return True
        if len(shape.content) < _CLAUSE_WORDS:
            return False
        here = set(self._stems)
        shared = len(shape.content & here)
        return shape.fixed <= here and shared >= _CLAUSE_SHARE * len(shape.content)


class _Shape:
    """The stems of a wording, and those that a paraphrase must contain."""

    def __init__(self, wording: str) -> None:
        self.stems = stems(normal_wording(wording))
        self.phrase = " ".join(self.stems)
        self.content = frozenset(self.stems) - _FUNCTION_WORDS
        # Similar clauses differ in numbers and names.
        named = [word for word in _TOKEN.findall(wording) if word != word.lower()]
        digits = {stem for stem in self.content if any(map(str.isdigit, stem))}
        self.fixed = (frozenset(stems(normal_wording(" ".join(named)))) & self.content) | digits


@lru_cache(maxsize=1 << 14)
def _shape(wording: str) -> _Shape:
    return _Shape(wording)


def sentences(text: str) -> list[Sentence]:
    """Split an answer at lines and full stops; the parts of a dated line keep the date."""
    found: list[Sentence] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        label = _DATED.match(line)
        prefix = label.group() if label else ""
        found += (Sentence(prefix + part) for part in _STOP.split(line[len(prefix) :]) if part)
    return found


def any_says(parts: Iterable[Sentence], wordings: Iterable[str]) -> bool:
    return any(part.says(wording) for wording in wordings for part in parts)


def distinctive_stems(wording: str) -> frozenset[str]:
    """Stems of the numbers and names of a wording; without any, of its content words."""
    shape = _shape(wording)
    return shape.fixed or shape.content


def stems(text: str) -> list[str]:
    """English stems of the words of a normalised text, in order."""
    return stem_words(_TOKEN.findall(text))
