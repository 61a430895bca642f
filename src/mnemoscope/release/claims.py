"""Find prohibited claims (§5.2) in a public text, by line and rule.

Without a release the text is checked against itself, with one against the figures of its runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.jsonl import read_text
from mnemoscope.protocols import Protocol, load_protocol, protocol_names
from mnemoscope.release.claim_patterns import (
    ALL_METRICS,
    LIMIT,
    NO_REGRESSION,
    RIVALRY,
    SPEED,
    THE_OTHERS,
    clauses,
    denies,
    estimates,
    gains,
    intervals,
    metrics,
    p_values,
    praises,
)
from mnemoscope.release.comparison_words import worded_claims
from mnemoscope.release.release_facts import Facts, cited_runs, matches
from mnemoscope.release.statements import (
    Segment,
    Statement,
    bare_estimates,
    segments,
    statements,
    with_followers,
)
from mnemoscope.release.table_claims import TableRow, row_problems

Rule = Literal[
    "unproven-improvement",
    "no-interval",
    "best-subset",
    "no-protocol",
    "no-such-figure",
    "unsound-run",
    "comparison-in-words",
    "hidden-regression",
]


class ProhibitedClaim(MnemoscopeError):
    """A text claims more than the runs show."""


class ClaimProblem(msgspec.Struct, frozen=True, order=True):
    """A prohibited claim: its line, its rule and what is wrong."""

    line: int
    rule: Rule
    what: str


def lint(text: str, facts: Facts | None = None, folder: Path | None = None) -> list[ClaimProblem]:
    """All prohibited claims of a text, by line."""
    said = with_followers(statements(text))
    found = [finding for one in said for finding in _statement(one, facts)]
    found += _protocol(said, text, facts)
    found += _subset(said, text, facts)
    found += _runs(said, facts, folder or Path.cwd())
    return sorted(set(found))


def lint_file(path: Path, facts: Facts | None = None) -> list[ClaimProblem]:
    return lint(read_text(path), facts, path.parent)


def refuse_claims(text: str, what: str) -> None:
    """Refuse a text that makes a prohibited claim; `what` is the option that it came from."""
    if found := lint(text):
        listed = "; ".join(f"{one.rule}: {one.what}" for one in found)
        raise ProhibitedClaim(f"{what} makes a prohibited claim: {listed}")


def _statement(one: Statement, facts: Facts | None) -> list[ClaimProblem]:
    return [*_figure_claims(one, facts), *_worded(one), *_hidden(one, facts)]


def _worded(one: Statement) -> list[ClaimProblem]:
    found = []
    for claim in worded_claims(one.text):
        remedy = (
            "no runs can show it; leave it out"
            if claim.absolute
            else "name the metric, its interval and p, or leave it out"
        )
        what = f"“{claim.phrase}” compares in words: {remedy}"
        found.append(ClaimProblem(one.line, "comparison-in-words", what))
    return found


def _hidden(one: Statement, facts: Facts | None) -> list[ClaimProblem]:
    """A denial of regressions that the runs contradict."""
    if facts is None or not NO_REGRESSION.search(one.text):
        return []
    if "within the margin" in one.text and facts.within_margin:
        return []
    significant = re.search(r"significan", one.text, re.IGNORECASE)
    worse = facts.regressed if significant else facts.worsened
    if not worse:
        return []
    what = f"{', '.join(worse[:3])}{', …' if len(worse) > 3 else ''} worsened"
    return [ClaimProblem(one.line, "hidden-regression", f"said not to be so, but {what}")]


def _figure_claims(one: Statement, facts: Facts | None) -> list[ClaimProblem]:
    if one.kind == "row":
        rules: dict[str, Rule] = {"p": "unproven-improvement", "interval": "no-interval"}
        found = [ClaimProblem(one.line, rules[kind], what) for kind, what in row_problems(one)]
        return found + (_row_against(one, facts) if facts else [])
    found = list[ClaimProblem]()
    for segment in segments(one.text):
        problem = _unproven(one, segment, facts)
        if problem:
            found.append(ClaimProblem(one.line, "unproven-improvement", problem))
        limit = LIMIT.search(segment.text) and not praises(segment.text)
        strange = facts.strange(segment.names, segment.text) if facts else []
        if strange and not problem and not limit:
            found.append(ClaimProblem(one.line, "no-such-figure", _no_run(segment.names, strange)))
        if bare_estimates(segment) and not limit:
            what = f"{', '.join(segment.names)}: a figure without its interval"
            found.append(ClaimProblem(one.line, "no-interval", what))
    if _nameless(one):
        what = "an improvement without a metric, its interval and p"
        found.append(ClaimProblem(one.line, "unproven-improvement", what))
    return found


def _row_against(one: Statement, facts: Facts) -> list[ClaimProblem]:
    """The differences between a row of a table and the runs."""
    row = TableRow.of(one)
    found = list[ClaimProblem]()
    if row.claims and (doubts := facts.row_doubts(row.names, row.category)):
        what = f"{', '.join(row.names)}: shown as improved, but {'; '.join(doubts[:3])}"
        found.append(ClaimProblem(one.line, "unproven-improvement", what))
    strange = [
        figure for names, figure, points in row.figures if not facts.has(names, figure, points)
    ]
    strange += [f"p={p.value:g}" for p in row.p_values if not facts.allows(row.names, p)]
    if strange:
        found.append(ClaimProblem(one.line, "no-such-figure", _no_run(row.names, strange)))
    return found


def _is_named(protocol: Protocol, text: str) -> bool:
    """Whether a text names the protocol by its citation or id, also across line breaks."""
    flat = " ".join(re.sub(r"[*`_]", "", text).split()).lower()
    return any(name.replace("_", "").lower() in flat for name in (protocol.cite, protocol.id))


def _no_run(names: Sequence[str], strange: Sequence[str]) -> str:
    return f"{', '.join(names) or 'the row'}: no run gave {', '.join(strange[:3])}"


def _unproven(one: Statement, segment: Segment, facts: Facts | None) -> str:
    """Why an improvement that the segment claims is not proven; empty without such a claim."""
    if not _claims(one, segment):
        return ""
    names = ", ".join(segment.names)
    if facts is not None and (doubts := facts.doubts(segment)):
        return f"{names}: claimed as improved, but {'; '.join(doubts[:3])}"
    given = p_values(segment.text)
    corrected = [p for p in given if not p.raw]
    if not corrected:
        return f"{names}: claimed as improved with {'only an uncorrected' if given else 'no'} p"
    if not all(p.proves for p in corrected):
        return f"{names}: claimed as improved at p={max(p.value for p in corrected):g}"
    return ""


def _claims(one: Statement, segment: Segment) -> bool:
    if one.kind == "heading" and not estimates(one.text):
        return bool(re.search(r"(?:s|ed|er)\b", one.text)) and praises(
            re.sub(r"\b(?:improvements?|gains?|increases?|enhancements?)\b", "", one.text)
        )
    if praises(segment.text):
        return True
    if denies(segment.text) or not gains(segment.text):
        return False
    return praises(one.section) or not p_values(segment.text)


def _nameless(one: Statement) -> bool:
    """Whether a statement claims an improvement of no metric, or of all metrics at once."""
    if metrics(one.text) or one.text.rstrip().endswith("?") or SPEED.search(one.text):
        return False
    return any(
        praises(clause)
        and (
            bool(ALL_METRICS.search(clause) or RIVALRY.search(clause))
            or any(re.search(r"pp|%|point|percent", number[0]) for number in estimates(clause))
        )
        for clause in clauses(one.text)
    )


def _figures(said: Sequence[Statement]) -> list[Statement]:
    """The statements with a figure of a metric."""
    return [
        one
        for one in said
        if metrics(" | ".join((one.text, *one.head)))
        and (estimates(one.text) or gains(one.text) or intervals(one.text))
        and not LIMIT.search(one.text)
    ]


def _protocol(said: Sequence[Statement], text: str, facts: Facts | None) -> list[ClaimProblem]:
    figures = _figures(said)
    known = [facts.protocol] if facts else [load_protocol(name) for name in protocol_names()]
    if not figures or any(_is_named(one.protocol, text) for one in known):
        return []
    what = f"numbers, but the text names no protocol such as “{known[0].protocol.cite}”"
    return [ClaimProblem(figures[0].line, "no-protocol", what)]


def _subset(said: Sequence[Statement], text: str, facts: Facts | None) -> list[ClaimProblem]:
    """A problem if all metrics in the text improved and the text omits other metrics."""
    if any(THE_OTHERS.search(one.text) for one in said):
        return []
    claimed: dict[str, int] = {}
    mentioned: set[str] = set()
    for one in said:
        for segment in segments(" | ".join((one.text, *one.head))):
            mentioned.update(segment.names)
            if one.kind != "row" and _claims(one, segment):
                claimed |= {name: one.line for name in segment.names if name not in claimed}
    for listed in _lists(text, facts):
        shown = {m for m in listed if any(matches(name, m) for name in mentioned)}
        good = {m for m in shown if any(matches(name, m) for name in claimed)}
        silent = [m for m in listed if m not in shown]
        if facts is not None:
            improved = facts.improved
            good, silent = good | (shown & improved), [m for m in silent if m not in improved]
        if claimed and good and good == shown and silent:
            what = f"only improved metrics are mentioned; the text omits {', '.join(silent)}"
            return [ClaimProblem(min(claimed.values()), "best-subset", what)]
    return []


def _lists(text: str, facts: Facts | None) -> list[list[str]]:
    """The metrics that must be reported together, for each benchmark in the text."""
    if facts is not None:
        return [facts.protocol.benchmark(one.benchmark).metrics for one in facts.found]
    lists = []
    for chosen in map(load_protocol, protocol_names()):
        protocol = chosen.protocol
        if not _is_named(protocol, text):
            continue
        named = (name for name in protocol.variants if f"{protocol.id}:{name}" in text)
        benchmarks = protocol.variants[next(named, chosen.variant)].benchmarks
        spoken = [b for b in benchmarks if b in text.lower()] or list(benchmarks)[:1]
        lists += [benchmarks[b].metrics for b in spoken]
    return lists


def _runs(said: Sequence[Statement], facts: Facts | None, folder: Path) -> list[ClaimProblem]:
    unsound, known, states = (facts.unsound, facts.runs, facts.states) if facts else ({}, {}, {})
    found = [
        ClaimProblem(line, "unsound-run", f"{path} is {state} and cannot be cited")
        for path, line, state in cited_runs(said, folder, known, dict(states))
    ]
    figures = _figures(said)
    if figures and unsound and not found:
        path, state = next(iter(unsound.items()))
        what = f"the numbers are those of {path}, which is {state} and cannot be cited"
        found.append(ClaimProblem(figures[0].line, "unsound-run", what))
    return found
