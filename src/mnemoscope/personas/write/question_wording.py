"""Wording: what questions are held against, whether a model has just written them or an audit does.

Words by their stems, names by their capitals, and answers that deny.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mnemoscope.personas.write.persona_files import Persona
from mnemoscope.text.english import STOP_WORDS, stem_words
from mnemoscope.text.matching import normalise

COMMON = STOP_WORDS.union(stem_words(sorted(STOP_WORDS)))
"""Stems that say nothing of what a text is about."""
DENIAL = re.compile(
    r"\b(?:no|not|never|none|nothing|nobody|nowhere|neither|nor|without|unknown|cannot|silent|"
    r"absent|missing|refused?|declined?)\b|n['’]t\b",
    re.IGNORECASE,
)
"""What an answer says that knows of nothing."""
_WORD = re.compile(r"[^\W_]+")
_CAPITAL = "A-ZÀ-ÖØ-Þ"
_NAMES = re.compile(rf"[{_CAPITAL}][\w&]*(?:[-'’][\w&]+)*(?: [{_CAPITAL}][\w&]*(?:[-'’][\w&]+)*)*")
_POSSESSIVE = re.compile(r"['’]s?$")
_SENTENCE = re.compile(r"(?:^|[.!?:]\s+)[\"'“‘(]*$")
_NO_NAMES = (
    frozenset(
        "i am pm monday tuesday wednesday thursday friday saturday sunday mondays tuesdays "
        "wednesdays thursdays fridays saturdays sundays january february march "
        "april may june july august september october november december jan feb mar apr jun jul "
        "aug sep oct nov dec".split()
    )
    | STOP_WORDS
)


def word_stems(text: str) -> frozenset[str]:
    """The stems of all its words, each once: quicker than in their order."""
    return frozenset(stem_words(sorted(set(_WORD.findall(text.casefold())))))


def asked_words(question: str) -> str:
    """The same for questions that differ in case, space and punctuation alone."""
    return " ".join(re.findall(r"\w+", normalise(question)))


def strangers(text: str, persona: Persona, said: Iterable[Iterable[str]]) -> list[str]:
    """Names of which no part is among these stems, nor known anyway."""
    known = [persona.name, persona.company, persona.institution, persona.firm, persona.id]
    known += [persona.principal.name] if persona.principal else []
    stems = word_stems(" ".join(known)).union(*said)
    return [name for name in names(text) if not stems & word_stems(name)]


def names(text: str) -> list[str]:
    """What is capitalised though no sentence begins with it: people, things, places."""
    found: list[str] = []
    for match in _NAMES.finditer(text):
        words = [_POSSESSIVE.sub("", word) for word in match[0].split(" ")]
        if _SENTENCE.search(text[: match.start()]):
            words = words[1:]
        kept = [word for word in words if len(word) > 1 and word.casefold() not in _NO_NAMES]
        if kept:
            found.append(" ".join(kept))
    return list(dict.fromkeys(found))
