"""The gates that a run must pass to be cited. Each function returns the result and the reason."""

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
from mnemoscope._store.run_directory import RECORDED, RunDirectory, declared_repeat
from mnemoscope._store.run_integrity import is_protected
from mnemoscope.analysis.answers import ANSWERS, answer_sheet
from mnemoscope.analysis.attempts import attempts_in_order
from mnemoscope.analysis.baseline_checks import baselines_in_place
from mnemoscope.analysis.change_scores import change_scores
from mnemoscope.analysis.checked_run import (
    BLOCKED_FILE,
    CheckedRun,
    blocked_reason,
    judges_of,
    value_at,
)
from mnemoscope.analysis.credit_gates import below_ceiling, sources_in_bounds
from mnemoscope.analysis.disclosure_rates import disclosure
from mnemoscope.analysis.entitled import exam_problem
from mnemoscope.analysis.measure import evidence_ranks, ingestion_loss
from mnemoscope.analysis.question_records import records_of
from mnemoscope.analysis.repeats import set_of_run
from mnemoscope.analysis.running_system import system_as_stated
from mnemoscope.metrics import is_builtin
from mnemoscope.protocols import deviations
from mnemoscope.types import Answer

_SAME = 1e-12
"""Tolerance for rounding where a difference is exactly at its limit."""
_END_ROUNDING = 1e-7
"""Tolerance for the ends of intervals, whose last digits depend on the machine."""
_MAX_UNKNOWN = 0.01
"""The allowed share of hits with unknown ids: above it, the adapter is at fault."""
_EMPTY: tuple[Any, ...] = (None, "", [], {})
_Finding = tuple[bool, str]


class Gate(msgspec.Struct, frozen=True):
    """One requirement, and whether the run meets it."""

    name: str
    passed: bool
    why: str


