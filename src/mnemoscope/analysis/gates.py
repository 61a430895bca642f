"""What a run must satisfy to be cited: one function a gate, each with its reason in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from glob import escape
from typing import Any

import msgspec

import mnemoscope
from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.fingerprint import differences, fingerprint, sha256_file
from mnemoscope._store.jsonl import read_records
from mnemoscope._store.run_directory import RECORDED, Manifest, RunDirectory
from mnemoscope.analysis.answers import ANSWERS, answer_sheet
from mnemoscope.analysis.baseline_checks import FAULTS
from mnemoscope.analysis.measure import SEED, Depth, ingestion_loss, measure
from mnemoscope.analysis.question_records import assemble
from mnemoscope.metrics import is_builtin
from mnemoscope.protocols import Benchmark, Chosen, Protocol, deviations
from mnemoscope.types import FAILED, Ingestion, Question, Trial

BLOCKED_FILE = "BLOCKED.md"
_SAME = 1e-12
"""What rounding in binary may add to a difference that is exactly at its limit."""
_MOST_STRANGE = 0.01
"""The share of hits that may be no memory: beyond it, it is the adapter that was measured."""


class Gate(msgspec.Struct, frozen=True):
    """One requirement, and whether the run meets it."""

    name: str
    passed: bool
    why: str


@dataclass(frozen=True)
class Case:
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
    def trials(self) -> list[Trial]:
        return list(self.run.trials())

    @cached_property
    def ingestions(self) -> list[Ingestion]:
        return list(self.run.ingestions())

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
        measured = {
            "benchmark": self.manifest.identity["benchmark"],
            **measure(self.trials, self.ingestions, depth, seed),
        }
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(measured))
        return plain


_Finding = tuple[bool, str]


def judged(name: str, case: Case) -> Gate:
    try:
        return Gate(name, *_GATES[name](case))
    # A tampered file may say anything: what cannot be read has not passed.
    except (MnemoscopeError, OSError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        said = str(error) if isinstance(error, MnemoscopeError) else f"cannot be judged: {error!r}"
        return Gate(name, False, said)


def value_at(manifest: Manifest, path: str) -> Any:
    """The value at a dotted path of the manifest, None if there is none."""
    first, *rest = path.split(".")
    value = getattr(manifest, first, None)
    for key in rest:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _deviations(case: Case) -> _Finding:
    assert case.rules is not None
    options = value_at(case.manifest, "identity.benchmark.options") or {}
    found = deviations(case.protocol, case.rules, options, case.depth)
    # What was declared under another protocol says nothing about this one.
    same = case.manifest.protocol.get("id", "").partition(":")[0] == case.protocol.id
    declared = case.manifest.deviations if same else []
    silent = [what for what in found if not any(line.startswith(what) for line in declared)]
    if declared or silent:
        return False, "; ".join([*declared, *(f"{what} (not declared)" for what in silent)])
    own = case.protocol.embedder.startswith("the system's own")
    return True, "none" if own else "none in the options; the protocol's embedder is not checked"


def _dataset_pinned(case: Case) -> _Finding:
    assert case.rules is not None
    found = value_at(case.manifest, "identity.benchmark.sha256") or []
    if not case.rules.sha256:
        return True, "own data, nothing is pinned"
    if sorted(found) == sorted(case.rules.sha256):
        return True, f"sha256 {', '.join(one[:12] + '…' for one in found)} as pinned"
    has, wanted = (", ".join(f"{one[:12]}…" for one in own) for own in (found, case.rules.sha256))
    return False, f"sha256 {has or 'not recorded'} instead of the pinned {wanted}"


def _versions(case: Case) -> _Finding:
    found = value_at(case.manifest, "identity.versions")
    if not isinstance(found, Mapping) or not found.get("mnemoscope") or not all(found.values()):
        return False, "identity.versions is missing or incomplete"
    return True, ", ".join(f"{name} {version}" for name, version in found.items())


def _seed(case: Case) -> _Finding:
    seed = value_at(case.manifest, "identity.seed")
    if seed is None:
        return False, "no seed is recorded"
    if case.chosen is None:
        return True, f"{seed}"
    if seed != case.protocol.seed:
        return False, f"{seed} instead of {case.protocol.seed}"
    missing = [path for path in case.protocol.record if value_at(case.manifest, path) in _EMPTY]
    if missing:
        return False, f"not recorded: {', '.join(missing)}"
    return True, f"{seed}; recorded all {len(case.protocol.record)} settings asked for"


_EMPTY: tuple[Any, ...] = (None, "", [], {})


def _evidence(case: Case) -> _Finding:
    lost = ingestion_loss(case.scorable, case.ingestions)["evidence_unreachable"]
    if lost:
        return False, f"{lost} evidence ids exist in no scenario and can never be found"
    found, wanted = len(case.scorable), case.rules.measured if case.rules else 0
    if not found or (wanted and found != wanted):
        return False, f"{found:,} questions with evidence" + (f", not {wanted:,}" if wanted else "")
    return True, f"all evidence of {found:,} questions exists"


def _granularity(case: Case) -> _Finding:
    wanted = case.rules.memories if case.rules else 0
    if not case.ingestions:
        return False, "no memories were given: these are rankings made elsewhere"
    given = sum(line.memories for line in case.ingestions)
    if wanted and given != wanted:
        return False, f"{given:,} memories were given, not {wanted:,}: wrong granularity or data"
    return True, f"{given:,} memories given" + ("" if wanted else ", own data")


def _artefacts(case: Case) -> _Finding:
    wanted = case.protocol.artefacts if case.chosen else ["manifest.json", *RECORDED, "report.md"]
    missing = [name for name in wanted if not (case.run.path / name).is_file()]
    if missing:
        return False, f"missing: {', '.join(missing)}"
    if case.manifest.state != "complete":
        return False, f"the run is not complete (state {case.manifest.state})"
    return True, f"all {len(wanted)} present, the run is complete"


def _not_blocked(case: Case) -> _Finding:
    return not (why := _blocked_why(case.run)), why or f"no {BLOCKED_FILE}"


def _blocked_why(run: RunDirectory) -> str:
    """What BLOCKED.md says, empty if there is none."""
    file = run.path / BLOCKED_FILE
    if not file.exists():
        return ""
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    said = [line.lstrip("- ").strip() for line in lines if line.strip() and line[0] != "#"]
    return "; ".join(said) or f"{BLOCKED_FILE} is there, and gives no reason"


def _no_leaks(case: Case) -> _Finding:
    if leaks := case.manifest.leaks:
        return False, f"{leaks} findings of the leakage scan were accepted on request"
    return True, "nothing that the system was given names a label"


def _hits(case: Case) -> _Finding:
    returned = sum(len(trial.ranking) for trial in case.trials)
    strange = sum(trial.unknown for trial in case.trials)
    if strange > _MOST_STRANGE * returned:
        return False, f"{strange:,} of {returned:,} hits are no memory that was given"
    return True, f"{returned - strange:,} of {returned:,} hits are memories that were given"


def _judges(case: Case) -> _Finding:
    told = []
    for spec in judges_of(case.manifest):
        exam = case.manifest.exams.get(spec)
        if exam is None:
            return False, f"{spec} took no exam: mnemoscope judges exam {spec}, then judge again"
        if not exam["passed"] or _errs_too_often(exam):
            return False, f"{spec} failed its exam: mnemoscope judges exam {spec} shows where"
        told.append(f"{spec} passed its exam")
    return True, "; ".join(told) or "nothing was judged"


def _errs_too_often(exam: Mapping[str, Any]) -> bool:
    """Whether the counts belie that it passed."""
    return any(
        exam[kind]["count"] > most * exam[kind]["of"]
        for kind, most in exam["limits"].items()
        if kind in exam
    )


def judges_of(manifest: Manifest) -> list[str]:
    """The specs of all who decided on scores, the members of a panel each."""
    found: list[str] = []
    for role in ("judge", "appellate_judge"):
        if about := manifest.identity.get(role):
            found += about.get("panel") or [about["spec"]]
    return found


def _coverage(case: Case) -> _Finding:
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


def _figures(case: Case) -> _Finding:
    recorded = case.run.read_json("metrics.json")
    foreign = _drop_foreign_metrics(recorded, case.figures)
    if changed := differences(recorded, case.figures):
        by = value_at(case.manifest, "identity.versions.mnemoscope")
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
    if changed := _answers_apart(case):
        return False, f"{ANSWERS} is not what the journal gives: {changed[0]}"
    left_out = f"; not recomputed, their metric is not installed: {', '.join(foreign)}"
    equal = f"recomputed from {len(case.trials):,} trials, all equal"
    return True, equal + (left_out if foreign else "")


def _drop_foreign_metrics(recorded: dict[str, Any], computed: dict[str, Any]) -> list[str]:
    """Leave out what only one side can know: metrics of plug-ins that the other side lacks.

    Returns the recorded ones that cannot be recomputed here.
    """
    sides = [recorded["overall"], computed["overall"]]
    apart = {n for n in sides[0].keys() ^ sides[1].keys() if not is_builtin(n)}
    lacking = [name for name in sides[0] if name in apart]
    for content in (recorded, computed):
        for figures in (content["overall"], *content["by_category"].values()):
            for name in apart:
                figures.pop(name, None)
    return lacking


def _answers_apart(case: Case) -> list[str]:
    """What answers.json says otherwise than the journal; a life's answers are in other files."""
    if case.manifest.checkpoints or not (case.run.path / ANSWERS).exists():
        return []
    clusters = {trial.question: trial.cluster for trial in case.trials}
    questions = {
        line["id"]: Question(
            line["id"],
            line["question"],
            reference=line["reference"],
            category=line["category"],
            evidence=tuple(line["evidence"]),
            expects=line["expects"],
            cluster=clusters.get(line["id"], ""),
        )
        for line in case.run.questions()
    }
    rows = assemble(case.run.journal(), questions)
    seed = case.manifest.identity.get("seed", SEED)
    sheet = answer_sheet(case.manifest, rows, case.ingestions, seed)
    plain = msgspec.json.decode(msgspec.json.encode(sheet))
    return differences(case.run.read_json(ANSWERS), plain)


