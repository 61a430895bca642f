"""Verify a run: recompute every figure from its journal and check the gates of its protocol.

VERIFIED needs a protocol, no deviation from it, and every gate passed. If labels were within the
system's reach, the run is at most CONSISTENT. A run with a BLOCKED.md, or of a system that followed
planted labels, is BLOCKED. The hashes detect edits and accidents, but not a user who recomputes all
of them, in the ledger of attempts too.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from mnemoscope._store.errors import EditedRun, MnemoscopeError, UsageError
from mnemoscope._store.jsonl import read_text
from mnemoscope._store.run_directory import JournalLine, Manifest, RunDirectory
from mnemoscope.analysis.checked_run import BLOCKED_FILE, CheckedRun, value_at
from mnemoscope.analysis.gates import Gate, check_gate
from mnemoscope.analysis.label_access import GATE as ISOLATION_GATE
from mnemoscope.analysis.ssh_signatures import signature_of
from mnemoscope.isolation.levels import WITHIN_REACH
from mnemoscope.protocols import Chosen, load_protocol

Status = Literal["VERIFIED", "CONSISTENT", "UNVERIFIED", "BLOCKED"]
GENERIC = ("versions", "seed", "evidence", "artefacts", "coverage", "figures", "files")
"""The gates that are checked without a protocol."""
ALWAYS = (
    *("blocked", "leaks", "isolation", "hits", "judges", "system", "journal", "attempts"),
    *("sources", "ceiling"),
)
"""The gates that every run must pass, whatever its protocol."""

_LEFT_OUT = ("figures", "files", "artefacts", "journal", "variance", "ceiling")


class Verification(msgspec.Struct, frozen=True):
    """The status of a run, and the gates that it is based on."""

    run: str
    protocol: str
    """The id of the protocol; empty without one."""
    status: Status
    gates: list[Gate]

    def gate(self, name: str) -> Gate:
        return next(gate for gate in self.gates if gate.name == name)

    def with_gate(self, gate: Gate) -> Verification:
        """The same with one more gate; one that fails leaves the run unverified."""
        keeps = gate.passed or self.status == "BLOCKED"
        status = self.status if keeps else "UNVERIFIED"
        return msgspec.structs.replace(self, status=status, gates=[*self.gates, gate])

    @property
    def failed(self) -> list[str]:
        return [gate.name for gate in self.gates if not gate.passed]


def verify(
    run: RunDirectory, protocol: Chosen | None = None, allowed_signers: Path | None = None
) -> Verification:
    """Verify a run under its recorded protocol, or under the given one.

    With a list of allowed signers, the run must be signed by one of them.
    """
    run = RunDirectory(run.path, checked=False)  # the gates say what was edited
    _refuse_endless_files(run.path)
    manifest = run.manifest()
    chosen, protocol_gate = _protocol_of(manifest, protocol)
    rules = chosen.benchmark(str(value_at(manifest, "identity.benchmark.name"))) if chosen else None
    case = CheckedRun(run, manifest, chosen, rules)
    names = ["deviations", *chosen.protocol.gates] if chosen else [*GENERIC]
    names += [name for name in ALWAYS if name not in names]
    gates = [protocol_gate, *(check_gate(name, case) for name in names)]
    gates.append(_signature(run, allowed_signers))
    return Verification(str(run.path), chosen.id if chosen else "", _status(case, gates), gates)


def _refuse_endless_files(folder: Path) -> None:
    """Refuse a run with a pipe or a device: the gates read files whose hash is wrong, too."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise EditedRun(path, "is not a regular file")


def recorded_gates(run: RunDirectory, journal: Sequence[JournalLine]) -> list[Gate]:
    """The gates on what a run recorded, for its report: figures are not recomputed.

    Left out are also the gates on files, which every reading checks, and on other runs.
    """
    manifest = run.manifest()
    chosen, protocol_gate = _protocol_of(manifest, None)
    rules = chosen.benchmark(str(value_at(manifest, "identity.benchmark.name"))) if chosen else None
    case = CheckedRun(run, manifest, chosen, rules, journal)
    names = ["deviations", *chosen.protocol.gates] if chosen else [*GENERIC]
    names += [name for name in ALWAYS if name not in names]
    return [protocol_gate, *(check_gate(name, case) for name in names if name not in _LEFT_OUT)]


def _status(case: CheckedRun, gates: Sequence[Gate]) -> Status:
    failed = {gate.name for gate in gates if not gate.passed}
    within_reach = follows_decoys = False
    # A journal that cannot be read has failed other gates.
    with suppress(MnemoscopeError, OSError, ArithmeticError, LookupError, TypeError, ValueError):
        within_reach = case.isolation.level == WITHIN_REACH
        follows_decoys = case.isolation.follows_decoys
    if (case.run.path / BLOCKED_FILE).exists() or follows_decoys:
        return "BLOCKED"
    if within_reach and failed <= {ISOLATION_GATE}:
        return "CONSISTENT"
    return "UNVERIFIED" if failed else "VERIFIED"


def _signature(run: RunDirectory, allowed_signers: Path | None) -> Gate:
    try:
        found = signature_of(run, allowed_signers)
    except UsageError:
        raise
    except (MnemoscopeError, OSError) as error:
        return Gate("signature", False, str(error))
    unsigned = found.state == "none" and allowed_signers is not None
    return Gate("signature", not (found.is_bad or unsigned), found.why)


def block(run: RunDirectory, reason: str) -> None:
    """Mark the run as BLOCKED; earlier reasons are kept."""
    if not reason.strip():
        raise UsageError("give the reason why the run is blocked")
    file = run.path / BLOCKED_FILE
    before = read_text(file).rstrip("\n") if file.exists() else "# BLOCKED\n"
    line = f"- {datetime.now(UTC):%Y-%m-%d %H:%M} UTC: {' '.join(reason.split())}"
    run.block(f"{before}\n{line}\n".encode())


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