def check_gate(name: str, case: CheckedRun) -> Gate:
    try:
        return Gate(name, *_GATES[name](case))
    # An edited file can contain anything: a gate that cannot be checked has not passed.
    except (MnemoscopeError, OSError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        why = str(error) if isinstance(error, MnemoscopeError) else f"cannot be checked: {error!r}"
        return Gate(name, False, why)


def _deviations(case: CheckedRun) -> _Finding:
    assert case.rules is not None
    options = value_at(case.manifest, "identity.benchmark.options") or {}
    found = deviations(case.protocol, case.rules, options, case.depth)
    # Deviations that were declared for another protocol do not apply to this one.
    same = case.manifest.protocol.get("id", "").partition(":")[0] == case.protocol.id
    declared = case.manifest.deviations if same else []
    undeclared = [what for what in found if not any(line.startswith(what) for line in declared)]
    if declared or undeclared:
        return False, "; ".join([*declared, *(f"{what} (not declared)" for what in undeclared)])
    return True, "none"


def _dataset_pinned(case: CheckedRun) -> _Finding:
    assert case.rules is not None
    found = value_at(case.manifest, "identity.benchmark.sha256") or []
    if not case.rules.sha256:
        return True, "own data: the protocol pins no hash"
    has, wanted = (", ".join(f"{one[:12]}…" for one in own) for own in (found, case.rules.sha256))
    if sorted(found) == sorted(case.rules.sha256):
        return True, f"sha256 {has} as the protocol says"
    return False, f"sha256 {has or 'not recorded'}, the protocol says {wanted}"


def _versions(case: CheckedRun) -> _Finding:
    found = value_at(case.manifest, "identity.versions")
    if not isinstance(found, Mapping) or not found.get("mnemoscope") or not all(found.values()):
        return False, "identity.versions is missing or incomplete"
    return True, ", ".join(f"{name} {version}" for name, version in found.items())


def _seed(case: CheckedRun) -> _Finding:
    seed = value_at(case.manifest, "identity.seed")
    if seed is None:
        return False, "the manifest records no seed"
    if case.chosen is None:
        return True, f"seed {seed}"
    if seed != case.protocol.seed:
        return False, f"seed {seed}, the protocol says {case.protocol.seed}"
    missing = [path for path in case.protocol.record if value_at(case.manifest, path) in _EMPTY]
    if missing:
        return False, f"the manifest does not record {', '.join(missing)}"
    return True, f"seed {seed}; all {len(case.protocol.record)} required settings are recorded"


def _evidence(case: CheckedRun) -> _Finding:
    lost = ingestion_loss(case.scorable, case.ingestions)["evidence_unreachable"]
    if lost:
        return False, f"{lost} evidence ids do not exist in their scenarios and cannot be found"
    found, wanted = len(case.scorable), case.rules.measured if case.rules else 0
    if not found or (wanted and found != wanted):
        expected = f", the protocol says {wanted:,}" if wanted else ""
        return False, f"{found:,} questions have evidence{expected}"
    return True, f"all evidence of {found:,} questions exists"


def _granularity(case: CheckedRun) -> _Finding:
    wanted = case.rules.memories if case.rules else 0
    if not case.ingestions:
        return False, "no memories were ingested: the rankings were read from a file"
    given = sum(line.memories for line in case.ingestions)
    if wanted and given != wanted:
        expected = f"the protocol says {wanted:,}"
        return False, f"{given:,} memories ingested, {expected}: wrong granularity or wrong data"
    return True, f"{given:,} memories ingested" + ("" if wanted else ", own data")


def _artefacts(case: CheckedRun) -> _Finding:
    wanted = case.protocol.artefacts if case.chosen else ["manifest.json", *RECORDED, "report.md"]
    missing = [name for name in wanted if not (case.run.path / name).is_file()]
    if missing:
        return False, f"missing: {', '.join(missing)}"
    if case.manifest.state != "complete":
        return False, f"the run is not complete (state {case.manifest.state})"
    return True, f"all {len(wanted)} files exist and the run is complete"


def _not_blocked(case: CheckedRun) -> _Finding:
    return not (why := blocked_reason(case.run)), why or f"no {BLOCKED_FILE}"


def _no_leaks(case: CheckedRun) -> _Finding:
    if leaks := case.manifest.leaks:
        return False, f"{leaks} findings of the leak scan were accepted with --accept-leaks"
    return True, "the leak scan found no labels in the data given to the system"


def _isolation(case: CheckedRun) -> _Finding:
    return case.isolation.passed, case.isolation.why


def _hits(case: CheckedRun) -> _Finding:
    returned = sum(len(trial.ranking) for trial in case.trials)
    unknown = sum(trial.unknown for trial in case.trials)
    if unknown > _MAX_UNKNOWN * returned:
        return False, f"{unknown:,} of {returned:,} hits are not memories that were ingested"
    return True, f"{returned - unknown:,} of {returned:,} hits are memories that were ingested"


def _judges(case: CheckedRun) -> _Finding:
    specs = judges_of(case.manifest)
    benchmark = case.manifest.identity["benchmark"]["name"]
    for spec in specs:
        command = f"`mnemoscope judges exam {spec} --benchmark {benchmark}`"
        if case.manifest.exams.get(spec) is None:
            return False, f"{spec} has not taken the exam: run {command}, then judge again"
        # What follows from the counts decides, since `passed` may have been edited.
        if why := exam_problem(case.manifest, spec):
            return False, f"{spec} failed the exam: {why}; {command} shows its errors"
    return True, "; ".join(f"{spec} passed the exam" for spec in specs) or "no answers were judged"


def _coverage(case: CheckedRun) -> _Finding:
    asked, wanted = len(case.trials), case.rules.questions if case.rules else 0
    counts = Counter(trial.question for trial in case.trials)
    if twice := [id for id, n in counts.items() if n > 1]:
        return False, f"the journal has {len(twice)} questions more than once: {twice[0]}, …"
    if wanted and asked != wanted:
        return False, f"{asked:,} of {wanted:,} questions were asked"
    if asked != (planned := case.manifest.counts.get("questions", asked)):
        return False, f"{asked:,} of the dataset's {planned:,} questions are in the journal"
    least = case.protocol.min_coverage if case.chosen else 1.0
    measured, scorable = len(case.measured), len(case.scorable)
    if not scorable or measured / scorable < least - _SAME:
        return False, f"only {measured:,} of {scorable:,} questions were measured"
    return True, f"{asked:,} questions, each asked once; {measured:,} of {scorable:,} measured"


def _figures(case: CheckedRun) -> _Finding:
    recorded = case.run.read_json("metrics.json")
    figures = {"benchmark": case.manifest.identity["benchmark"], **case.figures}
    questions = list(case.run.questions())
    if any("session" in question for question in questions):
        figures["disclosure"] = disclosure(records_of(case.run), case.depth, evidence_ranks)
    if "change" in recorded:
        figures["change"] = change_scores(records_of(case.run))
    foreign = _drop_foreign_metrics(recorded, figures)
    is_older = "interval" not in recorded
    if changed := differences(_take_ends(recorded, figures, is_older), figures):
        by = value_at(case.manifest, "identity.versions.mnemoscope")
        other = f" (made by version {by})" if by != mnemoscope.__version__ else ""
        return False, f"metrics.json does not match the journal: {changed[0]}{other}"
    wanted = case.rules.metrics if case.rules else []
    if missing := [name for name in wanted if name not in case.figures["overall"]]:
        return False, f"metrics of the protocol cannot be computed: {', '.join(missing)}"
    rankings = read_records(case.run.path / "raw_retrievals.jsonl", dict)
    if [(r["question"], tuple(r["ranking"])) for r in rankings] != [
        (trial.question, trial.ranking) for trial in case.trials
    ]:
        return False, "raw_retrievals.jsonl does not match the journal"
    asked = [trial.question for trial in case.trials]
    if not asked and value_at(case.manifest, "identity.reader") == "system":  # no rankings
        asked = [line.question for line in case.run.journal() if isinstance(line, Answer)]
    if [question["id"] for question in questions] != asked:
        return False, "questions.jsonl does not match the journal"
    # Runs with checkpoints record their answers in other files.
    if not case.manifest.checkpoints and (case.run.path / ANSWERS).exists():
        sheet = answer_sheet(case.manifest, records_of(case.run), case.ingestions)
        answers = case.run.read_json(ANSWERS)
        older_answers = "interval" not in answers["figures"]
        if "raw" in sheet and "corrected" not in answers.get("raw", {}):
            sheet["raw"].pop("corrected", None)  # older versions did not write it
        if changed := differences(_take_ends(answers, sheet, older_answers), sheet):
            return False, f"{ANSWERS} does not match the journal: {changed[0]}"
        is_older = is_older or older_answers
    if is_older:
        return False, (
            "all means match the journal, but the intervals were computed by an older version, "
            "which took questions of one conversation for independent; repeat the run's command "
            "to compute them again (systems are not called)"
        )
    left_out = f"; not recomputed, because the metric is not installed: {', '.join(foreign)}"
    equal = f"recomputed from {len(case.trials):,} trials, all equal"
    return True, equal + (left_out if foreign else "")


def _take_ends(
    recorded: Mapping[str, Any], computed: Mapping[str, Any], is_older: bool
) -> dict[str, Any]:
    """The recorded figures with the computed ends of intervals that differ by rounding only.

    Older versions computed other intervals and did not say what they are about: of their files
    only the rest is compared.
    """
    found = dict(recorded)
    for key, value in computed.items():
        own = recorded.get(key)
        if isinstance(value, Mapping) and isinstance(own, Mapping):
            found[key] = _take_ends(own, value, is_older)
        elif is_older and (key in ("interval", "few_clusters") or (key == "ci95" and own)):
            found[key] = value
        elif key == "ci95" and value and own and len(own) == len(value):
            close = all(abs(x - y) <= _END_ROUNDING for x, y in zip(own, value, strict=True))
            found[key] = value if close else own
    return found


def _drop_foreign_metrics(
    recorded: MutableMapping[str, Any], computed: MutableMapping[str, Any]
) -> list[str]:
    """Drop metrics of plug-ins that only one side has.

    Returns the recorded ones that cannot be recomputed here.
    """
    names = [list(content["overall"]) for content in (recorded, computed)]
    dropped = {name for name in {*names[0]} ^ {*names[1]} if not is_builtin(name)}

    def kept(figures: Mapping[str, Any]) -> dict[str, Any]:
        return {name: figure for name, figure in figures.items() if name not in dropped}

    for content in (recorded, computed):
        content["overall"] = kept(content["overall"])
        content["by_category"] = {name: kept(own) for name, own in content["by_category"].items()}
    return [name for name in names[0] if name in dropped]


def _files(case: CheckedRun) -> _Finding:
    if fingerprint(case.manifest.identity) != case.manifest.fingerprint:
        return False, "manifest.json: the fingerprint is not the hash of the identity"
    if edited := case.run.edited_files():
        return False, "; ".join(f"{name} {problem}" for name, problem in edited.items())
    if not is_protected(case.run.path, case.manifest):
        return False, (
            "made before runs had a seal: an edit of manifest.json or of the times would not be "
            "found"
        )
    return True, f"the sha256 of {len(case.manifest.files)} files is as recorded"


def _journal(case: CheckedRun) -> _Finding:
    if not is_protected(case.run.path, case.manifest):
        return False, "made before journals had a hash chain: an edited line would not be found"
    end = case.run.chain(case.manifest).check()
    if case.manifest.chain.get("trials.jsonl") != end.trials:
        return False, "the head of the hash chain is not the one in the manifest"
    return True, f"hash chain over {end.trials.lines:,} lines, head {end.trials.head[:12]}…"


def _attempts(case: CheckedRun) -> _Finding:
    """A repeat must also belong to a whole set: all declared repeats, each as it first came."""
    passed, why = attempts_in_order(case)
    repeat = declared_repeat(case.manifest.identity)
    if repeat is None or not passed:
        return passed, why
    found = set_of_run(case.run)
    if found is None:
        return False, "the set of repeats that it belongs to cannot be read"
    if found.problems:
        return False, "; ".join(found.problems)
    return True, f"{why}; repeat {repeat.number} of a whole set of {repeat.of}"


def _others(case: CheckedRun) -> list[RunDirectory]:
    """Return the other repeats of a set; of another run, those in the neighbouring folders.

    These are finished runs with the same name and fingerprint.
    """
    own = case.run.path.resolve()
    if repeats := set_of_run(case.run):
        return [
            RunDirectory(own.parent / one.label)
            for one in repeats.runs
            if one.label != own.name and one.state == "complete"
        ]
    found = []
    for file in sorted(own.parent.parent.glob(f"*/{escape(own.name)}/manifest.json")):
        run = RunDirectory(file.parent)
        with suppress(MnemoscopeError):  # a run that cannot be read cannot be compared
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
        return True, "there are no other runs with this fingerprint in the neighbouring folders"
    for run in others:
        theirs = run.read_json("metrics.json")["overall"]
        for name, band in bands.items():
            apart = abs(theirs[name]["mean"] - case.figures["overall"][name]["mean"])
            if apart > band + _SAME:
                beside = run.path.parent == case.run.path.resolve().parent
                place = run.label if beside else f"{run.path.parent.name}/{run.label}"
                return False, f"{name} differs by {apart:.4f} from {place}; at most {band} allowed"
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
    "isolation": _isolation,
    "hits": _hits,
    "judges": _judges,
    "system": system_as_stated,
    "arms": baselines_in_place,
    "coverage": _coverage,
    "figures": _figures,
    "files": _files,
    "journal": _journal,
    "attempts": _attempts,
    "variance": _variance,
    "sources": sources_in_bounds,
    "ceiling": below_ceiling,
}
