"""Signatures of the working group, its 48 hours to read the report, and the quorum (§4).

A signature is of an SSH key, or a typed name, which is shown as typed only.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Literal

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import read_text, write_atomically
from mnemoscope.analysis.comparison import Comparison
from mnemoscope.analysis.ssh_signatures import check_signature, sign_bytes
from mnemoscope.release.benchmark_report import block, digest, is_current, latest, sealed, split
from mnemoscope.release.claims import refuse_claims
from mnemoscope.release.decide import is_conditional
from mnemoscope.release.people import check_name, look_alike, same_name
from mnemoscope.release.release_log import check_time, record
from mnemoscope.release.state import (
    ROLES,
    Circulation,
    Moment,
    Release,
    Role,
    Signature,
    State,
)

NOTICE = timedelta(hours=48)
NAMESPACE = "mnemoscope-release"
SignatureState = Literal["valid", "void", "missing", "not of an allowed SSH key"]


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
    refuse_claims(evidence, "--evidence")
    check_time(state, when)
    _check_current(release, found)
    text = read_text(release.report_path)
    if state.circulated is not None and state.circulated.sha256 == digest(text):
        raise UsageError(f"the draft was already circulated {state.circulated}; that time counts")
    state.circulated = Circulation(when, digest(text), evidence.strip())
    if state.tag_date is None:
        state.tag_date = state.circulated.counts_from + NOTICE
    write_atomically(release.report_path, sealed(text, state).encode())
    record(release, "circulated", when, by=state.author)
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
    *,
    accepts: Sequence[str] = (),
    key: Path | None = None,
) -> Signature:
    """Sign the report; an error says why the process does not allow it yet.

    `accepts` names the waivers and the declared base that the signer accepts; the PI must accept
    all of them. `key` is an SSH key; without it the name is only typed.
    """
    state = release.state
    _check_current(release, found)
    if why := lacking_notice(release):
        raise UsageError(f"the report cannot be signed yet: {why}")
    if state.circulated and when.at < state.circulated.when.at:
        raise UsageError(f"--at: the draft was circulated {state.circulated}; sign it after that")
    check_time(state, when)
    name = _check_signer(release, role, name)
    _check_accepted(state, role, accepts)
    if quorum_exception:
        _check_exception(state, role, quorum_exception)
    elif standings(release)[role] == "valid":
        raise UsageError(f"{role} has signed this report already")
    text = read_text(release.report_path)
    signature = Signature(
        role,
        name,
        digest(text),
        when,
        quorum_exception,
        accepts=list(accepts),
        amendments=len(state.amendments),
    )
    if key is not None:
        signature = _signed_with(state, signature, key)
    if problem := _problem_between([*latest_by_others(state, role), signature], state.author):
        raise UsageError(problem)
    state.signatures = [*state.signatures, signature]
    write_atomically(release.report_path, sealed(text, state).encode())
    record(release, "signed", when, by=signature.name, what=role)
    return signature


def latest_by_others(state: State, role: Role) -> list[Signature]:
    return [one for other, one in latest(state.signatures).items() if other != role]


def standings(release: Release, allowed_signers: Path | None = None) -> dict[Role, SignatureState]:
    """Whether each role's last signature covers the report on disk and all amendments.

    With a list of allowed signers, a signature must be of one of their SSH keys.
    """
    given = latest(release.state.signatures)
    if not given or not release.report_path.exists():
        return {role: "void" if role in given else "missing" for role in ROLES}
    text = read_text(release.report_path)
    sha256 = digest(text)
    whole = split(text)[1] == block(release.state, sha256)

    def standing(role: Role) -> SignatureState:
        if (one := given.get(role)) is None:
            return "missing"
        covers = whole and one.sha256 == sha256
        if not covers or one.amendments != len(release.state.amendments):
            return "void"
        return _proof(release.state, one, allowed_signers)

    return {role: standing(role) for role in ROLES}


def lacking_signatures(release: Release, allowed_signers: Path | None = None) -> list[str]:
    """What the signatures still need; a quorum exception replaces one of them."""
    found = standings(release, allowed_signers)
    valid = [
        one for role, one in latest(release.state.signatures).items() if found[role] == "valid"
    ]
    open_roles = [f"{role} ({state})" for role, state in found.items() if state != "valid"]
    if len(open_roles) == 1 and exception(release):
        open_roles = []
    problem = _problem_between(valid, release.state.author)
    unaccepted = [
        f"{name} is not accepted by the PI, or only by the author of the report"
        for name in release.state.declarations
        if not _is_accepted(name, valid, release.state.author)
    ]
    # Without the PI's signature, that is what is missing.
    return [*open_roles, *filter(None, [problem]), *(unaccepted if found["pi"] == "valid" else [])]


def typed_names(release: Release) -> list[str]:
    """The names that were only typed."""
    return [one.name for one in latest(release.state.signatures).values() if not one.key]


def exception(release: Release) -> str:
    """The reason of a valid quorum exception: signed by the PI, not for a conditional ship."""
    pi = latest(release.state.signatures).get("pi")
    if pi is None or is_conditional(release.state.decision):
        return ""
    return pi.quorum_exception if standings(release)["pi"] == "valid" else ""


def other_statistician(release: Release) -> str:
    """The name that signed as statistician without repeating the statistics; else empty."""
    done, signed = release.state.rederived, latest(release.state.signatures).get("statistician")
    if done is None or signed is None or same_name(done.by, signed.name):
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


def _check_signer(release: Release, role: Role, name: str) -> str:
    name = check_name(name)
    done = release.state.rederived
    if role == "statistician" and done is not None and not same_name(done.by, name):
        raise UsageError(
            f"the statistics were repeated by {done.by}: the same person must sign as statistician"
        )
    return name


def _problem_between(given: Sequence[Signature], author: str) -> str:
    """Why these signatures are not of different people; empty if they are."""
    for one, other in combinations(given, 2):
        if look_alike(one.name, other.name):
            return (
                f"{other.name} and {one.name}, who signed as {one.role}: the four signatures must "
                "be of different people. If they are two people, write both names in full"
            )
        if one.key and one.key == other.key:
            return f"{one.role} and {other.role} are signed with the same key {one.key}"
    by_author = [one for one in given if look_alike(one.name, author)]
    if any(one.role == "statistician" for one in by_author):
        return f"the author of the report, {author}, cannot sign as statistician"
    if by_author and any(one.quorum_exception for one in given):
        return (
            f"the author of the report, {author}, is one of three who sign: with a quorum "
            "exception the three must be others"
        )
    return ""


def _check_accepted(state: State, role: Role, accepts: Sequence[str]) -> None:
    declared = state.declarations
    if unknown := [one for one in accepts if one not in declared]:
        known = ", ".join(declared) or "nothing"
        raise UsageError(f"--accept {unknown[0]}: the release declares {known}")
    if role == "pi" and (missing := [one for one in declared if one not in accepts]):
        options = " ".join(f"--accept {one}" for one in missing)
        raise UsageError(
            f"the release departs from the process ({', '.join(missing)}). Read the reasons in the "
            f"report; to accept them, sign with {options}"
        )


def _is_accepted(name: str, valid: Sequence[Signature], author: str) -> bool:
    accepting = [one for one in valid if name in one.accepts]
    return any(one.role == "pi" for one in accepting) and any(
        not look_alike(one.name, author) for one in accepting
    )


def _signed_with(state: State, signature: Signature, key: Path) -> Signature:
    armoured = sign_bytes(_payload(state, signature), key, NAMESPACE)
    checked = check_signature(_payload(state, signature), armoured, NAMESPACE)
    return msgspec.structs.replace(signature, key=checked.key, ssh=armoured.decode())


def _proof(state: State, signature: Signature, allowed_signers: Path | None) -> SignatureState:
    if not signature.ssh and not signature.key:
        return "valid" if allowed_signers is None else "not of an allowed SSH key"
    content, armoured = _payload(state, signature), signature.ssh.encode()
    found = check_signature(content, armoured, NAMESPACE, allowed_signers)
    if found.state == "unknown signer":
        return "not of an allowed SSH key"
    return "valid" if found.state == "good" and found.key == signature.key else "void"


def _payload(state: State, signature: Signature) -> bytes:
    """What an SSH key signs: the report, who signs it as what, when, and all dates before it."""
    own = msgspec.structs.replace(signature, key="", ssh="")
    about = {"version": state.version, "created": state.created, "drafted": state.drafted}
    return msgspec.json.encode(
        {**about, "circulated": state.circulated, "signature": own}, order="deterministic"
    )


def _check_exception(state: State, role: Role, reason: str) -> None:
    _check_plain(reason, "the reason of a quorum exception")
    refuse_claims(reason, "--quorum-exception")
    if role != "pi":
        raise UsageError("only the PI may grant a quorum exception: sign with --role pi")
    if is_conditional(state.decision):
        raise UsageError(
            "a CONDITIONAL SHIP needs all four signatures (§5.1): omit --quorum-exception"
        )
