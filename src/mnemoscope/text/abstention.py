"""Whether an answer abstains or refuses.

A text that claims to know nothing and then asserts something counts as an answer. There are two
rules. `says_nothing` knows only the text and accepts only clear phrases: that a person in a story
did not know something is an answer. `besides_nothing`, `asserts` and `refuses` accept more phrases;
they are for a judge that has the answer key.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cache

from mnemoscope.text.english import STOP_WORDS, stem_words
from mnemoscope.text.matching import Sentence, normalise, sentences, stems

_ASSERTED = 2
"""This many words that are neither from the question nor about texts make an assertion."""

# The narrow rule, for the text only.

_HINT = r"(?:information|info|mention|indication|details?|specifics|clues?)"
_PROOF = r"(?:evidence|records?|data|memory|memories|trace|references?|answer)"
_TEXTS = (
    r"(?:conversations?|excerpts|context|dialogues?|memories|memory|passages|text|notes|messages|"
    r"chats?|history|transcripts?|logs?|records|documents|sessions|materials?|snippets|data|"
    r"sources?|information)"
)
_TOLD = (
    r"(?:mentioned|specified|stated|provided|recorded|discussed|indicated|disclosed|documented|"
    r"described|revealed|noted|clear|available|known(?! (?:for|as|to)))"
)
_THERE_IS = r"\bthere(?:'s| is| are)(?: \w+ly| also)?"
_IS = r"(?:is|was|are|were|be|been|being|remains?)"
_IS_NOT = rf"(?:{_IS} (?:not|never)|isn't|wasn't|aren't|weren't|ha(?:s|ve) (?:not|never) been)"
_CANNOT = r"(?:cannot|can't|can not|could not|couldn't)"
_I = r"\b(?:i|we)(?:'m|'re)? (?:\w+ )?"
_I_DO_NOT = (
    rf"{_I}(?:do not|don't|{_CANNOT}|(?:am |are |was |were )?(?:unable|not able) to) (?:\w+ly )?"
)
_FAILS = r"(?:do not|does not|don't|doesn't|did not|didn't|never|fails? to)"
_TELL = (
    r"(?:mention|say|contain|specify|specifie|state|include|provide|indicate|reveal|tell|give|"
    r"discus|show|have|record|hold|cover|describe|addres|note|answer|list|explain|clarify|confirm)"
    r"s?(?:es|s)?\b"
)
_HAS = r"(?:has|have|contains?|provides?|makes?|gives?|offers?|includes?|says?|holds?|shows?)"
_CLAIM = re.compile(
    "|".join(
        (
            # There is no mention of it. No evidence was found. No exact date is given.
            rf"(?:{_THERE_IS}|\bthere (?:was|were)) no (?:\w+ ){{0,3}}{_HINT}\b",
            rf"{_THERE_IS} (?:no (?:\w+ ){{0,2}}{_PROOF}|nothing)\b",
            rf"^no (?:\w+ ){{0,3}}{_HINT}\b",
            rf"^no (?:\w+ ){{0,2}}{_PROOF}(?= (?:\w+ ){{0,6}}(?:available|found|given|exists?)\b"
            rf"| of (?:this|that|it)\b| in (?:\w+ ){{0,2}}{_TEXTS}\b|[.,;:!]|$)",
            rf"\bno (?:\w+ ){{1,5}}(?:is|was|are|were) (?:\w+ly |ever )?(?!clear|available|known)"
            rf"(?:{_TOLD}|given)\b",
            rf"\bnothing (?:\w+ ){{0,3}}(?:is|was) (?:\w+ly |ever )?(?:said|{_TOLD})\b",
            r"\b(?:insufficient|not enough) (?:\w+ )?(?:information|context|details?|data|evidence)"
            r"\b",
            # The name is not mentioned. Not specified. It cannot be determined.
            rf"(?<!\bhe )(?<!\bshe )(?<!\bthey )(?<!\bwho )\b{_IS_NOT} (?:\w+ly )?(?:{_TOLD}\b"
            rf"|(?:found|given|included|covered)(?= (?:\w+ ){{0,2}}in (?:\w+ ){{0,2}}{_TEXTS}\b))",
            rf"(?:^|(?<=[:;(,-] )|(?<=\())not (?:\w+ly )?{_TOLD}\b",
            rf"\b{_CANNOT} be (?:\w+ly )?(?:determined|answered|inferred|established|ascertained|"
            r"confirmed|identified|derived|known|concluded)\b",
            r"\b(?:it|that|this)(?: is|'s) (?:unclear|impossible to (?:tell|say|know|determine))\b",
            rf"\b{_IS} (?:\w+ly )?(?:unknown|unspecified)\b(?! (?:to|for|as)\b)",
            r"\bnever (?:came|come) up\b",
            # I do not know. I cannot find any mention of it. We have no information on that.
            rf"{_I_DO_NOT}(?:know|recall|remember|tell|say|answer|determine|confirm|identify|infer|"
            r"ascertain|work (?:that|this|it) out)\b",
            rf"(?:{_I_DO_NOT}|{_I}(?:did not|didn't) (?:\w+ly )?)(?:find|see|locate)"
            rf"(?= (?:\w+ ){{0,4}}(?:{_HINT}|{_PROOF}|{_TEXTS}|anything|this|that|it)\b|[.,;:!]|$)",
            rf"{_I_DO_NOT}have (?:\w+ ){{0,4}}(?:{_HINT}|{_PROOF}|enough|access|knowledge|anything)"
            r"\b",
            rf"{_I}(?:have|see|find|found) no (?:\w+ ){{0,3}}"
            rf"(?:{_HINT}|{_PROOF}|idea|knowledge|way)\b",
            rf"{_I}(?:know|have|find|found|see) nothing\b",
            r"\b(?:i am|i'm|we are|we're) (?:not (?:sure|certain|aware)|unsure)\b",
            r"\bnot something (?:that )?(?:i|we) (?:can )?(?:find|know|have|see)\b",
            rf"^(?:unable to|{_CANNOT}|not able to) (?:\w+ly )?(?:determine|find|answer|tell|say|"
            r"confirm|infer|locate|know)\b",
            # You have never told me.
            r"\byou (?:have |had )?(?:not|never|haven't|didn't|did not) (?:\w+ )?(?:tell|told|"
            r"mention(?:ed)?|say|said|shared?|specif(?:y|ied)|provided?)\b",
            # The conversation does not mention it. The notes say nothing of it. It does not say.
            rf"\b{_TEXTS} (?:\w+ ){{0,5}}?{_FAILS} (?:\w+ly )?{_TELL}",
            rf"\b{_TEXTS} (?:\w+ ){{0,3}}?{_HAS} (?:no (?:\w+ ){{0,3}}(?:{_HINT}|{_PROOF})|nothing)"
            r"\b",
            rf"\b{_TEXTS} (?:\w+ )?(?:is|are) (?:not enough|not sufficient|insufficient)\b",
            r"^it (?:does not|doesn't) (?:\w+ly )?(?:say|mention|specify|state)\b",
        )
    )
)
_BARE = re.compile(
    r"unknown|unsure|unclear|unspecified|unanswerable|n/?a|no idea|not sure|no answer|no mention|"
    r"not applicable|do(?: not|n't) know|nothing found"
)
# The topic belongs to the claim: "no mention of her cat", "the colour of it is not known".
_END = (
    r"[,;:.!?()\"]|(?<= )- |\b(?:but|however|though|although|yet|instead|nevertheless|nonetheless|"
    r"so|because|since|while|whereas|except|besides|beyond|other than|apart from|aside from|only|"
    r"just|probably|likely|perhaps|maybe|possibly|presumably|"
    r"and(?= (?:he|she|they|it|we|i|there|probably|likely|maybe|perhaps)\b))\b"
)
_AFTER = re.compile(_END)
_BEFORE = re.compile(rf"{_END}|\b(?:who|whose|which|that)\b")
_ACCORDING = re.compile(
    rf"^(?:based on|according to|in|from|given|judging (?:by|from)) [^,]*\b{_TEXTS}\b[^,]*, ?"
)
_OFFER = re.compile(
    r"\b(?:let me know|happy to|feel free|glad to|i can help|if you (?:have|can|could|like|want|"
    r"tell|provide|share))\b"
)
_TALK = (
    "according additional afraid answer anything anyone anywhere apologize apologies appear "
    "available based chat clear context conversation data detail determine dialogue discuss "
    "discussion document enough evidence exact excerpt explicit find found given however indicate "
    "indication info information kind know known log memories memory mention message name note "
    "passage particular please provide question recall record reference regarding related relevant "
    "said say seem session share snippet sorry source specific specifically specify speaker state "
    "tell text thank thing though told topic transcript type unfortunately unknown user within "
    "without concerning sufficient cannot yet but although nevertheless instead because since"
).split()
_WORD = re.compile(r"[^\W_]+")

# The wide rule, for a judge that has the answer key.
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
_EMPTY = STOP_WORDS | frozenset("but however though although nevertheless".split())
_COURTESY = re.compile(
    r"\b(?:let me know|happy to|feel free|glad to|i can help|if you (?:have|can|like|want|tell)|"
    r"sorry|apologi[sz]e|please|i (?:searched|looked|checked|went)|thank)\b"
)


def says_nothing(text: str, question: str) -> bool:
    """Whether the answer claims that nothing is known, and asserts nothing else.

    Dated lines quoted from a log are not claims: a quoted "no word yet" is a finding.
    """
    claimed = False
    rest: list[str] = []
    for part in sentences(text):
        if part.cited:
            rest.append(part.text)
        elif not _OFFER.search(part.text):
            found, besides = _without_claims(_ACCORDING.sub("", part.text))
            claimed |= found
            rest.append(besides)
    return claimed and len(_own_words(" ".join(rest), question) - _talk_stems()) < _ASSERTED


def _without_claims(sentence: str) -> tuple[bool, str]:
    """Whether a sentence claims that nothing is known, and the rest of the sentence."""
    if _BARE.fullmatch(sentence.strip(" .!*")):
        return True, ""
    claims = [match.span() for match in _CLAIM.finditer(sentence)]
    ends = [0, *(match.end() for match in _BEFORE.finditer(sentence))]
    starts = [*(match.start() for match in _AFTER.finditer(sentence)), len(sentence)]
    rest: list[str] = []
    at = 0
    for start, end in claims:
        rest.append(sentence[at : ends[bisect_right(ends, start) - 1]])
        at = max(at, starts[bisect_left(starts, end)])
    return bool(claims), " ".join([*rest, sentence[at:]])


def _own_words(text: str, question: str, empty: frozenset[str] = STOP_WORDS) -> set[str]:
    """Stems of the words that are neither in `empty` nor in the question."""
    words = [word for word in _WORD.findall(text) if word not in empty]
    return set(stem_words(words)) - set(stems(normalise(question)))


@cache
def _talk_stems() -> frozenset[str]:
    """Stems of the words that describe an answer or its sources."""
    return frozenset(stem_words(_TALK))


def besides_nothing(parts: Sequence[Sentence]) -> list[str] | None:
    """The rest of an answer that claims to know nothing; None if it does not claim that.

    Dated lines quoted from a log are not claims: a quoted "no word yet" is a finding.
    """
    return _besides(parts, _NOTHING)


def refuses(parts: Sequence[Sentence]) -> bool:
    """Whether the answer refuses to disclose something."""
    return _besides(parts, _REFUSAL) is not None


def asserts(besides: Sequence[str], question: str) -> bool:
    """Whether the rest of such an answer asserts something."""
    plain = (text for text in map(normalise, besides) if not _COURTESY.search(text))
    return any(len(_own_words(text, question, _EMPTY)) >= _ASSERTED for text in plain)


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
