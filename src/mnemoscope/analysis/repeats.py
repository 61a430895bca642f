"""Declared repeats of a run: whether the set is whole, its mean, and where its variance comes from.

A set is one call of `run --repeat N`: N run directories LABEL@1 … LABEL@N. All of them count. A set
from which a repeat is missing, or in which one was run again, has no combined figure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemoscope._store.attempt_ledger import COPY, LedgerLine, read_ledger
from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.run_directory import (
    Manifest,
    RunDirectory,
    declared_repeat,
    is_run,
)
from mnemoscope.analysis.answers import ANSWERS
from mnemoscope.analysis.attempts import attempts_of, unfinished_before
from mnemoscope.analysis.checked_run import blocked_reason
from mnemoscope.analysis.entitled import withheld
from mnemoscope.analysis.estimates import few_clusters, rounded, rounded_all
from mnemoscope.analysis.measure import Depth
from mnemoscope.analysis.pairing import recorded_depth
from mnemoscope.analysis.question_records import records_of
from mnemoscope.metrics import headline
from mnemoscope.protocols import load_protocol
from mnemoscope.stats.variance_components import (
    JudgeNoise,
    RepeatComponents,
    expected_error,
    freedom,
    interval,
    judge_noise,
    purchases,
    repeated_mean,
    standard_error,
)
from mnemoscope.types import FAILED, Repeat

Floats = NDArray[np.float64]

REPEATS = "repeats.json"
PARTS = ("conversation", "question", "repeat", "repeat_by_conversation", "residual")
"""The components of the variance of one value, in the order of the model."""


class OneRepeat(msgspec.Struct, frozen=True):
    """One run directory of a set."""

    number: int
    label: str
    seed: int | None
    state: str
    fingerprint: str
    journal: str
    """The sha256 of its journal; empty if the run is not finished."""


class BuyNext(msgspec.Struct, frozen=True):
    """What one more unit would give."""

    what: str
    """`repeat`, `conversation`, or `question`: one more in each conversation."""
    se: float
    asked: int
    """How many more questions would be asked, over all repeats."""
    se_at_equal_cost: float
    """The standard error if a tenth more questions were asked, all for more of these units."""


class RepeatedFigure(msgspec.Struct, frozen=True):
    """One metric over all repeats of a set."""

    mean: float
    ci95: list[float]
    n: int
    clusters: int
    means: list[float]
    """The mean of each repeat, in order."""
    spread: float
    """The largest difference between two repeats."""
    band: float | None = None
    """The spread that the protocol accepts; None without one."""
    se: float | None = None
    freedom: float | None = None
    variance: dict[str, float | None] | None = None
    """The components, 0 where the estimate is negative; None for one that cannot be estimated.
    The whole is None if the repeats are identical. `judge` is a part of `residual`."""
    estimates: dict[str, float | None] | None = None
    """The unbiased estimates, negative ones included."""
    next: list[BuyNext] = []
    """What one more unit would give, best first."""

    @property
    def sd(self) -> float | None:
        """The standard deviation from run to run of what all questions share."""
        repeat = (self.variance or {}).get("repeat")
        return None if repeat is None else repeat**0.5


class RepeatSet(msgspec.Struct, frozen=True):
    """A declared set of repeats; it has figures only if it has no problems."""

    label: str
    of: int
    set: str
    runs: list[OneRepeat]
    problems: list[str]
    """Why there is no combined figure."""
    notes: list[str]
    identical: bool
    """Whether all journals have the same bytes, so that the repeats show no randomness."""
    figures: dict[str, RepeatedFigure]

    @property
    def is_whole(self) -> bool:
        return not self.problems


class _Member(NamedTuple):
    run: RunDirectory
    manifest: Manifest
    repeat: Repeat


def repeat_caveat(manifest: Manifest, label: str) -> str:
    """What to say beside every figure of a single repeat; empty for a run that is none."""
    repeat = declared_repeat(manifest.identity)
    if repeat is None:
        return ""
    base = label.rpartition("@")[0] or label
    return (
        f"repeat {repeat.number} of {repeat.of}, declared beforehand: one repeat is not the result "
        f"of {base}; {REPEATS} combines all {repeat.of}"
    )


def repeat_sets(folder: Path, *, rewriting: bool = False) -> list[RepeatSet]:
    """The declared sets of which the folder contains at least one repeat, by label.

    With `rewriting` a report that was edited is accepted; the caller writes it again.
    """
    groups: dict[tuple[str, str], list[_Member]] = defaultdict(list)
    unreadable: dict[str, str] = {}
    for place in sorted(filter(is_run, folder.glob("*/"))):
        run = RunDirectory(place, rewriting=rewriting)
        try:
            # The manifest alone is read first: other runs in the folder need not be checked.
            unchecked = RunDirectory(place, checked=False).manifest()
            if (repeat := declared_repeat(unchecked.identity)) is not None:
                member = _Member(run, run.manifest(), repeat)
                groups[_base(run.label), repeat.set].append(member)
        except MnemoscopeError as error:
            unreadable[run.label] = str(error)
    found = []
    for (label, _), members in sorted(groups.items()):
        bad = [why for name, why in unreadable.items() if _base(name) == label]
        found.append(_set_of(label, members, bad))
    return found


def set_of_run(run: RunDirectory) -> RepeatSet | None:
    """The declared set that a run belongs to; None if it is no repeat."""
    repeat = declared_repeat(run.manifest().identity)
    if repeat is None:
        return None
    for found in repeat_sets(run.path.absolute().parent):
        if found.set == repeat.set and any(one.label == run.label for one in found.runs):
            return found
    return None


def _base(label: str) -> str:
    return label.rpartition("@")[0] or label


def _set_of(label: str, members: Sequence[_Member], unreadable: Sequence[str]) -> RepeatSet:
    members = sorted(members, key=lambda one: (one.repeat.number, one.run.label))
    of, set = max(one.repeat.of for one in members), members[0].repeat.set
    runs = [
        OneRepeat(
            one.repeat.number,
            one.run.label,
            one.repeat.seed,
            one.manifest.state,
            one.manifest.fingerprint,
            one.manifest.files.get("trials.jsonl", ""),
        )
        for one in members
    ]
    problems = [
        *unreadable,
        *_incomplete(label, members, of),
        *_run_again(members),
        *_blocked(members),
    ]
    earlier = _other_sets(members, of)
    problems += [text for is_larger, text in earlier if is_larger]
    notes = [text for is_larger, text in earlier if not is_larger]
    notes += _begun_anew(members)
    identical = len({one.journal for one in runs}) == 1
    figures: dict[str, RepeatedFigure] = {}
    if not problems and identical:
        figures = _identical(members)
    elif not problems:
        figures, more = _combined(members)
        notes += [*more, *_partly_identical(runs), *_flips(members)]
    return RepeatSet(label, of, set, runs, problems, notes, identical, figures)


def _flips(members: Sequence[_Member]) -> list[str]:
    """How often the verdict on a question is not the same in all repeats."""
    if any(one.manifest.checkpoints or not one.manifest.identity.get("judge") for one in members):
        return []
    verdicts: dict[str, list[bool]] = defaultdict(list)
    for member in members:
        for record in records_of(member.run):
            if record.final is not None:
                verdicts[record.question.id].append(record.final.fails)
    several = [own for own in verdicts.values() if len(own) > 1]
    if not several:
        return []
    flipped = sum(len({*own}) > 1 for own in several)
    return [
        f"flip rate: the verdict on {flipped:,} of {len(several):,} questions "
        f"({flipped / len(several):.1%}) is not the same in all repeats"
    ]


def _incomplete(label: str, members: Sequence[_Member], of: int) -> list[str]:
    """Name the repeats that are missing, not finished, extra or of another declaration."""
    found = []
    ledgers = [read_ledger(), read_ledger(members[0].run.path.parent / COPY)]
    there = {one.repeat.number for one in members}
    for number in range(1, of + 1):
        if number in there:
            continue
        known = [
            line
            for ledger in ledgers
            for line in ledger.repeats_of(members[0].repeat.set)
            if line.repeat is not None and (line.repeat.number, line.repeat.of) == (number, of)
            for line in ledger.of_run(line.id)
        ]
        fate = "it was begun"
        if any(line.event == "finish" for line in known):
            fate = "it was finished, and its folder was deleted or moved"
        told = f" (the ledger of attempts knows it: {fate})" if known else ""
        found.append(f"repeat {number} of {of} is missing{told}")
    numbers = [one.repeat.number for one in members]
    for member in members:
        number, own = member.repeat.number, member.run.label
        if member.repeat.of != of:
            found.append(f"{own} was declared as one of {member.repeat.of} repeats, not of {of}")
        elif not 1 <= number <= of or numbers.count(number) > 1 or own != f"{label}@{number}":
            found.append(f"{own} is an extra folder: its run is repeat {number} of {of}")
        if member.manifest.state != "complete":
            found.append(
                f"repeat {number} of {of} is not finished (state {member.manifest.state}); repeat "
                "the command to continue it"
            )
    seeds = [one.repeat.seed for one in members if one.repeat.seed is not None]
    if len({*seeds}) < len(seeds):
        found.append("two repeats have the same seed")
    return found


def _run_again(members: Sequence[_Member]) -> list[str]:
    """Name the repeats that were run again: only a set as it first came counts."""
    found, begun = [], [unfinished_before(one.run.path, one.manifest) for one in members]
    for member, before in zip(members, begun, strict=True):
        attempts = attempts_of(member.run.path, member.manifest)
        name = f"repeat {member.repeat.number} of {member.repeat.of}"
        if attempts.problem:
            found.append(attempts.problem)
        elif attempts.differs:
            found.append(f"{name} was run again: {attempts.text}")
        elif before > min(begun):
            found.append(f"{name} was begun again, and others were not: {attempts.text}")
    return list(dict.fromkeys(found))


def _begun_anew(members: Sequence[_Member]) -> list[str]:
    before = min(unfinished_before(one.run.path, one.manifest) for one in members)
    if not before:
        return []
    return [f"the whole set was begun {before + 1} times; the earlier ones were not finished"]


def _blocked(members: Sequence[_Member]) -> list[str]:
    return [
        f"repeat {one.repeat.number} of {one.repeat.of} is blocked: {why}"
        for one in members
        if (why := blocked_reason(one.run))
    ]


def _other_sets(members: Sequence[_Member], of: int) -> list[tuple[bool, str]]:
    """Earlier sets of the same system and data with another number of repeats.

    The first value says whether it has more repeats: a set may be extended, not shortened.
    """
    own = {one.manifest.id for one in members}
    ledger, set = read_ledger(), members[0].repeat.set
    starts = ledger.repeats_of(set)
    ours = [line.at for line in starts if line.id in own]
    others: dict[tuple[int, str], list[LedgerLine]] = defaultdict(list)
    for line in starts:
        assert line.repeat is not None
        if line.repeat.of != of and (not ours or line.at < min(ours)):
            others[line.repeat.of, str(Path(line.path).parent)].append(line)
    found = []
    for (count, place), lines in others.items():
        ids = {line.id for line in lines}
        done = {line.id for line in ledger.lines if line.event == "finish" and line.id in ids}
        text = (
            f"a set of {count} repeats of the same system was declared before, in {place}: "
            f"{len(done)} of them were finished"
        )
        found.append((count > of, f"{text}; it counts" if count > of else text))
    return found


def _partly_identical(runs: Sequence[OneRepeat]) -> list[str]:
    numbers: dict[str, list[int]] = defaultdict(list)
    for one in runs:
        numbers[one.journal].append(one.number)
    return [
        f"the journals of repeats {', '.join(map(str, same))} are identical: if the system used "
        "the same random numbers, the variance from run to run is understated"
        for same in numbers.values()
        if len(same) > 1
    ]


def _identical(members: Sequence[_Member]) -> dict[str, RepeatedFigure]:
    """The figures of one run: repeats of a system without randomness add nothing."""
    metrics = members[0].run.read_json("metrics.json")
    bands, overall = _bands(members[0].manifest), metrics["overall"]
    names = dict.fromkeys([*headline(list(overall)), *(name for name in bands if name in overall)])
    return {
        name: RepeatedFigure(
            overall[name]["mean"],
            list(overall[name]["ci95"]),
            overall[name]["n"],
            metrics["questions"]["clusters"],
            [overall[name]["mean"]] * len(members),
            0.0,
            bands.get(name),
        )
        for name in names
    }


def _bands(manifest: Manifest) -> Mapping[str, float]:
    """The acceptable variance of the run's protocol, by metric."""
    with suppress(MnemoscopeError):  # `verify` says what is wrong with the protocol
        if id := manifest.protocol.get("id"):
            rules = load_protocol(id).benchmark(str(manifest.identity["benchmark"]["name"]))
            return rules.variance
    return {}


