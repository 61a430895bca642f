"""Judge the same answers under several sets of rules, and say which rule moves the figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import RunDirectory, is_run
from mnemoscope._store.spec import Spec
from mnemoscope.api.arguments import RunLike, Where, optional_path, run_path, several
from mnemoscope.api.reruns import judge as judge_again
from mnemoscope.api.run_progress import Progress

if TYPE_CHECKING:
    from mnemoscope.analysis.rule_effects import RuleEffect

_LONGMEMEVAL = "longmemeval"


def judging_rules(
    run: RunLike,
    *,
    judge: str | Sequence[str],
    out: Where | None = None,
    data: Where | None = None,
    parallelism: int = 1,
    workers: int = 0,
    max_cost: float | None = None,
    progress: Progress = None,
) -> list[RuleEffect]:
    """Judge the saved answers of a run under several sets of rules; the first is the base.

    One judge `longmemeval,…` stands for itself, for each of its rules changed alone, and for all
    deviations together. Several judges are compared as they are. Each set is a run of its own below
    `out`, by default beside the run; replies of a model are cached, so a repeated call is cheap.
    """
    from mnemoscope.analysis.question_records import records_of
    from mnemoscope.analysis.rule_effects import effect_of

    path = run_path(run)
    if not is_run(path):
        raise UsageError(f"{path} is not a run directory: name one run with answers")
    variants = _variants(several(judge))
    folder = optional_path(out) or path.resolve().parent.parent / f"{path.resolve().name}-rules"
    found: list[RuleEffect] = []
    first = None
    left = max_cost
    for spec, rules, about in variants:
        place = folder / Spec.parse(spec).slug
        results = judge_again(
            path,
            judge=spec,
            out=place,
            data=data,
            parallelism=parallelism,
            workers=workers,
            max_cost=left,
            progress=progress,
        )
        directory = results.runs[0].directory
        if left is not None:
            left -= _paid(directory)
        records = records_of(directory)
        found.append(effect_of(rules, about, records, first))
        first = records if first is None else first
    return found


def _paid(run: RunDirectory) -> float:
    from mnemoscope.runner.run import paid

    return paid(Path(run.path))


def _variants(judges: Sequence[str]) -> list[tuple[str, str, str]]:
    """Each judge to be asked, what differs in it, and what that means."""
    from mnemoscope.judges.longmemeval_rules import DEFAULT, RULES, resolve
    from mnemoscope.models.prompts import is_own

    if len(judges) > 1:
        return [(one, one, "") for one in judges]
    if not judges:
        raise UsageError("name a judge with --judge")
    base = Spec.parse(judges[0])
    if base.name != _LONGMEMEVAL:
        raise UsageError(
            f"{base.name} has no rules by name: give several judges to compare them, or "
            "longmemeval,model=MODEL"
        )
    given = {key: str(value) for key, value in base.args.items()}
    values = resolve(given.get("rules", "official"), given)
    own = is_own(given.get("prompt", ""))
    found = [(str(base), "as given" if given.keys() - {"model"} else "official rules", "")]
    for rule in RULES:
        if own and rule.name not in ("date", "empty", "verdict"):
            continue  # the user's prompt states its rules itself
        other = rule.deviation if values[rule.name] == rule.official else rule.official
        spec = Spec(base.name, {**base.args, rule.name: other})
        found.append((str(spec), f"{rule.name}={other}", rule.about))
    if not own and given.get("rules", "official") == "official":
        kept = {k: v for k, v in base.args.items() if v == DEFAULT or k in ("model", "prompt")}
        spec = Spec(base.name, {**kept, "rules": "strict"})
        found.append((str(spec), "rules=strict", "all deviations together"))
    return found
