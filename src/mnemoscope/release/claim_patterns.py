"""Patterns of figures and claims in texts: metrics, estimates, intervals, p-values, praise."""

from __future__ import annotations

import re
from typing import NamedTuple

# At most 30 digits: without a limit, a text of 5,000 digits takes minutes.
_NUMBER = r"[-+−–]?\s?(?:\d[\d,]{0,29})?\.?\d{1,30}"
_UNIT = r"\s?(?:pp\b|%|percentage points?\b|percent\b|points?\b)"

_METRIC = re.compile(
    r"""
    \b(?P<kind>recall|hit(?:s|[ -]?rate)?|all|precision|ndcg|mrr|map|r)\s?@\s?(?P<k>\d+)
      (?P<more>(?:\s?/\s?@?\d+(?![.\d])|\s?(?:,|,?\s?and|&)\s?@\d+)*)
    | \b(?P<at>recall|hit[ -]?rate|precision|ndcg)\sat\s(?:rank\s|k\s?=\s?)?(?P<rank>\d+)\b
    | \btop[- ](?P<top>\d+)\s(?P<of>recall|precision|hit[ -]?rate)\b
    | (?<!\bcache\s)\b(?P<bare>mrr|ndcg|mean\sreciprocal\srank|hit[ -]rate|accuracy|precision)\b
      (?!@|\s(?:of\s(?:the\s)?)?(?:system\s)?(?:clocks?|timers?|timestamps?|floats?|arithmetic)\b)
    | (?<!\bto\s)(?<!\bcan\s)(?<!\bwill\s)(?<!\bwe\s)(?<!\bthey\s)\b(?P<loose>recall)\b
      (?!@|-|\scan\s(?:now\s)?be\s(?!high|better|improv)|\s(?:calls?|latency|latencies|times?|timed|protocols?|bench\w*|steps?|phases?|quer\w+
      |functions?|apis?|requests?|ms|depth|methods?|endpoints?|improvements?\s(?:is|are)\slisted)\b)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_INTERVAL = re.compile(
    rf"""
    [\[(]\s*{_NUMBER}(?:{_UNIT})?\s*(?:,|;|to\b|–|—|…|\.\.+|-)\s*{_NUMBER}(?:{_UNIT})?\s*[\])]
    | \b(?:CI|confidence\sinterval|interval)\b[^\d\[\]();]{{0,12}}{_NUMBER}(?:{_UNIT})?
      \s*(?:,|to\b|–|—|…|-)\s*{_NUMBER}(?:{_UNIT})?
    | (?:±|\+/-|\+-)\s*{_NUMBER}(?:{_UNIT})?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_P = re.compile(
    r"""
    (?<![\w@])p(?:[-_ ]?(?P<kind>raw|corr(?:ected)?|adj(?:usted)?|holm|vals?|values?))?
    (?:\s?\((?:holm|corrected|adjusted|raw)[^)]*\))?
    \s*(?P<sign>=|<=|≤|<|>=|≥|>|≈|~|:|\bof\b|\bis\b)\s*
    (?P<value>(?:\d+)?\.\d+(?:e[-−]?\d+)?|\d+(?:e[-−]?\d+)?)(?P<power>\s*[×x*]\s*10)?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_NOT_ESTIMATES = re.compile(
    rf"""
    \b9[059](?:\.\d+)?\s?%(?=[\s-]*(?:CI\b|confidence|interval|Wilson|bootstrap|cluster|\[))
    | \bv\d+(?:\.\d+)*[\w.-]* | \b\d+\.\d+\.\d+\S* | \b\d{{4}}-\d\d-\d\d\S*
    | (?:§|\bsection|\btable|\bfigure)\s?\d+(?:\.\d+)* | \b(?:python|numpy)\s[\d.]+
    | (?<![\w@])(?:cohen.s\s)?(?:h|d_z|d|z|t|n|k|alpha|α|κ|kappa|df|seed)\s*[=:]\s*{_NUMBER}
    | (?<![\w@])(?!(?:mrr|ndcg|recall|precision|accuracy|hit|map)\b)[a-z]\w*={_NUMBER}
    | \balpha\s(?:of\s)?{_NUMBER} | \bpower\s(?:of\s)?{_NUMBER}(?:\s?%)?
    | {_NUMBER}\s?(?:ms|µs|s|secs?|seconds?|min|minutes?|hours?|h|[kKMG]i?B|bytes|tokens?|x|times
      |cores?|questions?|conversations?|sessions?|segments?|memories|runs?|draws?|clusters?)\b
    | {_NUMBER}\s?×
    | \bdetectable\b[^.;\d]*{_NUMBER}(?:{_UNIT})?
    | \bchance\b[^.;,\d]{{0,20}}{_NUMBER}(?:{_UNIT})?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_ESTIMATE = re.compile(
    rf"(?<![\w@.])(?:[-+−–~≈]\s?)?(?:\d[\d,]{{0,29}}(?:\.\d+)?|\.\d+){_UNIT}|(?<![\w@.])[-+−]?[01]?\.\d+\b",
    re.IGNORECASE,
)
_PRAISE = re.compile(
    r"""\b(?:improv(?:e|es|ed|ing|ements?)|better|gain(?:s|ed|ing)?|increas(?:e|es|ed|ing)
    |ris(?:e|es|en|ing)|rose|higher|boost\w*|outperform\w*|beat(?:s|en|ing)?|surpass\w*
    |exceed(?:s|ed)|wins?|won|lift(?:s|ed)|rais(?:es|ed|ing)|jump(?:s|ed)?|climb(?:s|ed)?|grew|grows
    |up\s(?:by\b|from\b|(?:[~≈+]\s?)?(?=[\d.]+\s?(?:pp|%|point|perc)))|more\s(?:relevant|correct)|superior|stronger|doubl(?:es|ed)|tripl(?:es|ed)|enhanc(?:es|ed|ing|ements?)|uplift
    |state[- ]of[- ]the[- ]art|SOTA)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_NO_PRAISE = re.compile(
    r"""\b(?:higher|larger|more|lower)\sis\sbetter\b | \bbetter(?:,|\sor|\snor)\s(?:or\s)?worse\b
    | \bgained\b(?=.*\blost\b) | \blost\b.*\bgained\b
    | \b(?:higher|better|increas\w+|improv\w+|rais\w+)\s(?:in\s|the\s|of\s|its\s)?(?:\w+\s)?
      (?:latency|cost|costs|tokens?|docs?|documentation|errors?|messages?|coverage\sof\stests)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_DENIAL = re.compile(
    r"""(?<![\w.])(?:ns|n\.s\.?)(?!\w) | \bnon-?\s?significan\w+ | \binsignifican\w+
    | \b(?:not|n[o'’]t|never|no)\s(?:\w+\s){0,3}significan\w+ | \bnot\sclaimed\b | \bno\sclaim
    | \bwithin\s(?:\w+\s){0,2}noise\b | \bcan(?:not|['’]t|\snot)\s(?:be\stold|tell)\b
    | \binconclusive\b | \bindistinguishable\b | \bno\sevidence\b | \bneutral\b""",
    re.IGNORECASE | re.VERBOSE,
)
_HEDGE = re.compile(
    r"""\b(?:no(?!\s(?:doubt|question))|not(?!\sonly)|never(?!\sbeen\s*$)|neither|nor|without(?!\s(?:a\s|any\s)?(?:doubt|question))|cannot|fail(?:s|ed)?\sto|whether|if|unless
    |would|could|might|(?-i:may)|should|must|(?<!as\s)expect\w*|hop(?:e|es|ing)|aim\w*|goal|plan\w*|wants?|only
    \s(?:if|when|where)|claim(?:s|ing)?|how\smuch|ask\w*|tests?\s(?:if|for))\b|n['’]t\b""",
    re.IGNORECASE | re.VERBOSE,
)
_REFERS = re.compile(
    r"""\s*(?:this|that|which|not|non|ns|within|however|but|but\snot|p\b|95
    |the\s(?:difference|change|gain|improvement|increase|rise))\b|\s*[\[(+-]""",
    re.IGNORECASE | re.VERBOSE,
)
LIMIT = re.compile(
    r"\b(?:at most|at least|no more than|thresholds?|gates?|limits?|toleran\w+|allowed|required|"
    r"must|may|cannot|would|acceptable|variance|ceiling|by construction|random order|example|"
    r"max-drop)\b",
    re.IGNORECASE,
)
SPEED = re.compile(
    r"\b(?:cache|latency|speed|fast\w*|slow\w*|time|throughput|bytes|size|cost|costs|cheaper|tokens?|"
    r"startup|memory (?:use|usage)|disk|cpu|ram|coverage)\b",
    re.IGNORECASE,
)


RIVALRY = re.compile(
    r"\b(?:beat(?:s|en|ing)?|outperform\w*|surpass\w*|exceed(?:s|ed)|better than|wins?)\b"
    r".*\b(?:locomo|longmemeval|benchmarks?)\b",
    re.IGNORECASE,
)
ALL_METRICS = re.compile(
    r"\b(?:all|every|each|most)\s(?:of\s)?(?:the\s)?(?:\w+\s)?metrics?\b", re.IGNORECASE
)
THE_OTHERS = re.compile(
    r"\b(?:all|no|none of the|the|every)\s(?:the\s)?(?:other|remaining)\s(?:\w+\s)?metrics?\b"
    r"|\bno\smetric\b",
    re.IGNORECASE,
)


_WORSE = (
    r"(?:regress(?:ed|es|ions?)?|wors(?:e|ened|ens)|f[ae]ll(?:s|en)?|dropp?(?:ed|s)?|declin(?:ed|es)"
    r"|decreas(?:ed|es)|degrad(?:ed|es|ations?)|lost|suffer(?:ed|s)|went\sdown|deteriorat\w+)"
)
NO_REGRESSION = re.compile(
    rf"\b(?:no|none|nothing|never|not\sa\ssingle|zero|without(?:\sany)?|free\sof)\b(?:\s\w+){{0,4}}?\s"
    rf"{_WORSE}\b|\b(?:all|every|each)\s(?:\w+\s){{0,3}}(?:held|kept|stable|unchanged|stayed)\b",
    re.IGNORECASE,
)
"""A statement that nothing got worse."""


class PValue(NamedTuple):
    """A p-value of a text."""

    value: float
    raw: bool
    """Marked as uncorrected."""
    proves: bool
    """Below 0.05."""
    slack: float = 0.0
    """The largest difference that rounding can make."""


def metrics(text: str) -> list[tuple[int, int, tuple[str, ...]]]:
    """The place and the names of metrics: `recall@5/10` names two, `MRR` any depth."""
    return [(found.start(), found.end(), _names(found)) for found in _METRIC.finditer(text)]


def intervals(text: str) -> int:
    return len(_INTERVAL.findall(_P.sub(" ", text)))


def p_values(text: str) -> list[PValue]:
    return [_p(found) for found in _P.finditer(text)]


def estimates(text: str) -> list[re.Match[str]]:
    """Numbers that are scores: shares, percentages, points."""
    for pattern in (_INTERVAL, _P, _METRIC, _NOT_ESTIMATES):
        text = pattern.sub(lambda found: " " * len(found[0]), text)
    return list(_ESTIMATE.finditer(text))


def gains(text: str) -> bool:
    """Whether the text has a difference with a plus sign."""
    return any(estimate[0].lstrip().startswith("+") for estimate in estimates(text)) or bool(
        re.search(rf"\+\s?\d+(?:\.\d+)?{_UNIT}", _INTERVAL.sub(" ", text))
    )


def praises(text: str) -> bool:
    """Whether the text claims an improvement, and not as a question, denial, hope or condition."""
    return not text.rstrip().endswith("?") and any(map(_praises, clauses(text)))


def clauses(text: str) -> list[str]:
    """The parts between semicolons; a part that only refers to the one before belongs to it."""
    found: list[str] = []
    for part in text.split(";"):
        if found and (_REFERS.match(part) or part.count(")") > part.count("(")):
            found[-1] += f";{part}"
        else:
            found.append(part)
    return found


def _praises(clause: str) -> bool:
    if _DENIAL.search(clause):
        return False
    clause = without_neutral(clause)
    return any(
        not _HEDGE.search(_before(clause, word.start())) for word in _PRAISE.finditer(clause)
    )


def without_neutral(text: str) -> str:
    """The text with blanks for phrases such as “better or worse”, which praise nothing."""
    return _NO_PRAISE.sub(lambda found: " " * len(found[0]), text)


def hedged(text: str, place: int) -> bool:
    """Whether the words before a place deny it, ask for it or hope for it; or its clause does."""
    clause = next((part for part in clauses(text) if text.find(part) + len(part) > place), text)
    return bool(_HEDGE.search(_before(text, place)) or _DENIAL.search(clause))


def denies(text: str) -> bool:
    return bool(_DENIAL.search(text))


def _before(text: str, place: int) -> str:
    """The words before a place in the same clause; a list of metrics does not end a clause."""
    masked = _METRIC.sub(lambda found: "@" * len(found[0]), text)
    near = masked[max(0, place - 45) : place]
    return re.split(r"[;:]|(?<!@)(?:,\s|\sand\b)|\b(?:but|however|while|whereas)\b", near)[-1]


def _names(found: re.Match[str]) -> tuple[str, ...]:
    part = found.groupdict()
    if part["kind"]:
        kind = _kind(part["kind"])
        more = re.findall(r"\d+", part["more"] or "")
        return tuple(f"{kind}@{k}" for k in (part["k"], *more))
    if part["at"]:
        return (f"{_kind(part['at'])}@{part['rank']}",)
    if part["top"]:
        return (f"{_kind(part['of'])}@{part['top']}",)
    return (_kind(part["bare"] or part["loose"]),)


def _kind(word: str) -> str:
    word = word.lower()
    if word.startswith("hit"):
        return "hit"
    return {"r": "recall", "mean reciprocal rank": "mrr"}.get(word, word)


def _p(found: re.Match[str]) -> PValue:
    value = 0.0 if found["power"] else float(found["value"].replace("−", "-"))
    raw = (found["kind"] or "").lower() == "raw" or "(raw" in found[0].lower()
    slack = 1.0 if found["power"] else 0.51 * 10 ** -len(found["value"].partition(".")[2])
    if found["sign"] in (">", ">=", "≥"):
        return PValue(value, raw, False, 1.0)
    if found["sign"] in ("<", "<=", "≤"):
        return PValue(value, raw, value <= 0.05, slack if found["power"] else 0.0)
    return PValue(value, raw, value < 0.05, slack)
