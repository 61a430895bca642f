"""A run beside what others published: its cohort in one table, the rest with the reason why not.

`beside` takes plain values, `of_run` a run as the reports see it; nothing else is read but the
registry in the package.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mnemoscope.published.cohorts import TRAITS, UNSTATED, Cohort, cohort_of, differences
from mnemoscope.published.formatting import number
from mnemoscope.published.keying import NAMES
from mnemoscope.published.published_results import Category, Printed, Published, load
from mnemoscope.reports.answer_tables import exam_line
from mnemoscope.reports.markdown_table import table as markdown_table
from mnemoscope.reports.run_view import RunView

TITLE = "## Beside published numbers"
WARNING = (
    "Quoted from others, verified by nobody here. One cohort means that no stated condition "
    "differs; prompts of the answering model and of the judge are seldom stated, and differ."
)
_METRICS = {"accuracy": "accuracy_llm_judge", "f1": "token_f1"}
"""What the registry calls a run's measure."""
_SPLITS = {"s": "S cleaned", "m": "M cleaned", "oracle": "oracle"}
"""LongMemEval's variants as the registry has them; the loader reads the cleaned files."""
_RULE = "rule"
_SHOWN = 15
"""Numbers that may not be compared in a run's report."""
_FORGETTING = (
    "The two figures that came with the Nexus harness are the only ones here; which models, which "
    "forget set and which training they are of is not stated. They are of models that unlearn, "
    "this run is of a memory that deletes. After forgetting, low is good for `forget_rouge`."
)


class Page(NamedTuple):
    """One content twice: for people and for programs."""

    markdown: str
    json: dict[str, Any]


class Conditions(NamedTuple):
    """How a run's figures came about, in the registry's words."""

    benchmark: str
    answer_model: str
    judge_model: str
    metric: str
    variant: str = ""


class Placed(NamedTuple):
    """A figure of a run among the published ones."""

    figure: Mapping[str, Any]
    cohort: Cohort
    comparable: list[Published]
    others: list[tuple[Published, dict[str, tuple[str, str]]]]


def beside(
    run_figures: Sequence[Mapping[str, Any]],
    benchmark: str,
    answer_model: str,
    judge_model: str,
    metric: str,
    *,
    variant: str = "",
    most: int = 25,
) -> Page:
    """Set a run's figures beside the published numbers of their cohorts.

    Args:
        run_figures: One for each number: `system`, `value` (a fraction), `n`, and where there are
            any `ci95` (low, high) and `category` (LoCoMo's integer; none for the overall).
        benchmark: As the registry names it; upper and lower case are one.
        answer_model: The model that answered; `none` for retrieval alone.
        judge_model: The model that judged; `none` or `rule` where none did.
        metric: As the registry names it: `accuracy_llm_judge`, `recall_any@10`.
        variant: The questions, as the registry writes them: `S (n=500)`. LoCoMo's are known by n.
        most: How many numbers that may not be compared the Markdown shows; the JSON has all.
    """
    conditions = Conditions(benchmark, answer_model, judge_model, metric, variant)
    sections, content = [f"{TITLE}\n\n{WARNING}"], []
    for figure in run_figures:
        placed = _placed(figure, conditions)
        sections += _section(placed, most, conditions)
        content.append(_content(placed))
    return Page("\n\n".join(sections) + "\n", {"warning": WARNING, "figures": content})


def of_run(view: RunView) -> Page | None:
    """What a run's report says beside its numbers; None where nobody published such a number.

    The Markdown has the overall alone and few of the numbers that may not be compared; the JSON has
    LoCoMo's categories too, and all.
    """
    if view.is_arm or view.life:
        return None
    told = list(_forgotten(view) if view.forgetting else _answered(view))
    if not told:
        return None
    notes = list(_notes(view))
    bullets = ["\n".join(f"- {note}" for note in notes)] if notes else []
    sections, content = [f"{TITLE}\n\n{WARNING}", *bullets], []
    for figure, conditions in told:
        placed = _placed(figure, conditions)
        content.append(_content(placed))
        if not figure.get("category"):
            alike = [other for other in placed.others if "metric" not in other[1]]
            sections += _section(placed._replace(others=alike), _SHOWN, conditions)
    if any(figure.get("category") for figure, _ in told):
        sections.append("Each category stands beside the published ones in published.json.")
    page = {"warning": WARNING, "notes": notes, "figures": content}
    return Page("\n\n".join(sections), page)


