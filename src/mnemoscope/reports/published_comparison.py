"""A run beside what others published: its cohort in one table, the rest with the reason why not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from mnemoscope.published.arithmetic_audit import NAMES
from mnemoscope.published.cohorts import TRAITS, UNSTATED, Cohort, cohort_of, differences
from mnemoscope.published.published_results import Category, Printed, Published, load, number
from mnemoscope.reports.answer_tables import exam_line
from mnemoscope.reports.run_view import Figures, RunView
from mnemoscope.reports.tables import (
    MISSING,
    Block,
    Heading,
    NoteList,
    Paragraph,
    brackets,
    document_table,
)

WARNING = (
    "Quoted from others, verified by nobody here. One cohort means that no stated condition "
    "differs; prompts of the answering model and of the judge are seldom stated, and differ."
)
_METRICS = {"accuracy": "accuracy_llm_judge", "f1": "token_f1"}
"""What the registry calls a run's measure."""
_SPLITS = {"s": "S cleaned", "m": "M cleaned", "oracle": "oracle"}
"""LongMemEval's variants as the registry has them; the loader reads the cleaned files."""
_FIELDS = (
    "system metric value unit n answer_model judge_model reported_by source retracted cited".split()
)
"""What published.json has of each number."""
_RULE = "rule"
_SHOWN = 15
"""Numbers that may not be compared in a run's report."""
_FORGETTING = (
    "The two figures that came with the Nexus harness are the only ones here; which models, which "
    "forget set and which training they are of is not stated. They are of models that unlearn, "
    "this run is of a memory that deletes. After forgetting, low is good for `forget_rouge`."
)


class PublishedPage(NamedTuple):
    """One content twice: for people and for programs."""

    blocks: list[Block]
    json: dict[str, Any]


class RunFigure(msgspec.Struct, frozen=True, omit_defaults=True):
    """A figure of a run, to be set beside published ones."""

    system: str
    value: float
    """A fraction."""
    n: int
    ci95: Sequence[float] | None
    category: int | None = None
    """LoCoMo's integer; None for the overall."""


class Conditions(NamedTuple):
    """How a figure came about, in the registry's words."""

    benchmark: str
    """Upper and lower case are one."""
    answer_model: str
    """`none` for retrieval alone."""
    judge_model: str
    """`none` or `rule` where no model judged."""
    metric: str
    """`accuracy_llm_judge`, `recall_any@10`."""
    variant: str = ""
    """The questions: `S (n=500)`. LoCoMo's are known by n."""


class _Placed(NamedTuple):
    """A figure of a run among the published ones."""

    figure: RunFigure
    cohort: Cohort
    comparable: list[Published]
    others: list[tuple[Published, dict[str, tuple[str, str]]]]


def of_run(view: RunView) -> PublishedPage | None:
    """What a run's report says beside its numbers; None where there is no such published number.

    The Markdown has the overall alone and few of the numbers that may not be compared; the JSON has
    LoCoMo's categories too, and all.
    """
    if view.is_baseline or view.longitudinal or not (view.forgetting or view.answers):
        return None
    told = list(_forgotten(view) if view.forgetting else _answered(view))
    return page(told, list(_notes(view))) if told else None


def page(
    told: Sequence[tuple[RunFigure, Conditions]], notes: Sequence[str] = (), most: int = _SHOWN
) -> PublishedPage:
    """Figures beside the published numbers of their cohorts; `most` others are shown of each."""
    blocks: list[Block] = [Heading("Beside published numbers"), Paragraph(WARNING)]
    blocks += [NoteList(notes)] if notes else []
    content = []
    for figure, conditions in told:
        placed = _placed(figure, conditions)
        content.append(
            {
                "run": msgspec.to_builtins(figure),
                "cohort": {"id": placed.cohort.id, "description": placed.cohort.description},
                "comparable": [_plain(row) for row in placed.comparable],
                "not_comparable": [
                    {**_plain(row), "cohort": cohort_of(row).id, "because": _because(row, why)}
                    for row, why in placed.others
                ],
            }
        )
        if figure.category is None:
            alike = [other for other in placed.others if "metric" not in other[1]]
            blocks += _section(placed._replace(others=alike), most, conditions)
    if any(figure.category for figure, _ in told):
        said = "Each category stands beside the published ones in published.json."
        blocks.append(Paragraph(said))
    return PublishedPage(blocks, {"warning": WARNING, "notes": list(notes), "figures": content})


def _answered(view: RunView) -> Iterator[tuple[RunFigure, Conditions]]:
    """The overall and LoCoMo's categories, where the answers were measured as others do."""
    about = view.manifest.identity["benchmark"]
    figures: Figures = view.answers["figures"] if view.answers else {}
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
                yield _figure(view, part, int(key)), Conditions(*asked)
    elif about["name"] == "longmemeval" and figures["all"]["mean"] is not None:
        overall = figures["all"]  # the official accuracy counts abstentions among the rest
        split = "sample" if sampled else _SPLITS[about["options"]["variant"]]
        yield _figure(view, overall), Conditions(*asked, f"{split} (n={overall['n']})")


