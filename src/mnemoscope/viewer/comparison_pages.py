"""Two runs side by side: the verdict, gained and lost questions, and one question in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from mnemoscope.analysis.comparison import OVERALL, Discordant, Row
from mnemoscope.analysis.question_details import (
    JudgeMark,
    QuestionDetails,
    RecalledHit,
    SourceMemory,
)
from mnemoscope.reports.comparison_tables import p_value, remarks
from mnemoscope.reports.run_view import RunView
from mnemoscope.reports.shown_question import category_name
from mnemoscope.reports.tables import MISSING, decimal
from mnemoscope.results import ComparisonResult, QuestionRow
from mnemoscope.viewer.html_elements import (
    NOTHING,
    Child,
    Html,
    el,
    facts,
    foreign,
    row,
    table,
    url,
)
from mnemoscope.viewer.run_folder import ViewedRun
from mnemoscope.viewer.system_pages import verdict_mark

BY_ANSWERS = "answers"
_HITS = 10
"""Hits that are shown of a question, besides later ones that count."""
_MEMORY = 200
_LISTED = 500
"""Gained and lost questions that are listed of each."""


class ChangedQuestions(NamedTuple):
    """Which questions are gained and lost, by which measure."""

    by: str
    choices: Sequence[str]
    """The measures to choose from."""
    questions: Sequence[Discordant]
    problem: str = ""


def changed_by(views: Sequence[RunView]) -> list[str]:
    """The measures by which a question can be gained or lost.

    Answers gained less answers lost are a difference of accuracies, so a judge without a passed
    exam has no such list.
    """
    names = [
        name
        for name in views[0].metrics["overall"]
        if name.startswith(("hit@", "all@"))
        and all(name in one.metrics["overall"] for one in views)
    ]
    judged = all(
        "judge" in one.manifest.identity and "withheld" not in (one.answers or {}) for one in views
    )
    return [*names, *([BY_ANSWERS] if judged else [])]


def answer_changes(base: Sequence[QuestionRow], cand: Sequence[QuestionRow]) -> list[Discordant]:
    """The questions whose answer one run has right and the other wrong, at the last checkpoint."""
    last = base[-1].checkpoint if base else ""
    before = {one.question: one for one in base if one.checkpoint == last}
    found = []
    for after in cand:
        one = before.get(after.question)
        if after.checkpoint != last or one is None or None in (one.verdict, after.verdict):
            continue
        if bool(one.failure) != bool(after.failure):
            change: Literal["gained", "lost"] = "gained" if one.failure else "lost"
            found.append(Discordant(one.question, one.category, one.text, change))
    return found


def comparison_content(
    base: ViewedRun, cand: ViewedRun, result: ComparisonResult, changed: ChangedQuestions
) -> list[Html]:
    """The answer in one sentence, the metrics, then gained and lost questions."""
    found = result.paired
    parts = [
        el("p", foreign(result.answer), class_="answer"),
        el(
            "p",
            el(
                "a", "Exchange base and candidate", href=url("/compare", base=cand.id, cand=base.id)
            ),
            class_="controls",
        ),
    ]
    if found is not None:
        overall = [one for one in found.rows if one.scope == OVERALL]
        parts.append(_metrics(overall, "Metrics over all questions", scope=False))
        told = [*remarks(found, overall), *found.notes]
        if told:
            parts.append(el("ul", [el("li", foreign(line)) for line in told]))
    parts += _changed(base, cand, changed, result)
    if found is not None:
        primary = found.primary.metric if found.primary else ""
        own = [one for one in found.rows if one.scope != OVERALL and one.metric == primary]
        if own:
            names = result.category_names
            parts.append(el("h2", "By category"))
            title = f"{primary} by category: exploration, without verdicts"
            parts.append(_metrics(own, title, scope=True, names=names))
    return parts


def _metrics(
    rows: Sequence[Row],
    caption: str,
    *,
    scope: bool,
    names: Mapping[str, str] = {},
) -> Html:
    head = ["Category" if scope else "Metric", *([] if scope else ["Verdict", "Role"])]
    head += ["n", "Base", "Candidate", "Difference [interval]", "p"]
    drawn = []
    for one in rows:
        low, high = one.shown
        name = one.scope if scope else one.metric
        drawn.append(
            row(
                foreign(f"{name} {names[name]}" if name in names else name, 100),
                *([] if scope else [el("td", verdict_mark(one)), el("td", one.role)]),
                f"{one.n:,}",
                decimal(one.base),
                decimal(one.cand),
                f"{one.delta:+.4f} [{low:+.4f}, {high:+.4f}]",
                p_value(one.p),
                numbers=5,
            )
        )
    return table(head, drawn, caption=caption, numbers=5)


def _changed(
    base: ViewedRun, cand: ViewedRun, changed: ChangedQuestions, result: ComparisonResult
) -> list[Html]:
    options = [
        el("option", one, value=one, selected=one == changed.by or None) for one in changed.choices
    ]
    parts = [
        el("h2", "Gained and lost questions"),
        el(
            "form",
            el("input", type="hidden", name="base", value=base.id),
            el("input", type="hidden", name="cand", value=cand.id),
            el("label", "Measure", for_="by"),
            el("select", options, name="by", id="by"),
            el("button", "List"),
            el("label", "Filter", for_="filter"),
            el("input", id="filter", type="search", data_filter="details[data-text]"),
            el("output", id="filter-count", for_="filter", role="status"),
            method="get",
            action="/compare",
            class_="controls",
        ),
    ]
    if changed.problem:
        return [*parts, el("p", foreign(changed.problem), class_="problem")]
    for change in ("gained", "lost"):
        own = [one for one in changed.questions if one.change == change]
        whose = (
            "the candidate has it, the base does not"
            if change == "gained"
            else ("the base has it, the candidate does not")
        )
        more = f", {_LISTED} shown" if len(own) > _LISTED else ""
        parts.append(el("h3", f"{change.capitalize()}: {len(own):,}{more}"))
        parts.append(el("p", f"{changed.by}: {whose}", class_="dim"))
        parts += [_item(one, base, cand, result) for one in own[:_LISTED]]
    return parts


def _item(one: Discordant, base: ViewedRun, cand: ViewedRun, result: ComparisonResult) -> Html:
    place = url("/question", base=base.id, cand=cand.id, id=one.question)
    category = result.category_names.get(one.category, one.category)
    return el(
        "details",
        el(
            "summary",
            el("span", one.change, class_=f"change {one.change}"),
            " ",
            el("code", foreign(one.question, 80)),
            " ",
            foreign(category, 40),
            " ",
            foreign(one.text, 160),
        ),
        el("p", el("a", "Open on its own page", href=place)),
        data_text=f"{one.question} {category} {one.text[:500]}".lower(),
        data_src=f"{place}&fragment=1",
    )


def question_content(
    base: ViewedRun,
    cand: ViewedRun,
    found: tuple[QuestionDetails | None, QuestionDetails | None],
) -> Html:
    """One question: its evidence, then both systems' hits, answers and verdicts."""
    known = next((one for one in found if one is not None), None)
    if known is None:
        return el("p", "Neither run asked this question.")
    about: list[tuple[str, Child]] = [("Question", foreign(known.text))]
    if known.reference:
        about.append(("Reference", foreign(known.reference)))
    if known.category:
        names = base.manifest.category_names if base.manifest else {}
        about.append(("Category", foreign(category_name(known.category, names), 80)))
    ranks = [{item.id: item.rank for item in one.evidence} if one else {} for one in found]
    evidence = [
        row(
            el("code", foreign(item.id, 80)),
            _memory(item.memory, None),
            *(str(own.get(item.id) or MISSING) for own in ranks),
            numbers=2,
        )
        for item in known.evidence
    ]
    head = ["Evidence", "Text", f"Rank: {base.name}", f"Rank: {cand.name}"]
    return el(
        "div",
        facts(about),
        table(head, evidence, caption="Evidence", numbers=2) if evidence else NOTHING,
        el(
            "div",
            [
                _side(run, one, word)
                for run, one, word in zip((base, cand), found, ("Base", "Candidate"), strict=True)
            ],
            class_="sides",
        ),
    )


