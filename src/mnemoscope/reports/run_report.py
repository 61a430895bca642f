"""report.md of a run and summary.md of several: what a reader needs to judge them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mnemoscope._store.jsonl import write_atomically, write_json
from mnemoscope._store.run_directory import RunDirectory, find_runs
from mnemoscope.analysis.costs import Costs
from mnemoscope.reports import (
    answer_tables,
    forgetting_tables,
    longitudinal_report,
    published_comparison,
)
from mnemoscope.reports.render_markdown import render
from mnemoscope.reports.run_tables import overview, personas_named
from mnemoscope.reports.run_view import (
    Figures,
    RunView,
    as_content,
    caveats,
    headline,
    no_better_than_no_memory,
)
from mnemoscope.reports.tables import (
    MISSING,
    Block,
    Heading,
    NoteList,
    Paragraph,
    brackets,
    bullets,
    decimal,
    document_table,
    with_interval,
)

_CAVEATS = "To be told beside the numbers"
_PICTURES = {"heatmap.png": "heatmap", "hallucination.png": "recall against hallucination"}


def write_report(run: RunDirectory, *, png: bool = True) -> None:
    """report.md, the pictures of judged checkpoints, and published.json where others published."""
    view = RunView.of(run)
    if png and view.longitudinal and view.judged:
        from mnemoscope.reports.figures import heatmap_png, scatter_png

        title = f"{view.label} on {personas_named(view)}"
        write_atomically(run.path / "heatmap.png", heatmap_png(view.longitudinal, title=title))
        scatter = scatter_png(view.longitudinal, title=title)
        write_atomically(run.path / "hallucination.png", scatter)
    published = published_comparison.of_run(view)
    page = render(report(view, published.blocks if published else ()))
    write_atomically(run.path / "report.md", f"{page}\n".encode())
    run.vouch("report.md")
    if published is not None:
        write_json(run.path / "published.json", published.json)
        run.vouch("published.json")


def write_summary(folder: Path, views: Sequence[RunView]) -> None:
    """summary.md and summary.json of these runs and earlier ones of the same benchmark."""
    shown = {view.label: view for view in views}
    for run in find_runs(folder):
        manifest = run.manifest()
        same = manifest.identity["benchmark"] == views[0].manifest.identity["benchmark"]
        if same and manifest.state == "complete":
            shown.setdefault(run.label, RunView.of(run))
    everything = sorted(shown.values(), key=lambda view: view.is_baseline)
    write_atomically(folder / "summary.md", f"{render(summary(everything))}\n".encode())
    write_json(folder / "summary.json", as_content(everything))


def report(view: RunView, published: Sequence[Block] = ()) -> list[Block]:
    """report.md; `published` is what stands beside the published numbers."""
    metrics, manifest, points = view.metrics, view.manifest, view.longitudinal
    questions, about = metrics["questions"], manifest.identity["benchmark"]
    coverage = questions["coverage"]
    facts = [
        f"benchmark: {view.benchmark}",
        f"system: `{manifest.identity['system']['spec']}`",
        *view.asked_by,
        *(longitudinal_report.asked(points) if points else []),
        f"{'recall at the last checkpoint' if points else 'questions'}: "
        f"{questions['asked']:,} asked, {questions['scorable']:,} with "
        f"evidence, {questions['measured']:,} measured"
        + (f" (coverage {coverage:.1%})" if coverage is not None else ""),
        f"data sha256: {', '.join(about['sha256'])}",
        f"fingerprint: {manifest.fingerprint}",
        f"protocol: {manifest.protocol.get('id', 'none')}",
        f"state: {manifest.state}",
    ]
    sections: list[Block] = [
        Heading(f"{view.label} on {about['name']}", 1),
        NoteList(facts),
        *bullets(_CAVEATS, caveats(view)),
    ]
    if points and view.judged:
        there = [(said, file) for file, said in _PICTURES.items() if (view.path / file).exists()]
        sections += longitudinal_report.sections(points, pictures=there)
    accounts: Costs | None = view.timing.get("accounts")
    if accounts and not accounts["total"]["requests"] + accounts["total"]["cached"]:
        accounts = None
    if view.answers or accounts:
        sections += _answers(view, accounts)
    if view.forgetting:
        sections += forgetting_tables.report_sections(view.forgetting)
    size = view.timing["index_bytes"]
    times = [
        *(
            [f"recall {key} (ms)" if key != "n" else "recalls timed", value]
            for key, value in (view.timing["recall_ms"] or {}).items()
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
        document_table(["what", "count"], metrics["ingestion"].items()),
        Heading("Statuses"),
        document_table(["status", "trials"], metrics["statuses"].items()),
        Heading("Timing"),
        document_table(["what", "value"], times),
    ]


def _answers(view: RunView, accounts: Costs | None) -> list[Block]:
    """How good the answers are; of a run over checkpoints, only why they failed."""
    names, answers = view.category_name, view.answers
    if view.longitudinal or not answers:
        diagnosis = answers["diagnosis"] if answers else None
        return answer_tables.failure_sections(diagnosis, accounts, names)
    return answer_tables.report_sections(
        answers["figures"], answers["diagnosis"], accounts, names, view.exams
    )


def _retrieval(view: RunView) -> list[Block]:
    overall, categories = view.metrics["overall"], view.metrics["by_category"]
    if not overall and view.answers:  # the system answered by itself
        return []
    title = "Retrieval" if view.answers else "Overall"
    if view.longitudinal or view.forgetting:
        title = "Retrieval at the last checkpoint"
    rows = []
    for name, figure in overall.items():
        bounds = figure.get("bounds")
        remarks = ["vacuous"] if figure.get("vacuous") else []
        remarks += [f"bounds {brackets(bounds)}"] if bounds else []
        rows.append(
            [
                name,
                decimal(figure["mean"]),
                brackets(figure["ci95"]),
                f"{figure['n']:,}",
                *(decimal(figure[key]) for key in ("chance", "lift", "ceiling")),
                ", ".join(remarks),
            ]
        )
    head = ["metric", "mean", "95 % interval", "n", "chance", "lift", "ceiling", ""]
    sections: list[Block] = [Heading(title), document_table(head, rows)]
    if categories:
        names = headline([view])
        rows = [
            [
                view.category_name(key),
                f"{next(iter(figures.values()))['n']:,}",
                *(with_interval(figures[n]["mean"], figures[n]["ci95"]) for n in names),
            ]
            for key, figures in categories.items()
            if figures
        ]
        sections += [Heading("By category"), document_table(["category", "n", *names], rows)]
    if curve := view.metrics["context"].get("recall_by_tokens"):
        rows = [
            [f"{int(budget):,}", with_interval(figure["mean"], figure["ci95"])]
            for budget, figure in curve.items()
        ]
        said = "Evidence that fits whole into a context of so many (estimated) tokens."
        table = document_table(["tokens", "recall"], rows)
        sections += [Heading("Recall by context tokens"), Paragraph(said), table]
    return sections


def summary(views: Sequence[RunView]) -> list[Block]:
    """summary.md: several systems on one benchmark."""
    told = [f"{view.label}: {line}" for view in views for line in caveats(view)]
    answered = [view for view in views if view.answers and not view.longitudinal]
    if answered:
        told += no_better_than_no_memory(views)
    said = f"{views[0].metrics['questions']['scorable']:,} questions with evidence. "
    by = dict.fromkeys("; ".join(view.asked_by) + "." for view in views if view.asked_by)
    sections: list[Block] = [
        Heading(views[0].benchmark, 1),
        *map(Paragraph, (said + "Mean [95 % interval].", *by)),
        overview(views),
        *(_answered(answered) if answered else []),
    ]
    for view in views:
        if view.forgetting:
            forgotten = forgetting_tables.report_sections(view.forgetting)
            sections += [Heading(view.label), Paragraph("Forgetting"), *forgotten[1:]]
    if lived := [view for view in views if view.longitudinal and view.judged]:
        sections += [Heading("At the last checkpoint"), longitudinal_report.last_overalls(lived)]
    return [*sections, *bullets(_CAVEATS, told)]


def _answered(views: Sequence[RunView]) -> list[Block]:
    """One line a system, those apart whose answers were measured otherwise."""
    rows: dict[str, list[list[str]]] = {}
    for view in views:
        answers: Figures = view.answers or {}
        cells = [
            f"{with_interval(figure['mean'], figure['ci95'])} (n {figure['n']:,})"
            for figure in (answers["figures"][part] for part in ("answerable", "all"))
        ]
        rows.setdefault(answers["figures"]["metric"], []).append(
            [view.label, answers["judge"], *cells]
        )
    sections: list[Block] = []
    for metric, own in rows.items():
        head = ["system", "judge", f"{metric}, questions with an answer", f"{metric}, all"]
        sections += [Heading("Answers"), document_table(head, own)]
    return sections
