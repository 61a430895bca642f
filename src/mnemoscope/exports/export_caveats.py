"""What a reader of exported figures must know: the status of each run, and weak figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.estimates import few_clusters
from mnemoscope.analysis.system_groups import SystemGroups
from mnemoscope.analysis.verify import Status, verify
from mnemoscope.reports import group_tables, run_tables
from mnemoscope.reports.run_view import RunView


class RunStatus(NamedTuple):
    """Whether the figures of a run may be cited."""

    system: str
    status: Status
    failed: tuple[str, ...]
    """The gates of `verify` that failed."""
    protocol: str
    fingerprint: str


def run_status(label: str, run: RunDirectory) -> RunStatus:
    """Verify a run, whose files were checked already."""
    found = verify(run)
    fingerprint = run.manifest().fingerprint
    return RunStatus(label, found.status, tuple(found.failed), found.protocol, fingerprint)


def status_lines(statuses: Sequence[RunStatus]) -> list[str]:
    """One line for the systems of each status; none for those that are VERIFIED."""
    found: dict[str, list[str]] = {}
    for one in statuses:
        if one.status != "VERIFIED":
            why = f" ({', '.join(one.failed)} failed)" if one.failed else ""
            found.setdefault(f"{one.status}{why}", []).append(one.system)
    every = len(statuses)
    return [
        f"{why}: {'all systems' if len(labels) == every > 1 else ', '.join(labels)}"
        for why, labels in found.items()
    ]


def weak_figures(views: Sequence[RunView], names: Sequence[str]) -> list[str]:
    """Figures that say less than they seem to, among the metrics that are shown."""
    lines: dict[str, None] = {}
    for view in views:
        overall, questions = view.metrics["overall"], view.metrics["questions"]
        lines |= dict.fromkeys(few_clusters(questions.get("clusters", 0)))
        if failed := questions["scorable"] - questions["measured"]:
            bounds = next(
                (own["bounds"] for n in names if (own := overall.get(n)) and "bounds" in own), None
            )
            wrong = f"; counted as wrong, {names[0]} is {bounds[0]:.3f}" if bounds else ""
            lines[
                f"{view.label}: {failed:,} of {questions['scorable']:,} questions failed{wrong}"
            ] = None
        for name, own in view.metrics.get("beyond_end", {}).items():
            if name in names:
                low, high = own["bounds"]
                lines[f"{view.label}: {name} is between {low:.3f} and {high:.3f}"] = None
        at_chance = [
            name
            for name in names
            if (figure := overall.get(name)) and not view.is_baseline
            if figure["chance"] is not None and figure["ci95"][0] <= figure["chance"]
        ]
        if at_chance:
            lines[f"{view.label}: {', '.join(at_chance)} not shown to be above chance"] = None
    vacuous = [
        name
        for name in names
        if any(v.metrics["overall"].get(name, {}).get("vacuous") for v in views)
    ]
    if vacuous:
        lines[f"not informative, a random ranking scores high: {', '.join(vacuous)}"] = None
    return list(lines)


def all_caveats(
    views: Sequence[RunView], groups: SystemGroups | str | None, statuses: Sequence[RunStatus]
) -> list[str]:
    """The statuses of the runs, then the caveats that their reports have."""
    return [*status_lines(statuses), *run_tables.notes(views), *group_tables.notes(groups)]
