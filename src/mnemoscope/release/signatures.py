"""Signatures of the working group, the 48 hours it gets to read, and the quorum (§4)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from mnemoscope.analysis.compare import Comparison
from mnemoscope.core.errors import UsageError
from mnemoscope.core.jsonl import write_atomically
from mnemoscope.release.clock import Moment
from mnemoscope.release.decide import is_conditional
from mnemoscope.release.report import is_current
from mnemoscope.release.seal import block, digest, latest, sealed, split
from mnemoscope.release.state import ROLES, Release, Role, Signature, State

NOTICE = timedelta(hours=48)
Standing = Literal["valid", "void", "missing"]


def circulate(release: Release, when: Moment) -> None:
    """Record that the draft was shared with the working group."""
    drafted = release.state.drafted
    if drafted is None or not release.report_path.exists():
        raise UsageError(
            "there is no draft to circulate: write it with `mnemoscope release report`"
        )
    if when.at < drafted.at:
        raise UsageError(f"the draft was written {drafted}: it cannot have been shared before")
    if release.state.circulated is not None:
        raise UsageError(f"the draft was circulated {release.state.circulated}; that time stands")
    release.state.circulated = when
    release.save()


def lacking_notice(state: State) -> str:
    """Why the working group had no 48 hours before the tag date; empty if it had."""
    if state.circulated is None:
        return "the draft was not circulated"
    if state.tag_date is None:
        return "no tag date is proposed"
    earliest = state.circulated.at + NOTICE
    if state.tag_date < earliest:
        return (
            f"the tag date {state.tag_date:%Y-%m-%d %H:%M} UTC is less than 48 hours after the "
            f"draft was circulated; the earliest is {earliest:%Y-%m-%d %H:%M} UTC"
        )
    return ""


def sign(
    release: Release,
    found: Sequence[Comparison],
    role: Role,
    name: str,
    when: Moment,
    quorum_exception: str = "",
) -> Signature:
    """Sign the report as it stands; refused where the process does not allow it yet."""
    state = release.state
    if why := lacking_notice(state):
        raise UsageError(f"not to be signed yet: {why}")
    if state.circulated and when.at < state.circulated.at:
        raise UsageError(f"the draft was circulated {state.circulated}: sign it after that")
    if not is_current(release, found):
        raise UsageError(
            "report.md is not what the runs and release.yaml give: it was edited or is out of "
            "date. Write it again with `mnemoscope release report`"
        )
    _check_name(release, role, name)
    if quorum_exception:
        _check_exception(state, role, quorum_exception)
    elif standings(release)[role] == "valid":
        raise UsageError(f"{role} has signed this report already")
    text = release.report_path.read_text(encoding="utf-8")
    signature = Signature(role, name.strip(), digest(text), when, quorum_exception)
    state.signatures = [*state.signatures, signature]
    write_atomically(release.report_path, sealed(text, state.signatures).encode())
    release.save()
    return signature


def standings(release: Release) -> dict[Role, Standing]:
    """Whether each role's last signature still covers the report on disk."""
    given = latest(release.state.signatures)
    if not given or not release.report_path.exists():
        return {role: "void" if role in given else "missing" for role in ROLES}
    text = release.report_path.read_text(encoding="utf-8")
    sha256 = digest(text)
    whole = split(text)[1] == block(release.state.signatures, sha256)
    return {
        role: "missing"
        if role not in given
        else ("valid" if whole and given[role].sha256 == sha256 else "void")
        for role in ROLES
    }


def lacking_signatures(release: Release) -> list[str]:
    """The roles that the tag waits for, with the quorum exception taken into account."""
    found = standings(release)
    open_roles = [f"{role} ({state})" for role, state in found.items() if state != "valid"]
    if len(open_roles) == 1 and exception(release):
        return []
    return open_roles


def exception(release: Release) -> str:
    """The reason of a quorum exception that counts: the PI's, validly signed, not conditional."""
    pi = latest(release.state.signatures).get("pi")
    if pi is None or is_conditional(release.state.decision):
        return ""
    return pi.quorum_exception if standings(release)["pi"] == "valid" else ""


def _check_name(release: Release, role: Role, name: str) -> None:
    if not name.strip() or any(character in name for character in "|\n<"):
        raise UsageError(f"{name!r} is no name to sign with")
    for other, given in latest(release.state.signatures).items():
        if other != role and given.name.casefold() == name.strip().casefold():
            raise UsageError(f"{given.name} signed as {other}: the four are different people")


def _check_exception(state: State, role: Role, reason: str) -> None:
    if "\n" in reason or "<" in reason:
        raise UsageError("the reason of a quorum exception is one line of plain text")
    if role != "pi":
        raise UsageError("only the PI may grant a quorum exception: sign with --role pi")
    if is_conditional(state.decision):
        raise UsageError(
            "a CONDITIONAL SHIP needs all four signatures (§5.1): there is no quorum exception"
        )
