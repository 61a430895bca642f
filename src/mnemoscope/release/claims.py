"""Prohibited claims (§5.2): what a public text must not say, found by line and rule.

Without a release the text is held to what it says itself; with one, to what the runs gave.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from mnemoscope._store.errors import DataError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.compare import OVERALL, Comparison
from mnemoscope.protocols import Chosen, load_protocol, protocol_names
from mnemoscope.release.citations import cited_runs, is_named, status
from mnemoscope.release.claim_patterns import (
    ALL_METRICS,
    LIMIT,
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
from mnemoscope.release.figures import comparisons, standing
from mnemoscope.release.known_figures import Known, matches
from mnemoscope.release.segments import Segment, bare_estimates, segments, with_followers
from mnemoscope.release.state import Release
from mnemoscope.release.statements import Statement, statements
from mnemoscope.release.tablerows import TableRow, row_problems

Rule = Literal[
    "unproven-improvement",
    "no-interval",
    "best-subset",
    "no-protocol",
    "no-such-figure",
    "unsound-run",
]


class Finding(msgspec.Struct, frozen=True, order=True):
    """A prohibited claim."""

    line: int
    rule: Rule
    what: str


class Facts:
    """What is known beside the text: the figures of a release, the state of its runs."""

    def __init__(self, release: Release, found: Sequence[Comparison]) -> None:
        self.protocol = release.protocol
        self.found = found
        self.known = Known(release, found)
        self.runs = {release.run(record).path: record for record in release.records()}
        self.states = {path: status(RunDirectory(path)) for path in self.runs}

    @property
    def unsound(self) -> dict[Path, str]:
        return {path: state for path, state in self.states.items() if state != "VERIFIED"}

    @classmethod
    def of(cls, release: Release) -> Facts:
        return cls(release, comparisons(release))

    def doubts(self, segment: Segment) -> list[str]:
        """The metrics that the segment praises and the runs do not."""
        in_category = "categor" in segment.text.lower()
        doubted = []
        for one in self._meant(segment.text):
            for row in one.rows:
                if (row.scope == OVERALL) == in_category or standing(row) == "improved":
                    continue
                if any(matches(name, row.metric) for name in segment.names):
                    place = one.benchmark if row.scope == OVERALL else f"category {row.scope}"
                    doubted.append(f"{row.metric} on {place} has p_corrected={row.p_corrected:.4f}")
        strange = self.known.strange(segment.names, segment.text)
        return doubted or [f"no run gave {said}" for said in strange]

    def row_doubts(self, names: Sequence[str], category: str) -> list[str]:
        """The metrics that a row of a table praises and the runs do not."""
        return [
            f"{row.metric} has p_corrected={row.p_corrected:.4f}"
            for row in self.known.of(names)
            if standing(row) != "improved" and f"{category or OVERALL} ".startswith(f"{row.scope} ")
        ]

    def improved(self) -> set[str]:
        return {
            row.metric
            for one in self.found
            for row in one.rows
            if row.scope == OVERALL and standing(row) == "improved"
        }

    def _meant(self, text: str) -> list[Comparison]:
        named = [one for one in self.found if one.benchmark.lower() in text.lower()]
        return named or list(self.found)


def lint(text: str, facts: Facts | None = None, folder: Path | None = None) -> list[Finding]:
    """All prohibited claims of a text, in its order; none for an honest one."""
    said = with_followers(statements(text))
    found = [finding for one in said for finding in _statement(one, facts)]
    found += _protocol(said, text, facts)
    found += _subset(said, text, facts)
    found += _runs(said, facts, folder or Path.cwd())
    return sorted(set(found))


def lint_file(path: Path, facts: Facts | None = None) -> list[Finding]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise DataError("no text in UTF-8", file=path) from None
    return lint(text, facts, path.parent)


def _statement(one: Statement, facts: Facts | None) -> list[Finding]:
    if one.kind == "row":
        rules: dict[str, Rule] = {"p": "unproven-improvement", "interval": "no-interval"}
        found = [Finding(one.line, rules[kind], what) for kind, what in row_problems(one)]
        return found + (_row_against(one, facts) if facts else [])
    found = list[Finding]()
    for segment in segments(one.text):
        problem = _unproven(one, segment, facts)
        if problem:
            found.append(Finding(one.line, "unproven-improvement", problem))
        limit = LIMIT.search(segment.text) and not praises(segment.text)
        strange = facts.known.strange(segment.names, segment.text) if facts else []
        if strange and not problem and not limit:
            found.append(Finding(one.line, "no-such-figure", _no_run(segment.names, strange)))
        if bare_estimates(segment) and not limit:
            what = f"{', '.join(segment.names)}: a figure without its interval"
            found.append(Finding(one.line, "no-interval", what))
    if _nameless(one):
        what = "an improvement that names no metric with its interval and p"
        found.append(Finding(one.line, "unproven-improvement", what))
    return found


def _row_against(one: Statement, facts: Facts) -> list[Finding]:
    """What a row of a table says otherwise than the runs."""
    row = TableRow.of(one)
    found = list[Finding]()
    if row.claims and (doubts := facts.row_doubts(row.names, row.category)):
        what = f"{', '.join(row.names)}: shown as improved, but {'; '.join(doubts[:3])}"
        found.append(Finding(one.line, "unproven-improvement", what))
    strange = [
        figure
        for names, figure, points in row.figures
        if not facts.known.has(names, figure, points)
    ]
    strange += [f"p={p.value:g}" for p in row.p_values if not facts.known.allows(row.names, p)]
    if strange:
        found.append(Finding(one.line, "no-such-figure", _no_run(row.names, strange)))
    return found


def _no_run(names: Sequence[str], strange: Sequence[str]) -> str:
    return f"{', '.join(names) or 'the row'}: no run gave {', '.join(strange[:3])}"


def _unproven(one: Statement, segment: Segment, facts: Facts | None) -> str:
    """Why an improvement that the segment claims is not proven; empty where it claims none."""
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
    """`~5 pp improvement` of nothing in particular, or of all metrics at once."""
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
    """The statements that hold a figure of a metric."""
    return [
        one
        for one in said
        if metrics(" | ".join((one.text, *one.head)))
        and (estimates(one.text) or gains(one.text) or intervals(one.text))
        and not LIMIT.search(one.text)
    ]


def _protocol(said: Sequence[Statement], text: str, facts: Facts | None) -> list[Finding]:
    figures = _figures(said)
    known = [facts.protocol] if facts else [load_protocol(name) for name in protocol_names()]
    if not figures or any(is_named(one.protocol, text) for one in known):
        return []
    what = f"numbers, but the text names no protocol such as “{known[0].protocol.cite}”"
    return [Finding(figures[0].line, "no-protocol", what)]


def _subset(said: Sequence[Statement], text: str, facts: Facts | None) -> list[Finding]:
    """Whether every metric that the text mentions improved, and it is silent on others."""
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
            improved = facts.improved()
            good, silent = good | (shown & improved), [m for m in silent if m not in improved]
        if claimed and good and good == shown and silent:
            what = f"only improved metrics are mentioned; nothing is said of {', '.join(silent)}"
            return [Finding(min(claimed.values()), "best-subset", what)]
    return []


def _lists(text: str, facts: Facts | None) -> list[list[str]]:
    """The metrics that must be reported together, for each benchmark that is spoken of."""
    if facts is not None:
        return [facts.protocol.benchmark(one.benchmark).metrics for one in facts.found]
    named: list[Chosen] = [
        chosen
        for name in protocol_names()
        if is_named((chosen := load_protocol(name)).protocol, text)
    ]
    lists = []
    for chosen in named:
        benchmarks = chosen.protocol.variants[_variant(chosen, text)].benchmarks
        spoken = [b for b in benchmarks if b in text.lower()] or list(benchmarks)[:1]
        lists += [benchmarks[b].metrics for b in spoken]
    return lists


def _variant(chosen: Chosen, text: str) -> str:
    for name in chosen.protocol.variants:
        if f"{chosen.protocol.id}:{name}" in text:
            return name
    return chosen.variant


def _runs(said: Sequence[Statement], facts: Facts | None, folder: Path) -> list[Finding]:
    unsound, known, states = (facts.unsound, facts.runs, facts.states) if facts else ({}, {}, {})
    found = [
        Finding(line, "unsound-run", f"{path} is {state} and cannot be cited")
        for path, line, state in cited_runs(said, folder, known, dict(states))
    ]
    figures = _figures(said)
    if figures and unsound and not found:
        path, state = next(iter(unsound.items()))
        what = f"the numbers are those of {path}, which is {state} and cannot be cited"
        found.append(Finding(figures[0].line, "unsound-run", what))
    return found