class _MetricTable(NamedTuple):
    """The values of one metric: a row for each question, a column for each repeat."""

    table: Floats
    clusters: list[str]
    judge: JudgeNoise | None = None


def _combined(members: Sequence[_Member]) -> tuple[dict[str, RepeatedFigure], list[str]]:
    bands, notes = _bands(members[0].manifest), []
    figures = {}
    for name, values in {**_of_rankings(members, bands), **_of_answers(members)}.items():
        missing = int(np.isnan(values.table).sum())
        if len(values.table) < 2 or np.isnan(values.table).all(axis=0).any():
            notes.append(f"{name}: too few questions were measured in every repeat")
            continue
        if missing:
            notes.append(
                f"{name}: {missing:,} of {values.table.size:,} values are missing, since questions "
                "failed; a question counts with the mean of its other repeats"
            )
        figures[name] = _figure(values, bands.get(name))
    if figures:
        notes += few_clusters(max(one.clusters for one in figures.values()))
    return figures, list(dict.fromkeys(notes))


def _figure(values: _MetricTable, band: float | None) -> RepeatedFigure:
    found = repeated_mean(values.table, values.clusters)
    means = np.nanmean(values.table, axis=0)
    known = values.table[~np.isnan(values.table)]
    is_bounded = bool(((known >= 0) & (known <= 1)).all())
    low, high = interval(found, limits=(0.0, 1.0) if is_bounded else (-inf, inf))
    noise = None if values.judge is None else rounded(values.judge.variance)
    now = expected_error(found.components, found.design)
    return RepeatedFigure(
        mean=rounded(found.mean),
        ci95=rounded_all((low, high)),
        n=len(values.table),
        clusters=len({*values.clusters}),
        means=rounded_all(means.tolist()),
        spread=rounded(float(means.max() - means.min())),
        band=band,
        se=rounded(standard_error(found)),
        freedom=rounded(min(freedom(found), 1e6)),
        variance={**_named(found.components.truncated()), "judge": noise},
        estimates={**_named(found.components), "judge": noise},
        next=[
            BuyNext(one.what, rounded(one.error), one.asked, rounded(one.at_equal_cost))
            for one in purchases(found.components, found.design)
        ]
        if now > 0
        else [],
    )


