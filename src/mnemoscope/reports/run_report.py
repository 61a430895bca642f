"""Write report.md and report.html of a run, and summary.md of several runs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from mnemoscope._store.attempt_ledger import write_vouched
from mnemoscope._store.errors import EditedRun
from mnemoscope._store.jsonl import encode_json
from mnemoscope._store.run_directory import RunDirectory, find_runs
from mnemoscope.analysis.answers import headline_of as headline_of_answers
from mnemoscope.analysis.costs import Costs
from mnemoscope.analysis.estimates import Estimate
from mnemoscope.analysis.measure import Figure
from mnemoscope.analysis.question_details import DatasetTexts
from mnemoscope.analysis.read_questions import question_details
from mnemoscope.analysis.repeats import REPEATS, RepeatSet, repeats_content
from mnemoscope.analysis.system_groups import SystemGroups
from mnemoscope.analysis.verify import recorded_gates
from mnemoscope.reports import (
    answer_tables,
    change_tables,
    disclosure_tables,
    forgetting_tables,
    longitudinal_report,
    published_comparison,
)
from mnemoscope.reports.ageing_tables import ageing_overview, ageing_sections
from mnemoscope.reports.group_tables import legend
from mnemoscope.reports.group_tables import notes as group_notes
from mnemoscope.reports.page_data import HITS, REPORT_PAGE
from mnemoscope.reports.render_markdown import render
from mnemoscope.reports.repeat_tables import repeat_blocks
from mnemoscope.reports.report_page import report_page
from mnemoscope.reports.run_tables import credit_blocks, overview, personas_named
from mnemoscope.reports.run_view import (
    Figures,
    RunView,
    as_content,
    caveats,
    groups_of,
    headline,
    no_better_than_no_memory,
)
from mnemoscope.reports.tables import (
    MISSING,
    Block,
    Cell,
    Cells,
    Heading,
    Markup,
    NoteList,
    Paragraph,
    brackets,
    decimal,
    document_table,
    interval_cell,
    with_interval,
)
from mnemoscope.text.display import as_code

_log = logging.getLogger(__name__)
_CAVEATS = Heading("Caveats")
_LEGEND = (
    "Chance: the expected score of a random ranking. Lift: mean minus chance. Ceiling: the best "
    "possible score."
)
_REMARKS = {
    "vacuous": "Not informative: a random ranking scores high, or k is not smaller than the pool.",
    "bounds": "Bounds: the mean with unmeasured questions counted as wrong, and without them.",
}
_INGESTION = {
    "scenarios_failed": "scenarios failed",
    "evidence_reached": "share of the evidence that reached the index",
    "evidence_unreachable": "evidence ids that are in none of the scenarios",
}
_AGEING = "ageing.png"
_PICTURES = {"heatmap.png": "heatmap", "hallucination.png": "recall against hallucination"}


def write_report(
    run: RunDirectory,
    *,
    png: bool = True,
    repeats: Sequence[RepeatSet] = (),
    texts: DatasetTexts | None = None,
) -> None:
    """Write report.md and report.html, pictures of judged checkpoints, and published.json.

    `repeats` are the declared sets of its folder; the report of a repeat shows its own. `texts` are
    those of the memories, for report.html; without them it has their ids.
    """
    view = RunView.of(run)
    pictures: dict[str, bytes | None] = {}
    if png and view.longitudinal and view.judged:
        from mnemoscope.reports.figures import ageing_png, heatmap_png, scatter_png

        title = f"{view.label} on {personas_named(view)}"
        pictures["heatmap.png"] = heatmap_png(view.longitudinal, title=title)
        pictures["hallucination.png"] = scatter_png(view.longitudinal, title=title)
        pictures[_AGEING] = ageing_png(view.longitudinal, title=title)
        run.write_files(pictures)  # the report shows those that exist
    published = published_comparison.of_run(view)
    own = [one for one in repeats if any(run.label == each.label for each in one.runs)]
    blocks, journal = published.blocks if published else (), list(run.journal())
    page = report_page(
        view,
        report(view, blocks, own, is_wide=True),
        question_details(run, texts, depth=HITS, journal=journal),
        recorded_gates(run, journal),
    )
    contents = {
        "report.md": f"{render(report(view, blocks, own))}\n".encode(),
        "published.json": encode_json(published.json) if published else None,
        REPORT_PAGE: page,
    }
    run.write_files(contents)


def write_summary(
    folder: Path, views: Sequence[RunView], repeats: Sequence[RepeatSet] = ()
) -> None:
    """Write summary.md and summary.json of these runs and earlier ones of the same benchmark.

    If there are declared sets of repeats, repeats.json contains them.
    """
    shown = {view.label: view for view in views}
    for run in find_runs(folder):
        if run.label in shown:
            continue
        try:
            manifest = run.manifest()
        except EditedRun as error:
            _log.warning("%s; the run is left out of %s", error, folder / "summary.md")
            continue
        same = manifest.identity["benchmark"] == views[0].manifest.identity["benchmark"]
        if same and manifest.state == "complete":
            shown.setdefault(run.label, RunView.of(run))
    views = sorted(shown.values(), key=lambda view: view.is_baseline)
    notes = [f"{view.label}: {line}" for view in views for line in caveats(view, views)]
    answered = [view for view in views if view.answers and not view.longitudinal]
    if answered:
        notes += no_better_than_no_memory(views)
        sheets = [(view.label, view.answers) for view in answered if view.answers]
        notes += [f"{label}: {why}" for label, one in sheets if (why := one.get("withheld"))]
    models = [lines for view in views if (lines := view.reader_and_judge)]
    measured = f"{views[0].metrics['questions']['scorable']:,} questions with evidence. "
    groups = groups_of(views)
    notes += group_notes(groups)
    of_rankings = None if disclosure_tables.grouped_by_right(groups) else groups
    blocks: list[Block] = [
        Heading(views[0].benchmark, 1),
        Paragraph(measured + "Mean [95 % interval]."),
        *map(Paragraph, dict.fromkeys("; ".join(lines) + "." for lines in models)),
        overview(views, of_rankings),
        *([Paragraph(legend(of_rankings))] if isinstance(of_rankings, SystemGroups) else []),
        *credit_blocks(views),
        *(_answered(answered) if answered else []),
    ]
    blocks += disclosure_tables.systems_tables(views, groups)
    for view in views:
        if view.forgetting:
            forgotten = forgetting_tables.report_sections(view.forgetting)
            blocks += [Heading(view.label), Paragraph("Forgetting"), *forgotten[1:]]
    blocks += change_tables.systems_tables(views)
    if judged := [view for view in views if view.longitudinal and view.judged]:
        blocks += [Heading("At the last checkpoint"), longitudinal_report.last_overalls(judged)]
    blocks += ageing_overview(views)
    blocks += repeat_blocks(repeats)
    blocks += [_CAVEATS, NoteList(notes)] if notes else []
    summary = f"{render(blocks)}\n".encode()
    contents = {"summary.md": summary, "summary.json": encode_json(as_content(views))}
    if repeats:
        contents[REPEATS] = encode_json(repeats_content(repeats))
    write_vouched(folder, contents)


def report(
    view: RunView,
    published: Sequence[Block] = (),
    repeats: Sequence[RepeatSet] = (),
    *,
    is_wide: bool = False,
) -> list[Block]:
    """The blocks of report.md, or of report.html, which is wide.

    `published` is the section on published numbers.
    """
    metrics, manifest, points = view.metrics, view.manifest, view.longitudinal
    questions, about = metrics["questions"], manifest.identity["benchmark"]
    coverage = questions["coverage"]
    facts = [
        f"benchmark: {view.benchmark}",
        Markup(f"system: {as_code(manifest.identity['system']['spec'])}"),
        *view.reader_and_judge,
        *(longitudinal_report.asked(points) if points else []),
        *(["retrieval: none, the answers came from outside"] if view.imported else []),
        f"{'retrieval at the last checkpoint' if points else 'questions'}: "
        f"{questions['asked']:,} asked, {questions['scorable']:,} with "
        f"evidence, {questions['measured']:,} measured"
        + (f" (coverage {coverage:.1%})" if coverage is not None else ""),
        f"data sha256: {', '.join(about['sha256'])}",
        f"fingerprint: {manifest.fingerprint}",
        f"protocol: {manifest.protocol.get('id', 'none')}",
        f"state: {manifest.state}",
    ]
    sections: list[Block] = [Heading(f"{view.label} on {about['name']}", 1), NoteList(facts)]
    if notes := caveats(view):
        sections += [_CAVEATS, NoteList(notes)]
    sections += repeat_blocks(repeats)
    if points:
        drawn = "" if is_wide or not (view.path / _AGEING).exists() else _AGEING
        sections += ageing_sections(points, picture=drawn, is_wide=is_wide)
    if points and view.judged:
        pictures = [(name, file) for file, name in _PICTURES.items() if (view.path / file).exists()]
        sections += longitudinal_report.sections(
            points, pictures=() if is_wide else pictures, is_wide=is_wide
        )
    elif points and is_wide:
        sections += longitudinal_report.recall_sections(points)
    accounts: Costs | None = view.timing.get("accounts")
    if accounts and not accounts["total"]["requests"] + accounts["total"]["cached"]:
        accounts = None
    names, answers = view.category_name, view.answers
    if view.imported:
        from mnemoscope.reports import foreign_tables  # few runs have answers from outside

        sections += foreign_tables.report_sections(view.imported, answers)
    if answers and not points:
        sections += answer_tables.report_sections(
            answers["figures"], answers["diagnosis"], accounts, names, view.exams
        )
    elif answers or accounts:  # with checkpoints, the answers are shown by checkpoint
        diagnosis = answers["diagnosis"] if answers else None
        sections += answer_tables.failure_sections(diagnosis, accounts, names)
    if view.forgetting:
        sections += forgetting_tables.report_sections(view.forgetting)
    sections += disclosure_tables.report_sections(view)
    if change := metrics.get("change"):
        sections += change_tables.report_sections(change)
    size = view.timing["index_bytes"]
    times = [
        *(
            [f"recall {key} (ms)" if key != "n" else "recalls timed", value]
            for key, value in (view.timing["recall_ms"] or {}).items()
        ),
        *(
            [f"{phase} {key} (ms)" if key != "n" else f"{phase}s timed", value]
            for phase in ("answer", "judge")
            for key, value in (view.timing.get(f"{phase}_ms") or {}).items()
        ),
        ["indexing, all scenarios (ms)", view.timing["index_ms"]],
        ["index bytes, all scenarios", MISSING if size is None else size],
        *([key.replace("_", " "), value] for key, value in view.timing["counters"].items()),
    ]
    return [
        *sections,
        *published,
        *_retrieval(view),
        Heading("Ingestion"),
        document_table(
            ["memories and evidence", "count"],
            ([_INGESTION.get(key, key), value] for key, value in metrics["ingestion"].items()),
        ),
        Heading("Statuses"),
        document_table(["status", "questions"], metrics["statuses"].items()),
        Heading("Timing"),
        document_table(["measure", "value"], times),
    ]


def _retrieval(view: RunView) -> list[Block]:
    overall, categories = view.metrics["overall"], view.metrics["by_category"]
    if not overall and view.answers:  # the system answers by itself: no ranking
        return []
    title = "Retrieval" if view.answers else "Overall"
    if view.longitudinal or view.forgetting or "change" in view.metrics:
        title = "Retrieval at the last checkpoint"
    rows: list[Cells] = []
    for name, figure in overall.items():
        bounds = figure.get("bounds")
        remarks = ["not informative"] if figure.get("vacuous") else []
        remarks += [f"bounds {brackets(bounds)}"] if bounds else []
        rows.append(
            [
                name,
                decimal(figure["mean"]),
                interval_cell(
                    brackets(figure["ci95"]),
                    figure["mean"],
                    figure["ci95"],
                    chance=figure["chance"],
                ),
                f"{figure['n']:,}",
                *(decimal(figure[key]) for key in ("chance", "lift", "ceiling")),
                ", ".join(remarks),
            ]
        )
    head = ["metric", "mean", "95 % interval", "n", "chance", "lift", "ceiling", "remarks"]
    marked = [text for key, text in _REMARKS.items() if any(f.get(key) for f in overall.values())]
    legend = " ".join([_LEGEND, *marked])
    sections: list[Block] = [Heading(title), document_table(head, rows), Paragraph(legend)]
    if credit := credit_blocks([view]):
        sections += [Heading("Credit"), *credit]
    if categories:
        names = headline([view])
        rows = [
            [
                view.category_name(key),
                f"{next(iter(figures.values()))['n']:,}",
                *(_with_bar(figures[n]) for n in names),
            ]
            for key, figures in categories.items()
            if figures
        ]
        sections += [Heading("By category"), document_table(["category", "n", *names], rows)]
    if curve := view.metrics["context"].get("recall_by_tokens"):
        rows = [
            [
                f"{int(budget):,}",
                interval_cell(_or_bounds(figure), figure["mean"], figure["ci95"]),
            ]
            for budget, figure in curve.items()
        ]
        caption = "The share of evidence that fits completely into a context of so many tokens."
        if any("bounds" in figure for figure in curve.values()):
            caption += " Between two values: some lists end before the budget is used up."
        table = document_table(["tokens (estimated)", "recall"], rows)
        sections += [Heading("Recall by context tokens"), Paragraph(caption), table]
    return sections


def _with_bar(figure: Estimate | Figure) -> Cell:
    text = with_interval(figure["mean"], figure["ci95"])
    return interval_cell(text, figure["mean"], figure["ci95"])


def _or_bounds(figure: Estimate) -> str:
    """The mean with its interval, or the bounds where only they are known."""
    if figure["mean"] is None and (bounds := figure.get("bounds")):
        return f"between {bounds[0]:.4f} and {bounds[1]:.4f}"
    return with_interval(figure["mean"], figure["ci95"])


def _answered(views: Sequence[RunView]) -> list[Block]:
    """A row for each system; a table for each measure of answers."""
    rows: dict[str, list[list[str]]] = {}
    for view in views:
        answers: Figures = view.answers or {}
        cells = [
            "withheld"
            if "withheld" in figure
            else f"{with_interval(figure['mean'], figure['ci95'])} (n {figure['n']:,})"
            for figure in (
                headline_of_answers(answers["figures"], "answerable"),
                headline_of_answers(answers["figures"], "all"),
            )
        ]
        rows.setdefault(answers["figures"]["metric"], []).append(
            [view.label, answers["judge"], *cells]
        )
    sections: list[Block] = []
    for metric, own in rows.items():
        head = ["system", "judge", f"{metric}, questions with an answer", f"{metric}, all"]
        sections += [Heading("Answers"), document_table(head, own)]
    return sections
