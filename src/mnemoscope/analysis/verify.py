"""Verify a run: recompute every figure from its journal and check the gates of its protocol.

VERIFIED needs a protocol, no deviation from it, and every gate passed. A run with a BLOCKED.md is
BLOCKED. The hashes detect edits and accidents, but not someone who recomputes all of them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import write_atomically
from mnemoscope._store.run_directory import Manifest, RunDirectory
from mnemoscope.analysis.checked_run import BLOCKED_FILE, CheckedRun, value_at
from mnemoscope.analysis.gates import Gate, check_gate
from mnemoscope.protocols import Chosen, load_protocol

Status = Literal["VERIFIED", "UNVERIFIED", "BLOCKED"]
GENERIC = ("versions", "seed", "evidence", "artefacts", "coverage", "figures", "files")
"""The gates that are checked without a protocol."""
ALWAYS = ("blocked", "leaks", "hits", "judges", "sources", "ceiling")
"""The gates that every run must pass, whatever its protocol."""


class Verification(msgspec.Struct, frozen=True):
    """The status of a run, and the gates that it is based on."""

    run: str
    protocol: str
    """The id of the protocol; empty without one."""
    status: Status
    gates: list[Gate]

    def gate(self, name: str) -> Gate:
        return next(gate for gate in self.gates if gate.name == name)

    @property
    def failed(self) -> list[str]:
        return [gate.name for gate in self.gates if not gate.passed]


def verify(run: RunDirectory, protocol: Chosen | None = None) -> Verification:
    """Verify a run under its recorded protocol, or under the given one."""
    manifest = run.manifest()
    chosen, protocol_gate = _protocol_of(manifest, protocol)
    rules = chosen.benchmark(str(value_at(manifest, "identity.benchmark.name"))) if chosen else None
    case = CheckedRun(run, manifest, chosen, rules)
    names = ["deviations", *chosen.protocol.gates] if chosen else [*GENERIC]
    names += [name for name in ALWAYS if name not in names]
    gates = [protocol_gate, *(check_gate(name, case) for name in names)]
    status: Status = "VERIFIED" if all(gate.passed for gate in gates) else "UNVERIFIED"
    if (run.path / BLOCKED_FILE).exists():
        status = "BLOCKED"
    return Verification(str(run.path), chosen.id if chosen else "", status, gates)


def block(run: RunDirectory, reason: str) -> None:
    """Mark the run as BLOCKED; earlier reasons are kept."""
    if not reason.strip():
        raise UsageError("give the reason why the run is blocked")
    run.manifest()  # fails if the folder is not a run
    file = run.path / BLOCKED_FILE
    before = file.read_text(encoding="utf-8").rstrip("\n") if file.exists() else "# BLOCKED\n"
    line = f"- {datetime.now(UTC):%Y-%m-%d %H:%M} UTC: {' '.join(reason.split())}"
    write_atomically(file, f"{before}\n{line}\n".encode())


def _protocol_of(manifest: Manifest, given: Chosen | None) -> tuple[Chosen | None, Gate]:
    """Return the protocol that applies, and the gate that checks it."""
    recorded = manifest.protocol.get("id", "")
    if given is None and not recorded:
        why = "the run has no protocol; figures without a protocol cannot be cited"
        return None, Gate("protocol", False, why)
    try:
        chosen = given or load_protocol(recorded)
        if given is None:
            chosen.benchmark(str(value_at(manifest, "identity.benchmark.name")))
    except UsageError as error:
        return None, Gate("protocol", False, str(error))
    if recorded == chosen.id:
        shipped, own = chosen.sha256, manifest.protocol.get("sha256", "")
        if shipped != own:
            why = (
                f"{chosen.id}: the run recorded sha256 {own[:12]}…, "
                f"the shipped file has {shipped[:12]}…"
            )
            return chosen, Gate("protocol", False, why)
        return chosen, Gate("protocol", True, f"{chosen.id}, sha256 {shipped[:12]}…")
    made = f"made under {recorded}" if recorded else "made without a protocol"
    return chosen, Gate("protocol", True, f"{chosen.id}, given; the run was {made}")
