"""The gate for a store that changed: was something lost, and do questions find less than before?

Both sides are asked for the same memories of the baseline. A memory counts as found at the first
hit that is one of the places to which the bridge followed it. A hit that contains several of the
memories that a question asks for takes a place for each, as they did before they were merged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.aggregates import GateRow
from mnemoscope.analysis.compare import guarded_rows, rows_of
from mnemoscope.analysis.comparison import OVERALL, Declared, Guarded, Row
from mnemoscope.analysis.credit import credited
from mnemoscope.analysis.measure import Depth
from mnemoscope.analysis.pairing import NotComparable, PairedTrials, PairedValues, known_metrics
from mnemoscope.analysis.store_bridge import MISSING, Followed, StoreBridge
from mnemoscope.metrics import PRIMARY, headline
from mnemoscope.types import FAILED, Question, Trial

MissingGold = Literal["fail", "leave-out"]
Places = Mapping[str, Sequence[str]]
"""Each memory of the baseline to the ids at which it counts as found."""
_ROUNDING = 1e-9
_MOST_MERGED = 10
"""A new memory with more gold memories takes a place for each, the asked ones last: else a
store in one memory would answer every question with its first hit."""


class ChangedQuestion(msgspec.Struct, frozen=True):
    """A question whose primary metric changed."""

    question: str
    category: str
    text: str
    base: float
    cand: float


class StoreGate(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate found."""

    store: str
    baseline: str
    system: str
    run: str
    """The folder of the run on the changed store; empty if nothing could be asked."""
    missing_gold: MissingGold
    questions: int
    """Questions of the baseline that have gold memories and were measured."""
    compared: int
    left_out: int
    """Questions of which no gold memory is left."""
    failed: int
    """Compared questions that failed on the changed store; they count as wrong."""
    unchanged: int
    new: int
    """New memories; all that carry no gold memory are interference."""
    gone: int
    gold: dict[str, int]
    """How many gold memories were followed by which method."""
    missing: list[Followed]
    needed_by: dict[str, list[str]]
    """Each missing memory to the questions that need it."""
    followed: list[Followed]
    """Gold memories that were not found by their text alone."""
    rows: list[Row]
    guarded: list[Guarded]
    limits: list[GateRow]
    """The metrics with a largest allowed drop."""
    gained: list[ChangedQuestion]
    lost: list[ChangedQuestion]

    @property
    def primary(self) -> Row | None:
        return next((row for row in self.rows if row.role == "primary"), None)

    @property
    def reasons(self) -> list[str]:
        """Why the gate fails; empty if it passes."""
        found = []
        if self.missing and self.missing_gold == "fail":
            n = len(self.missing)
            found.append(f"{n} gold {'memory is' if n == 1 else 'memories are'} missing")
        if self.worse:
            found.append(f"{', '.join(self.worse)} dropped")
        found += [
            f"{row.metric} dropped by {row.drop:.4f}, {row.allowed:g} is allowed"
            for row in self.limits
            if not row.passed
        ]
        return found

    @property
    def worse(self) -> list[str]:
        """Metrics whose interval lies below zero: the primary one, and those of the guard."""
        primary = self.primary
        own = [primary.metric] if primary is not None and primary.verdict == "worse" else []
        guarded = [one.metric for one in self.guarded if one.simultaneous[1] < 0]
        return list(dict.fromkeys([*own, *guarded]))

    @property
    def passed(self) -> bool:
        return not self.reasons


class BaselineQuestions(NamedTuple):
    """The measured questions of a baseline that have gold memories, by id."""

    scenario: str
    trials: dict[str, Trial]
    questions: dict[str, Question]

    @property
    def gold(self) -> list[str]:
        return list(dict.fromkeys(id for trial in self.trials.values() for id in trial.evidence))


def baseline_questions(run: RunDirectory) -> BaselineQuestions:
    """Read what a baseline was asked; NotComparable if it is not one finished store."""
    manifest = run.manifest()
    if manifest.state != "complete":
        raise NotComparable(f"{run.path} is not complete (state {manifest.state})")
    if manifest.checkpoints:
        raise NotComparable(f"{run.path} has checkpoints: a gate for stores needs a run without")
    trials = {
        trial.question: trial
        for trial in run.trials()
        if trial.evidence and trial.status not in FAILED
    }
    scenarios = list(dict.fromkeys(trial.scenario for trial in trials.values()))
    if len(scenarios) != 1:
        raise NotComparable(
            f"{run.path} has {len(scenarios)} scenarios with measured questions; a store is one"
        )
    questions = {
        line["id"]: Question(line["id"], line["question"], category=line["category"])
        for line in run.questions()
        if line["id"] in trials
    }
    return BaselineQuestions(scenarios[0], trials, questions)