def _named(components: RepeatComponents) -> dict[str, float | None]:
    return {
        name: None if value is None else rounded(value)
        for name, value in zip(PARTS, components, strict=True)
    }


def _of_rankings(members: Sequence[_Member], bands: Mapping[str, float]) -> dict[str, _MetricTable]:
    overall = [list(one.run.read_json("metrics.json")["overall"]) for one in members]
    known = [name for name in overall[0] if all(name in own for own in overall)]
    names = list(dict.fromkeys([*headline(known), *(name for name in bands if name in known)]))
    if not names:
        return {}
    depth: Depth = recorded_depth(members[0].run)
    columns = [depth.names.index(name) for name in names]
    cells: dict[str, dict[int, list[float]]] = {}
    clusters: dict[str, str] = {}
    for place, member in enumerate(members):
        for trial in member.run.trials():
            if trial.evidence and trial.status not in FAILED:
                values = depth.values(trial)
                own = cells.setdefault(trial.question, {})
                own[place] = [values[column] for column in columns]
                clusters.setdefault(trial.question, trial.cluster)
    table = np.full((len(cells), len(members), len(names)), np.nan)
    for row, own in enumerate(cells.values()):
        for place, values in own.items():
            table[row, place] = values
    groups = [clusters[question] for question in cells]
    return {name: _MetricTable(table[:, :, at], groups) for at, name in enumerate(names)}