def _answered(view: RunView) -> Iterator[tuple[dict[str, Any], Conditions]]:
    """The overall and LoCoMo's categories, where the answers were measured as others do."""
    about = view.manifest.identity["benchmark"]
    figures = (view.answers or {}).get("figures", {})
    judge = _judge(view.manifest.identity)
    metric = _METRICS.get(figures.get("metric", ""))
    # An accuracy that no model judged is another measure than everybody's.
    if metric is None or (metric == "accuracy_llm_judge") == (judge == _RULE):
        return
    sampled = "questions" in about["options"]
    asked = (about["name"], _reader(view.manifest.identity), judge, metric)
    if about["name"] == "locomo":
        kind = "sample" if sampled else "audited key" if about["options"].get("audit") else ""
        overall = figures["answerable"]
        if overall["mean"] is not None:
            variant = f"{kind} (n={overall['n']})" if kind else ""
            yield _figure(view, overall), Conditions(*asked, variant)
        for key, own in figures["by_category"].items():
            part = own["answerable"]
            if not kind and part["mean"] is not None and int(key) in NAMES:
                yield {**_figure(view, part), "category": int(key)}, Conditions(*asked)
    elif about["name"] == "longmemeval" and figures["all"]["mean"] is not None:
        overall = figures["all"]  # the official accuracy counts abstentions among the rest
        split = "sample" if sampled else _SPLITS[about["options"]["variant"]]
        yield _figure(view, overall), Conditions(*asked, f"{split} (n={overall['n']})")


def _forgotten(view: RunView) -> Iterator[tuple[dict[str, Any], Conditions]]:
    """Mean ROUGE-L after forgetting, of what was to go and of what was to stay."""
    score = (view.forgetting or {}).get("score")
    identity = view.manifest.identity
    if score is None or identity["benchmark"]["name"] != "tofu":
        return
    share = identity["benchmark"]["options"]["forget"]
    for kind in ("forget", "retain"):
        own = score["after"][kind]
        if own["mean_rouge_l"] is not None:
            figure = _figure(view, {"n": own["n"], **own["mean_rouge_l"]})
            variant = f"forget{share} (n={own['n']})"
            models = _reader(identity), _judge(identity)
            yield figure, Conditions("tofu", *models, f"{kind}_rouge", variant)


def _figure(view: RunView, own: Mapping[str, Any]) -> dict[str, Any]:
    return {"system": view.label, "value": own["mean"], "n": own["n"], "ci95": own["ci95"]}


def _notes(view: RunView) -> Iterator[str]:
    """What keeps this run from being compared, or from being believed."""
    identity = view.manifest.identity
    asked = identity["benchmark"]["options"].get("questions")
    if asked is not None:
        yield (
            f"This run asked a sample of {asked:,} questions: no published number is of the same "
            "ones, and none may be compared with it."
        )
    if view.forgetting:
        yield _FORGETTING
        return
    figures = (view.answers or {})["figures"]
    if missing := figures["all"].get("missing"):
        yield (
            f"{missing:,} questions have no grade. A number over the others is of other questions "
            "than the published ones."
        )
    for role, spec in _specs(identity):
        name, at, server = spec.partition("?")[0].partition("@")
        if at:
            yield f"The {role} {name!r} is whatever the server at {server} calls by that name."
    for spec, exam in view.exams.items():
        if "model=" in spec and not (exam and exam["passed"]):
            yield exam_line(exam, spec)


