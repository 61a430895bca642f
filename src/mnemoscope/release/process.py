"""The release process: its versions (§7), and the benchmarks that a change triggers (§2.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.jsonl import write_atomically
from mnemoscope._store.yaml import dump_yaml, load_yaml
from mnemoscope.release.state import Moment, Release, State

FILE = "PROCESS.yaml"
NOTHING = "none"


class Trigger(msgspec.Struct, frozen=True):
    """A kind of change, and the benchmark that it makes mandatory."""

    benchmark: str
    when: str


TRIGGERS: dict[str, Trigger] = {
    "graph-retrieval": Trigger("hipporag", "graph-based retrieval changes"),
    "episodic-memory": Trigger("memorybank", "the architecture of episodic memory changes"),
    "vertical-feature": Trigger("domain-eval", "a feature for one vertical is added"),
}


class ProcessVersion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One version of the process."""

    version: str
    effective: str
    change: str
    breaking: bool = False
    approved_by: str = ""
    initials: str = ""
    used_the_prior: list[str] = []
    """The releases that were made under the version before (§7: tagged retroactively)."""


FIRST = ProcessVersion("1.0.0", "2026-05-10", "pgmnemo's release process as written")


def process_versions(releases: Path) -> list[ProcessVersion]:
    """All versions, the first first; `releases` is the folder of the release folders."""
    file = releases / FILE
    if not file.exists():
        return [FIRST]
    try:
        return [FIRST, *msgspec.convert(load_yaml(file), list[ProcessVersion])]
    except msgspec.ValidationError as error:
        raise DataError(str(error), file=file) from None


def current_process(releases: Path) -> str:
    return process_versions(releases)[-1].version


def add_version(releases: Path, new: ProcessVersion, when: Moment) -> ProcessVersion:
    """Add a version of the process; a breaking one needs an approval and initials."""
    known = process_versions(releases)
    if not new.change.strip():
        raise UsageError("--change: say what changes in the process")
    if new.breaking and not (new.approved_by.strip() and new.initials.strip()):
        raise UsageError("a breaking change needs --approved-by NAME and --initials (§7)")
    last, next_one = _numbers(known[-1].version), _numbers(new.version)
    if next_one <= last or (new.breaking and next_one[0] == last[0]):
        higher = "a higher first number" if new.breaking else "a higher version"
        raise UsageError(f"--version {new.version}: {known[-1].version} needs {higher} after it")
    used = [
        release.state.version
        for release in _releases(releases)
        if (release.state.process or FIRST.version) == known[-1].version
    ]
    added = msgspec.structs.replace(new, effective=f"{when.at:%Y-%m-%d}", used_the_prior=used)
    content = dump_yaml(msgspec.to_builtins([*known[1:], added]))
    releases.mkdir(parents=True, exist_ok=True)
    write_atomically(releases / FILE, content.encode())
    return added


def process_problem(release: Release) -> str:
    """Why the release is not under the process in force; empty if it is or was tagged before."""
    state, known = release.state, process_versions(release.folder.parent)
    if state.process not in {one.version for one in known}:
        return f"the process {state.process or '(not recorded)'} is not one of {FILE}"
    newer = known[[one.version for one in known].index(state.process) + 1 :]
    tagged = state.tagged
    if not newer or (tagged and tagged.at.date() < date.fromisoformat(newer[0].effective)):
        return ""
    return (
        f"started under process {state.process}, but {newer[-1].version} is in force since "
        f"{newer[-1].effective}: `mnemoscope release amend --process {newer[-1].version}`"
    )


def check_changed(changed: Sequence[str]) -> list[str]:
    """The kinds of changes; an error names those that exist."""
    for one in changed:
        if one not in (*TRIGGERS, NOTHING):
            raise UsageError(f"--changed {one}: choose of {', '.join((*TRIGGERS, NOTHING))}")
    if NOTHING in changed and len(changed) > 1:
        raise UsageError(f"--changed {NOTHING} cannot be given with other changes")
    return list(dict.fromkeys(changed))


def triggered(state: State) -> list[str]:
    """The benchmarks that the declared changes make mandatory."""
    return [TRIGGERS[one].benchmark for one in state.changed if one in TRIGGERS]


def lacking_triggered(release: Release) -> Iterator[str]:
    """What §2.2 still asks for."""
    state = release.state
    if not state.changed:
        yield (
            "not stated whether a change triggers another benchmark (§2.2): `mnemoscope release "
            f"amend --changed {'|'.join((*TRIGGERS, NOTHING))}`"
        )
    given = {one.name for one in state.extras}
    for kind in state.changed:
        if kind not in TRIGGERS:
            continue
        need = TRIGGERS[kind]
        if need.benchmark not in given and need.benchmark not in state.waived:
            yield (
                f"{need.benchmark} is mandatory, because {need.when} (§2.2): give its report with "
                f"--extra {need.benchmark}=FILE, or waive it"
            )
    yield from release.edited_extras()


def _releases(folder: Path) -> Iterator[Release]:
    for file in sorted(folder.glob("*/release.yaml")):
        yield Release.load(file.parent)


def _numbers(version: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise UsageError(f"--version {version}: write three numbers, such as 2.0.0")
    return tuple(map(int, version.split(".")))
