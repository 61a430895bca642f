"""The comparison of two runs: one sentence first, then a table of eighty columns, then the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan

from mnemoscope.analysis.aggregates import CAVEAT, SeedRow
from mnemoscope.analysis.comparison import OVERALL, Comparison, Row
from mnemoscope.reports.tables import (
    DIM,
    MISSING,
    Block,
    Cell,
    Cells,
    Heading,
    NoteList,
    Paragraph,
    ReportTable,
    TableColumn,
    numeric,
    with_interval,
)
from mnemoscope.stats.clustered import FEW_CLUSTERS

_STYLES = {"better": "bold green", "worse": "bold red", "equivalent": "blue", "gained": "green"}
_STYLES |= {"cannot tell": "yellow", "lost": "red"}
_METRIC, _VERDICT = TableColumn("metric", wrap=False), TableColumn("verdict", wrap=False)
_P_VALUES = (numeric("p_raw"), numeric("p_corr.", markdown="p_corrected"))
_WORDS = {
    "better": "{cand} is better than {base}",
    "worse": "{cand} is worse than {base}",
    "equivalent": "{cand} is equivalent to {base} within ±{band:g}",
    "cannot tell": "{cand} cannot be told from {base}",
}
EXPLORATORY = "exploratory"


def answer(found: Comparison) -> str:
    """What the comparison says, in one sentence about the primary metric."""
    row = found.primary
    if row is None:
        return f"no verdict on {found.cand} against {found.base}: {_without_primary(found)}"
    assert row.verdict is not None
    band = found.band or 0.0
    said = _WORDS[row.verdict].format(base=found.base, cand=found.cand, band=band)
    parts = [f"{said}: {figure(row)}, {sample(row)}"]
    low, high = row.shown
    if row.verdict == "cannot tell":
        parts.append(f"at worst {points(low, row)}, at best {points(high, row)}")
    if row.verdict == "equivalent" and (low > 0 or high < 0):
        parts.append("the difference is real but inside the band")
    return "; ".join([*parts, *_reach(row)])


def figure(row: Row) -> str:
    """`recall@10 +0.0050 [-0.0033, +0.0133]`."""
    return f"{row.metric} {row.delta:+.4f} {_interval(row.shown)}"


def sample(row: Row) -> str:
    """The number of questions and of conversations, or of what the comparison counts."""
    unit, cluster = row.units
    asked = f"1 {unit}" if row.n == 1 else f"{row.n:,} {unit}s"
    if row.clusters == row.n:
        return asked
    several = f"{row.clusters:,} {cluster}s"
    return f"{asked} in {f'one {cluster}' if row.clusters == 1 else several}"


def points(value: float, row: Row) -> str:
    """A difference in percentage points; as it is, if the metric is not a share."""
    return f"{100 * value:+.1f} pp" if row.span == 1 else f"{value:+.4f}"


def _without_primary(found: Comparison) -> str:
    reason = found.declared.refused or f"these runs have no {found.declared.primary}"
    rows = [row for row in found.rows if row.scope == OVERALL]
    named = [row for row in rows if row.metric == found.declared.primary] or rows[:1]
    shown = [f"{figure(row)} is {EXPLORATORY}, {sample(row)}" for row in named]
    return "; ".join([reason, *shown])


def _reach(row: Row) -> list[str]:
    """To what the interval generalises, if that is less than to other conversations."""
    unit, cluster = row.units
    if row.these_only:
        parts = [f"this holds for these {cluster}s only and says nothing of others"]
        if row.clusters == row.n:
            parts = ["this holds for these questions only and says nothing of others"]
        if row.beyond_these is not None:
            low, high = (max(-row.span, min(row.span, end)) for end in row.beyond_these)
            parts.append(f"for other {cluster}s the interval is {_interval((low, high))}")
        return parts
    if row.effective_clusters < FEW_CLUSTERS:
        return [
            f"{100 * row.largest_share:.0f} % of the {unit}s come from one {cluster}: this "
            f"interval is that of about {row.effective_clusters:.1f} {cluster}s"
        ]
    return []


def comparison(found: Comparison, names: Mapping[str, str], *, full: bool) -> list[Block]:
    """The answer and the table of all questions; with `full`, everything that is known.

    `names` are the names of the categories.
    """
    overall = [row for row in found.rows if row.scope == OVERALL]
    title = f"Overall, {sample(overall[0])}"
    blocks: list[Block] = [
        Heading(f"{found.base} → {found.cand} on {found.benchmark}", 1, only="markdown"),
        Paragraph(answer(found), "bold"),
        Paragraph("", only="terminal"),
        Heading(title, only="markdown"),
        _table(overall, title, with_verdict=True),
    ]
    blocks += [Paragraph(line, DIM) for line in remarks(found, overall)]
    if full:
        blocks += _details(found, overall)
        for scope in dict.fromkeys(row.scope for row in found.rows if row.scope != OVERALL):
            rows = [row for row in found.rows if row.scope == scope]
            title = f"{_category(scope, names)}, {sample(rows[0])}, {EXPLORATORY}"
            blocks += [Heading(title, only="markdown"), _table(rows, title, with_verdict=False)]
        blocks += [Paragraph(line, DIM) for line in _legend(found)]
    blocks.append(NoteList(found.notes))
    if not full:
        each = f", each {overall[0].units[1]}" if found.by_cluster else ""
        blocks.append(Paragraph(f"--full shows categories, effects{each} and a legend", DIM))
    return [*blocks, *_discordant(found, names)]


def _table(rows: Sequence[Row], title: str, *, with_verdict: bool) -> ReportTable:
    columns = [
        _METRIC,
        numeric("base"),
        numeric("cand"),
        numeric("Δ"),
        TableColumn("interval", wrap=False),
        numeric("p"),
        *([_VERDICT] if with_verdict else []),
    ]
    cells: list[Cells] = []
    for row in rows:
        line: list[Cell | str] = [
            row.metric,
            f"{row.base:.4f}",
            f"{row.cand:.4f}",
            f"{row.delta:+.4f}",
            _interval(row.shown),
            p_value(row.p),
        ]
        cells.append([*line, verdict_cell(row)] if with_verdict else line)
    return ReportTable(columns, cells, title)


def verdict_cell(row: Row) -> Cell:
    """The verdict, and whether it is confirmed."""
    if row.verdict is None:
        return Cell(EXPLORATORY, DIM)
    style = _STYLES[row.verdict]
    if row.confirmed is False and row.verdict != "cannot tell":
        return Cell(row.verdict, style, "\nnot confirmed", f"{row.verdict} (not confirmed)")
    return Cell(row.verdict, style)


def remarks(found: Comparison, overall: Sequence[Row]) -> list[str]:
    """What a reader of the short table must know."""
    lines = []
    secondaries = [row for row in overall if row.role == "secondary"]
    if any(row.confirmed is False and row.verdict != "cannot tell" for row in secondaries):
        lines.append("not confirmed: the primary metric is undecided")
    if late := [row.metric for row in overall if row.role == "chosen after looking"]:
        why = "the declaration does not count" if found.declared.refused else "chosen after looking"
        lines.append(f"{EXPLORATORY} ({why}), no verdict: {', '.join(late)}")
    row = found.primary
    if row is not None and row.detectable is not None and row.detectable_range is not None:
        low, high = row.detectable_range
        lines.append(
            f"found with power 0.8: a difference in {row.metric} of "
            f"{_amount(row.detectable, row)} ({_amount(low, row)} to {_amount(high, row)})"
        )
    if held := found.guard().regressed:
        lines.append(
            f"regression: {', '.join(held)} (simultaneous intervals of all "
            f"{len(found.guarded)} declared metrics)"
        )
    if found.regressions != held and found.primary is not None:
        lines.append(f"regression: {found.primary.metric}, the primary metric (its own interval)")
    return lines


def _details(found: Comparison, overall: Sequence[Row]) -> list[Block]:
    """Effects, what could be detected, counts, the check by sign flips; then each conversation."""
    title = "Effects"
    columns = [
        _METRIC,
        TableColumn("effect", wrap=False),
        numeric("detectable"),
        numeric("range"),
        numeric("gained, lost"),
        numeric("p flips"),
    ]
    rows: list[Cells] = []
    for row in overall:
        ends = row.detectable_range
        rows.append(
            [
                row.metric,
                f"{row.effect_name} {row.effect:+.3f} {row.effect_label}",
                MISSING if row.detectable is None else f"{row.detectable:.4f}",
                MISSING if ends is None else f"{ends[0]:.4f}–{ends[1]:.4f}",
                MISSING if row.gained is None else f"+{row.gained:,} -{row.lost:,}",
                MISSING if row.p_sign_flips is None else p_value(row.p_sign_flips),
            ]
        )
    blocks: list[Block] = [Heading(title, only="markdown"), ReportTable(columns, rows, title)]
    if found.by_cluster:
        cluster = overall[0].units[1]
        title = f"{(found.primary or overall[0]).metric} in each {cluster}"
        columns = [TableColumn(cluster, fold=True), numeric("questions"), numeric("Δ")]
        lines: list[Cells] = [
            [one.cluster, f"{one.n:,}", f"{one.delta:+.4f}"] for one in found.by_cluster
        ]
        blocks += [Heading(title, only="markdown"), ReportTable(columns, lines, title)]
    return blocks


def _discordant(found: Comparison, names: Mapping[str, str]) -> list[Block]:
    if not found.discordant:
        return []
    lost_first = sorted(found.discordant, key=lambda one: one.change == "gained")
    gained = sum(one.change == "gained" for one in found.discordant)
    title = f"Gained {gained}, lost {len(found.discordant) - gained}"
    columns = [TableColumn("change", wrap=False), TableColumn("question", wrap=False)]
    columns += [TableColumn("category"), TableColumn("text")]
    rows: list[Cells] = [
        [
            Cell(one.change, _STYLES[one.change]),
            one.question,
            _category(one.category, names),
            one.text,
        ]
        for one in lost_first
    ]
    changed = ReportTable(columns, rows, title)
    return [Paragraph("", only="terminal"), Heading(title, only="markdown"), changed]


def seed_comparison(base: str, cand: str, rows: Sequence[SeedRow]) -> list[Block]:
    """The unpaired procedure, with the caveat that it is for comparability only."""
    what = f"{base} → {cand}"
    columns = [
        _METRIC,
        numeric("base", markdown="base [Wilson 95 %]"),
        numeric("cand", markdown="cand [Wilson 95 %]"),
        numeric("Δ", markdown="delta"),
        numeric("z"),
        *_P_VALUES,
        numeric("h"),
        _VERDICT,
    ]
    legend = "Wilson 95 % interval below each figure; p_corrected: Holm; h: Cohen's"
    title = "Unpaired two-proportion z-tests"
    table = ReportTable(columns, [_seed_cells(row) for row in rows], title)
    return [
        Heading(what, 1, only="terminal"),
        Heading(f"{what}, unpaired two-proportion z-tests", 1, only="markdown"),
        table,
        Paragraph(legend, DIM, only="terminal"),
        NoteList([CAVEAT], only="terminal"),
        Paragraph(CAVEAT, only="markdown"),
    ]


def _seed_cells(row: SeedRow) -> list[Cell | str]:
    verdict = "cannot tell"
    if row.significant:
        verdict = "better" if row.delta > 0 else "worse"
    levels = [
        Cell(
            f"{level:.4f}",
            "",
            "\n" + "–".join(f"{end:.4f}".removeprefix("0") for end in interval),
            with_interval(level, interval),
        )
        for level, interval in ((row.base, row.base_ci95), (row.cand, row.cand_ci95))
    ]
    return [
        row.metric,
        *levels,
        Cell(_signed(row.delta), markdown=f"{row.delta:+.4f}"),
        f"{row.z:.2f}",
        p_value(row.p_raw),
        p_value(row.p_corrected),
        Cell(f"{row.h:.3f}", "", f"\n{row.effect_label}", f"{row.h:.3f} ({row.effect_label})"),
        Cell(verdict, _STYLES[verdict]),
    ]


def _legend(found: Comparison) -> list[str]:
    alpha = found.declared.alpha
    percent = f"{100 * (1 - alpha):g} %"
    secondaries = [row for row in found.rows if row.role == "secondary"]
    clusters = f"{found.rows[0].units[1]}s"
    lines = [
        f"declared by: {found.declared.source}; primary {found.declared.primary}",
        f"Δ: candidate - base, with its {percent} interval over {clusters}; p: the same formula",
    ]
    if secondaries:
        lines.append(
            f"secondary metrics: {percent} intervals that hold for all of them at once "
            f"(critical value {secondaries[0].critical:.3f}), p adjusted"
        )
    band = f"interval within ±{found.band:g}" if found.band else "only with --band"
    return [
        *lines,
        f"better, worse: the interval excludes zero; equivalent: {band}",
        "effect: Cohen's h, or d_z (mean / standard deviation of the differences); below 0.2 "
        "small, to 0.5 medium",
        "detectable: the difference that this rule finds with power 0.8, with 80 % limits",
        f"p flips: a check, p from flipping the signs of whole {clusters}",
        "categories are exploratory: each has its own interval, and no verdict",
    ]


def _category(key: str, names: Mapping[str, str]) -> str:
    return f"{key} {names[key]}" if key in names else key


def _interval(ends: Sequence[float]) -> str:
    return f"[{ends[0]:+.4f}, {ends[1]:+.4f}]"


def _amount(value: float, row: Row) -> str:
    return f"{100 * value:.2f} pp" if row.span == 1 else f"{value:.4f}"


def _signed(value: float) -> str:
    """Without the zero before the point: `+.0172`."""
    return f"{value:+.4f}".replace("0.", ".", 1) if abs(value) < 0.99995 else f"{value:+.3f}"


def p_value(value: float) -> str:
    """Four digits; a p below 0.05 is never rounded up to 0.0500."""
    if isnan(value):
        return MISSING
    if value < 0.0001:
        return "<.0001"
    return "<.0500" if 0.04995 <= value < 0.05 else f"{value:.4f}"
