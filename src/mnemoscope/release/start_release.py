"""Start a release from two sets of runs, and amend one; what changed is appended to its log."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from mnemoscope._store.errors import UsageError
from mnemoscope._store.fingerprint import differences, sha256_file
from mnemoscope._store.run_directory import RECORDED, RunDirectory
from mnemoscope.analysis.compare import NotComparable
from mnemoscope.protocols import load_protocol
from mnemoscope.release.base_release import base_of
from mnemoscope.release.claims import refuse_claims
from mnemoscope.release.people import check_name
from mnemoscope.release.process import (
    TRIGGERS,
    check_changed,
    current_process,
    process_versions,
)
from mnemoscope.release.release_log import ensure_recorded, record
from mnemoscope.release.state import (
    SANITY_BASELINES,
    ExtraBenchmark,
    Moment,
    Release,
    RunPair,
    RunRecord,
    State,
)
from mnemoscope.release.times import finished_after


def new_release(
    version: str,
    base: Sequence[Path],
    cand: Sequence[Path],
    folder: Path,
    *,
    author: str,
    when: Moment,
    waived: Mapping[str, str] = {},
    tag_date: datetime | None = None,
    other_base: str = "",
    changed: Sequence[str] = (),
    extras: Mapping[str, Path] = {},
) -> Release:
    """Pair the runs by benchmark; runs must be comparable. Nothing is written yet."""
    if not version.strip() or not author.strip():
        raise UsageError("a release needs a version and an author")
    if not re.fullmatch(r"[\w.+-]+", version.strip()) or version.startswith("-"):
        raise UsageError(f"{version!r} cannot be a tag: use letters, digits, dots and dashes")
    if (folder / "release.yaml").exists():
        raise UsageError(f"{folder} already contains a release; choose another --out")
    author = check_name(author, "--author")
    if when.is_future:
        raise UsageError(f"--at {when.at:%Y-%m-%d %H:%M} UTC lies in the future")
    pairs, protocol = _paired(_by_benchmark(base, "--base"), _by_benchmark(cand, "--cand"), folder)
    state = State(
        version,
        author,
        when,
        protocol,
        pairs,
        tag_date=tag_date,
        changed=check_changed(changed),
        extras=_extras(extras, folder),
        process=current_process(folder.parent),
    )
    state.waived = _waivers(waived, state)
    release = Release(folder, state)
    if problem := finished_after(release, when.at):
        raise UsageError(f"--at {when}: {problem}; run first, then start the release")
    if other_base:
        refuse_claims(other_base, "--other-base")
    state.base = base_of(pairs, folder, other_base)
    return release


def start(release: Release) -> None:
    """Write release.yaml, with the first entry of its log."""
    record(release, "created", release.state.created, by=release.state.author)


def amend_release(
    release: Release,
    *,
    by: str,
    why: str,
    when: Moment,
    base: Sequence[Path] = (),
    cand: Sequence[Path] = (),
    waived: Mapping[str, str] = {},
    other_base: str | None = None,
    changed: Sequence[str] = (),
    extras: Mapping[str, Path] = {},
    process: str = "",
    author: str = "",
) -> list[str]:
    """Change a release that was started, and return what changed.

    The log gets an entry with the change, its reason and its author. The report must be written
    and circulated again; signatures that were given before are void. A waiver with an empty reason
    is taken back.
    """
    ensure_recorded(release)
    state = release.state
    if state.tagged:
        raise UsageError(f"{state.version} was tagged {state.tagged}: start a new release")
    by = check_name(by, "--by")
    if not why.strip():
        raise UsageError("--why: give the reason of the amendment")
    refuse_claims(why, "--why")
    before = _amendable(state)
    if author:
        state.author = check_name(author, "--author")
    if base or cand:
        runs = {
            side: {
                **{pair.benchmark: release.run(getattr(pair, side)) for pair in state.pairs},
                **_by_benchmark(given, f"--{side}"),
            }
            for side, given in (("base", base), ("cand", cand))
        }
        state.pairs, protocol = _paired(runs["base"], runs["cand"], release.folder)
        if protocol != state.protocol:
            raise NotComparable(
                f"the release was started under {state.protocol['id']}, these runs are under "
                f"{protocol['id']}: start a new release"
            )
        if late := finished_after(release, when.at):
            raise UsageError(f"--at {when}: {late}")
    if changed:
        state.changed = check_changed(changed)
    if extras:
        kept = [one for one in state.extras if one.name not in extras]
        state.extras = [*kept, *_extras(extras, release.folder)]
    if process:
        known = [one.version for one in process_versions(release.folder.parent)]
        if process != known[-1]:
            raise UsageError(f"--process {process}: the process in force is {known[-1]}")
        state.process = process
    merged = {**state.waived, **waived}
    state.waived = _waivers({name: reason for name, reason in merged.items() if reason}, state)
    if other_base is not None or base:
        reason = state.base.reason if other_base is None else other_base
        refuse_claims(reason, "--other-base")
        state.base = base_of(state.pairs, release.folder, reason)
    found = differences(before, _amendable(state))
    if not found:
        raise UsageError("the amendment changes nothing")
    # The report is another one now: it is written, circulated and signed again.
    state.drafted = state.circulated = None
    record(release, "amended", when, by=by, what="; ".join(found), why=" ".join(why.split()))
    return found


def _amendable(state: State) -> dict[str, Any]:
    """What an amendment can change, in a form that can be told in words."""
    return {
        "author": state.author,
        "process": state.process,
        "changed": ", ".join(state.changed),
        "waived": dict(state.waived),
        "other_base": state.base.reason,
        "extras": {one.name: f"{one.path} {one.sha256[:12]}" for one in state.extras},
        "runs": {
            pair.benchmark: {"base": pair.base.path, "cand": pair.cand.path} for pair in state.pairs
        },
        "fingerprints": {
            pair.benchmark: {
                "base": pair.base.manifest_sha256[:12],
                "cand": pair.cand.manifest_sha256[:12],
            }
            for pair in state.pairs
        },
    }


def _paired(
    before: Mapping[str, RunDirectory], after: Mapping[str, RunDirectory], folder: Path
) -> tuple[list[RunPair], dict[str, str]]:
    """The runs by benchmark, in the protocol's order, and their protocol."""
    if lone := sorted(before.keys() ^ after.keys()):
        raise NotComparable(
            f"{', '.join(lone)}: only one run; each benchmark needs --base and --cand"
        )
    for name, run in before.items():
        if run.manifest().fingerprint == after[name].manifest().fingerprint:
            raise NotComparable(f"{name}: {run.path} and {after[name].path} are the same run")
    protocol = _shared_protocol([*before.values(), *after.values()])
    benchmarks = _benchmarks(protocol)
    names = [*(b for b in benchmarks if b in before), *(b for b in before if b not in benchmarks)]
    pairs = [RunPair(n, _record(before[n], folder), _record(after[n], folder)) for n in names]
    return pairs, protocol