def _forgotten(view: RunView) -> Iterator[tuple[RunFigure, Conditions]]:
    """Mean ROUGE-L after forgetting, of what was to go and of what was to stay."""
    score: Figures | None = view.forgetting["score"] if view.forgetting else None
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


def _figure(view: RunView, own: Figures, category: int | None = None) -> RunFigure:
    return RunFigure(view.label, own["mean"], own["n"], own["ci95"], category)


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
    figures: Figures = view.answers["figures"] if view.answers else {}
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


def _specs(identity: Figures) -> Iterator[tuple[str, str]]:
    """Every model's spec with what it did."""
    reader = identity.get("reader")
    if isinstance(reader, Mapping) and (spec := _model(reader)):
        yield "answering model", spec
    for role, name in (("judge", "judge's model"), ("appellate_judge", "appellate judge's model")):
        for own in _members(identity.get(role) or {}):
            if spec := _model(own):
                yield name, spec


def _members(judge: Figures) -> list[Figures]:
    return list(judge["panel"].values()) if "panel" in judge else [judge]


def _model(part: Figures) -> str:
    """The spec of the model that a reader or a judge asks; empty where it asks none.

    Without a prompt nothing is asked: the extractive reader's model makes vectors.
    """
    asks = "prompt_sha256" in part or "prompts" in part
    return str(part["arguments"].get("model", "")) if asks else ""


def _reader(identity: Figures) -> str:
    reader = identity.get("reader")
    if not isinstance(reader, Mapping):
        return "the system itself"
    return _bare(_model(reader)) or _RULE


def _judge(identity: Figures) -> str:
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


def _placed(figure: RunFigure, conditions: Conditions) -> _Placed:
    rows = [row for row in load() if row.benchmark.lower() == conditions.benchmark.lower()]
    cohort = cohort_of(_as_published(figure, conditions))
    same = [row for row in rows if (row.category.id if row.category else None) == figure.category]
    same = [row for row in same if not (row.category and row.category.id is None)]
    comparable = [row for row in same if cohort_of(row) == cohort]
    others = [(row, differences(cohort, cohort_of(row))) for row in same]
    others = [(row, why) for row, why in others if why]
    others.sort(key=lambda one: ("metric" in one[1], len(one[1]), one[0].system))
    return _Placed(figure, cohort, comparable, others)


def _as_published(figure: RunFigure, conditions: Conditions) -> Published:
    """The run's figure in the registry's terms, so that it gets a cohort by the same rules."""
    benchmark, answer_model, judge_model, metric, variant = conditions
    n, key = figure.n, figure.category
    spelt = {row.benchmark.lower(): row.benchmark for row in load()}
    benchmark = spelt.get(benchmark.lower(), benchmark)
    if not variant:
        whole = "cats 1-4" if benchmark == "LoCoMo" and n == 1540 else "questions"
        variant = f"{whole} (n={n})"
    return Published(
        collection="survey",
        system=figure.system,
        benchmark=benchmark,
        variant=variant,
        metric=metric,
        value=figure.value,
        unit="fraction",
        as_printed=Printed(metric, str(figure.value), "fraction"),
        category=Category("", "named", key, NAMES[key]) if key else None,
        n=n,
        answer_model=answer_model,
        judge_model=judge_model,
        source="this run",
        source_basis="stated",
        reported_by="this run",
    )


def _section(placed: _Placed, most: int, conditions: Conditions) -> list[Block]:
    figure, cohort, comparable, others = placed
    own = [f"**{figure.system}**", f"**{figure.value:.4f}**", brackets(figure.ci95) or MISSING]
    lines = [(figure.value, [*own, "this run", ""])]
    lines += [
        (row.value, [_named(row), number(row), MISSING, row.reported_by, row.source])
        for row in comparable
    ]
    lines.sort(key=lambda line: -line[0])
    # Of a model that the registry does not know, this run knows which it was.
    described = cohort.description.replace(", not told which", "")
    described = described.replace(f"answers: {_RULE}", "answers: without a model")
    head = ["system", "value", "95 % interval", "reported by", "source"]
    blocks: list[Block] = [
        Heading(f"{described} ({cohort.id})", 3),
        document_table(head, [line for _, line in lines]),
    ]
    if not comparable:
        said = "Nobody published a number of this cohort that is in the registry."
        blocks.append(Paragraph(said))
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
        said = "Not comparable, because a condition differs or is not stated:"
        blocks += [Paragraph(said), document_table(head, shown)]
    if len(others) > most:
        listing = f"mnemoscope published list --benchmark {cohort.benchmark}"
        if all("metric" not in why for _, why in others):
            listing += f" --metric {conditions.metric}"
        listing += "" if figure.category else " --category all"
        left = len(others) - most
        blocks.append(Paragraph(f"{left:,} more are in the JSON. `{listing}` shows them."))
    return blocks


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
    return {name: getattr(row, name) for name in _FIELDS}
