"""Compare runs: a verdict, groups of systems, a plan, a gate, difficult questions."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import structs

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import RunDirectory, is_run
from mnemoscope.api.arguments import (
    RunLike,
    Where,
    all_runs,
    benchmark_of,
    existing,
    optional_path,
    readable,
)
from mnemoscope.results import (
    ComparisonResult,
    GateResult,
    ManyResult,
    PlanResult,
    QuestionsResult,
    Results,
)

_log = logging.getLogger(__name__)


def compare(
    base: RunLike,
    cand: RunLike,
    *,
    metrics: Sequence[str] = (),
    band: float | None = None,
    tests: Literal["paired", "seed"] | None = None,
    discordant: str = "",
    by_category: bool = True,
    plan: Where | None = None,
) -> ComparisonResult:
    """Compare two results of one benchmark, with a verdict for each metric.

    A result is a run, a metrics.json if only aggregates exist, or a result.json or questions.jsonl
    of Recall Bench. `plan` is the file of a frozen plan: it says which metrics decide. If it does
    not count for this comparison, no metric has a verdict. The ledger of attempts records the
    comparison as a look.
    """
    paths = [existing(base), existing(cand)]
    if band is not None and not band > 0:
        raise UsageError(f"--band {band}: the equivalence band must be above 0")
    from mnemoscope.api.recall_bench import recall_bench_pair

    if pair := recall_bench_pair(*paths):
        if metrics or tests or discordant or plan:
            raise UsageError(
                "--metrics, --tests, --discordant and --plan are for run directories; files of "
                "Recall Bench are compared by their composite and hallucination marks, paired"
            )
        from mnemoscope.analysis.recall_bench_comparison import compare_recall_bench

        marks = compare_recall_bench(*pair, band=band, by_category=by_category)
        return ComparisonResult(marks.base, marks.cand, paired=marks)
    needed = ("manifest.json", "trials.jsonl")
    aggregates = [path for path in paths if not all((path / name).is_file() for name in needed)]
    for path in filter(is_run, aggregates):
        RunDirectory(path).ensure_unedited()
    if plan is not None and (aggregates or tests == "seed"):
        raise UsageError("--plan needs runs whose questions can be paired")
    if aggregates and (tests == "paired" or metrics or band is not None or discordant):
        raise UsageError(
            f"{aggregates[0]} is not a run directory with trials, so questions cannot be paired; "
            "only --tests seed is possible, which takes neither --metrics, --band nor --discordant"
        )
    if tests == "seed" and (metrics or band is not None or discordant):
        raise UsageError("--tests seed takes neither --metrics, --band nor --discordant")
    if aggregates and tests is None:
        _log.warning("%s has no trials: only the unpaired seed tests are possible", aggregates[0])
    if aggregates or tests == "seed":
        return _compare_means(*paths)
    from mnemoscope.analysis.compare import compare as compare_runs
    from mnemoscope.analysis.frozen_plan import check, read_plan, record_look

    before, after = map(RunDirectory, paths)
    planned = read_plan(Path(plan)) if plan is not None else None
    with readable():
        checked = check(planned, Path(plan), before, after, band) if plan and planned else None
        found = compare_runs(
            before,
            after,
            metrics=list(metrics),
            band=checked.band if checked else band,
            by_category=by_category,
            discordant=discordant,
            declared=checked.declared if checked else None,
        )
    if plan and planned and checked:
        found = structs.replace(found, notes=[*checked.notes, *found.notes])
        if not checked.declared.refused:
            record_look(planned, Path(plan), after)
    names = before.manifest().category_names
    return ComparisonResult(found.base, found.cand, paired=found, category_names=names)


def _compare_means(base: Path, cand: Path) -> ComparisonResult:
    from mnemoscope.analysis.aggregates import read_aggregates, refuse_unlike, seed_comparison

    with readable():
        refuse_unlike(base, cand)
        before, after = read_aggregates(base), read_aggregates(cand)
        return ComparisonResult(before.label, after.label, seed=seed_comparison(before, after))


def plan(
    benchmark: str,
    *,
    base: RunLike,
    cand: RunLike | None = None,
    detect: float = 0.01,
    primary: str = "",
    secondaries: Sequence[str] | None = None,
    band: float | None = None,
    looks: int = 1,
    seed: int | None = None,
    changed: float | None = None,
    freeze: Where | None = None,
) -> PlanResult:
    """Say what a comparison with `base` can find, before its candidate runs.

    The variances are those of the differences between `base` and `cand`, else assumed (`changed` is
    the share of questions that change). `freeze` writes what decides to a new file.
    """
    from mnemoscope.analysis.frozen_plan import freeze as freeze_plan
    from mnemoscope.analysis.plan import plan as plan_comparison

    directories = [RunDirectory(existing(run)) for run in (base, cand) if run is not None]
    with readable():
        for run in directories:
            if benchmark_of(run) != benchmark:
                raise UsageError(f"{run.path} is a run of {benchmark_of(run)}, not of {benchmark}")
        found = plan_comparison(
            *directories,
            detect=detect,
            primary=primary,
            secondaries=None if secondaries is None else [one for one in secondaries if one],
            band=band,
            looks=looks,
            changed=changed,
        )
    if freeze is None:
        return PlanResult(found)
    return PlanResult(found, freeze_plan(found, directories[0], Path(freeze), seed=seed))


def compare_many(runs: Sequence[RunLike] | Results, *, metric: str = "") -> ManyResult:
    """Compare all pairs of several systems by one metric, with one error rate for all pairs.

    `runs` are runs or folders of runs, or the results of one call. The metric is recall@10, or the
    first headline metric that all runs have.
    """
    from mnemoscope.analysis.system_groups import system_groups

    directories = all_runs(runs)
    if len(directories) < 2:
        raise UsageError("give at least two runs")
    with readable():
        return ManyResult(system_groups(directories, metric))


def questions(
    runs: Sequence[RunLike] | Results,
    *,
    metric: str = "hit@10",
    category: str = "",
    top: int = 1,
    agree: int | None = None,
    data: Where | None = None,
) -> QuestionsResult:
    """Find the questions that no system finds, that all find, and that separate the systems.

    Candidates for missing labels are memories that at least `agree` independent systems (default:
    two thirds) have among their first `top` hits. Their texts come from the dataset at `data`.
    """
    from mnemoscope.analysis.question_difficulty import analyse_questions

    directories = all_runs(runs)
    with readable():
        found = analyse_questions(
            directories, metric=metric, category=category, top=top, agree=agree
        )
    wanted = {id for one in found.items for id in one.evidence}
    wanted |= {one.memory for one in found.candidates}
    memories = _memory_texts(directories[0], optional_path(data), wanted)
    return QuestionsResult(found, directories[0].manifest().category_names, memories)


def _memory_texts(run: RunDirectory, data: Path | None, wanted: set[str]) -> dict[str, str]:
    """The texts of memories of the run's dataset; empty if it is not found and was not named."""
    from mnemoscope.runner.dataset_texts import dataset_of

    dataset = dataset_of(run.manifest(), data)
    if dataset is None:
        return {}
    return {
        memory.id: memory.text
        for scenario in dataset.scenarios()
        for memory in scenario.memories
        if memory.id in wanted
    }


def gate(run: RunLike, *, baseline: RunLike, max_drop: Mapping[str, float]) -> GateResult:
    """Check that no metric of a run dropped below a baseline by more than `max_drop` allows.

    This is not a significance test; `compare` is. Failed questions count as wrong.
    """
    from mnemoscope.analysis.aggregates import gate as judge_drops

    place, before = existing(run), existing(baseline)
    with readable():
        rows = judge_drops(RunDirectory(place), before, max_drop)
    return GateResult(all(row.passed for row in rows), rows)
