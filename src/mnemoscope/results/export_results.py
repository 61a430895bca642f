"""Put together what an export needs: rows, views, groups, statuses and caveats of the runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import structs

from mnemoscope._store.errors import UsageError
from mnemoscope.analysis.compare import compare
from mnemoscope.analysis.comparison import Comparison
from mnemoscope.analysis.disclosure_pairs import right_metric
from mnemoscope.analysis.system_groups import SystemGroups, groups_or_reason, system_groups
from mnemoscope.exports import data_tables, latex_table
from mnemoscope.exports.document_rankings import (
    document_rankings,
    jsonl_rankings,
    ranx_files,
    trec_files,
)
from mnemoscope.exports.export_caveats import (
    RunStatus,
    all_caveats,
    run_status,
    status_lines,
    weak_figures,
)
from mnemoscope.exports.export_formats import RANKING_FORMATS, SUFFIXES, ExportContent, content_of
from mnemoscope.exports.exported_files import ExportedFiles, file_names
from mnemoscope.exports.mteb_result import mteb_file
from mnemoscope.metrics import PRIMARY
from mnemoscope.reports import comparison_tables, group_tables, render_markdown, run_tables
from mnemoscope.reports.run_view import RunView, answer_metric, headline
from mnemoscope.reports.tables import Block, Heading, NoteList, Paragraph
from mnemoscope.results.comparison_results import ComparedRow, ComparisonResult, ManyResult, PairRow
from mnemoscope.results.result_rows import FigureRow, HitRow, QuestionRow

if TYPE_CHECKING:
    from mnemoscope.results.run_results import RunResult

ROW_KINDS: Mapping[str, Sequence[type[Any]]] = {
    "figures": (FigureRow,),
    "questions": (QuestionRow,),
    "rankings": (HitRow,),
    "comparison": (ComparedRow, PairRow),
}
_LEGEND = "Means with 95 % intervals; chance: the expected score of a random ranking."


def exported(
    runs: Sequence[RunResult],
    format: str,
    *,
    what: str | None,
    metrics: Sequence[str],
    standalone: bool,
    figures: Callable[[], Sequence[FigureRow]],
) -> ExportedFiles:
    """Export finished runs of one benchmark; `figures` returns the rows of all of them."""
    content = content_of(format, what)
    if standalone and format != "latex":
        raise UsageError("--standalone is for --format latex")
    runs_of = _Exported(list(runs), list(metrics), content)
    if format in RANKING_FORMATS or (format, content) == ("jsonl", "rankings"):
        return _rankings(runs_of, format)
    if format == "mteb":
        names = file_names([view.label for view in runs_of.views])
        files = {
            f"{name}.json": mteb_file(view, status, run_tables.notes([view]))
            for name, view, status in zip(names, runs_of.views, runs_of.statuses, strict=True)
        }
        return ExportedFiles(files, runs_of.caveats)
    if format == "latex":
        made = latex_table.latex_file(_latex(runs_of), standalone=standalone)
    elif format == "markdown":
        made = f"{render_markdown.render(_markdown(runs_of))}\n".encode()
    else:
        write = {
            "csv": data_tables.csv_file,
            "json": data_tables.json_file,
            "jsonl": data_tables.jsonl_file,
            "parquet": data_tables.parquet_file,
        }[format]
        made = write(_data_table(runs_of, figures))
    name = f"{content}.{SUFFIXES.get(format, format)}"
    return ExportedFiles({name: made}, runs_of.caveats, is_text=format != "parquet")


class _Compared(NamedTuple):
    """A comparison of two runs, or of more by one metric."""

    pair: Comparison | None
    many: SystemGroups | None


class _Exported:
    """The runs of one export, read once."""

    def __init__(self, runs: list[RunResult], metrics: list[str], what: ExportContent) -> None:
        self.runs, self.asked, self.what = runs, metrics, what
        benchmarks = list(dict.fromkeys(view.benchmark for view in self.views))
        if len(benchmarks) > 1:
            raise UsageError(
                f"the runs are of several benchmarks ({'; '.join(benchmarks)}): export each alone"
            )
        self.benchmark = benchmarks[0]
        if metrics and what in ("questions", "rankings"):
            raise UsageError(f"--metrics chooses figures; {what} have none to choose")

    @cached_property
    def views(self) -> list[RunView]:
        return [replace(RunView.of(run.directory), label=run.label) for run in self.runs]

    @cached_property
    def statuses(self) -> list[RunStatus]:
        return [run_status(run.label, run.directory) for run in self.runs]

    @cached_property
    def names(self) -> list[str]:
        """The metrics that tables show: of the rankings, and the one of the answers."""
        graded = list(filter(None, [answer_metric(self.views)]))
        known = dict.fromkeys(
            name
            for view in self.views
            for name in (*view.metrics["overall"], *view.metrics.get("beyond_end", {}), *graded)
        )
        for name in self.asked:
            if name not in known:
                raise UsageError(
                    f"these runs have no metric {name!r}; they have {', '.join(known)}"
                )
        names = self.asked or [*headline(self.views), *graded]
        if not names:
            raise UsageError("the runs have no figures of rankings or answers in common")
        return names

    @cached_property
    def groups(self) -> SystemGroups | str | None:
        """The groups by the primary metric, or by the first one shown if that is not shown."""
        overall = [view.metrics["overall"] for view in self.views]
        shown = self.asked or headline(self.views)
        shared = [name for name in shown if all(name in own for own in overall)]
        if not shared:
            return None
        metric = PRIMARY if PRIMARY in shared else shared[0]
        if not self.asked and (right := right_metric([run.directory for run in self.runs])):
            metric = right
        return groups_or_reason([run.directory for run in self.runs], metric)

    @cached_property
    def compared(self) -> _Compared:
        runs = [run.directory for run in self.runs]
        if len(runs) < 2:
            raise UsageError("a comparison needs at least two runs")
        if len(runs) == 2:
            found = compare(*runs, metrics=self.asked)
            base, cand = (run.label for run in self.runs)
            return _Compared(structs.replace(found, base=base, cand=cand), None)
        if len(self.asked) > 1:
            raise UsageError("--metrics: several runs are compared by one metric")
        return _Compared(None, system_groups(runs, next(iter(self.asked), "")))

    @cached_property
    def caveats(self) -> list[str]:
        if self.what == "comparison":
            found = self.compared.pair or self.compared.many
            own = list(found.notes) if found else []
            return [*status_lines(self.statuses), *own]
        groups = self.groups if self.what == "figures" else None
        return all_caveats(self.views, groups, self.statuses)


def _data_table(
    own: _Exported, figures: Callable[[], Sequence[FigureRow]]
) -> data_tables.DataTable:
    rows: Sequence[Any]
    kind: type[Any]
    if own.what == "figures":
        rows, kind = figures(), FigureRow
        if own.asked:
            known = dict.fromkeys(row.metric for row in rows)
            if unknown := [name for name in own.asked if name not in known]:
                raise UsageError(
                    f"these runs have no metric {unknown[0]!r}; they have {', '.join(known)}"
                )
            rows = [row for row in rows if row.metric in own.asked]
    elif own.what == "questions":
        rows, kind = [row for run in own.runs for row in run.question_rows()], QuestionRow
    elif own.what == "rankings":
        rows, kind = [row for run in own.runs for row in run.hit_rows()], HitRow
    elif (pair := own.compared.pair) is not None:
        rows, kind = ComparisonResult(pair.base, pair.cand, paired=pair).rows(), ComparedRow
    else:
        assert own.compared.many is not None
        rows, kind = ManyResult(own.compared.many).rows(), PairRow
    return data_tables.DataTable(own.what, own.benchmark, kind, rows, own.statuses, own.caveats)


def _latex(own: _Exported) -> latex_table.LatexTable:
    short = status_lines(own.statuses)
    if own.what == "comparison":
        pair, many = own.compared
        if pair is not None:
            return latex_table.comparison_table(pair, short, own.caveats)
        assert many is not None
        return latex_table.pairs_table(many, short, own.caveats)
    groups = own.groups if isinstance(own.groups, SystemGroups) else None
    notes = [*short, *weak_figures(own.views, own.names)]
    return latex_table.figures_table(own.views, own.names, groups, notes, own.caveats)


def _markdown(own: _Exported) -> list[Block]:
    if own.what == "comparison":
        pair, many = own.compared
        blocks: list[Block] = []
        if pair is not None:
            names = own.views[0].manifest.category_names
            blocks = comparison_tables.comparison(pair, names, full=True)
        elif many is not None:
            blocks = group_tables.group_blocks(many)
        return [*blocks, NoteList(status_lines(own.statuses))]
    blocks = [Heading(own.benchmark), run_tables.overview(own.views, own.groups, own.names)]
    blocks.append(Paragraph(_LEGEND))
    if isinstance(own.groups, SystemGroups):
        blocks.append(Paragraph(group_tables.legend(own.groups)))
    told = list(dict.fromkeys([*own.caveats, *weak_figures(own.views, own.names)]))
    return [*blocks, NoteList(told)] if told else blocks


def _rankings(own: _Exported, format: str) -> ExportedFiles:
    files: dict[str, bytes] = {}
    notes: list[str] = []
    for name, run in zip(file_names([one.label for one in own.runs]), own.runs, strict=True):
        if last := run.manifest.checkpoints:
            notes.append(f"{run.label}: the rankings of the last checkpoint, {last[-1]}")
        if format == "jsonl":
            files[f"{name}.jsonl"] = jsonl_rankings(run.directory)
            continue
        found = document_rankings(run.directory)
        files |= (ranx_files if format == "ranx" else trec_files)(found, name)
        notes += found.notes(run.label)
    return ExportedFiles(files, [*notes, *own.caveats])
