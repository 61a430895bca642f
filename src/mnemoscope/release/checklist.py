"""The checklist of the release process (Appendix A); every item is computed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.jsonl import read_text
from mnemoscope.analysis.comparison import Comparison
from mnemoscope.release.base_release import base_problem
from mnemoscope.release.benchmark_report import departures, is_current
from mnemoscope.release.claims import lint_file
from mnemoscope.release.decide import comparisons, decide, is_fresh, unwritten
from mnemoscope.release.notes import SECTIONS
from mnemoscope.release.notes import render as render_notes
from mnemoscope.release.process import lacking_triggered, process_problem
from mnemoscope.release.release_facts import Facts
from mnemoscope.release.release_log import log_problems
from mnemoscope.release.signatures import (
    exception,
    lacking_notice,
    lacking_signatures,
    other_statistician,
    typed_names,
)
from mnemoscope.release.state import Moment, Release
from mnemoscope.release.times import git_tag_time, time_problems
from mnemoscope.reports.tables import DIM, Cell, Lines, ReportTable, TableColumn

RUNS = "metrics.json files produced with pinned dataset SHA256"


class ChecklistItem(msgspec.Struct, frozen=True):
    """One line of the checklist."""

    name: str
    missing: list[str]
    remark: str = ""

    @property
    def ok(self) -> bool:
        return not self.missing


class Checklist(msgspec.Struct, frozen=True):
    """All items."""

    items: list[ChecklistItem]
    preview: bool = False
    """Computed for a future time: it does not allow the tag."""

    @property
    def complete(self) -> bool:
        return all(item.ok for item in self.items)

    @property
    def tag_allowed(self) -> bool:
        return self.complete and not self.preview

    def outcome(self, version: str) -> str:
        """Whether the tag is allowed, as text."""
        if not self.complete:
            missing = sum(not item.ok for item in self.items)
            return f"tag not allowed: {missing} items are missing"
        return f"the tag {version} would be allowed" if self.preview else f"tag allowed: {version}"


def table(found: Checklist) -> ReportTable:
    shown = ReportTable([TableColumn(title) for title in ("", "item", "missing")], frame="dense")
    for item in found.items:
        mark = Cell("[x]", "green") if item.ok else Cell("[ ]", "bold red")
        missing = Cell(Lines("\n".join(item.missing))) if item.missing else Cell(item.remark, DIM)
        shown.rows.append([mark, item.name, missing])
    return shown


class _Reviewed:
    """The input of the items; runs are verified once."""

    def __init__(
        self, release: Release, found: Sequence[Comparison], allowed_signers: Path | None
    ) -> None:
        self.release = release
        self.found = found
        self.allowed_signers = allowed_signers

    @cached_property
    def facts(self) -> Facts:
        return Facts(self.release, self.found)


def check(release: Release, now: Moment, allowed_signers: Path | None = None) -> Checklist:
    """Compute Appendix A. An item that cannot be computed is missing; the error is the reason.

    With a list of allowed signers, every signature must be of one of their SSH keys.
    """
    try:
        found = comparisons(release)
    except MnemoscopeError as error:
        why = dict.fromkeys([name for name, *_ in _ITEMS], "cannot be computed: see the runs")
        why[RUNS] = str(error)
        items = [ChecklistItem(name, [reason]) for name, reason in why.items()]
        return Checklist([*items, _tag(release, now, len(items))], now.is_future)
    case, items = _Reviewed(release, found, allowed_signers), []
    for name, missing, remark in _ITEMS:
        try:
            items.append(ChecklistItem(name, list(missing(case)), remark(release)))
        except MnemoscopeError as error:
            items.append(ChecklistItem(name, [str(error)]))
    tag = _tag(release, now, sum(not item.ok for item in items))
    return Checklist([*items, tag], now.is_future)


def _benchmarks(case: _Reviewed) -> Iterator[str]:
    variant = case.release.protocol.protocol.variants[case.release.protocol.variant]
    run = {pair.benchmark for pair in case.release.state.pairs}
    for name in variant.benchmarks:
        if name not in run and name not in case.release.state.waived:
            yield f"{name} was not run: run it, or waive it with a reason in `release new`"
    systems = {
        msgspec.json.encode([identity["system"], identity.get("versions")], order="sorted")
        for pair in case.release.state.pairs
        for identity in (case.release.run(pair.cand).manifest().identity,)
    }
    if len(systems) > 1:
        yield "the candidate runs are of different systems or versions"
    yield from filter(None, [base_problem(case.release), process_problem(case.release)])
    yield from lacking_triggered(case.release)


def _declared(release: Release) -> str:
    waived = [f"{name} waived: {why}" for name, why in release.state.waived.items()]
    return "; ".join([*waived, *departures(release)[len(waived) :]])


def _runs(case: _Reviewed) -> Iterator[str]:
    for record in case.release.records():
        run = case.release.run(record)
        if run.manifest().protocol != case.release.state.protocol:
            yield f"{run.path} was not made under {case.release.state.protocol['id']}"
    for path, state in case.facts.unsound.items():
        yield f"{path} is {state}; `mnemoscope verify {path}` gives the reason"


def _significance(case: _Reviewed) -> Iterator[str]:
    for name in unwritten(case.release, case.found):
        yield f"{name} is missing or differs from the runs: `mnemoscope release report`"


def _report(case: _Reviewed) -> Iterator[str]:
    if case.release.state.drafted is None or not case.release.report_path.exists():
        yield "report.md is not written: `mnemoscope release report`"
    elif not is_current(case.release, case.found):
        yield "report.md differs from the runs and release.yaml: it was edited or is out of date"
    for field in ("internal", "external", "rationale"):
        if not getattr(case.release.state.words, field).strip():
            yield f"words.{field} in release.yaml is empty: `mnemoscope release set --{field} …`"


def _rederived(case: _Reviewed) -> Iterator[str]:
    done = case.release.state.rederived
    if done is None:
        yield "not done: `mnemoscope release rederive`"
    elif not is_fresh(case.release, case.found):
        yield "done on other figures: run `mnemoscope release rederive` again"
    else:
        yield from done.disagreements[:3]
    if name := other_statistician(case.release):
        yield f"{name} signed as statistician, but another person repeated the statistics"


def _decision(case: _Reviewed) -> Iterator[str]:
    recorded = case.release.state.decision
    if recorded is None:
        yield "not decided: `mnemoscope release decide`"
        return
    now = decide(case.release, case.found, recorded.when)
    if now != recorded:
        yield "the recorded decision is out of date: run `mnemoscope release decide` again"
    yield from now.open


def _notes(case: _Reviewed) -> Iterator[str]:
    if not case.release.notes_path.exists():
        yield "notes.md is not written: `mnemoscope release notes`"
        return
    text = read_text(case.release.notes_path)
    if tuple(re.findall(r"^## (.*)$", text, re.MULTILINE)) != SECTIONS:
        yield "notes.md must have exactly the five sections, in their order"
    if text != render_notes(case.release, case.found):
        yield "notes.md differs from the runs and release.yaml: it was edited or is out of date"


def _claims(case: _Reviewed) -> Iterator[str]:
    files = [
        case.release.report_path,
        case.release.notes_path,
        *(case.release.folder / name for name in case.release.state.public),
    ]
    for file in files:
        if not file.exists():
            yield f"{file} is missing"
            continue
        for claim in lint_file(file, case.facts):
            yield f"{file.name}, line {claim.line}, {claim.rule}: {claim.what}"


def _tag(release: Release, now: Moment, missing: int) -> ChecklistItem:
    found = [f"{missing} of the above"] if missing else []
    date = release.state.tag_date
    if date and now.at < date:
        found.append(f"the tag date {date:%Y-%m-%d %H:%M} UTC is not reached: it is {now}")
    if missing and git_tag_time(release) is not None:
        found.append(f"the tag {release.state.version} exists already")
    found += log_problems(release.state)
    try:
        found += time_problems(release)
    except MnemoscopeError as error:
        found.append(str(error))
    return ChecklistItem("Git tag cut only after all above", found)


def _circulated(release: Release) -> str:
    return f"circulated {release.state.circulated}" if release.state.circulated else ""


def _repeated(release: Release) -> str:
    done = release.state.rederived
    return f"{done.checked} statistics by {done.by}, seed {done.seed}" if done else ""


def _signers(release: Release) -> str:
    reason, typed = exception(release), typed_names(release)
    return "; ".join(
        [
            *([f"quorum exception by the PI: {reason}"] if reason else []),
            *([f"only typed, not proven by a key: {', '.join(typed)}"] if typed else []),
        ]
    )


# Each item: its name, what is missing, and a remark.
_ITEMS: tuple[tuple[str, Callable[[_Reviewed], Iterable[str]], Callable[[Release], str]], ...] = (
    ("All mandatory benchmarks run on final code", _benchmarks, _declared),
    (RUNS, _runs, lambda release: ""),
    ("Significance test run: current vs. previous", _significance, lambda release: ""),
    ("Draft report written using the template", _report, lambda release: ""),
    (
        "Draft shared with WG ≥48h before tag",
        lambda case: filter(None, [lacking_notice(case.release)]),
        _circulated,
    ),
    ("StatAnalyst independent re-derivation complete", _rederived, _repeated),
    (
        "All 4 WG signatures collected (or documented quorum exception)",
        lambda case: lacking_signatures(case.release, case.allowed_signers),
        _signers,
    ),
    (
        "Decision matrix applied, ship/hold documented",
        _decision,
        lambda release: release.state.decision.outcome if release.state.decision else "",
    ),
    ("Public release notes follow §6 structure", _notes, lambda release: ""),
    ("No prohibited claims (§5.2) in any public-facing text", _claims, lambda release: ""),
)
