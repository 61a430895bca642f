"""What a signature is a signature of: the report's bytes, but for the block of signatures itself.

The block is generated from release.yaml; a report whose block says anything else was edited, and
then no signature under it counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from mnemoscope.release.state import ROLES, Role, Signature, State

BEGIN, END = "<!-- signatures -->", "<!-- /signatures -->"
TITLES: dict[Role, str] = {
    "pi": "PI (Principal Investigator)",
    "architect": "Chief Architect",
    "statistician": "StatAnalyst",
    "research-supervisor": "ResSup (Research Supervisor)",
}


def split(report: str) -> tuple[str, str]:
    """The report without its block, and the block; a report without one has an empty block."""
    before, begin, rest = report.partition(BEGIN)
    block, end, after = rest.partition(END)
    if not begin or not end:
        return report, ""
    return before + BEGIN + END + after, block


def digest(report: str) -> str:
    """The sha256 that is signed."""
    return hashlib.sha256(split(report)[0].encode()).hexdigest()


def latest(signatures: Sequence[Signature]) -> dict[Role, Signature]:
    """The last signature of each role: a void one can be given again."""
    return {signature.role: signature for signature in signatures}


def block(state: State, sha256: str) -> str:
    """The table of the working group, as it stands for a report with this hash."""
    given = latest(state.signatures)
    lines = [
        "",
        _circulated(state, sha256),
        "",
        "| role | name | signed | report sha256 | |",
        "|---|---|---|---|---|",
    ]
    for role in ROLES:
        if (one := given.get(role)) is None:
            lines.append(f"| {TITLES[role]} | | not signed | | |")
            continue
        standing = "valid" if one.sha256 == sha256 else "void: the report changed since"
        lines.append(
            f"| {TITLES[role]} | {one.name} | {one.when} | `{one.sha256[:16]}…` | {standing} |"
        )
    for one in given.values():
        if one.quorum_exception:
            lines += ["", f"Quorum exception, 3 of 4, by {one.name}: {one.quorum_exception}"]
    return "\n".join([*lines, ""])


def sealed(report: str, state: State) -> str:
    """The report with its block brought up to date."""
    text = split(report)[0]
    return text.replace(BEGIN + END, BEGIN + block(state, digest(text)) + END, 1)


def _circulated(state: State, sha256: str) -> str:
    if (one := state.circulated) is None:
        return "Not yet circulated."
    changed = "" if one.sha256 == sha256 else " The report changed since: the 48 hours start anew."
    return f"Circulated {one}.{changed}"
