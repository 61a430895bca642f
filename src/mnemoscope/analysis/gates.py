"""What a run must satisfy to be cited: one function a gate, each with its reason in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from glob import escape
from typing import Any

import msgspec

import mnemoscope
from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.fingerprint import differences, fingerprint
from mnemoscope._store.jsonl import read_records
from mnemoscope._store.run_directory import RECORDED, RunDirectory
from mnemoscope.analysis.answers import ANSWERS, answer_sheet
from mnemoscope.analysis.baseline_checks import baselines_in_place
from mnemoscope.analysis.checked_run import (
    BLOCKED_FILE,
    CheckedRun,
    blocked_reason,
    changed_files,
    judges_of,
    value_at,
)
from mnemoscope.analysis.measure import ingestion_loss
from mnemoscope.analysis.question_records import records_of
from mnemoscope.metrics import is_builtin
from mnemoscope.protocols import deviations

_SAME = 1e-12
"""What rounding in binary may add to a difference that is exactly at its limit."""
_MOST_STRANGE = 0.01
"""The share of hits that may be no memory: beyond it, it is the adapter that was measured."""


_EMPTY: tuple[Any, ...] = (None, "", [], {})
_Finding = tuple[bool, str]


class Gate(msgspec.Struct, frozen=True):
    """One requirement, and whether the run meets it."""

    name: str
    passed: bool
    why: str


def judged(name: str, case: CheckedRun) -> Gate:
    try:
        return Gate(name, *_GATES[name](case))
    # A tampered file may say anything: what cannot be read has not passed.
    except (MnemoscopeError, OSError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        said = str(error) if isinstance(error, MnemoscopeError) else f"cannot be judged: {error!r}"
        return Gate(name, False, said)


def _deviations(case: CheckedRun) -> _Finding:
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


def _dataset_pinned(case: CheckedRun) -> _Finding:
    assert case.rules is not None
    found = value_at(case.manifest, "identity.benchmark.sha256") or []
    if not case.rules.sha256:
        return True, "own data, nothing is pinned"
    if sorted(found) == sorted(case.rules.sha256):
        return True, f"sha256 {', '.join(one[:12] + '…' for one in found)} as pinned"
    has, wanted = (", ".join(f"{one[:12]}…" for one in own) for own in (found, case.rules.sha256))
    return False, f"sha256 {has or 'not recorded'} instead of the pinned {wanted}"


def _versions(case: CheckedRun) -> _Finding:
    found = value_at(case.manifest, "identity.versions")
    if not isinstance(found, Mapping) or not found.get("mnemoscope") or not all(found.values()):
        return False, "identity.versions is missing or incomplete"
    return True, ", ".join(f"{name} {version}" for name, version in found.items())


def _seed(case: CheckedRun) -> _Finding:
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


def _evidence(case: CheckedRun) -> _Finding:
    lost = ingestion_loss(case.scorable, case.ingestions)["evidence_unreachable"]
    if lost:
        return False, f"{lost} evidence ids exist in no scenario and can never be found"
    found, wanted = len(case.scorable), case.rules.measured if case.rules else 0
    if not found or (wanted and found != wanted):
        return False, f"{found:,} questions with evidence" + (f", not {wanted:,}" if wanted else "")
    return True, f"all evidence of {found:,} questions exists"


def _granularity(case: CheckedRun) -> _Finding:
    wanted = case.rules.memories if case.rules else 0
    if not case.ingestions:
        return False, "no memories were given: these are rankings made elsewhere"
    given = sum(line.memories for line in case.ingestions)
    if wanted and given != wanted:
        return False, f"{given:,} memories were given, not {wanted:,}: wrong granularity or data"
    return True, f"{given:,} memories given" + ("" if wanted else ", own data")


def _artefacts(case: CheckedRun) -> _Finding:
    wanted = case.protocol.artefacts if case.chosen else ["manifest.json", *RECORDED, "report.md"]
    missing = [name for name in wanted if not (case.run.path / name).is_file()]
    if missing:
        return False, f"missing: {', '.join(missing)}"
    if case.manifest.state != "complete":
        return False, f"the run is not complete (state {case.manifest.state})"
    return True, f"all {len(wanted)} present, the run is complete"


def _not_blocked(case: CheckedRun) -> _Finding:
    return not (why := blocked_reason(case.run)), why or f"no {BLOCKED_FILE}"


def _no_leaks(case: CheckedRun) -> _Finding:
    if leaks := case.manifest.leaks:
        return False, f"{leaks} findings of the leakage scan were accepted on request"
    return True, "nothing that the system was given names a label"


def _hits(case: CheckedRun) -> _Finding:
    returned = sum(len(trial.ranking) for trial in case.trials)
    strange = sum(trial.unknown for trial in case.trials)
    if strange > _MOST_STRANGE * returned:
        return False, f"{strange:,} of {returned:,} hits are no memory that was given"
    return True, f"{returned - strange:,} of {returned:,} hits are memories that were given"


def _judges(case: CheckedRun) -> _Finding:
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


def _coverage(case: CheckedRun) -> _Finding:
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


def _figures(case: CheckedRun) -> _Finding:
    recorded = case.run.read_json("metrics.json")
    figures = {"benchmark": case.manifest.identity["benchmark"], **case.figures}
    foreign = _drop_foreign_metrics(recorded, figures)
    if changed := differences(recorded, figures):
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


def _drop_foreign_metrics(
    recorded: MutableMapping[str, Any], computed: MutableMapping[str, Any]
) -> list[str]:
    """Leave out what only one side can know: metrics of plug-ins that the other side lacks.

    Returns the recorded ones that cannot be recomputed here.
    """
    names = [content["overall"].keys() for content in (recorded, computed)]
    apart = {name for name in names[0] ^ names[1] if not is_builtin(name)}
    lacking = [name for name in names[0] if name in apart]
    for content in (recorded, computed):
        content["overall"] = _without(content["overall"], apart)
        content["by_category"] = {
            category: _without(own, apart) for category, own in content["by_category"].items()
        }
    return lacking


def _without(figures: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: figure for name, figure in figures.items() if name not in names}


def _answers_apart(case: CheckedRun) -> list[str]:
    """What answers.json says otherwise than the journal; with checkpoints, other files have it."""
    if case.manifest.checkpoints or not (case.run.path / ANSWERS).exists():
        return []
    sheet = answer_sheet(case.manifest, records_of(case.run), case.ingestions, case.seed)
    return differences(case.run.read_json(ANSWERS), sheet)


def _files(case: CheckedRun) -> _Finding:
    if fingerprint(case.manifest.identity) != case.manifest.fingerprint:
        return False, "manifest.json: the fingerprint is not the hash of the identity"
    if changed := changed_files(case.run, case.manifest):
        return False, f"changed since the run: {', '.join(changed)}"
    return True, f"sha256 of {len(case.manifest.files)} files as recorded"


def _others(case: CheckedRun) -> list[RunDirectory]:
    """Finished runs of the same fingerprint under the same name in folders beside the run's own."""
    own = case.run.path.resolve()
    found = []
    for file in sorted(own.parent.parent.glob(f"*/{escape(own.name)}/manifest.json")):
        run = RunDirectory(file.parent)
        with suppress(MnemoscopeError):  # whatever cannot be read is no run to compare with
            manifest = run.manifest()
            same = manifest.fingerprint == case.manifest.fingerprint
            if (
                run.path != own
                and same
                and manifest.state == "complete"
                and not blocked_reason(run)
            ):
                found.append(run)
    return found


def _variance(case: CheckedRun) -> _Finding:
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


_GATES: dict[str, Callable[[CheckedRun], _Finding]] = {
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
    "arms": baselines_in_place,
    "coverage": _coverage,
    "figures": _figures,
    "files": _files,
    "variance": _variance,
}
