"""Verify a run: recompute every figure from its journal and pass the gates of its protocol.

VERIFIED needs a protocol, no deviation from it, and every gate passed; BLOCKED.md makes a run
BLOCKED whatever else holds. The hashes find edits and accidents, not a forger who redoes them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal

import msgspec

import mnemoscope
from mnemoscope.analysis.measure import SEED, Depth, ingestion_loss, measure
from mnemoscope.analysis.sanity import FAULTS
from mnemoscope.core.errors import MnemoscopeError, UsageError
from mnemoscope.core.fingerprint import differences, fingerprint, sha256_file
from mnemoscope.core.jsonl import read_records, write_atomically
from mnemoscope.core.nouns import FAILED, Ingestion, Trial
from mnemoscope.core.rundir import RECORDED, Manifest, RunDirectory
from mnemoscope.protocols import Benchmark, Chosen, Protocol, deviations, load_protocol

Status = Literal["VERIFIED", "UNVERIFIED", "BLOCKED"]
BLOCKED_FILE = "BLOCKED.md"
GENERIC = ("versions", "seed", "evidence", "artefacts", "blocked", "coverage", "figures", "files")
"""The gates that need no protocol to be judged."""
_SAME = 1e-12
"""What rounding in binary may add to a difference that is exactly at its limit."""


class Gate(msgspec.Struct, frozen=True):
    """One requirement, and whether the run meets it."""

    name: str
    passed: bool
    why: str


class Verification(msgspec.Struct, frozen=True):
    """What may be said of a run."""

    run: str
    protocol: str
    """The protocol's id, empty if there is none."""
    status: Status
    gates: list[Gate]

    def gate(self, name: str) -> Gate:
        return next(gate for gate in self.gates if gate.name == name)

    @property
    def failed(self) -> list[str]:
        return [gate.name for gate in self.gates if not gate.passed]


def verify(run: RunDirectory, protocol: Chosen | None = None) -> Verification:
    """Judge a run under the protocol it was made under, or under the one given."""
    manifest = run.manifest()
    chosen, standing = _protocol_of(manifest, protocol)
    rules = chosen.benchmark(_dataset(manifest)) if chosen else None
    case = _Case(run, manifest, chosen, rules)
    names = ["deviations", *chosen.protocol.gates] if chosen else [*GENERIC]
    if "blocked" not in names:
        names.append("blocked")
    gates = [standing, *(_judged(name, case) for name in names)]
    status: Status = "VERIFIED" if all(gate.passed for gate in gates) else "UNVERIFIED"
    if (run.path / BLOCKED_FILE).exists():
        status = "BLOCKED"
    return Verification(str(run.path), chosen.id if chosen else "", status, gates)


def block(run: RunDirectory, reason: str) -> None:
    """Mark the run as BLOCKED; a reason given earlier is kept."""
    if not reason.strip():
        raise UsageError("say why the run is blocked")
    run.manifest()  # only a run can be blocked
    file = run.path / BLOCKED_FILE
    before = file.read_text(encoding="utf-8").rstrip("\n") if file.exists() else "# BLOCKED\n"
    line = f"- {datetime.now(UTC):%Y-%m-%d %H:%M} UTC: {' '.join(reason.split())}"
    write_atomically(file, f"{before}\n{line}\n".encode())


@dataclass(frozen=True)
class _Case:
    """What the gates look at: read when first asked for, and only once."""

    run: RunDirectory
    manifest: Manifest
    chosen: Chosen | None
    rules: Benchmark | None

    @property
    def protocol(self) -> Protocol:
        assert self.chosen is not None, "this gate needs a protocol"
        return self.chosen.protocol

    @property
    def depth(self) -> int:
        return int(self.manifest.identity["depth"])

    @cached_property
    def journal(self) -> list[Trial | Ingestion]:
        return list(self.run.journal())

    @cached_property
    def trials(self) -> list[Trial]:
        return [line for line in self.journal if isinstance(line, Trial)]

    @property
    def ingestions(self) -> list[Ingestion]:
        return [line for line in self.journal if isinstance(line, Ingestion)]

    @property
    def scorable(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.evidence]

    @property
    def fair(self) -> list[Trial]:
        return [trial for trial in self.scorable if trial.status not in FAILED]

    @cached_property
    def figures(self) -> dict[str, Any]:
        """metrics.json as the journal gives it; only the depth of others' first ranks is taken."""
        beyond = self.run.read_json("metrics.json").get("recorded_depth", 0)
        depth = Depth(self.depth, beyond)
        seed = self.manifest.identity.get("seed", SEED)
        measured = measure(self.trials, self.ingestions, depth, seed)
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(measured))
        return plain


