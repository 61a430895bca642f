"""Comparisons by words: multipliers, superlatives, rivals; no figure stands beside them.

A relative claim (“beats BM25”) is allowed in a statement with its metric, interval and p. An
absolute one (“state of the art”) is not: no pair of runs can show it. Speed, cost and size are not
what a release measures, and pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from mnemoscope.release.claim_patterns import (
    SPEED,
    hedged,
    intervals,
    metrics,
    p_values,
    without_neutral,
)

_NUMBER = r"(?:\d+(?:\.\d+)?|two|three|four|five|six|seven|eight|nine|ten|several|many|hundred)"
_TIMES = rf"(?:twice|thrice|double|triple|quadruple|{_NUMBER}[- ]?(?:times|x|×))"
_SHARE = (
    r"(?:\d+(?:\.\d+)?\s?(?:%|per\s?cent)|half|two[\s-]thirds"
    r"|(?:a|one)[\s-](?:third|quarter|fifth|tenth))"
)
_ERRORS = (
    r"(?:errors?|mistakes?|miss(?:es|ed)?|failures?|hallucinations?|wrong\sanswers?|false\s\w+"
    r"|losses|forgetting)\b"
)
_FOUND = (
    r"(?:recall|precision|accurac(?:y|ies)|quality|relevance|results?|hits?|answers?|evidence"
    r"|memor(?:y|ies)|facts?|questions?|matches|retrieval|scores?|performance|coverage)\b"
)
_GOOD = (
    r"(?:accurate|precise|reliable|relevant|correct|robust|complete|capable|powerful|effective"
    r"|faithful|consistent|trustworthy|intelligent|helpful|competitive)\b"
)
_THING = (
    r"(?:memor\w+|retriev\w+|systems?|search|engines?|models?|extensions?|tools?|results?"
    r"|versions?|releases?|recall|accuracy|performance|quality|yet|ever|available|around|of\sall)\b"
)
_ITS = r"(?:the\s|its\s|our\s|your\s|their\s)?"
_LIMITS = (
    r"(?:the\s|its\s|this\s|a\s|our\s|any\s|all\s)?(?:\w+\s)?"
    r"(?:limits?|timeouts?|thresholds?|quotas?|budgets?|bounds?|maximum|chance)\b"
)
_RELATIVE_PHRASES = (
    # Multipliers and shares.
    rf"\b{_TIMES}\s(?:as\s(?:many|much|good|often|well|likely|{_GOOD})|the\s(?:\w+\s)?{_FOUND})",
    rf"\b{_TIMES}\s(?:more|better|fewer|higher|greater|stronger|less|{_GOOD}|recall\b|accuracy\b)",
    rf"\b(?:doubl|tripl|quadrupl)(?:es|ed|ing)\s{_ITS}(?:\w+\s)?{_FOUND}",
    rf"\b{_NUMBER}-?fold\b",
    rf"\b(?:half|a\sfraction|{_SHARE})\s(?:of\s)?(?:as\smany|the)\s(?:\w+\s)?{_ERRORS}",
    rf"\bhalv(?:es|ed|ing)\s{_ITS}(?:\w+\s){{0,2}}{_ERRORS}",
    rf"\b(?:cuts?|reduc(?:es|ed|ing)|lower(?:s|ed)|shrinks?|slash(?:es|ed)?|eliminat(?:es|ed))"
    rf"\s{_ITS}(?:\w+\s){{0,2}}{_ERRORS}(?:\s\w+){{0,2}}\s(?:by|in)\s{_SHARE}",
    rf"(?<!\w){_SHARE}\s(?:fewer|less|more|better|greater|higher|stronger)\s(?:\w+\s)?"
    rf"(?:{_ERRORS}|{_FOUND}|{_GOOD})",
    rf"(?<!\w){_SHARE}\sbetter\b",
    rf"\bfewer\s(?:\w+\s)?{_ERRORS}\sthan\b",
    r"\b(?:fewer|less)\s(?:hallucinat\w+|wrong\sanswers|miss(?:es|ed\s\w+)|mistakes|forgetting)\b",
    rf"\b{_ERRORS}(?:\srates?)?\s(?:\w+\s){{0,2}}(?:fell|dropped|down|shrank|decreased|declined)"
    rf"\s(?:by|to)\s{_SHARE}",
    r"\borders?\sof\smagnitude\s(?:more|better|fewer|higher|above|beyond)\b",
    r"\bhalf\sas\s(?:often|many|much|likely)\b|\b(?:far|much|way)\smore\soften\b",
    r"\bgap\s(?:to|with|between)\s(?:\w+\s){1,4}(?:shrank|shrinks|closed|narrowed|halved)\b",
    # Rivals.
    r"\b(?:beat(?:s|ing)?|outperform\w*|outclass\w*|outscor\w*|outrank\w*|outshin\w*|surpass\w*"
    r"|trounc\w+|eclips(?:es|ed|ing)|overtak(?:es|en|ing)|dethron\w+|crush(?:es|ed)|dominat\w+)"
    rf"\s(?!{_LIMITS})[\w“\"‘(]+",
    rf"\bsuperior\s(?:to\b|{_FOUND}|search)|\b(?:far|vastly|clearly|greatly)\ssuperior\b",
    r"\b(?:wins?|won|winning)\s(?:against|over|on|in|by)\s|\bwinners?\s(?:on|in|among)\b",
    r"\b(?:loses?|lost)\sto\s(?:it|us|ours|hybrid|this|our)\b|\bworse\sthan\s(?:ours|us|this)\b",
    r"\bweaker\s(?:systems|memories|tools|products)\b|\bwhat\sothers?\s(?:forget|miss|cannot)\b",
    r"\bcan(?:not|['’]t)\skeep\sup\b|\blight\syears\s(?:ahead|beyond)\b|\bblew\spast\b|\bquantum\sleap\b|\bas\sgood\sas\s(?!new\b|it\sgets)\w+",
    rf"\b{_FOUND}\s(?:has\s|have\s)?(?:gone\sup|went\sup|goes\sup|shot\sup|soar\w*|surg\w+"
    r"|skyrocket\w*)",
    r"\b(?:noticeably|significantly|markedly|clearly|vastly|substantially|dramatically|far|much|"
    r"considerably|measurably)\sbetter\b",
    r"\b(?:gets?|got|answers?|answered)\s(?:\w+\s)?more\s(?:questions|answers)\b|\bthan\sever\b",
    r"\b(?:step\sup\sfrom|head\sand\sshoulders|on\s(?:a\s)?par\swith|in\sa\sleague\sof)\b",
    r"\b(?:leaves?|left)\s(?:\S+\s){1,3}(?:far\s)?behind\b",
    r"\bahead\sof\s(?!time|schedule|the\srelease|us\b|it\b)\w+",
    rf"\b(?:more|less)\s{_GOOD}\sthan\b|\bmore\s{_GOOD}\s(?:{_FOUND}|search|ranking)",
    r"\b(?:better|stronger|smarter)\s(?:\w+\s)?than\s"
    r"(?!chance|never|expected|nothing|none|one\b|\d|(?:a\s)?random)\w+",
    # Praise of what a release measures.
    r"\b(?:finds?|found|recalls?|retrieves?|remembers?|surfaces?|answers?)\s"
    rf"(?:far\s|much\s|many\s|a\slot\s)?more\s(?:of\s)?{_ITS}(?:\w+\s)?{_FOUND}(?!\sthan\s\d)",
    rf"\b(?:better\s(?:{_FOUND}|ranking)|greater\s(?:recall|accuracy|precision))",
    r"\b(?:improv(?:es|ed)|boost(?:s|ed)|rais(?:es|ed)|lifts|enhanc(?:es|ed)|sharpens)\s"
    rf"{_ITS}(?:overall\s)?(?:\w+\s)?{_FOUND}(?!\s(?:docs?|documentation|format|tables?|pages?|"
    r"texts?|code|messages?|files?|usage|use|export|layout)\b)",
    r"\b(?:decisive|huge|massive|dramatic|substantial|big)\s(?:win|victory|gain|improvement|leap"
    r"|jump)s?\b",
    rf"\b{_ERRORS}\s(?:\w+\s){{0,3}}cut\sin\shalf\b|\b{_FOUND}\sis\sup\b|\bedge\sover\s\w+",
    r"\bunbeatable\b|\boutdo(?:es|ne|ing)?\s|\btrails\s(?:by|behind)\b|\btop\sof\sits\sclass\b",
    r"\bgame[- ]?chang\w+|\bbreakthroughs?\b",
)
_ABSOLUTE_PHRASES = (
    r"\bstate[- ]of[- ]the[- ]art\b|\bSOTA\b",
    r"\b(?:best|first|top)[- ]in[- ](?:its[- ])?class\b|\bbest[- ]of[- ]breed\b",
    r"\b(?:world|industry|market|class)[- ](?:class|leading|beating|best)\b",
    rf"\bun(?:matched|rivall?ed|parall?ell?ed|beaten|surpassed|precedented)\s(?:\w+\s)?{_FOUND}",
    r"\b(?:we|it|ranks?|ranked)\sranks?\sfirst\b|\brank(?:s|ed)?\s(?:first\s(?:on|in|among)|\#)|\bcomes?\sfirst\s(?:on|in|among)\b"
    r"|\bfirst\splace\s(?:on|in|among)\b",
    rf"\b(?:the|a)\s(?:top|leading)\s(?:\w+\s)?{_THING}|\btop\s(?:results|scores|quality|recall)\b",
    r"\b(?:market|category|benchmark)\sleaders?\b|\bleader\s(?:in|on|among)\b",
    r"\bno\s(?:competitor|rival)s?\b|\b(?:best|better\sthan\sany)\s(?:of\sall|among|of\sany)\b",
    r"\b(?:nearly|virtually|almost|practically)\s(?:eliminat\w+|error-free|perfect|flawless"
    r"|(?:every|all)\s(?:question|answer|memor|fact)\w*)",
    r"\bnever\sbeen\s(?:this|so|that)\s(?:good|accurate|reliable|strong)\b|\bequal\sto\sthe\sbest\b",
    r"\b(?:is|are|remains?|stays?)\sun(?:matched|rivall?ed|parall?ell?ed|beaten|surpassed)\b",
    r"\bsimply\sthe\sbest\b|\bat\sits\s(?:finest|best)\b|\bsecond\sto\snone\b|\bnumber\sone\b|(?<!\w)(?:\#|no\.\s?)1\s(?:on|in|among|memory|system)\b",
    r"\brecord[- ](?:breaking|setting)\b|\b(?:cutting|bleeding)[- ]edge\b",
    rf"\b(?:most\s{_GOOD}|strongest|smartest|greatest|finest|highest[- ]quality)\s"
    rf"(?:\w+\s){{0,2}}{_THING}",
    rf"\b(?:the\s|our\s|its\s|their\s)best\s(?:\w+\s)?{_THING}",
    r"\bbest\s(?:recall|retrieval|accuracy|results?|performance|memory)\b",
    r"\bhighest\s(?:\w+\s)?(?:recall|accuracy|scores?|precision|quality|hit\srate)\b"
    r"(?!\s(?:possible|that\scan|is\s1))",
    r"\btop(?:s|ped|ping)?\s(?:the\s|all\s)?(?:leaderboards?|charts?|benchmarks?)\b",
    r"\btop[- ](?:ranked|scoring|performing)\b",
    r"\bnothing\s(?:else\s)?(?:comes|came)\sclose\b",
    r"\bno\s(?:other|competing|rival)\s(?:system|memory|tool|product|library|engine)\s"
    r"(?:\w+\s){0,2}(?:comes|finds|matches|reaches|remembers|recalls)\b",
    r"\b(?:perfect|flawless|near-perfect)\s(?:recall|memory|retrieval|accuracy)\b",
    r"\bsets?\sa\snew\s(?:standard|record|bar)\b|\braises?\sthe\sbar\b",
)
_COMPARATIVE = re.compile(
    r"\b(?:better(?!\sto\b)|best(?!-)|superior|finer|finest|smarter|stronger|strongest|greater|greatest|higher"
    r"|sharper|improv(?:es|ed|ements?)|gains?|gained|jump(?:s|ed)?|leaps?|leapt|boost\w*|soar\w*"
    r"|surg(?:es|ed)|ris(?:es|en)|rose|grew|doubl(?:es|ed)|tripl(?:es|ed)|halv(?:es|ed)|trump\w*"
    r"|leads?|beat(?:s|en)?|wins?|won|exceed\w*|clears\sthe\s(?:competition|field)|tops|keep\sup|light\syears|new\shigh"
    r"|through\sthe\sroof|(?:more|less|most)\s(?:often|accurate\w*|precise\w*|relevant|correct\w*"
    r"|complete\w*|reliabl\w+)|(?:forgets?|miss(?:es)?|hallucinates?|errs?)\s(?:\S+\s){0,2}less"
    r"|lower(?:s|ed)?\s(?:the\s)?(?:error|miss|hallucination))\b",
    re.IGNORECASE,
)
_TOPIC = re.compile(
    r"\b(?:recalls?|accura\w+|retriev\w+|answers?|remember\w*|forgets?|hallucinat\w+|miss(?:es)?"
    r"|error\srates?|quality|performance|relevan\w+|right\smemor\w+|memory\s(?:system|engine)s?"
    r"|benchmarks?|locomo|longmemeval|bm25|mem0|zep|langmem|letta|memgpt|cognee|competit\w+|rivals?"
    r"|peers|the\sfield|the\srest|others|other\s(?:systems|memories|engines|tools)|keywords?"
    r"|vector\s(?:search|stores?|databases?))\b",
    re.IGNORECASE,
)
_NOT_MEASURED = re.compile(
    r"\b(?:docs?|documentation|messages?|format\w*|tables?|pages?|layout|examples?|export\w*|logs?"
    r"|logging|tests?|typing|types|code|builds?|install\w*|help|wording|suited|to\suse|to\sset)\b",
    re.IGNORECASE,
)
_RELATIVE = re.compile("|".join(_RELATIVE_PHRASES), re.IGNORECASE)
_ABSOLUTE = re.compile("|".join(_ABSOLUTE_PHRASES), re.IGNORECASE)
_CUT = re.compile(r"[;:]|,\s|\s(?:and|but|while|whereas|although)\s|\s[–—]\s")


class WordedClaim(NamedTuple):
    """A comparison in words."""

    phrase: str
    absolute: bool
    """No pair of runs can show it."""


@lru_cache(1 << 14)
def worded_claims(text: str) -> tuple[WordedClaim, ...]:
    """The comparisons of a statement that no figure stands beside.

    Kept, because a release lints the same statements in its report, its notes and its checklist.
    """
    return tuple(_worded_claims(text))


def _worded_claims(text: str) -> Iterator[WordedClaim]:
    if text.rstrip().endswith("?"):
        return
    text = without_neutral(text)
    shown = bool(metrics(text)) and intervals(text) > 0 and any(p.proves for p in p_values(text))
    for pattern, absolute in ((_ABSOLUTE, True), (_RELATIVE, False)):
        for found in pattern.finditer(text):
            if hedged(text, found.start()) or (shown and not absolute):
                continue
            if not absolute and SPEED.search(_clause(text, found)):
                continue
            yield WordedClaim(" ".join(found[0].split()), absolute)
    if not metrics(text):
        yield from _praising_clauses(text)


def _praising_clauses(text: str) -> Iterator[WordedClaim]:
    """Clauses that have both a word of comparison and what a release measures, or a rival."""
    for found in _COMPARATIVE.finditer(text):
        clause = _clause(text, found)
        rest = clause.replace(found[0], " ", 1)
        about = _TOPIC.search(clause if " " in found[0] else rest)
        if about and not any(
            (hedged(text, found.start()), SPEED.search(clause), _NOT_MEASURED.search(clause))
        ):
            yield WordedClaim(" ".join(clause.split()).rstrip(".!"), False)


def _clause(text: str, found: re.Match[str]) -> str:
    """The clause around a place: between commas, `and` and the like."""
    cuts = [0, *(cut.end() for cut in _CUT.finditer(text)), len(text)]
    start = max(cut for cut in cuts if cut <= found.start())
    end = min(cut for cut in cuts if cut >= found.end())
    return text[start:end]