def compare_stores(
    base: BaselineQuestions,
    cand: RunDirectory | None,
    bridge: StoreBridge,
    followed: Mapping[str, Followed],
    depth: Depth,
    *,
    names: tuple[str, str, str],
    missing_gold: MissingGold,
    max_drop: Mapping[str, float],
) -> StoreGate:
    """Compare the baseline with a run on the changed store; `cand` is None if nothing was asked.

    `names` are those of the store, the baseline and the system.
    """
    here = {id: one.ids for id, one in followed.items() if one.ids}
    pairs = _paired(base, cand, bridge, here) if cand is not None else PairedTrials([], 0, 0, 0)
    metrics = known_metrics(depth, pairs) if pairs.trials else []
    if unknown := [name for name in max_drop if pairs.trials and name not in metrics]:
        raise UsageError(
            f"these runs have no metric {unknown[0]!r}; they have {', '.join(metrics)}"
        )
    shown = headline(metrics)
    primary = PRIMARY if PRIMARY in metrics else next(iter([*shown, *metrics]), PRIMARY)
    family = [primary, *(name for name in shown if name != primary)] if metrics else []
    rows: list[Row] = []
    guarded: list[Guarded] = []
    limits: list[GateRow] = []
    gained: list[ChangedQuestion] = []
    lost: list[ChangedQuestion] = []
    if pairs.trials:
        values = pairs.values(depth, list(dict.fromkeys([*family, *max_drop])))
        roles = {name: "primary" if name == primary else "secondary" for name in family}
        declared = Declared(primary, family[1:], "default")
        rows = rows_of(OVERALL, values, roles, declared, None)
        guarded = guarded_rows(values, family, declared.alpha)
        limits = [_limit(values, name, allowed) for name, allowed in max_drop.items()]
        gained, lost = _changed(values.of_metrics([primary]), base.questions)
    return StoreGate(
        store=names[0],
        baseline=names[1],
        system=names[2],
        run=str(cand.path) if cand is not None else "",
        missing_gold=missing_gold,
        questions=len(base.trials),
        compared=len(pairs.trials),
        left_out=len(base.trials) - len(pairs.trials),
        failed=pairs.failed,
        unchanged=bridge.change.unchanged,
        new=bridge.change.new,
        gone=bridge.change.gone,
        gold=dict(Counter(one.method for one in followed.values())),
        missing=[one for one in followed.values() if one.method == MISSING],
        needed_by={
            id: [question for question, trial in base.trials.items() if id in trial.evidence]
            for id, one in followed.items()
            if one.method == MISSING
        },
        followed=[one for one in followed.values() if one.method not in (MISSING, "same text")],
        rows=rows,
        guarded=guarded,
        limits=limits,
        gained=gained,
        lost=lost,
    )


def _paired(
    base: BaselineQuestions, cand: RunDirectory, bridge: StoreBridge, here: Places
) -> PairedTrials:
    """Both sides of each question, asked for the memories that were followed."""
    after = {trial.question: trial for trial in cand.trials()}
    before = {id: bridge.twins(id) for id in here}
    contents = Counter(id for ids in here.values() for id in ids)
    found, failed = [], 0
    for question, trial in base.trials.items():
        gold = [id for id in trial.evidence if id in here]
        if not gold:
            continue
        if (other := after.get(question)) is None:
            raise NotComparable(f"{cand.path} did not ask question {question}")
        failed += other.status in FAILED
        asked = _asked_for(gold, trial)
        found.append((in_old_ids(trial, before, asked), in_old_ids(other, here, asked, contents)))
    return PairedTrials(found, 0, 0, failed)


def _asked_for(gold: Sequence[str], trial: Trial) -> Trial:
    """A trial of the same question, without a ranking, that asks for these memories."""
    grades = {id: grade for id, grade in trial.grades.items() if id in gold}
    return msgspec.structs.replace(
        trial, evidence=tuple(gold), grades=grades, ranking=(), scores=(), sources={}, texts={},
        ordered=(), places={}, carried={}, tokens=(), status="answered", error="", unknown=0,
    )  # fmt: skip


def in_old_ids(
    trial: Trial, places: Places, asked: Trial, contents: Mapping[str, int] = {}
) -> Trial:
    """The trial with the baseline's ids of the memories that it asks for.

    `contents` is how many gold memories each id of the store contains. A failed question has an
    empty ranking: a timeout must not make a gate pass.
    """
    wanted: dict[str, list[str]] = {}
    for old in asked.evidence:
        for id in places[old]:
            wanted.setdefault(id, []).append(old)
    ranking: list[str] = []
    seen: set[str] = set()
    for hit in dict.fromkeys(() if trial.status in FAILED else trial.ranking):
        has = credited(trial, hit)
        for id in dict.fromkeys(trial.sources.get(hit) or trial.carried.get(hit) or (hit,)):
            new = [old for old in wanted.get(id, ()) if old not in seen] if id in has else []
            seen.update(new)
            if (size := contents.get(id, 0)) > _MOST_MERGED:
                ranking += [f"hit {hit}: {id}, {place}" for place in range(size - len(new))]
            # An id of the store may be that of another memory of the baseline.
            ranking += new or [f"hit {hit}: {id}"]
    return msgspec.structs.replace(asked, ranking=tuple(ranking), cut=trial.cut)


def _limit(values: PairedValues, metric: str, allowed: float) -> GateRow:
    column = values.metrics.index(metric)
    old, new = (float(side[:, column].mean()) for side in (values.base, values.cand))
    return GateRow(metric, old, new, old - new, allowed, old - new <= allowed + _ROUNDING)


def _changed(
    values: PairedValues, questions: Mapping[str, Question]
) -> tuple[list[ChangedQuestion], list[ChangedQuestion]]:
    """The questions that gained and those that lost, the largest change first."""
    found = []
    for row, id in enumerate(values.questions):
        base, cand = float(values.base[row, 0]), float(values.cand[row, 0])
        text = questions[id].text if id in questions else ""
        found.append(ChangedQuestion(id, values.categories[row], text, base, cand))
    found.sort(key=lambda one: -abs(one.cand - one.base))
    return (
        [one for one in found if one.cand > one.base + _ROUNDING],
        [one for one in found if one.cand < one.base - _ROUNDING],
    )
