"""Levels of isolation: what they are called, which level counts, and what may be said of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mnemoscope.types import Isolation

WITHIN_REACH, NOT_GIVEN, LOCKED, DECOYS = 0, 1, 2, 3
NOT_COVERED = (
    "the network, other programs that it can ask over a socket, and what the system brought along"
)
BUILT_IN_SYSTEMS = frozenset(
    "none random recency oracle full-context fts5 bm25 dense hybrid multigrain scoped graph".split()
)
"""Our own systems. Runs of older versions do not record where the code of a system ran."""
_OLD = "the run was made by a version that does not record isolation"


def recorded_isolation(isolation: Isolation | None, identity: Mapping[str, Any]) -> Isolation:
    """The isolation of a run; without a record, other systems than ours count as level 0."""
    if isolation is not None:
        return isolation
    system = identity.get("system")
    spec = str(system.get("spec", "")) if isinstance(system, Mapping) else ""
    name = spec.partition(",")[0]
    if name in BUILT_IN_SYSTEMS:
        return Isolation("built-in", None, sees_labels=name == "oracle")
    return Isolation("worker", WITHIN_REACH, why=_OLD)


def lowest(before: Isolation | None, now: Isolation, *, is_new: bool) -> Isolation:
    """The isolation of a run that is continued: the lowest level counts."""
    if now.level is None or is_new:
        return now
    if before is None or before.level is None:
        return msgspec.structs.replace(now, level=WITHIN_REACH, why=_OLD, decoys_sha256="")
    level, why = now.level, now.why
    if before.level < level:
        level, why = before.level, before.why
    if level == DECOYS and before.decoys_sha256 != now.decoys_sha256:
        level, why = LOCKED, "the secret of the decoys was lost before the run was continued"
    names = dict.fromkeys(name for name in (before.mechanism, now.mechanism) if name)
    return msgspec.structs.replace(
        now,
        level=level,
        why=why,
        mechanism=", then ".join(names),
        starts=before.starts,
        passed=before.passed,
        left_behind=before.left_behind,
        decoys_sha256=now.decoys_sha256 if level == DECOYS else "",
    )


def sentence(isolation: Isolation) -> str:
    """What the level means, for readers of the figures."""
    because = f" ({isolation.why})" if isolation.why else ""
    match isolation.level:
        case None if isolation.sees_labels:
            return "a built-in system that is given the labels on purpose: the upper bound"
        case None:
            return "a built-in system, whose code is ours"
        case 0:
            return f"level 0: labels were within the system's reach{because}"
        case 1:
            return (
                "level 1: labels were not given; it could have read the data files and the run "
                f"folders{because}"
            )
    tests = f"self-test {isolation.passed} of {isolation.starts} starts"
    left = ", ".join(isolation.left_behind)
    return (
        f"level {isolation.level}: could not read data, runs or our memory "
        f"({isolation.mechanism}, {tests}); not covered: {NOT_COVERED}"
        + (f"; no decoys: {isolation.why}" if isolation.why else "")
        + (f"; processes that it left behind were ended: {left}" if left else "")
    )
