"""A run beside published numbers: those of its cohort, and why the others are not comparable."""

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
    Markup,
    NoteList,
    Paragraph,
    brackets,
    document_table,
)
from mnemoscope.text.display import as_code, as_markdown

WARNING = (
    "Quoted from others, not verified by us. In one cohort no stated condition differs. Prompts of "
    "the answering model and of the judge are seldom stated, and they differ."
)
_METRICS = {"accuracy": "accuracy_llm_judge", "f1": "token_f1"}
"""A run's measure to its name in the registry."""
_SPLITS = {"s": "S cleaned", "m": "M cleaned", "oracle": "oracle"}
"""LongMemEval's variants to their names in the registry; the loader reads the cleaned files."""
_FIELDS = (
    "system metric value unit n answer_model judge_model reported_by source retracted cited".split()
)
"""The fields of each number in published.json."""
_RULE = "rule"
_SHOWN = 15
"""The most numbers in a run's report that may not be compared."""
_FORGETTING = Markup(
    "The only published figures here are the two of the Nexus harness. It does not state the "
    "models, the forget set or the training. They measure models that unlearn; this run measures "
    "a memory that deletes. For `forget_rouge`, lower is better."
)


class PublishedPage(NamedTuple):
    """The same content for report.md and for published.json."""

    blocks: list[Block]
    json: dict[str, Any]


class RunFigure(msgspec.Struct, frozen=True, omit_defaults=True):
    """A figure of a run, to compare with published ones."""

    system: str
    value: float
    """A fraction."""
    n: int
    ci95: Sequence[float] | None
    category: int | None = None
    """LoCoMo's integer; None for the overall."""


class Conditions(NamedTuple):
    """The conditions of a figure, in the registry's terms."""

    benchmark: str
    """Case does not matter."""
    answer_model: str
    """`none` for retrieval alone."""
    judge_model: str
    """`none` or `rule` if no model judged."""
    metric: str
    """`accuracy_llm_judge`, `recall_any@10`."""
    variant: str = ""
    """The questions: `S (n=500)`. For LoCoMo, n identifies them."""


class _Placed(NamedTuple):
    """A figure of a run among the published ones."""

    figure: RunFigure
    cohort: Cohort
    comparable: list[Published]
    others: list[tuple[Published, dict[str, tuple[str, str]]]]


def of_run(view: RunView) -> PublishedPage | None:
    """The published numbers to set beside a run's figures; None if there are none.

    The Markdown shows the overall figure and a few of the numbers that may not be compared; the
    JSON has all of them, and LoCoMo's categories.
    """
    if view.is_baseline or view.longitudinal or not (view.forgetting or view.answers):
        return None
    figures = list(_forgotten(view) if view.forgetting else _answered(view))
    return page(figures, list(_notes(view))) if figures else None


def page(
    figures: Sequence[tuple[RunFigure, Conditions]], notes: Sequence[str] = (), most: int = _SHOWN
) -> PublishedPage:
    """Figures beside the published numbers of their cohorts, and `most` of the other numbers."""
    blocks: list[Block] = [Heading("Beside published numbers"), Paragraph(WARNING)]
    blocks += [NoteList(notes)] if notes else []
    content = []
    for figure, conditions in figures:
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
    if any(figure.category for figure, _ in figures):
        note = "published.json has the same comparison for each category."
        blocks.append(Paragraph(note))
    return PublishedPage(
        blocks, {"warning": WARNING, "notes": list(map(str, notes)), "figures": content}
    )


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
    """Mean ROUGE-L after forgetting, of the texts to be forgotten and of those to be kept."""
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
    """Caveats that limit the comparison of this run."""
    identity = view.manifest.identity
    asked = identity["benchmark"]["options"].get("questions")
    if asked is not None:
        yield (
            f"This run asked a sample of {asked:,} questions. The published numbers are for other "
            "questions and must not be compared with it."
        )
    if view.forgetting:
        yield _FORGETTING
        return
    figures: Figures = view.answers["figures"] if view.answers else {}
    if missing := figures["all"].get("missing"):
        yield (
            f"{missing:,} questions have no grade, so the figure covers fewer questions than the "
            "published ones."
        )
    for role, spec in _specs(identity):
        name, at, server = spec.partition("?")[0].partition("@")
        if at:
            yield f"The {role} {name!r} is a name of the server at {server}; the model may differ."
    for spec, exam in view.exams.items():
        if "model=" in spec and not (exam and exam["passed"]):
            yield exam_line(exam, spec)


