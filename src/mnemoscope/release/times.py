"""The order of a release's times: runs finished, created, drafted, circulated, signed, tagged."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from mnemoscope.release.state import Release, State


class Event(NamedTuple):
    """What happened, and when; a time that is missing is None."""

    what: str
    at: datetime | None


def time_problems(release: Release) -> list[str]:
    """Times that are missing or not in order. A time that is missing does not count as done."""
    state = release.state
    finished = list(_finished(release))
    found = [f"{one.what} has no time" for one in finished if one.at is None]
    runs = [(one.at, one.what) for one in finished if one.at is not None]
    last_run = [Event(what, at) for at, what in sorted(runs)[-1:]]
    steps = [
        *last_run,
        _runs_recorded(state),
        Event("drafted", state.drafted.at if state.drafted else None),
        Event("circulated", state.circulated.when.at if state.circulated else None),
    ]
    found += [f"the release was not {one.what}: its time is missing" for one in steps if not one.at]
    if not state.signatures:
        found.append("the release was not signed: the times are missing")
    known = [one for one in steps if one.at]
    found += [
        _before(later, sooner) for sooner, later in pairwise(known) if _is_before(later, sooner)
    ]
    circulated = state.circulated
    signed = [
        Event(f"signed by {one.name}", one.when.at)
        for one in state.signatures
        if circulated
        and one.sha256 == circulated.sha256
        and one.amendments == len(state.amendments)
    ]
    found += [_before(one, known[-1]) for one in signed if _is_before(one, known[-1])]
    ends = [Event("tagged", state.tagged.at)] if state.tagged else []
    if (cut := git_tag_time(release)) is not None:
        ends.append(Event(f"the git tag {state.version}", cut))
    return found + [_before(end, one) for end in ends for one in signed if _is_before(end, one)]


def finished_after(release: Release, at: datetime) -> str:
    """The run that was finished after a time; empty if there is none."""
    for one in _finished(release):
        if one.at is None:
            return f"{one.what}: the time is missing"
        if at < one.at:
            return f"{one.what} {one.at:%Y-%m-%d %H:%M:%S} UTC, after that"
    return ""


def git_tag_time(release: Release) -> datetime | None:
    """When the git tag of this version was made; None if there is none."""
    with suppress(OSError, ValueError):
        told = subprocess.run(
            [
                *("git", "-C", str(release.folder), "for-each-ref"),
                *("--format=%(creatordate:unix)", f"refs/tags/{release.state.version}"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        return datetime.fromtimestamp(int(told.stdout), UTC)
    return None


def _runs_recorded(state: State) -> Event:
    """When the release got its runs: at its start, or by its last amendment of them."""
    entries = [entry for entry in state.amendments if "pairs" in entry.content]
    return Event("amended", entries[-1].when.at) if entries else Event("created", state.created.at)


def _finished(release: Release) -> Iterator[Event]:
    for record in release.records():
        run = release.run(record)
        at = run.manifest().finished
        yield Event(f"the run {run.path} was finished", at.replace(microsecond=0) if at else None)


def _is_before(one: Event, other: Event) -> bool:
    return one.at is not None and other.at is not None and one.at < other.at


def _before(later: Event, sooner: Event) -> str:
    return (
        f"{later.what}, {later.at:%Y-%m-%d %H:%M} UTC, is before {sooner.what}, "
        f"{sooner.at:%Y-%m-%d %H:%M} UTC"
    )