_Finding = tuple[bool, str]


def _judged(name: str, case: _Case) -> Gate:
    try:
        return Gate(name, *_GATES[name](case))
    # A tampered file may say anything: what cannot be read has not passed.
    except (MnemoscopeError, OSError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        said = str(error) if isinstance(error, MnemoscopeError) else f"cannot be judged: {error!r}"
        return Gate(name, False, said)


def _protocol_of(manifest: Manifest, given: Chosen | None) -> tuple[Chosen | None, Gate]:
    """The protocol that applies, and what there is to say of it."""
    recorded = manifest.protocol.get("id", "")
    if given is None and not recorded:
        why = "made under no protocol; a number without a protocol cannot be cited"
        return None, Gate("protocol", False, why)
    try:
        chosen = given or load_protocol(recorded)
        if given is None:
            chosen.benchmark(_dataset(manifest))
    except UsageError as error:
        return None, Gate("protocol", False, str(error))
    if recorded == chosen.id:
        shipped, own = chosen.sha256, manifest.protocol.get("sha256", "")
        if shipped != own:
            why = f"{chosen.id} was {own[:12]}… for the run, the shipped file is {shipped[:12]}…"
            return chosen, Gate("protocol", False, why)
        return chosen, Gate("protocol", True, f"{chosen.id}, sha256 {shipped[:12]}…")
    made = f"made under {recorded}" if recorded else "made under none"
    return chosen, Gate("protocol", True, f"{chosen.id}, as asked for; the run was {made}")


def _dataset(manifest: Manifest) -> str:
    return str(_at(manifest, "identity.benchmark.name"))


def _at(manifest: Manifest, path: str) -> Any:
    """The value at a dotted path of the manifest, None if there is none."""
    first, *rest = path.split(".")
    value = getattr(manifest, first, None)
    for key in rest:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _deviations(case: _Case) -> _Finding:
    assert case.rules is not None
    options = _at(case.manifest, "identity.benchmark.options") or {}
    found = deviations(case.protocol, case.rules, options, case.depth)
    # What was declared under another protocol says nothing about this one.
    same = case.manifest.protocol.get("id", "").partition(":")[0] == case.protocol.id
    declared = case.manifest.deviations if same else []
    silent = [what for what in found if not any(line.startswith(what) for line in declared)]
    if declared or silent:
        return False, "; ".join([*declared, *(f"{what} (not declared)" for what in silent)])
    own = case.protocol.embedder.startswith("the system's own")
    return True, "none" if own else "none in the options; the protocol's embedder is not checked"


def _dataset_pinned(case: _Case) -> _Finding:
    assert case.rules is not None
    found = _at(case.manifest, "identity.benchmark.sha256") or []
    if not case.rules.sha256:
        return True, "own data, nothing is pinned"
    if sorted(found) == sorted(case.rules.sha256):
        return True, f"sha256 {', '.join(one[:12] + '…' for one in found)} as pinned"
    has, wanted = (", ".join(f"{one[:12]}…" for one in own) for own in (found, case.rules.sha256))
    return False, f"sha256 {has or 'not recorded'} instead of the pinned {wanted}"


def _versions(case: _Case) -> _Finding:
    found = _at(case.manifest, "identity.versions")
    if not isinstance(found, Mapping) or not found.get("mnemoscope") or not all(found.values()):
        return False, "identity.versions is missing or incomplete"
    return True, ", ".join(f"{name} {version}" for name, version in found.items())


def _seed(case: _Case) -> _Finding:
    seed = _at(case.manifest, "identity.seed")
    if seed is None:
        return False, "no seed is recorded"
    if case.chosen is None:
        return True, f"{seed}"
    if seed != case.protocol.seed:
        return False, f"{seed} instead of {case.protocol.seed}"
    missing = [path for path in case.protocol.record if _at(case.manifest, path) in _EMPTY]
    if missing:
        return False, f"not recorded: {', '.join(missing)}"
    return True, f"{seed}; recorded all {len(case.protocol.record)} settings asked for"


_EMPTY: tuple[Any, ...] = (None, "", [], {})


def _evidence(case: _Case) -> _Finding:
    lost = ingestion_loss(case.scorable, case.ingestions)["evidence_unreachable"]
    if lost:
        return False, f"{lost} evidence ids exist in no scenario and can never be found"
    found, wanted = len(case.scorable), case.rules.measured if case.rules else 0
    if not found or (wanted and found != wanted):
        return False, f"{found:,} questions with evidence" + (f", not {wanted:,}" if wanted else "")
    return True, f"all evidence of {found:,} questions exists"


def _granularity(case: _Case) -> _Finding:
    wanted = case.rules.memories if case.rules else 0
    if not case.ingestions:
        return False, "no memories were given: these are rankings made elsewhere"
    given = sum(line.memories for line in case.ingestions)
    if wanted and given != wanted:
        return False, f"{given:,} memories were given, not {wanted:,}: wrong granularity or data"
    return True, f"{given:,} memories given" + ("" if wanted else ", own data")


def _artefacts(case: _Case) -> _Finding:
    wanted = case.protocol.artefacts if case.chosen else ["manifest.json", *RECORDED, "report.md"]
    missing = [name for name in wanted if not (case.run.path / name).is_file()]
    if missing:
        return False, f"missing: {', '.join(missing)}"
    if case.manifest.state != "complete":
        return False, f"the run is not complete (state {case.manifest.state})"
    return True, f"all {len(wanted)} present, the run is complete"


def _not_blocked(case: _Case) -> _Finding:
    return not (why := _blocked_why(case.run)), why or f"no {BLOCKED_FILE}"


def _blocked_why(run: RunDirectory) -> str:
    """What BLOCKED.md says, empty if there is none."""
    file = run.path / BLOCKED_FILE
    if not file.exists():
        return ""
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    said = [line.lstrip("- ").strip() for line in lines if line.strip() and line[0] != "#"]
    return "; ".join(said) or f"{BLOCKED_FILE} is there, and gives no reason"


def _coverage(case: _Case) -> _Finding:
    asked, wanted = len(case.trials), case.rules.questions if case.rules else 0
    counts = Counter(trial.question for trial in case.trials)
    if twice := [id for id, n in counts.items() if n > 1]:
        return False, f"{len(twice)} questions are more than once in the journal: {twice[0]}, …"
    if wanted and asked != wanted:
        return False, f"{asked:,} of {wanted:,} questions asked"
    if asked != (planned := case.manifest.counts.get("questions", asked)):
        return False, f"{asked:,} of the dataset's {planned:,} questions are in the journal"
    least = case.protocol.min_coverage if case.chosen else 1.0
    fair, scorable = len(case.fair), len(case.scorable)
    if not scorable or fair / scorable < least - _SAME:
        return False, f"only {fair:,} of {scorable:,} questions were fairly put"
    return True, f"{asked:,} questions, each once; {fair:,} of {scorable:,} fairly put"


def _figures(case: _Case) -> _Finding:
    if changed := differences(case.run.read_json("metrics.json"), case.figures):
        by = _at(case.manifest, "identity.versions.mnemoscope")
        other = f" (made by version {by})" if by != mnemoscope.__version__ else ""
        return False, f"metrics.json is not what the journal gives: {changed[0]}{other}"
    wanted = case.rules.metrics if case.rules else []
    if missing := [name for name in wanted if name not in case.figures["overall"]]:
        return False, f"the protocol's {', '.join(missing)} cannot be computed"
    rankings = read_records(case.run.path / "raw_retrievals.jsonl", dict)
    if [(r["question"], tuple(r["ranking"])) for r in rankings] != [
        (trial.question, trial.ranking) for trial in case.trials
    ]:
        return False, "raw_retrievals.jsonl is not what the journal gives"
    if [q["id"] for q in case.run.questions()] != [trial.question for trial in case.trials]:
        return False, "questions.jsonl is not what the journal gives"
    return True, f"recomputed from {len(case.trials):,} trials, all equal"


def _files(case: _Case) -> _Finding:
    if fingerprint(case.manifest.identity) != case.manifest.fingerprint:
        return False, "manifest.json: the fingerprint is not the hash of the identity"
    if changed := _changed(case.run, case.manifest):
        return False, f"changed since the run: {', '.join(changed)}"
    return True, f"sha256 of {len(RECORDED)} files as recorded"


def _changed(run: RunDirectory, manifest: Manifest) -> list[str]:
    """Recorded files that no longer have the hash the manifest vouches for."""

    def current(name: str) -> str | None:
        path = run.path / name
        return sha256_file(path) if path.is_file() else None

    names = dict.fromkeys([*RECORDED, *manifest.files])
    return [name for name in names if manifest.files.get(name, "") != current(name)]


def _variance(case: _Case) -> _Finding:
    bands = case.rules.variance if case.rules else {}
    own = case.run.path.resolve()
    others = [
        RunDirectory(file.parent)
        for file in sorted(own.parent.parent.glob(f"*/{own.name}/manifest.json"))
        if file.parent != own and not (file.parent / BLOCKED_FILE).exists()
    ]
    others = [run for run in others if run.manifest().fingerprint == case.manifest.fingerprint]
    others = [run for run in others if run.manifest().state == "complete"]
    if not others:
        return True, "no other run of this fingerprint beside it"
    for run in others:
        theirs = run.read_json("metrics.json")["overall"]
        for name, band in bands.items():
            apart = abs(theirs[name]["mean"] - case.figures["overall"][name]["mean"])
            if apart > band + _SAME:
                place = run.path.relative_to(own.parent.parent)
                return False, f"{name} is {apart:.4f} from that of {place}; at most {band}"
    limits = ", ".join(f"{name} ±{band}" for name, band in bands.items())
    return True, f"within {limits} of {len(others)} other runs"


def _arms(case: _Case) -> _Finding:
    if not case.ingestions:
        return False, "rankings made elsewhere have no arms that ran under the same conditions"
    said = {name: _arm_fault(name, case) for name in case.protocol.arms}
    if faults := [f"{name}: {fault}" for name, fault in said.items() if fault]:
        return False, "; ".join(faults)
    return True, f"{', '.join(said)} ran beside it and are where they belong"


def _arm_fault(name: str, case: _Case) -> str:
    """What is wrong with a sanity arm, empty if nothing is."""
    own = case.run.path.resolve()
    folder = own.parent / name
    if folder != own and not (folder / "manifest.json").exists():
        return f"no run at ../{name}"
    run = RunDirectory(folder)
    arm = case if folder == own else _Case(run, run.manifest(), case.chosen, case.rules)
    if fault := _unlike(arm.manifest, case.manifest, name):
        return fault
    if why := _blocked_why(run):
        return f"blocked: {why}"
    if changed := _changed(run, arm.manifest):
        return f"changed since the run: {', '.join(changed)}"
    if len(arm.fair) < len(arm.scorable) or not arm.fair:
        return f"only {len(arm.fair):,} of {len(arm.scorable):,} questions were fairly put"
    assert case.rules is not None
    fault_of = FAULTS.get(name)
    return fault_of(arm.fair, Depth(arm.depth), case.rules.primary) if fault_of else ""


def _unlike(arm: Manifest, own: Manifest, name: str) -> str:
    if arm.state != "complete":
        return f"not complete (state {arm.state})"
    if (system := str(_at(arm, "identity.system.spec")).partition(",")[0]) != name:
        return f"was made with {system}"
    wanted = {key: own.identity.get(key) for key in ("benchmark", "depth", "seed")}
    found = {key: arm.identity.get(key) for key in wanted}
    return "another benchmark: " + "; ".join(apart) if (apart := differences(wanted, found)) else ""


_GATES: dict[str, Callable[[_Case], _Finding]] = {
    "deviations": _deviations,
    "dataset": _dataset_pinned,
    "versions": _versions,
    "seed": _seed,
    "evidence": _evidence,
    "granularity": _granularity,
    "artefacts": _artefacts,
    "blocked": _not_blocked,
    "arms": _arms,
    "coverage": _coverage,
    "figures": _figures,
    "files": _files,
    "variance": _variance,
}