def _specs(identity: Figures) -> Iterator[tuple[str, str]]:
    """The role and the spec of each model."""
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
    """The spec of the chat model of a reader or a judge; empty if it has none.

    Without a prompt there is no chat model: the extractive reader's model makes vectors.
    """
    asks = "prompt_sha256" in part or "prompts" in part
    return str(part["arguments"].get("model", "")) if asks else ""


def _reader(identity: Figures) -> str:
    reader = identity.get("reader")
    if not isinstance(reader, Mapping):
        return "the system itself"
    return _bare(_model(reader)) or _RULE


def _judge(identity: Figures) -> str:
    """The judge's model; a panel is a separate judge that differs from each of its members."""
    names = [_bare(_model(own)) or _RULE for own in _members(identity.get("judge") or {})]
    appellate = identity.get("appellate_judge")
    second = [_bare(_model(appellate)) or _RULE] if appellate else []
    if {*names, *second} == {_RULE}:
        return _RULE
    first = names[0] if len(names) == 1 else f"panel of {' / '.join(names)}"
    return f"two instances: {first} / {second[0]}" if second else first


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
    """The run's figure as a registry row, so that the same rules give its cohort."""
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
    name = Markup(f"**{as_markdown(figure.system)}**")
    own = [name, Markup(f"**{figure.value:.4f}**"), brackets(figure.ci95) or MISSING]
    lines = [(figure.value, [*own, "this run", ""])]
    lines += [
        (row.value, [_named(row), number(row), MISSING, row.reported_by, row.source])
        for row in comparable
    ]
    lines.sort(key=lambda line: -line[0])
    # The run knows its model even if the registry does not.
    described = cohort.description.replace(", not told which", "")
    described = described.replace(f"answers: {_RULE}", "answers: without a model")
    head = ["system", "value", "95 % interval", "reported by", "source"]
    blocks: list[Block] = [
        Heading(f"{described} ({cohort.id})", 3),
        document_table(head, [line for _, line in lines]),
    ]
    if not comparable:
        blocks.append(Paragraph("The registry contains no published number of this cohort."))
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
        head = ["system", "value", "cohort", "condition", "reported by", "source"]
        caption = "Not comparable, because a condition differs or is not stated:"
        blocks += [Paragraph(caption), document_table(head, shown)]
    if len(others) > most:
        listing = f"mnemoscope published list --benchmark {cohort.benchmark}"
        if all("metric" not in why for _, why in others):
            listing += f" --metric {conditions.metric}"
        listing += "" if figure.category else " --category all"
        note = f"published.json has {len(others) - most:,} more. {as_code(listing)} lists them."
        blocks.append(Paragraph(Markup(note)))
    return blocks


def _because(row: Published, why: Mapping[str, tuple[str, str]]) -> str:
    reasons = []
    for trait, (_, theirs) in why.items():
        # Word overlap has no judge, but its rule has variants: articles, stems, parts of lists.
        by_rule = trait == "judge_model" and row.metric == "token_f1" and theirs == UNSTATED
        reasons.append(f"{'scoring rule' if by_rule else TRAITS[trait]}: {theirs}")
    return "; ".join(reasons)


def _named(row: Published) -> str:
    marks = ["retracted"] * row.retracted + ["no citation"] * (not row.cited)
    return row.system + (f" ({', '.join(marks)})" if marks else "")


def _plain(row: Published) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _FIELDS}
