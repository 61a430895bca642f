"""The comparison of two runs, for the terminal and Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan

from mnemoscope.analysis.aggregates import CAVEAT, SeedRow
from mnemoscope.analysis.compare import OVERALL, Comparison, Row
from mnemoscope.reports.tables import (
    DIM,
    MISSING,
    Block,
    Cell,
    Heading,
    NoteList,
    Paragraph,
    ReportTable,
    TableColumn,
    numeric,
    with_interval,
)

_STYLES = {"better": "bold green", "worse": "bold red", "equivalent": "blue", "gained": "green"}
_STYLES |= {"cannot tell": "yellow", "lost": "red"}
_TESTS = {"exact McNemar": "McNemar"}
"""Short names, so that a table fits into a hundred columns."""
_METRIC, _VERDICT = TableColumn("metric", wrap=False), TableColumn("verdict", wrap=False)
_P_VALUES = (numeric("p_raw"), numeric("p_corr.", markdown="p_corrected"))


def comparison(found: Comparison, names: Mapping[str, str]) -> list[Block]:
    """Overall, then each category; `names` are the names of the categories."""
    clusters = "one cluster" if found.clusters == 1 else f"{found.clusters:,} clusters"
    legend = _legend(found)
    blocks: list[Block] = [
        Heading(f"{found.base} → {found.cand} on {found.benchmark}", 1),
        Paragraph(f"{found.paired:,} questions paired by id, in {clusters}"),
    ]
    for scope in dict.fromkeys(row.scope for row in found.rows):
        rows = [row for row in found.rows if row.scope == scope]
        name = "Overall" if scope == OVERALL else _category(scope, names)
        title = f"{name}, {rows[0].n:,} questions"
        columns = [
            _METRIC,
            numeric("base"),
            numeric("cand"),
            numeric("Δ", markdown="delta [95 % interval]"),
            TableColumn("test", only="markdown"),
            *_P_VALUES,
            numeric("effect"),
            numeric("detectable", markdown="smallest detectable"),
            _VERDICT,
        ]
        table = ReportTable(columns, [_cells(row) for row in rows], title)
        blocks += [Heading(title, only="markdown"), table]
    blocks += [Paragraph(line, DIM, only="terminal") for line in legend]
    blocks.append(NoteList(found.notes, only="terminal"))
    blocks.append(NoteList([*legend, *found.notes], only="markdown"))
    if found.discordant:
        lost_first = sorted(found.discordant, key=lambda one: one.change == "gained")
        gained = sum(one.change == "gained" for one in found.discordant)
        title = f"Gained {gained}, lost {len(found.discordant) - gained}"
        columns = [TableColumn(name, wrap=False) for name in ("change", "question", "category")]
        changed = ReportTable(
            [*columns, TableColumn("text")],
            [
                [
                    Cell(one.change, _STYLES[one.change]),
                    one.question,
                    _category(one.category, names),
                    one.text,
                ]
                for one in lost_first
            ],
            title,
        )
        blocks += [Paragraph("", only="terminal"), Heading(title, only="markdown"), changed]
    return blocks


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


def _cells(row: Row) -> list[Cell | str]:
    counts = f"+{row.gained} -{row.lost}" if row.gained is not None else ""
    low, high = row.ci95
    effect = f"{row.effect_name} {row.effect:+.3f} ({row.effect_label})"
    delta = f"{row.delta:+.4f} [{low:+.4f}, {high:+.4f}]"
    return [
        Cell(row.metric, "", f"\n{_TESTS.get(row.test, row.test)}"),
        f"{row.base:.4f}",
        f"{row.cand:.4f}",
        Cell(_signed(row.delta), "", f"\n{_signed(low)} {_signed(high)}", delta),
        row.test + (f" ({counts})" if counts else ""),
        _p(row.p_raw),
        _p(row.p_corrected),
        Cell(f"{row.effect_name} {_signed(row.effect)}", "", f"\n{row.effect_label}", effect),
        MISSING if isnan(row.detectable) else f"{row.detectable:.4f}",
        Cell(row.verdict, _STYLES[row.verdict], counts and f"\n{counts}"),
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
        _p(row.p_raw),
        _p(row.p_corrected),
        Cell(f"{row.h:.3f}", "", f"\n{row.effect_label}", f"{row.h:.3f} ({row.effect_label})"),
        Cell(verdict, _STYLES[verdict]),
    ]


def _legend(found: Comparison) -> list[str]:
    band = f"90 % interval within ±{found.band:g}" if found.band else "only with --band"
    tested = sum(not isnan(row.p_raw) for row in found.rows)
    return [
        "Δ: candidate - base, 95 % bootstrap interval over clusters; +n -m: questions gained, lost",
        f"p: exact McNemar or paired t; p_corr.: Holm over all {tested} tests",
        "effect: Cohen's h, or d_z (mean / standard deviation of the differences); below 0.2 "
        "small, below 0.5 medium",
        "detectable: the smallest difference that this number of questions can show (power 0.8)",
        f"better, worse: p_corr. < 0.05 and the interval excludes zero; equivalent: {band}",
    ]


def _category(key: str, names: Mapping[str, str]) -> str:
    return f"{key} {names[key]}" if key in names else key


def _signed(value: float) -> str:
    """Without the zero before the point: `+.0172`."""
    return f"{value:+.4f}".replace("0.", ".", 1) if abs(value) < 0.99995 else f"{value:+.3f}"


def _p(value: float) -> str:
    """Four digits; a p below 0.05 is never rounded up to 0.0500."""
    if isnan(value):
        return MISSING
    if value < 0.00005:
        return "<.0001"
    return "<.0500" if 0.04995 <= value < 0.05 else f"{value:.4f}"