def _side(run: ViewedRun, details: QuestionDetails | None, word: str) -> Html:
    title = el("h3", f"{word}: ", foreign(run.name, 120))
    if details is None:
        return el("section", title, el("p", "This run did not ask the question."))
    found = f"evidence {details.found} in the top {details.k}" if details.found else ""
    status = " · ".join(filter(None, [details.status, found, details.failure]))
    parts = [el("p", status)]
    if details.error:
        parts.append(el("p", foreign(details.error), class_="problem"))
    shown = [hit for hit in details.hits if hit.rank <= _HITS or hit.credited or hit.claimed]
    has_scores = any(hit.score is not None for hit in shown)
    if shown:
        head = ["Rank", *(["Score"] if has_scores else []), "Hit", "Memory"]
        caption = f"{len(shown)} of {details.returned:,} hits"
        parts.append(table(head, [_hit(hit, has_scores) for hit in shown], caption=caption))
    else:
        parts.append(el("p", "No hits."))
    if details.answer is not None:
        parts += [el("h4", "Answer"), foreign(details.answer.text or MISSING, element="p")]
    if (verdict := details.verdict) is not None:
        parts += _verdict("First judge", verdict.primary)
        parts += _verdict("Verdict", verdict.final)
        if verdict.final is None:
            parts.append(el("p", "unjudged: ", foreign(verdict.error), class_="problem"))
    return el("section", title, parts)


def _hit(hit: RecalledHit, has_scores: bool) -> Html:
    score = [el("td", MISSING if hit.score is None else f"{hit.score:.4g}", class_="num")]
    named = hit.credited if hit.credited and hit.credited != (hit.id,) else hit.claimed
    about = f" for {', '.join(named)}" if named else ""
    return el(
        "tr",
        el("td", str(hit.rank), class_="num"),
        score if has_scores else None,
        el("td", el("span", hit.kind, class_=f"kind {hit.kind}"), foreign(about, 200)),
        el("td", el("code", foreign(hit.id, 80)), " ", _memory(hit.memory, hit.text)),
    )


def _memory(memory: SourceMemory | None, own: str | None) -> Html:
    if own is not None:
        return foreign(own, _MEMORY)
    if memory is None:
        return el("span", class_="text")
    about = [f"{memory.at:%Y-%m-%d}" if memory.at else "", memory.speaker]
    return foreign(": ".join(filter(None, [" ".join(filter(None, about)), memory.text])), _MEMORY)


def _verdict(name: str, mark: JudgeMark | None) -> list[Html]:
    if mark is None:
        return []
    word = "right" if mark.passed else "wrong"
    rubric = "".join(f" · {key} {value}" for key, value in mark.rubric.items())
    parts = [
        el("h4", name),
        el("p", el("span", word, class_=f"kind {word}"), f" {mark.value:.3g}{rubric}"),
    ]
    return [*parts, foreign(mark.reasoning, element="p")] if mark.reasoning else parts
