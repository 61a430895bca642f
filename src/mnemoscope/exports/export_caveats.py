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
    lines: list[str] = []
    vacuous: dict[str, None] = {}
    for view in views:
        overall, questions = view.metrics["overall"], view.metrics["questions"]
        shown = {name: overall[name] for name in names if name in overall}
        lines += few_clusters(questions.get("clusters", 0))
        if failed := questions["scorable"] - questions["measured"]:
            bounds = [(name, own["bounds"]) for name, own in shown.items() if "bounds" in own]
            wrong = "".join(f"; counted as wrong, {n} is {low:.3f}" for n, (low, _) in bounds[:1])
            lines.append(
                f"{view.label}: {failed:,} of {questions['scorable']:,} questions failed{wrong}"
            )
        for name, beyond in view.metrics.get("beyond_end", {}).items():
            if name in names:
                low, high = beyond["bounds"]
                lines.append(f"{view.label}: {name} is between {low:.3f} and {high:.3f}")
        at_chance = [
            name
            for name, own in shown.items()
            if own["chance"] is not None and own["ci95"][0] <= own["chance"]
        ]
        if at_chance and not view.is_baseline:
            lines.append(f"{view.label}: {', '.join(at_chance)} not shown to be above chance")
        vacuous |= dict.fromkeys(name for name, own in shown.items() if own.get("vacuous"))
    if vacuous:
        lines.append(f"not informative, a random ranking scores high: {', '.join(vacuous)}")
    return list(dict.fromkeys(lines))


def all_caveats(
    views: Sequence[RunView], groups: SystemGroups | str | None, statuses: Sequence[RunStatus]
) -> list[str]:
    """The statuses of the runs, then the caveats that their reports have."""
    return [*status_lines(statuses), *run_tables.notes(views), *group_tables.notes(groups)]