def _specs(identity: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every model's spec with what it did."""
    reader = identity.get("reader")
    if isinstance(reader, Mapping) and (spec := _model(reader)):
        yield "answering model", spec
    for role, name in (("judge", "judge's model"), ("appellate_judge", "appellate judge's model")):
        for own in _members(identity.get(role) or {}):
            if spec := _model(own):
                yield name, spec


def _members(judge: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(judge["panel"].values()) if "panel" in judge else [judge]


def _model(part: Mapping[str, Any]) -> str:
    """The spec of the model that a reader or a judge asks; empty where it asks none.

    Without a prompt nothing is asked: the extractive reader's model makes vectors.
    """
    asks = "prompt_sha256" in part or "prompts" in part
    return str(part["arguments"].get("model", "")) if asks else ""


def _reader(identity: Mapping[str, Any]) -> str:
    reader = identity.get("reader")
    if not isinstance(reader, Mapping):
        return "the system itself"
    return _bare(_model(reader)) or _RULE


def _judge(identity: Mapping[str, Any]) -> str:
    """The judge's model. Several judges are a judge of their own, which equals no single one."""
    names = [_bare(_model(own)) or _RULE for own in _members(identity.get("judge") or {})]
    appellate = identity.get("appellate_judge")
    second = [_bare(_model(appellate)) or _RULE] if appellate else []
    if {*names, *second} == {_RULE}:
        return _RULE
    said = names[0] if len(names) == 1 else f"panel of {' / '.join(names)}"
    return f"two instances: {said} / {second[0]}" if second else said


def _bare(spec: str) -> str:
    """A model's name without its provider, server and options."""
    name = re.sub(r"^(openai|anthropic|azure):", "", spec.partition("?")[0])
    return name.partition("@")[0]


def _placed(figure: Mapping[str, Any], conditions: Conditions) -> Placed:
    rows = [row for row in load() if row.benchmark.lower() == conditions.benchmark.lower()]
    cohort = cohort_of(_as_published(figure, conditions))
    key = figure.get("category")
    same = [row for row in rows if (row.category.id if row.category else None) == key]
    same = [row for row in same if not (row.category and row.category.id is None)]
    comparable = [row for row in same if cohort_of(row) == cohort]
    others = [(row, differences(cohort, cohort_of(row))) for row in same]
    others = [(row, why) for row, why in others if why]
    others.sort(key=lambda one: ("metric" in one[1], len(one[1]), one[0].system))
    return Placed(figure, cohort, comparable, others)


def _content(placed: Placed) -> dict[str, Any]:
    cohort = placed.cohort
    return {
        "run": dict(placed.figure),
        "cohort": {"id": cohort.id, "description": cohort.description},
        "comparable": [_plain(row) for row in placed.comparable],
        "not_comparable": [
            {**_plain(row), "cohort": cohort_of(row).id, "because": _because(row, why)}
            for row, why in placed.others
        ],
    }


def _as_published(figure: Mapping[str, Any], conditions: Conditions) -> Published:
    """The run's figure in the registry's terms, so that it gets a cohort by the same rules."""
    benchmark, answer_model, judge_model, metric, variant = conditions
    n, key = int(figure["n"]), figure.get("category")
    spelt = {row.benchmark.lower(): row.benchmark for row in load()}
    benchmark = spelt.get(benchmark.lower(), benchmark)
    if not variant:
        whole = "cats 1-4" if benchmark == "LoCoMo" and n == 1540 else "questions"
        variant = f"{whole} (n={n})"
    return Published(
        collection="survey",
        system=str(figure["system"]),
        benchmark=benchmark,
        variant=variant,
        metric=metric,
        value=float(figure["value"]),
        unit="fraction",
        as_printed=Printed(metric, str(figure["value"]), "fraction"),
        category=Category("", "named", key, NAMES[key]) if key else None,
        n=n,
        answer_model=answer_model,
        judge_model=judge_model,
        source="this run",
        source_basis="stated",
        reported_by="this run",
    )


def _section(placed: Placed, most: int, conditions: Conditions) -> list[str]:
    figure, cohort, comparable, others = placed
    interval = figure.get("ci95")
    told = f"[{interval[0]:.4f}, {interval[1]:.4f}]" if interval else "--"
    lines = [
        (
            figure["value"],
            [f"**{figure['system']}**", f"**{figure['value']:.4f}**", told, "this run", ""],
        )
    ]
    lines += [
        (row.value, [_named(row), number(row), "--", row.reported_by, row.source])
        for row in comparable
    ]
    lines.sort(key=lambda line: -line[0])
    head = ["system", "value", "95 % interval", "reported by", "source"]
    sections = [
        f"### {_described(cohort)} ({cohort.id})",
        markdown_table(head, [line for _, line in lines]),
    ]
    if not comparable:
        sections.append("Nobody published a number of this cohort that is in the registry.")
    if others:
        shown = [
            [
                _named(row),
                number(row),
                cohort_of(row).id,
                _because(row, why),
                row.reported_by,
                row.source,
            ]
            for row, why in others[:most]
        ]
        head = ["system", "value", "cohort", "not comparable, because", "reported by", "source"]
        sections += [
            "Not comparable, because a condition differs or is not stated:",
            markdown_table(head, shown),
        ]
        if len(others) > most:
            listing = f"mnemoscope published list --benchmark {cohort.benchmark}"
            if all("metric" not in why for _, why in others):
                listing += f" --metric {conditions.metric}"
            listing += "" if figure.get("category") else " --category all"
            left = len(others) - most
            sections.append(f"{left:,} more are in the JSON. `{listing}` shows them.")
    return sections


def _described(cohort: Cohort) -> str:
    """Its description; of a model that the registry does not know this run knows which it was."""
    said = cohort.description.replace(", not told which", "")
    return said.replace(f"answers: {_RULE}", "answers: without a model")


def _because(row: Published, why: Mapping[str, tuple[str, str]]) -> str:
    said = []
    for trait, (_, theirs) in why.items():
        # Word overlap has no judge, but its rule has variants: articles, stems, parts of lists.
        by_rule = trait == "judge_model" and row.metric == "token_f1" and theirs == UNSTATED
        said.append(f"{'scoring rule' if by_rule else TRAITS[trait]}: {theirs}")
    return "; ".join(said)


def _named(row: Published) -> str:
    marks = ["retracted"] * row.retracted + ["no citation"] * (not row.cited)
    return row.system + (f" ({', '.join(marks)})" if marks else "")


def _plain(row: Published) -> dict[str, Any]:
    return {
        "system": row.system,
        "metric": row.metric,
        "value": row.value,
        "unit": row.unit,
        "n": row.n,
        "answer_model": row.answer_model,
        "judge_model": row.judge_model,
        "reported_by": row.reported_by,
        "source": row.source,
        "retracted": row.retracted,
        "cited": row.cited,
    }
