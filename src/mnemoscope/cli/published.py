"""`mnemoscope published`: published numbers, their cohorts, and checks of their arithmetic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from cyclopts import App
from rich.text import Text

from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import out, print_json, say
from mnemoscope.reports.tables import Cell, Cells, Lines, ReportTable, TableColumn

if TYPE_CHECKING:
    from mnemoscope.published import Cohort, Published

_RESULTS = ("system", "value", "reported by", "source", "")

app = App(
    name="published",
    help="Published results of other projects, and which may be compared. Quoted, not verified.",
)


@app.command(name="list")
def list_results(
    *,
    benchmark: str = "",
    system: str = "",
    metric: str = "",
    category: str = "",
    reported_by: str = "",
    json: bool = False,
) -> None:
    """List published results by cohort; only numbers of one cohort may be compared.

    For example:

        mnemoscope published list --benchmark LoCoMo --category all

        mnemoscope published list --system zep --reported-by self

        mnemoscope published list --metric recall_any --json

    Parameters
    ----------
    benchmark
        Its full name; case does not matter.
    system
        Part of the system's name.
    metric
        Part of the metric's name.
    category
        LoCoMo's integer or name, `all` for overall results, `unknown` for unknown categories.
    reported_by
        self, vendor, competitor, third-party, quoted, `this report` or unstated.
    json
        Print JSON instead of tables.
    """
    from mnemoscope.published import cohort_of

    rows = _chosen(benchmark, system, metric, category, reported_by)
    if json:
        print_json([_content(row) for row in rows])
        return
    cohorts = defaultdict(list)
    for row in rows:
        cohorts[cohort_of(row)].append(row)

    def order(cohort: Cohort) -> tuple[int, str, str]:
        """Cohorts with several sources first: only there a number can be set beside another's."""
        own = cohorts[cohort]
        several = len({row.source for row in own}) > 1
        return (0 if several else 1 if len(own) > 1 else 2), cohort.description, cohort.id

    for cohort in sorted(cohorts, key=order):
        out.print(Text(cohort.id, "bold cyan").append(f"  {cohort.description}", "default"))
        _print(_RESULTS, map(_result, sorted(cohorts[cohort], key=lambda r: (-r.value, r.system))))
    several = sum(len({row.source for row in own}) > 1 for own in cohorts.values())
    checkable = sum(row.can_be_checked for row in rows)
    say(
        out,
        f"{len(rows):,} results in {len(cohorts):,} cohorts, {several:,} of them with several "
        "sources (shown first). Numbers of different cohorts must not be compared; within one, "
        f"prompts may still differ. {checkable:,} results have a commit or a DOI; `published cite` "
        "shows it.",
    )


@app.command
def cite(
    *,
    benchmark: str = "",
    system: str = "",
    metric: str = "",
    category: str = "",
    reported_by: str = "",
    bibtex: bool = False,
    json: bool = False,
) -> None:
    """Cite published results: conditions, source, permalink or DOI, the day it was read, caveats.

    A result without a commit or a DOI is marked. So is a result of one vendor on another's system.

    For example:

        mnemoscope published cite --benchmark LoCoMo --system mem0 --category all

        mnemoscope published cite --benchmark LongMemEval --system zep --bibtex

    Parameters
    ----------
    benchmark
        Its full name; case does not matter.
    system
        Part of the system's name.
    metric
        Part of the metric's name.
    category
        LoCoMo's integer or name, `all` for overall results, `unknown` for unknown categories.
    reported_by
        self, vendor, competitor, third-party, quoted, `this report` or unstated.
    bibtex
        Print BibTeX, one entry for each source.
    json
        Print JSON.
    """
    from mnemoscope.published import citations

    rows = _chosen(benchmark, system, metric, category, reported_by)
    if json:
        print_json([{**_content(row), "citation": citations.citation(row)} for row in rows])
    elif bibtex:
        print(citations.bibtex(rows))
    else:
        for row in rows:
            say(out, citations.citation(row))


@app.command
def baselines(*, json: bool = False) -> None:
    """Print the seven groups of baselines of the Nexus harness as Markdown tables.

    For example:

        mnemoscope published baselines --json

    Parameters
    ----------
    json
        Print JSON instead of Markdown.
    """
    from mnemoscope.reports.nexus_baselines import baseline_tables
    from mnemoscope.reports.nexus_baselines import baselines as blocks
    from mnemoscope.reports.render_markdown import render

    if json:
        print_json(baseline_tables())
    else:
        print(render(blocks()) + "\n")


