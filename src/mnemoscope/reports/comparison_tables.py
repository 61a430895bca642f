"""How a comparison is shown: tables for the terminal, and the same as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isnan

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mnemoscope.analysis.aggregates import CAVEAT, SeedRow
from mnemoscope.analysis.compare import OVERALL, Comparison, Discordant, Row

_STYLES = {"better": "bold green", "worse": "bold red", "equivalent": "blue", "gained": "green"}
_STYLES |= {"cannot tell": "yellow", "lost": "red"}
_TESTS = {"exact McNemar": "McNemar"}
"""Short names that keep a table within a hundred columns."""


def comparison(found: Comparison, names: Mapping[str, str]) -> RenderableType:
    """Overall, then each category; `names` are the categories' names as people know them."""
    parts: list[RenderableType] = [
        Text(f"{found.base} → {found.cand} on {found.benchmark}", style="bold"),
        Text(_pairing(found)),
    ]
    parts += [_table(found, scope, names) for scope in _scopes(found)]
    parts += [Text(line, style="dim") for line in _legend(found)]
    parts += [Text(f"! {note}", style="yellow") for note in found.notes]
    if found.discordant:
        parts += [Text(), _changes(found.discordant, names)]
    return Group(*parts)


def seed_rows(base: str, cand: str, rows: Sequence[SeedRow]) -> RenderableType:
    """The unpaired procedure, and why it is given for comparability only."""
    columns = ("base", "cand", "Δ", "z", "p_raw", "p_corr.", "h")
    table = _frame("Unpaired two-proportion z-tests", "metric", columns, "verdict")
    for row in rows:
        said = _seed_verdict(row)
        table.add_row(
            row.metric,
            Text.assemble(f"{row.base:.4f}", (f"\n{_span(row.base_ci95)}", "dim")),
            Text.assemble(f"{row.cand:.4f}", (f"\n{_span(row.cand_ci95)}", "dim")),
            _signed(row.delta),
            f"{row.z:.2f}",
            _p(row.p_raw),
            _p(row.p_corrected),
            Text.assemble(f"{row.h:.3f}", (f"\n{row.effect_label}", "dim")),
            Text(said, style=_STYLES[said]),
        )
    legend = "Wilson 95 % interval below each figure; p_corrected: Holm; h: Cohen's"
    return Group(
        Text(f"{base} → {cand}", style="bold"),
        table,
        Text(legend, style="dim"),
        Text(f"! {CAVEAT}", style="yellow"),
    )


def comparison_markdown(found: Comparison, names: Mapping[str, str]) -> str:
    sections = [f"# {found.base} → {found.cand} on {found.benchmark}", _pairing(found)]
    head = ["metric", "base", "cand", "delta [95 % interval]", "test", "p_raw", "p_corrected"]
    head += ["effect", "smallest detectable", "verdict"]
    for scope in _scopes(found):
        rows = [_cells(row) for row in found.rows if row.scope == scope]
        sections += [f"## {_title(found, scope, names)}", _markdown_table(head, rows)]
    sections.append("\n".join(f"- {line}" for line in [*_legend(found), *found.notes]))
    if found.discordant:
        lines = [
            [one.change, one.question, _category(one.category, names), one.text]
            for one in _lost_first(found.discordant)
        ]
        columns = ["change", "question", "category", "text"]
        sections += [f"## {_counted(found.discordant)}", _markdown_table(columns, lines)]
    return "\n\n".join(sections) + "\n"


def seed_markdown(base: str, cand: str, rows: Sequence[SeedRow]) -> str:
    head = ["metric", "base [Wilson 95 %]", "cand [Wilson 95 %]", "delta", "z", "p_raw"]
    head += ["p_corrected", "h", "verdict"]
    lines = [
        [
            row.metric,
            f"{row.base:.4f} {_wilson(row.base_ci95)}",
            f"{row.cand:.4f} {_wilson(row.cand_ci95)}",
            f"{row.delta:+.4f}",
            f"{row.z:.2f}",
            _p(row.p_raw),
            _p(row.p_corrected),
            f"{row.h:.3f} ({row.effect_label})",
            _seed_verdict(row),
        ]
        for row in rows
    ]
    title = f"# {base} → {cand}, unpaired two-proportion z-tests"
    return "\n\n".join([title, _markdown_table(head, lines), CAVEAT]) + "\n"


def _table(found: Comparison, scope: str, names: Mapping[str, str]) -> Table:
    columns = ("base", "cand", "Δ", "p_raw", "p_corr.", "effect", "detectable")
    table = _frame(_title(found, scope, names), "metric", columns, "verdict")
    for row in found.rows:
        if row.scope == scope:
            table.add_row(*_texts(row))
    return table