def _files(case: Case) -> _Finding:
    if fingerprint(case.manifest.identity) != case.manifest.fingerprint:
        return False, "manifest.json: the fingerprint is not the hash of the identity"
    if changed := changed_files(case.run, case.manifest):
        return False, f"changed since the run: {', '.join(changed)}"
    return True, f"sha256 of {len(case.manifest.files)} files as recorded"


def changed_files(run: RunDirectory, manifest: Manifest) -> list[str]:
    """Recorded files that no longer have the hash the manifest vouches for."""

    def current(name: str) -> str | None:
        path = run.path / name
        return sha256_file(path) if path.is_file() else None

    names = dict.fromkeys([*RECORDED, *manifest.files])
    return [name for name in names if manifest.files.get(name, "") != current(name)]


def _others(case: Case) -> list[RunDirectory]:
    """Finished runs of the same fingerprint under the same name in folders beside the run's own."""
    own = case.run.path.resolve()
    found = []
    for file in sorted(own.parent.parent.glob(f"*/{escape(own.name)}/manifest.json")):
        run = RunDirectory(file.parent)
        with suppress(MnemoscopeError):  # whatever cannot be read is no run to compare with
            manifest = run.manifest()
            same = manifest.fingerprint == case.manifest.fingerprint
            if run.path != own and same and manifest.state == "complete" and not _blocked_why(run):
                found.append(run)
    return found


