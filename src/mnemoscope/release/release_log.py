"""The log of a release: every step and amendment, appended, each with the hash of the one before.

release.yaml also has people's texts, which may be edited until the report is signed. All the rest
of its content is in the log by its hash: a date or a run that was edited by hand is found. Someone
who recomputes every hash is not found, unless the signatures are of SSH keys.
"""

from __future__ import annotations

import hashlib
from itertools import pairwise

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope.release.state import FREE_FIELDS, LogEntry, Moment, Release, State, Step


def record(
    release: Release, step: Step, when: Moment, *, by: str = "", what: str = "", why: str = ""
) -> None:
    """Append a step to the log and save the release. Call it after the state was changed."""
    state = release.state
    check_time(state, when)
    changed = _changed(state)
    before = link(state.log[-1]) if state.log else ""
    state.log = [*state.log, LogEntry(before, step, when, changed, by, what, why)]
    release.save()


def check_time(state: State, when: Moment) -> None:
    """Refuse a time that lies before the step before it, or in the future."""
    if when.is_future:
        raise UsageError(f"--at {when.at:%Y-%m-%d %H:%M} UTC lies in the future")
    if state.log and when.at < state.log[-1].when.at:
        last = state.log[-1]
        raise UsageError(
            f"--at {when.at:%Y-%m-%d %H:%M} UTC: the release was {last.step} {last.when}; steps "
            "are recorded in their order"
        )


def log_problems(state: State) -> list[str]:
    """What was edited in release.yaml after it was recorded; empty if nothing was."""
    log = state.log
    if not log:
        return ["release.yaml has no log: it was removed, or made by an older version"]
    found = []
    if log[0].before or any(one.before != link(last) for last, one in pairwise(log)):
        found.append("the log in release.yaml was edited: its hashes do not follow each other")
    if log[0].step != "created":
        found.append("the log in release.yaml does not begin with the start of the release")
    for last, one in pairwise(log):
        recorded = [entry.when.recorded or entry.when.at for entry in (last, one)]
        if one.when.at < last.when.at or recorded[1] < recorded[0]:
            found.append(f"release.yaml: {one.step} {one.when} is before {last.step} {last.when}")
    found += [
        f"release.yaml: {one.step} {one.when} was given as a time in the future"
        for one in log
        if one.when.is_future
    ]
    edited = _changed(state)
    return found + [f"release.yaml: {name} was edited after it was recorded" for name in edited]


def ensure_recorded(release: Release) -> Release:
    """Refuse a release whose release.yaml was edited by hand; return it."""
    if problems := log_problems(release.state):
        raise DataError(
            f"{'; '.join(problems)}. Restore it, or change it with `mnemoscope release amend`",
            file=release.folder / "release.yaml",
        )
    return release


def hashes(state: State) -> dict[str, str]:
    """The hash of each part of the state that only commands may change."""
    content = msgspec.to_builtins(state)
    return {
        name: hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()
        for name, value in content.items()
        if name not in FREE_FIELDS
    }


def link(entry: LogEntry) -> str:
    return hashlib.sha256(msgspec.json.encode(entry, order="deterministic")).hexdigest()


def _changed(state: State) -> dict[str, str]:
    """The parts that differ from the log, with their hashes; a part that is gone has none."""
    known = {name: one for entry in state.log for name, one in entry.content.items()}
    now = hashes(state)
    return {
        name: now.get(name, "")
        for name in {**known, **now}
        if known.get(name, "") != now.get(name, "")
    }
