"""Noun phrases and sentences of a text, found without a parser.

A phrase is what follows a determiner up to the next function word or punctuation mark, or a name
in capitals. The rules prefer to miss a phrase over taking half a sentence for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from mnemoscope.drafting.word_lists import listed
from mnemoscope.text.english import STOP_WORDS

DETERMINERS = frozenset(
    "a an the my your our his her their its this these those some another every".split()
)
_LIKENING = frozenset(
    (
        "is was be are were been being as of like become became becoming it's that's i'm he's "
        "she's you're we're they're there's here's"
    ).split()
)
"""What follows these is what something is like, not what is told about."""
_OBJECTS = DETERMINERS | frozenset("me us you him them it".split())
OWN = frozenset(("my", "our"))
"""Determiners of what belongs to the writer: the same thing each time."""
_BREAKS = STOP_WORDS | listed("breaks")
_VERBS, _VAGUE, _DATES = map(listed, ("verbs", "vague", "dates"))
_BEGINS_NONE = _VERBS | listed("degrees")
_NOT_NAMES = _BREAKS | _VERBS | _DATES
_TOKEN = re.compile(r"[^\W_]+(?:['’.\-/+_][^\W_]+)*\+?|[^\w\s]|\n")
_SPEAKER = re.compile(r"^[^\W\d][\w .'-]{0,30}: ")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_CAPITAL = re.compile(r"[A-Z][a-z]+(?:['’]s)?|[A-Z]{2,6}\+?|[A-Z][a-z]*[A-Z]\w*")
_MARKUP = re.compile(r"[|<>`{}=\\]|\]\(|\]\[|https?:|^\s*[#*\-+]+\s|\w/\w")
_ODD = re.compile(r"['’]|[a-z][A-Z]")
_LONGEST = 3
_SHORTEST_WORD = 3


class Phrase(NamedTuple):
    """A noun phrase of a memory."""

    text: str
    """Without its determiner."""
    head: str
    """Its last word, in lower case."""
    determiner: str
    """In lower case; empty for a name."""
    is_name: bool

    @property
    def is_specific(self) -> bool:
        """Whether it is a name or has several words."""
        return self.is_name or " " in self.text

    @property
    def asked(self) -> str:
        """The phrase as a question by another person names it."""
        if self.is_name:
            return self.text
        return f"the {self.text}"


def spoken(text: str) -> str:
    """The text without the name of its speaker."""
    return _SPEAKER.sub("", text, count=1)


def sentences(text: str) -> list[str]:
    return [one.strip() for one in _SENTENCE_END.split(spoken(text)) if one.strip()]


def phrases(text: str) -> list[Phrase]:
    """The noun phrases of a text, each once."""
    found: dict[str, Phrase] = {}
    for sentence in sentences(text):
        # What somebody asks, the memory does not say. Tables, links and code are not sentences.
        if sentence.endswith("?") or _MARKUP.search(sentence):
            continue
        for one in _of_sentence(sentence):
            found.setdefault(one.text.lower(), one)
    return list(found.values())


def _of_sentence(sentence: str) -> Iterator[Phrase]:
    tokens = _TOKEN.findall(sentence)
    place = 0
    while place < len(tokens):
        lower = tokens[place].lower()
        before = tokens[place - 1].replace("’", "'") if place else ""
        if lower in DETERMINERS:
            words = _run(tokens, place + 1)
            after = place + 1 + len(words)
            follows = tokens[after] if after < len(tokens) else "."
            one = _phrase(words, lower, follows) if before.lower() not in _LIKENING else None
            if one is not None:
                yield one
            place = after
        elif name := _name(tokens, place) if place else []:
            after = place + len(name)
            follows = tokens[after].lower() if after < len(tokens) else "."
            # "Lord of the Rings" and "Under Armour" would be cut.
            is_whole = follows != "of" and before.lower() != "of" and not before[:1].isupper()
            if is_whole and (len(name) > 1 or len(name[0]) > _SHORTEST_WORD):
                text = " ".join(name).removesuffix("'s").removesuffix("’s")
                yield Phrase(text, name[-1].lower(), "", is_name=True)
            place = after
        else:
            place += 1


def _run(tokens: list[str], start: int) -> list[str]:
    """The words from `start` up to a function word, a verb or a punctuation mark."""
    words: list[str] = []
    for token in tokens[start : start + _LONGEST + 2]:
        lower = token.lower().replace("’", "'")
        is_verb = bool(words) and (lower in _VERBS or lower.endswith("ing"))
        if not token[0].isalnum() or lower in _BREAKS or is_verb:
            break
        words.append(token)
    return words


def _name(tokens: list[str], start: int) -> list[str]:
    """Capitalised words in a row, unless they begin the sentence."""
    words: list[str] = []
    for token in tokens[start : start + 4]:
        if not _CAPITAL.fullmatch(token) or token.lower() in _NOT_NAMES:
            break
        words.append(token)
    return words


def _phrase(words: list[str], determiner: str, follows: str) -> Phrase | None:
    """The words as a phrase, if they look like one."""
    if not words or len(words) > _LONGEST or words[0].lower() in _BEGINS_NONE:
        return None
    after = follows.lower()
    is_compound = not words[-1].endswith("s") and f"{after}s" in _VERBS
    if after == "of" or is_compound:
        return None  # half of "a slice of paradise", half of "a food drive"
    if words[-1].endswith("s") and after in _OBJECTS:
        return None  # a verb with its object: "the document captures some"
    ends = not after.isalnum() or after in _BREAKS | _VERBS
    if not ends or any(char.isdigit() for word in words for char in word):
        return None
    while len(words) > 1 and words[0].lower() in _VAGUE:
        words = words[1:]
    head = words[-1].lower()
    if len(head) < _SHORTEST_WORD or any(map(_ODD.search, words)):
        return None
    looks_verbal = head.endswith(("ed", "ly", "est", "ful", "ous", "ive", "able"))
    if looks_verbal or head in _VAGUE or head in _VERBS:
        return None
    if head in _DATES or (head.endswith("ing") and len(words) > 1):
        return None
    if determiner == "this" and len(words) == 1:
        return None  # "this helps"
    return Phrase(" ".join(words), head, determiner, is_name=False)