def _variance(case: Case) -> _Finding:
    bands = case.rules.variance if case.rules else {}
    others = _others(case)
    if not others:
        return True, "no other run of this fingerprint beside it"
    for run in others:
        theirs = run.read_json("metrics.json")["overall"]
        for name, band in bands.items():
            apart = abs(theirs[name]["mean"] - case.figures["overall"][name]["mean"])
            if apart > band + _SAME:
                place = f"{run.path.parent.name}/{run.label}"
                return False, f"{name} is {apart:.4f} from that of {place}; at most {band}"
    limits = ", ".join(f"{name} ±{band}" for name, band in bands.items())
    runs = "run" if len(others) == 1 else "runs"
    return True, f"within {limits} of {len(others)} other {runs}"


def _arms(case: Case) -> _Finding:
    if not case.ingestions:
        return False, "rankings made elsewhere have no arms that ran under the same conditions"
    said = {name: _arm_fault(name, case) for name in case.protocol.arms}
    if faults := [f"{name}: {fault}" for name, fault in said.items() if fault]:
        return False, "; ".join(faults)
    spec = str(value_at(case.manifest, "identity.system.spec")).partition(",")[0]
    own = f"; {spec} is itself a sanity arm, no memory system" if spec in FAULTS else ""
    return True, f"{', '.join(said)} ran beside it and are where they belong{own}"


def _arm_fault(name: str, case: Case) -> str:
    """What is wrong with a sanity arm, empty if nothing is."""
    own = case.run.path.resolve()
    folder = own.parent / name
    if folder != own and not (folder / "manifest.json").exists():
        return f"no run at ../{name}"
    run = RunDirectory(folder)
    arm = case if folder == own else Case(run, run.manifest(), case.chosen, case.rules)
    if fault := _unlike(arm.manifest, case.manifest, name):
        return fault
    if why := _blocked_why(run):
        return f"blocked: {why}"
    if changed := changed_files(run, arm.manifest):
        return f"changed since the run: {', '.join(changed)}"
    if len(arm.fair) < len(arm.scorable) or not arm.fair:
        return f"only {len(arm.fair):,} of {len(arm.scorable):,} questions were fairly put"
    assert case.rules is not None
    fault_of = FAULTS.get(name)
    return fault_of(arm.fair, Depth(arm.depth), case.rules.primary) if fault_of else ""


def _unlike(arm: Manifest, own: Manifest, name: str) -> str:
    if arm.state != "complete":
        return f"not complete (state {arm.state})"
    if (system := str(value_at(arm, "identity.system.spec")).partition(",")[0]) != name:
        return f"was made with {system}"
    wanted = {key: own.identity.get(key) for key in ("benchmark", "depth", "seed")}
    found = {key: arm.identity.get(key) for key in wanted}
    return "another benchmark: " + "; ".join(apart) if (apart := differences(wanted, found)) else ""


_GATES: dict[str, Callable[[Case], _Finding]] = {
    "deviations": _deviations,
    "dataset": _dataset_pinned,
    "versions": _versions,
    "seed": _seed,
    "evidence": _evidence,
    "granularity": _granularity,
    "artefacts": _artefacts,
    "blocked": _not_blocked,
    "leaks": _no_leaks,
    "hits": _hits,
    "judges": _judges,
    "arms": _arms,
    "coverage": _coverage,
    "figures": _figures,
    "files": _files,
    "variance": _variance,
}
