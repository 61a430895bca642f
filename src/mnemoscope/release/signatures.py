"""Signatures of the working group, its 48 hours to read the report, and the quorum (§4)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import read_text, write_atomically
from mnemoscope.analysis.compare import Comparison
from mnemoscope.release.benchmark_report import block, digest, is_current, latest, sealed, split
from mnemoscope.release.decide import is_conditional
from mnemoscope.release.state import (
    ROLES,
    Circulation,
    Moment,
    Release,
    Role,
    Signature,
    State,
    same_person,
)

NOTICE = timedelta(hours=48)
SignatureState = Literal["valid", "void", "missing"]


def circulate(
    release: Release, found: Sequence[Comparison], when: Moment, evidence: str = ""
) -> Circulation:
    """Record that the report was shared with the working group.

    A report that changes afterwards must be circulated again.
    """
    state, drafted = release.state, release.state.drafted
    if drafted is None or not release.report_path.exists():
        raise UsageError(
            "there is no draft to circulate: write it with `mnemoscope release report` first"
        )
    if when.at < drafted.at:
        raise UsageError(f"--at: the draft was written {drafted}, it was not shared before that")
    _check_plain(evidence, "the evidence of a circulation")
    _check_current(release, found)
    text = read_text(release.report_path)
    if state.circulated is not None and state.circulated.sha256 == digest(text):
        raise UsageError(f"the draft was already circulated {state.circulated}; that time counts")
    state.circulated = Circulation(when, digest(text), evidence.strip())
    write_atomically(release.report_path, sealed(text, state).encode())
    release.save()
    return state.circulated


def lacking_notice(release: Release) -> str:
    """Why the working group had less than 48 hours before the tag date; empty if it had them."""
    state = release.state
    if state.circulated is None:
        return "the draft was not circulated"
    path = release.report_path
    if not path.exists() or digest(read_text(path)) != state.circulated.sha256:
        return (
            "the report changed after it was circulated: the 48 hours start again; circulate it "
            "again with `mnemoscope release circulate`"
        )
    if state.tag_date is None:
        return "the tag date is missing: `mnemoscope release set --tag-date …`"
    earliest = state.circulated.counts_from + NOTICE
    if state.tag_date < earliest:
        return (
            f"the tag date {state.tag_date:%Y-%m-%d %H:%M} UTC is less than 48 hours after the "
            f"draft was circulated ({state.circulated}); "
            f"the earliest is {earliest:%Y-%m-%d %H:%M} UTC"
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
    """Sign the report; an error says why the process does not allow it yet."""
    state = release.state
    _check_current(release, found)
    if why := lacking_notice(release):
        raise UsageError(f"the report cannot be signed yet: {why}")
    if state.circulated and when.at < state.circulated.when.at:
        raise UsageError(f"--at: the draft was circulated {state.circulated}; sign it after that")
    _check_name(release, role, name)
    if quorum_exception:
        _check_exception(state, role, quorum_exception)
    elif standings(release)[role] == "valid":
        raise UsageError(f"{role} has signed this report already")
    text = read_text(release.report_path)
    signature = Signature(role, name.strip(), digest(text), when, quorum_exception)
    state.signatures = [*state.signatures, signature]
    write_atomically(release.report_path, sealed(text, state).encode())
    release.save()
    return signature


def standings(release: Release) -> dict[Role, SignatureState]:
    """Whether each role's last signature covers the report on disk."""
    given = latest(release.state.signatures)
    if not given or not release.report_path.exists():
        return {role: "void" if role in given else "missing" for role in ROLES}
    text = read_text(release.report_path)
    sha256 = digest(text)
    whole = split(text)[1] == block(release.state, sha256)
    return {
        role: "missing"
        if role not in given
        else ("valid" if whole and given[role].sha256 == sha256 else "void")
        for role in ROLES
    }


def lacking_signatures(release: Release) -> list[str]:
    """The roles whose signatures are still needed; a quorum exception replaces one."""
    found = standings(release)
    open_roles = [f"{role} ({state})" for role, state in found.items() if state != "valid"]
    if len(open_roles) == 1 and exception(release):
        return []
    return open_roles


def exception(release: Release) -> str:
    """The reason of a valid quorum exception: signed by the PI, not for a conditional ship."""
    pi = latest(release.state.signatures).get("pi")
    if pi is None or is_conditional(release.state.decision):
        return ""
    return pi.quorum_exception if standings(release)["pi"] == "valid" else ""


def other_statistician(release: Release) -> str:
    """The name that signed as statistician without repeating the statistics; else empty."""
    done, signed = release.state.rederived, latest(release.state.signatures).get("statistician")
    if done is None or signed is None or same_person(done.by, signed.name):
        return ""
    return signed.name


def _check_current(release: Release, found: Sequence[Comparison]) -> None:
    if not is_current(release, found):
        raise UsageError(
            "report.md differs from the runs and release.yaml: it was edited or is out of date. "
            "Write it again with `mnemoscope release report`"
        )


def _check_plain(text: str, what: str) -> None:
    if "\n" in text or "<" in text:
        raise UsageError(f"{what} must be one line of plain text")


def _check_name(release: Release, role: Role, name: str) -> None:
    if not name.strip() or any(character in name for character in "|\n<"):
        raise UsageError(f"--name {name!r} is not a valid name: one line without | and <")
    for other, given in latest(release.state.signatures).items():
        if other != role and same_person(given.name, name):
            raise UsageError(
                f"{given.name} signed as {other}: the four signatures must be of different people"
            )
    done = release.state.rederived
    if role == "statistician" and done is not None and not same_person(done.by, name):
        raise UsageError(
            f"the statistics were repeated by {done.by}: the same person must sign as statistician"
        )


def _check_exception(state: State, role: Role, reason: str) -> None:
    _check_plain(reason, "the reason of a quorum exception")
    if role != "pi":
        raise UsageError("only the PI may grant a quorum exception: sign with --role pi")
    if is_conditional(state.decision):
        raise UsageError(
            "a CONDITIONAL SHIP needs all four signatures (§5.1): omit --quorum-exception"
        )