@app.command
def audit(*, json: bool = False) -> None:
    """Recompute overall results from their categories, weighted by the number of questions.

    For example:

        mnemoscope published audit

    Parameters
    ----------
    json
        Print JSON instead of a table.
    """
    from mnemoscope.published import audit as recompute

    found = recompute()
    if json:
        print_json(found)
        return
    _print(
        ("system", "printed", "recomputed", "difference", "", "source"),
        (
            [
                Cell(check.system, "bold cyan"),
                f"{check.printed:.2f}",
                f"{check.recomputed:.2f}",
                f"{check.difference:+.3f}",
                Cell("agrees", "green") if check.agrees else Cell("DISAGREES", "bold red"),
                check.source,
            ]
            for check in sorted(found.checks, key=lambda one: (one.agrees, -abs(one.difference)))
        ),
    )
    right = len(found.checks) - len(found.disagreeing)
    say(out, f"In points. {right} of {len(found.checks)} agree within rounding. Not checked:")
    for reason, count in found.unchecked.items():
        say(out, f"  {count:>4,}  {reason}")


@app.command
def spread(*, benchmark: str = "LoCoMo", system: str = "", json: bool = False) -> None:
    """Show the lowest and the highest published result of each system, and who reported them.

    For example:

        mnemoscope published spread --benchmark LoCoMo

        mnemoscope published spread --benchmark LongMemEval --system zep

    Parameters
    ----------
    benchmark
        Its full name; case does not matter.
    system
        Part of the system's name.
    json
        Print JSON instead of a table.
    """
    from mnemoscope.published import load
    from mnemoscope.published.spread import spread as spreads

    rows = [r for r in _of_benchmark(load(), benchmark) if system.lower() in r.system.lower()]
    found = spreads(rows)
    if json:
        print_json(found)
        return
    if not found:
        raise UsageError("no system has two different results; omit a filter")
    _print(
        ("system", "metric", "lowest", "highest", "results", "cohorts"),
        (
            [
                Cell(one.system, "bold cyan"),
                Lines(f"{one.metric}\n{one.questions}"),
                _end(one.lowest),
                _end(one.highest),
                str(one.results),
                str(one.cohorts),
            ]
            for one in found
        ),
    )
    say(out, "Models, judges and versions differ: a spread does not show that a result is wrong.")


def _chosen(
    benchmark: str, system: str, metric: str, category: str, reported_by: str
) -> list[Published]:
    """The rows that match all filters; an error if none does."""
    from mnemoscope.published import load

    rows = [
        row
        for row in _of_benchmark(load(), benchmark)
        if system.lower() in row.system.lower()
        and metric.lower() in row.metric.lower()
        and (not category or _category(row) & {category.lower()})
        and (not reported_by or row.reported_by == reported_by.lower())
    ]
    if not rows:
        known = ", ".join(sorted({row.metric for row in _of_benchmark(load(), benchmark)}))
        raise UsageError(f"no published result matches; omit a filter. Metrics: {known}")
    return rows


def _of_benchmark(rows: tuple[Published, ...], name: str) -> list[Published]:
    found = [row for row in rows if not name or row.benchmark.lower() == name.lower()]
    if not found:
        known = ", ".join(sorted({row.benchmark for row in rows}))
        raise UsageError(f"--benchmark {name!r} is not in the registry; it has: {known}")
    return found


def _category(row: Published) -> set[str]:
    """The values of --category that match a row."""
    if row.category is None:
        return {"all"}
    return {row.category.name, str(row.category.id)} if row.category.id else {"unknown"}


def _result(row: Published) -> Cells:
    from mnemoscope.published.published_results import number

    marks = [mark for mark in row.marks if mark != "day of reading not recorded"]
    source = row.source + (f", {row.year}" if row.year else "")
    return [row.system, number(row), row.reported_by, source, Cell(", ".join(marks), "bold red")]


def _end(row: Published) -> Cell:
    from mnemoscope.published.published_results import number

    return Cell(number(row), "bold", f"  {row.reported_by}\n{row.source}")


def _content(row: Published) -> dict[str, Any]:
    import msgspec

    from mnemoscope.published import cohort_of

    cohort = cohort_of(row)
    named = {"id": cohort.id, "description": cohort.description}
    return {
        **msgspec.to_builtins(row),
        "retracted": row.retracted,
        "marks": row.marks,
        "cohort": named,
    }


def _print(heads: Sequence[str], rows: Iterable[Cells]) -> None:
    """Print a table that wraps long cells, so that sources stay readable."""
    from mnemoscope.reports.render_terminal import table

    columns = [TableColumn(head, fold=True) for head in heads]
    out.print(table(ReportTable(columns, list(rows), frame="plain")))
