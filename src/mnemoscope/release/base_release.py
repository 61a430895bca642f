"""The base of a release is the candidate of the previous release, or the reason is declared."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope.release.release_log import log_problems
from mnemoscope.release.state import Base, Release, RunPair


def previous_release(folder: Path) -> Release | None:
    """The last release in the neighbouring folders that was tagged."""
    found = []
    for file in sorted(folder.parent.glob("*/release.yaml")):
        if file.parent.resolve() == folder.resolve():
            continue
        with suppress(MnemoscopeError):  # one that cannot be read cannot be the base
            release = Release.load(file.parent)
            if release.state.tagged is not None and not log_problems(release.state):
                found.append((release.state.tagged.at, str(file.parent), release))
    return max(found, key=lambda one: one[:2])[2] if found else None


def base_of(pairs: Sequence[RunPair], folder: Path, reason: str) -> Base:
    """Where the base runs come from; others than those of the previous release need a reason."""
    previous = previous_release(folder)
    if previous is not None and not _differing(pairs, folder, previous):
        return Base(previous=previous.state.version)
    if not reason.strip():
        raise UsageError(f"{_why_not(pairs, folder, previous)}, or give --other-base REASON")
    return Base(reason=" ".join(reason.split()))


def base_problem(release: Release) -> str:
    """Why the base is not the one that the process asks for; empty if it is, or was declared."""
    base, pairs, folder = release.state.base, release.state.pairs, release.folder
    if base.reason.strip():
        return ""
    previous = previous_release(folder)
    if previous is not None and not _differing(pairs, folder, previous):
        return ""
    declare = "with `mnemoscope release amend`"
    return f"{_why_not(pairs, folder, previous)}, or declare --other-base {declare}"


def _differing(pairs: Sequence[RunPair], folder: Path, previous: Release) -> list[str]:
    """The benchmarks whose base run is not the candidate of the previous release."""
    released = {pair.benchmark: pair.cand for pair in previous.state.pairs}
    return [
        pair.benchmark
        for pair in pairs
        if pair.benchmark not in released
        or pair.base.manifest_sha256 != released[pair.benchmark].manifest_sha256
    ]


def _why_not(pairs: Sequence[RunPair], folder: Path, previous: Release | None) -> str:
    if previous is None:
        return (
            f"there is no tagged release in {folder.parent}, so the base cannot be checked: tag "
            "the previous release with `mnemoscope release tag`"
        )
    places = [
        os.path.relpath(previous.run(pair.cand).path.resolve(), Path.cwd())
        for pair in previous.state.pairs
    ]
    return (
        f"the base of {', '.join(_differing(pairs, folder, previous))} is not the candidate of the "
        f"previous release {previous.state.version}: use --base {' --base '.join(places)}"
    )
