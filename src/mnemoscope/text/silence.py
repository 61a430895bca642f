"""Whether an answer is no answer: an honest "no evidence", or a refusal to tell.

An answer that says it knows nothing and then asserts something after all is an answer. For a judge
that knows what is true: it may take many phrases for silence. Where only the text is known,
`abstention` has the narrower rule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mnemoscope.text.english import STOP_WORDS, stem_words
from mnemoscope.text.matching import Sentence, normalise, stems

_SOURCE = r"(?:evidence|records?|mention|information|info|memory|memories|trace|reference|data)"
_NOTHING = re.compile(
    rf"\bno (?:\w+ ){{0,2}}{_SOURCE}\b"
    rf"|\bnot (?:\w+ )?(?:mentioned|recorded|documented|specified|stated|found|known|discussed)\b"
    rf"|\b(?:isn't|wasn't|aren't|weren't) (?:\w+ )?(?:mentioned|recorded|documented|known)"
    rf"|\bnever (?:\w+ )?(?:mentioned|recorded|documented|came up|discussed|stated)\b"
    rf"|\bnothing (?:\w+ ){{0,3}}(?:about|on|that|found|recorded|in (?:the|my))\b"
    rf"|\b(?:can't|cannot|can not|couldn't|could not|unable to|not able to|didn't|did not)"
    rf" (?:\w+ )?(?:find|answer|determine|tell|say|locate|confirm)\b"
    rf"|\b(?:don't|do not|doesn't|does not) (?:\w+ )?(?:know|mention|say|contain|recall|record)\b"
    rf"|\b(?:don't|do not) have (?:\w+ ){{0,3}}{_SOURCE}\b"
    rf"|\bhave no (?:\w+ ){{0,2}}{_SOURCE}\b"
    r"|\bno (?:such|answer|relevant)\b|\bunknown\b|\bnot (?:in|part of) (?:my|the) \w+"
)
_REFUSAL = re.compile(
    r"\b(?:can't|cannot|can not|couldn't|won't|will not|am not able to|not able to|unable to|"
    r"may not|must not|not free to|not allowed to|not permitted to|not at liberty to|rather not)"
    r" (?:\w+ )?(?:share|discuss|disclose|reveal|tell|say|talk|go into|comment|speak|pass|give)\b"
    r"|\bconfidential\b|\bnot (?:something|a (?:matter|topic)) (?:that )?(?:i|we) (?:can|may)\b"
    r"|\bdecline to\b|\boff limits\b|\bnot for (?:me|this)\b|\bstays? (?:in|within|between)\b"
    r"|\b(?:is|are|remains?|kept) private\b"
)
_TURN = re.compile(
    r"[;,:.]?\s(?=(?:but|however|though|although|that said|nevertheless)\b)|;\s", re.IGNORECASE
)
_TURNS = frozenset("but however though although nevertheless".split())
_WORD = re.compile(r"[^\W_]+")
_COURTESY = re.compile(
    r"\b(?:let me know|happy to|feel free|glad to|i can help|if you (?:have|can|like|want|tell)|"
    r"sorry|apologi[sz]e|please|i (?:searched|looked|checked|went)|thank)\b"
)
_ASSERTED = 2
"""So many words that are not the question's own make an assertion of what stands beside silence."""


def besides_nothing(parts: Sequence[Sentence]) -> list[str] | None:
    """Of an answer that claims to know nothing: what it says besides. None: it does not claim so.

    Lines quoted from a log by their date never claim it: that somebody wrote "no word yet" is
    something that was found.
    """
    return _besides(parts, _NOTHING)


def refuses(parts: Sequence[Sentence]) -> bool:
    """Whether it says that this will not be told."""
    return _besides(parts, _REFUSAL) is not None


def asserts(besides: Sequence[str], question: str) -> bool:
    """Whether what is said besides knowing nothing claims something after all."""
    asked = set(stems(normalise(question)))
    for text in besides:
        plain = normalise(text)
        if _COURTESY.search(plain):
            continue
        own = [w for w in _WORD.findall(plain) if w not in STOP_WORDS and w not in _TURNS]
        if len(set(stem_words(own)) - asked) >= _ASSERTED:
            return True
    return False


def _besides(parts: Sequence[Sentence], claim: re.Pattern[str]) -> list[str] | None:
    if not parts:
        return []
    rest: list[str] = []
    claimed = False
    for part in parts:
        if part.cited or not claim.search(part.text):
            rest.append(part.original)
            continue
        claimed = True
        pieces = _TURN.split(part.original)
        rest += (piece for piece in pieces if not claim.search(normalise(piece)))
    return rest if claimed else None