def _texts(row: Row) -> list[Text]:
    low, high = row.ci95
    counts = f"\n+{row.gained} -{row.lost}" if row.gained is not None else ""
    return [
        Text.assemble(row.metric, (f"\n{_TESTS.get(row.test, row.test)}", "dim")),
        Text(f"{row.base:.4f}"),
        Text(f"{row.cand:.4f}"),
        Text.assemble(_signed(row.delta), (f"\n{_signed(low)} {_signed(high)}", "dim")),
        Text(_p(row.p_raw)),
        Text(_p(row.p_corrected)),
        Text.assemble(f"{row.effect_name} {_signed(row.effect)}", (f"\n{row.effect_label}", "dim")),
        Text(_detectable(row)),
        Text.assemble((row.verdict, _STYLES[row.verdict]), (counts, "dim")),
    ]


def _cells(row: Row) -> list[str]:
    counts = f" (+{row.gained} -{row.lost})" if row.gained is not None else ""
    return [
        row.metric,
        f"{row.base:.4f}",
        f"{row.cand:.4f}",
        f"{row.delta:+.4f} [{row.ci95[0]:+.4f}, {row.ci95[1]:+.4f}]",
        row.test + counts,
        _p(row.p_raw),
        _p(row.p_corrected),
        f"{row.effect_name} {row.effect:+.3f} ({row.effect_label})",
        _detectable(row),
        row.verdict,
    ]


def _changes(discordant: Sequence[Discordant], names: Mapping[str, str]) -> Table:
    table = _frame(_counted(discordant), "change")
    table.add_column("question", no_wrap=True)
    table.add_column("category", no_wrap=True)
    table.add_column("text")
    for one in _lost_first(discordant):
        category = Text(_category(one.category, names))
        change = Text(one.change, style=_STYLES[one.change])
        table.add_row(change, Text(one.question), category, Text(one.text))
    return table


def _lost_first(discordant: Sequence[Discordant]) -> list[Discordant]:
    return sorted(discordant, key=lambda one: one.change == "gained")


def _counted(discordant: Sequence[Discordant]) -> str:
    gained = sum(one.change == "gained" for one in discordant)
    return f"Gained {gained}, lost {len(discordant) - gained}"


def _pairing(found: Comparison) -> str:
    clusters = "one cluster" if found.clusters == 1 else f"{found.clusters:,} clusters"
    return f"{found.paired:,} questions paired by id, in {clusters}"


def _legend(found: Comparison) -> list[str]:
    band = f"90 % interval within ±{found.band:g}" if found.band else "only with --band"
    return [
        "Δ: candidate - base, 95 % bootstrap interval over clusters; +n -m: questions gained, lost",
        f"p: exact McNemar or paired t; p_corr.: Holm over all {_tested(found)} tests",
        "effect: Cohen's h, or d_z (mean over standard deviation of the differences); below 0.2 "
        "small, to 0.5 medium",
        "detectable: the smallest difference that so many questions would have shown (power 0.8)",
        f"better, worse: p_corr. < 0.05 and the interval beside zero; equivalent: {band}",
    ]


def _tested(found: Comparison) -> int:
    return sum(not isnan(row.p_raw) for row in found.rows)


def _scopes(found: Comparison) -> list[str]:
    return list(dict.fromkeys(row.scope for row in found.rows))


def _title(found: Comparison, scope: str, names: Mapping[str, str]) -> str:
    n = next(row.n for row in found.rows if row.scope == scope)
    name = "Overall" if scope == OVERALL else _category(scope, names)
    return f"{name}, {n:,} questions"


def _category(key: str, names: Mapping[str, str]) -> str:
    return f"{key} {names[key]}" if key in names else key


def _seed_verdict(row: SeedRow) -> str:
    if not row.significant:
        return "cannot tell"
    return "better" if row.delta > 0 else "worse"


def _detectable(row: Row) -> str:
    return "--" if isnan(row.detectable) else f"{row.detectable:.4f}"


def _signed(value: float) -> str:
    """Without the zero before the point: `+.0172`."""
    return f"{value:+.4f}".replace("0.", ".", 1) if abs(value) < 0.99995 else f"{value:+.3f}"


def _p(value: float) -> str:
    """Four digits; never one that rounds up to the level it is below."""
    if isnan(value):
        return "--"
    if value < 0.00005:
        return "<.0001"
    return "<.0500" if 0.04995 <= value < 0.05 else f"{value:.4f}"


def _span(interval: tuple[float, float]) -> str:
    return "–".join(f"{end:.4f}".removeprefix("0") for end in interval)


def _wilson(interval: tuple[float, float]) -> str:
    return f"[{interval[0]:.4f}, {interval[1]:.4f}]"


def _frame(title: str, first: str, figures: Sequence[str] = (), last: str = "") -> Table:
    table = Table(
        title=title,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        title_style="bold",
        pad_edge=False,
        collapse_padding=True,
    )
    table.add_column(first, no_wrap=True)
    for figure in figures:
        table.add_column(figure, justify="right", no_wrap=True)
    if last:
        table.add_column(last, no_wrap=True)
    return table


def _markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        cells = (" ".join(cell.replace("|", "\\|").split()) for cell in row)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
