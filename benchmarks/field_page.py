"""The page docs/field.md, written from the data in docs/field/."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from field_data import REFERENCE, FieldRow, FieldTable, SecondRun, not_run, repeated, tables
from mnemoscope.integrations.catalog import ITEMS
from mnemoscope.reports.dot_plots import SystemMark, intervals_picture
from mnemoscope.reports.group_tables import rank_text
from mnemoscope.reports.plot_style import Look, Picture
from mnemoscope.systems import BUILT_IN

COMMAND = "python benchmarks/field.py page"
_PICTURES = Path("img")
_BASELINES = ("none", "random", "recency", "oracle")
_NONE = "–"


def page(folder: Path) -> str:
    """The whole page in Markdown."""
    found = tables(folder)
    lines = [
        "# The field, measured",
        "",
        "Real memory systems on the same questions, texts and embedder, beside built-in ones. One "
        f"command writes this page from the data in `docs/{folder.name}/`, another one makes the "
        "data from the runs:",
        "",
        "```",
        "python benchmarks/field.py collect RUNS --title TITLE --command COMMAND --commit REVISION",
        COMMAND,
        "```",
        "",
        *_summary(found),
        "",
        *_how(found),
    ]
    for number, table in enumerate(found):
        shown = f"![{table.metric} of the systems with intervals]({picture_place(number)})"
        lines += ["", f"## {table.title}", "", shown, "", *_section(table)]
    lines += ["", "## A second run", "", *_second(repeated(folder))]
    lines += ["", "## Not run", "", *_left_out(found, not_run(folder))]
    return "\n".join(lines) + "\n"


def real_systems(table: FieldTable) -> list[str]:
    """The names in the catalog of the systems that have figures."""
    found = (row.system.partition(",")[0] for row in table.rows if row.recall is not None)
    return [name for name in dict.fromkeys(found) if name in ITEMS]


def _summary(found: Sequence[FieldTable]) -> Iterator[str]:
    for table in found:
        measured = [row for row in table.rows if row.recall is not None]
        best = [row.name for row in table.rows if row.is_best]
        apart = sum(pair.decided for pair in table.pairs)
        yield (
            f"- **{table.title}**: {len(real_systems(table))} real systems in {len(measured)} "
            f"rows, {table.questions:,} questions in {table.clusters} conversations. "
            f"{apart} of {len(table.pairs)} pairs of rows are told apart. Best group: "
            f"{', '.join(best)}."
        )


def _how(found: Sequence[FieldTable]) -> Iterator[str]:
    yield "How to read the tables:"
    yield ""
    yield (
        "- **group**: rows that share a letter cannot be told apart, by one error rate of 5 % for "
        "all pairs of a table. **ranks**: the ranks that a row may have. Bold: the best group. "
        "Intervals are 95 %, clustered by conversation."
    )
    yield (
        "- **profile**: *controlled* has the embedder of the survey and no language model, *as "
        "shipped* has the product's own defaults, *both* means that the product ships neither, so "
        "that the two are the same row. [Equal inputs](integrations.md#equal-inputs) has the rules."
    )
    yield (
        "- Systems that rank whole texts by one vector have the same recall: there the embedder "
        "is measured, not the store."
    )
    yield (
        "- **contract**: the [conformance kit](systems.md#check-your-system); *not checked* if it "
        "was not run to its end in this survey."
    )
    yield "- **tokens**: mean tokens of the first ten hits."
    yield (
        f"- **ingestion**, **search**: the time of ingestion and the median time of a recall, "
        f"divided by those of `{REFERENCE}` in the same survey. Other programs ran on the machine "
        "and rows ran at different times. In two surveys of LoCoMo's sessions the same rows had "
        "the same figures, but times of search that differed by up to 38 times for systems in "
        "processes of their own (the first: `git show df24a240:docs/field/table-2-sessions.json`). "
        "So these columns compare no two of these systems."
    )
    yield "- **lost**: memories rejected or merged. **untraced**: hits that are no memory."
    yield (
        "- No system here uses a language model, unless its row says so. Systems made for one, "
        "such as mem0, Graphiti and LightRAG, are measured as the search below their model, which "
        "is not how their authors mean them to be used."
    )
    yield (
        "- No run here was made under a protocol such as `mnemoscope-retrieval-2`, so none of them "
        "is VERIFIED."
    )


def _section(table: FieldTable) -> Iterator[str]:
    options = ", ".join(f"{name}={_option(value)}" for name, value in table.options.items())
    yield f"{table.questions:,} questions that all rows measured, {table.clusters} conversations."
    yield ""
    yield (
        f"| row | profile | contract | {table.metric} | group | ranks | tokens | ingestion | "
        "search | lost | untraced |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    yield from map(_line, table.rows)
    yield ""
    yield "To run all rows again, or one with `-s SPEC` in place of the others:"
    yield ""
    yield "```"
    yield table.command
    yield "```"
    yield ""
    yield (
        f"Run with Mnemoscope at {table.commit} on {table.machine}. Options of the data: "
        f"{options}. sha256 of the data: {', '.join(map(_hash, table.data_sha256))}."
    )
    yield ""
    yield "| row | `-s` | versions | embedder | trials.jsonl, sha256 |"
    yield "|---|---|---|---|---|"
    for row in table.rows:
        if row.recall is not None:
            versions = ", ".join(f"{name} {one}" for name, one in row.versions.items()) or _NONE
            yield (
                f"| {row.name} | `{row.system}` | {versions} | {row.embedder or _NONE} | "
                f"{_hash(row.trials_sha256)} |"
            )
    told = [*table.notes, *(f"{row.name}: {note}" for row in table.rows for note in _notes(row))]
    if told:
        yield ""
        yield from (f"- {note}" for note in dict.fromkeys(told))


def _option(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def _hash(sha256: str) -> str:
    return f"`{sha256[:16]}…`"


def _line(row: FieldRow) -> str:
    if row.recall is None:
        why = "cannot run here" if row.unavailable else row.problem or "failed"
        return f"| {row.name} | {row.profile} | {why} | {' | '.join([_NONE] * 8)} |"
    figure = f"{row.recall:.3f}"
    if row.low is not None and row.high is not None:
        figure += f" [{row.low:.3f}, {row.high:.3f}]"
    cells = [
        row.name,
        row.profile,
        row.contract,
        f"**{figure}**" if row.is_best else figure,
        row.group or _NONE,
        rank_text(row.ranks) if row.ranks else _NONE,
        _NONE if row.tokens is None else f"{row.tokens:,.0f}",
        _times(row.ingestion),
        _times(row.search),
        f"{row.lost:,} of {row.memories:,}",
        f"{row.untraced:,}" if row.hits else "no hits",
    ]
    return f"| {' | '.join(cells)} |"


def _times(ratio: float | None) -> str:
    return _NONE if ratio is None else "< 0.01 ×" if ratio < 0.01 else f"{ratio:,.10g} ×"


def _notes(row: FieldRow) -> Iterator[str]:
    yield from row.notes
    if row.problem:
        yield f"{row.profile}: {row.problem}"
    if row.unavailable:
        yield f"{row.profile}, cannot run here: {row.unavailable}"


def _second(found: Sequence[SecondRun]) -> Iterator[str]:
    if not found:
        yield "**Not run yet.**"
        return
    yield (
        "These rows were run again in a fresh folder, and the hashes of their figures "
        "(`metrics.json`) and of all their rankings (`trials.jsonl`) compared by "
        "`python benchmarks/field.py second FIRST SECOND --title TITLE`:"
    )
    yield ""
    yield "| survey | row | figures and rankings | metrics.json, sha256 |"
    yield "|---|---|---|---|"
    for one in found:
        said = "the same bytes" if one.is_equal else "**differ**"
        if one.recall is not None:
            said += f": {one.recall[0]:.3f}, then {one.recall[1]:.3f}"
        yield f"| {one.table} | `{one.system}` | {said} | {_hash(one.second['metrics.json'])} |"


def _left_out(found: Sequence[FieldTable], reasons: dict[str, str]) -> Iterator[str]:
    measured = {name for table in found for name in real_systems(table)}
    installable = [name for name, item in ITEMS.items() if not item.untested]
    yield (
        f"{len(measured)} of the {len(installable)} systems that can be installed have figures in "
        "a table. The others of the catalog are in none:"
    )
    yield ""
    for name, item in ITEMS.items():
        if name not in measured:
            yield f"- `{name}`: {reasons.get(name) or item.untested or 'not run yet'}."


def picture_place(number: int) -> Path:
    """Where the page finds the picture of a survey: field.png, field-2.png and so on."""
    return _PICTURES / (f"field-{number + 1}.png" if number else "field.png")


def picture(table: FieldTable) -> Picture:
    """The rows of a survey with intervals and groups."""
    marks = [
        SystemMark(
            row.name,
            row.recall,
            row.low,
            row.high,
            row.group,
            is_baseline=row.name in _BASELINES,
            is_best=row.is_best,
            style=int(row.system.partition(",")[0] not in BUILT_IN),
        )
        for row in table.rows
        if row.recall is not None
    ]
    notes = [
        "Circles: built-in, squares: real systems, open: baselines. 95 % intervals, clustered by "
        "conversation. Rows that share a letter cannot be told apart; bold: the best group."
    ]
    return intervals_picture(
        marks, table.metric, Look(width="page"), title=table.title, notes=notes
    )