def _of_answers(members: Sequence[_Member]) -> dict[str, _MetricTable]:
    """The judged answers, if all repeats have them; verdicts on the same text show judge noise."""
    if any(one.manifest.checkpoints or not one.manifest.identity.get("judge") for one in members):
        return {}
    if not all((one.run.path / ANSWERS).exists() for one in members):
        return {}
    if any(withheld(one.manifest) for one in members):
        return {}
    metric = str(members[0].run.read_json(ANSWERS)["figures"]["metric"])
    cells: dict[str, dict[int, float]] = {}
    clusters: dict[str, str] = {}
    verdicts: list[float] = []
    answers: list[tuple[str, str]] = []
    for place, member in enumerate(members):
        for record in records_of(member.run):
            question, value = record.question, record.value
            if question.expects != "answer" or value is None:
                continue
            cells.setdefault(question.id, {})[place] = value
            clusters.setdefault(question.id, question.cluster or record.scenario)
            verdicts.append(value)
            answers.append((question.id, record.answer.text if record.answer else ""))
    table = np.array([[own.get(p, np.nan) for p in range(len(members))] for own in cells.values()])
    groups = [clusters[question] for question in cells]
    shape = table.reshape(-1, len(members))
    return {metric: _MetricTable(shape, groups, judge_noise(verdicts, answers))} if cells else {}


def repeats_content(sets: Iterable[RepeatSet]) -> dict[str, RepeatSet]:
    """The content of repeats.json: each set by the label of its system."""
    return {one.label: one for one in sets}