def _benchmarks(protocol: Mapping[str, str]) -> list[str]:
    chosen = load_protocol(protocol["id"])
    return list(chosen.protocol.variants[chosen.variant].benchmarks)


def _waivers(waived: Mapping[str, str], state: State) -> dict[str, str]:
    """The waivers; each names a benchmark that was not run, with a reason without claims."""
    run = {pair.benchmark for pair in state.pairs} | {one.name for one in state.extras}
    triggered = [trigger.benchmark for trigger in TRIGGERS.values()]
    benchmarks = [*_benchmarks(state.protocol), *triggered]
    for name, reason in waived.items():
        if name not in benchmarks or name in run or not reason.strip():
            raise UsageError(
                f"--waive {name}=REASON: name a benchmark of {state.protocol['id']} or of §2.2 "
                f"that was not run ({', '.join(benchmarks)}), with a reason"
            )
        refuse_claims(reason, f"--waive {name}")
    return dict(waived)


def _extras(given: Mapping[str, Path], folder: Path) -> list[ExtraBenchmark]:
    known = [trigger.benchmark for trigger in TRIGGERS.values()]
    for name, path in given.items():
        if name not in known or not path.is_file():
            raise UsageError(
                f"--extra {name}={path}: name one of {', '.join(known)}, with its report"
            )
    return [
        ExtraBenchmark(name, os.path.relpath(path.resolve(), folder.resolve()), sha256_file(path))
        for name, path in given.items()
    ]


def _by_benchmark(paths: Sequence[Path], option: str) -> dict[str, RunDirectory]:
    found: dict[str, RunDirectory] = {}
    for path in paths:
        run = RunDirectory(path)
        name = str(run.manifest().identity["benchmark"]["name"])
        system = str(run.manifest().identity["system"]["spec"])
        if re.split(r"[,:]", system)[0].strip() in SANITY_BASELINES:
            raise UsageError(f"{option} {path}: {system} is a baseline and cannot be released")
        if name in found:
            raise UsageError(f"{option}: two runs of {name}, {found[name].path} and {path}")
        found[name] = run
    return found


def _shared_protocol(runs: Sequence[RunDirectory]) -> dict[str, str]:
    """The protocol of all runs; a number without one cannot be published."""
    protocols = {run.path: run.manifest().protocol for run in runs}
    for path, protocol in protocols.items():
        if not protocol:
            raise NotComparable(f"{path} has no protocol: run it with --protocol to release it")
    first, *others = protocols.values()
    if any(other != first for other in others):
        listed = ", ".join(f"{path}: {p['id']}" for path, p in protocols.items())
        raise NotComparable(f"the runs have different protocols ({listed})")
    return dict(first)


def _record(run: RunDirectory, folder: Path) -> RunRecord:
    return RunRecord(
        path=os.path.relpath(run.path.resolve(), folder.resolve()),
        fingerprint=run.manifest().fingerprint,
        manifest_sha256=sha256_file(run.manifest_path),
        files={name: sha256_file(run.path / name) for name in RECORDED},
    )
