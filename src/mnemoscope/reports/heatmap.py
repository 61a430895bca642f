"""The heatmap in the terminal: kinds of memory work down, checkpoints across, colour by score.

It reads what `analysis.longitudinal` made and draws it; it computes nothing but where to elide.
Numbers stand in every cell, so that nothing is lost where there is no colour.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.style import Style
from rich.text import Text

RGB = tuple[int, int, int]

BEST = 6.0
POOR, FAIR, GOOD = (220, 60, 60), (245, 180, 50), (56, 195, 100)
"""The ramp of Recall Bench's picture: red, amber in the middle, green."""
DARK, LIGHT = (16, 16, 24), (255, 255, 255)
MISSING = "--"
_NARROW, _WIDE = 6, 11
"""Cells hold `10.3%` and a space at the least, an interval and two at the most."""
_TIGHT = 8
"""Where systems stand beside each other, a cell holds most names in one line."""
_MARGIN = 2
_INTERVAL = "95 % interval"
_LEAST = 3
"""Columns that are shown however narrow the terminal is: the first, the gap, the last."""


class Shown(NamedTuple):
    """One system's figures, as metrics.json holds them under "longitudinal"."""

    label: str
    figures: Mapping[str, Any]
    is_arm: bool = False


def ramp(share: float) -> RGB:
    """The colour of a share of the best: 0 red, 0.5 amber, 1 green."""
    share = min(max(share, 0.0), 1.0)
    low, high, along = (POOR, FAIR, share * 2) if share < 0.5 else (FAIR, GOOD, share * 2 - 1)
    red, green, blue = (round(a + (b - a) * along) for a, b in zip(low, high, strict=True))
    return red, green, blue


def ink(paper: RGB) -> RGB:
    """Dark or light, whichever stands out more on this colour (WCAG contrast)."""
    light = _luminance(paper)
    darker = (light + 0.05) / (_luminance(DARK) + 0.05)
    return DARK if darker >= 1.05 / (light + 0.05) else LIGHT


def elide(count: int, fit: int) -> tuple[list[int], list[int]]:
    """Which of so many columns to show before and after the gap; all and none where they fit."""
    fit = max(fit, _LEAST)
    if count <= fit:
        return list(range(count)), []
    shown = fit - 1
    head = (shown + 1) // 2
    return list(range(head)), list(range(count - (shown - head), count))


def heatmap(figures: Mapping[str, Any], title: str, *, width: int = 80) -> RenderableType:
    """One system over its checkpoints."""
    points = figures["checkpoints"]
    grid = _Grid.of([point["label"] for point in points], figures["categories"], width)
    kept = [points[i] if i is not None else None for i in grid.kept]
    lines = [
        Text(title, style="bold"),
        Text(_under_title(figures), style="dim"),
        Text(),
        grid.line("", [Text(_label(p, grid.cell), style="dim") if p else None for p in kept]),
        grid.rule(),
    ]
    for name in figures["categories"]:
        cells = [_score_cell(p["categories"][name], 1) if p else None for p in kept]
        lines.append(grid.line(name, cells))
    overall = [_score_cell({"asked": p["asked"], **p["overall"]}, 2) if p else None for p in kept]
    intervals = [_interval(p["overall"]) if p else None for p in kept]
    invented = [_rate_cell(p) if p else None for p in kept]
    judged = [Text(_count(p["judged"]), style="dim") if p else None for p in kept]
    lines += [
        grid.rule(),
        grid.line("OVERALL", overall, style="bold"),
        *([grid.line(_INTERVAL, intervals, style="dim")] if grid.cell >= _WIDE else []),
        grid.rule(),
        grid.line("hallucination", invented),
        grid.line("questions judged", judged, style="dim"),
        Text(),
        *_legend(figures, len(points) - sum(p is not None for p in kept), len(points), width),
        *([] if grid.cell >= _WIDE else [_note("95 % intervals: report.md, longitudinal.json")]),
    ]
    return Group(*lines)


def comparison(systems: Sequence[Shown], *, width: int = 80) -> RenderableType:
    """All systems at their last checkpoint: categories down, systems across."""
    last = [shown.figures["checkpoints"][-1] for shown in systems]
    names = list(dict.fromkeys(c for shown in systems for c in shown.figures["categories"]))
    labels = list(dict.fromkeys(point["label"] for point in last))
    room = width - _name_width(names)
    tables = ceil(len(systems) / max(1, room // _TIGHT))
    abreast = ceil(len(systems) / tables)
    cell = min(_WIDE + 2, max(_TIGHT, room // abreast))
    lines = [Text(f"Systems beside each other at {' / '.join(labels)}", style="bold")]
    for start in range(0, len(systems), abreast):
        part = slice(start, start + abreast)
        grid = _Grid(_name_width(names), cell, list(range(len(systems[part]))))
        lines += [Text(), *_heads(systems[part], grid), grid.rule()]
        for name in names:
            cells = [_score_cell(p["categories"].get(name, {}), 1) for p in last[part]]
            lines.append(grid.line(name, cells))
        lines += [
            grid.rule(),
            grid.line("OVERALL", [_score_cell(p["overall"], 2) for p in last[part]], style="bold"),
            *_intervals(grid, [p["overall"] for p in last[part]]),
            grid.rule(),
            grid.line("hallucination", [_rate_cell(p) for p in last[part]]),
            grid.line("retrieval hit@10", [_hit(p) for p in last[part]]),
        ]
    if any(shown.label == "oracle" for shown in systems):
        lines += [Text(), _note("oracle is handed the evidence: what it misses, the reader misses")]
    return Group(*lines)


class _Grid(NamedTuple):
    """Where things stand on a line: a margin, the name, then cells of one width."""

    name: int
    cell: int
    kept: list[int | None]
    """Which columns are shown, in order; none is the gap."""

    @classmethod
    def of(cls, labels: Sequence[str], names: Sequence[str], width: int) -> _Grid:
        room = width - _name_width(names)
        cell = min(_WIDE, max(_NARROW, room // max(len(labels), 1)))
        head, tail = elide(len(labels), room // cell)
        return cls(_name_width(names), cell, [*head, None, *tail] if tail else [*head])

    def line(self, name: str, cells: Sequence[Text | None], style: str = "") -> Text:
        line = Text(" " * _MARGIN, no_wrap=True, overflow="crop", end="\n")
        line.append(name.ljust(self.name - _MARGIN), style=style)
        for cell in cells:
            text, paint = ("…", "dim") if cell is None else (cell.plain, cell.style)
            line.append(_centred(text, self.cell), style=paint)
        return line

    def rule(self) -> Text:
        wide = self.name - _MARGIN + self.cell * len(self.kept)
        return Text(" " * _MARGIN + "─" * wide, style="dim", no_wrap=True, overflow="crop")


def _score_cell(figure: Mapping[str, Any], digits: int) -> Text:
    mean = figure.get("mean")
    if mean is None:
        return Text(MISSING, style="red" if figure.get("asked") else "dim")
    return _painted(f"{mean:.{digits}f}", mean / BEST, bold=digits > 1)


def _rate_cell(point: Mapping[str, Any]) -> Text:
    rate = point["hallucination"]["rate"]
    if rate is None:
        return Text(MISSING, style="red" if point["asked"] else "dim")
    return _painted(percent(rate), 1 - rate)


def _painted(text: str, share: float, *, bold: bool = False) -> Text:
    paper = ramp(share)
    return Text(text, style=Style(color=_hex(ink(paper)), bgcolor=_hex(paper), bold=bold or None))


def percent(rate: float) -> str:
    """At most five characters."""
    return "100%" if rate >= 0.9995 else f"{100 * rate:.1f}%"


def _intervals(grid: _Grid, figures: Sequence[Mapping[str, Any]]) -> list[Text]:
    """In one line, or with its ends below each other where cells are too narrow for that."""
    if grid.cell >= _WIDE:
        return [grid.line(_INTERVAL, [_interval(figure) for figure in figures], style="dim")]
    return [
        grid.line(name, [_end(figure, end) for figure in figures], style="dim")
        for end, name in enumerate((f"{_INTERVAL} from", "to".rjust(len(_INTERVAL) + 5)))
    ]


def _end(figure: Mapping[str, Any], end: int) -> Text:
    return Text(MISSING if figure["ci95"] is None else f"{figure['ci95'][end]:.2f}", style="dim")


def _interval(figure: Mapping[str, Any]) -> Text:
    if figure["ci95"] is None:
        return Text(MISSING, style="dim")
    return Text("{:.2f}–{:.2f}".format(*figure["ci95"]), style="dim")


def _hit(point: Mapping[str, Any]) -> Text:
    mean = point["retrieval"]["hit@10"]["mean"]
    return Text(MISSING, style="dim") if mean is None else Text(f"{mean:.3f}")


def _heads(systems: Sequence[Shown], grid: _Grid) -> list[Text]:
    """The systems' names, folded into as many lines as the longest needs."""
    folded = [_folded(shown.label, grid.cell - 1) for shown in systems]
    deep = max(len(parts) for parts in folded)
    return [
        grid.line(
            "",
            [
                Text(parts[row] if row < len(parts) else "", style="dim" if s.is_arm else "bold")
                for s, parts in zip(systems, folded, strict=True)
            ],
        )
        for row in range(deep)
    ]


def _folded(label: str, room: int) -> list[str]:
    """Pieces of a label that fit, broken where its parts end if they are short enough."""
    lines = [""]
    for part in re.findall(r"[^(,=\-]*[(,=\-]|[^(,=\-]+", label):
        if len(lines[-1]) + len(part) <= room:
            lines[-1] += part
            continue
        lines += [part[i : i + room] for i in range(0, len(part), room)]
    return [line for line in lines if line]


def _under_title(figures: Mapping[str, Any]) -> str:
    personas, points = len(figures["personas"]), len(figures["checkpoints"])
    judged = sum(point["judged"] for point in figures["checkpoints"])
    return (
        f"mean composite 0–6 · {_many(personas, 'persona')} · {_many(points, 'checkpoint')} · "
        f"{_many(judged, 'judged answer')}"
    )


def _legend(figures: Mapping[str, Any], hidden: int, total: int, width: int) -> list[Text]:
    scale = Text(" " * _MARGIN + "0 ", style="dim")
    for step in range(18):
        scale.append("█", style=Style(color=_hex(ramp(step / 17)), dim=False))
    scale.append(f" 6   {MISSING} nothing asked")
    lines = [scale]
    points = figures["checkpoints"]
    if any(p["asked"] and not p["judged"] for p in points) or any(
        cell["asked"] and not cell["n"] for p in points for cell in p["categories"].values()
    ):
        scale.append(f"   {MISSING}", style="red").append(" asked, none judged")
    if hidden:
        lines.append(_note(f"… {hidden} of {total} checkpoints left out to fit {width} columns"))
    if failed := sum(point["failed"] for point in points):
        asked = sum(point["asked"] for point in points)
        lines.append(
            _note(f"! {failed:,} of {asked:,} questions failed and are left out", "yellow")
        )
        if bounds := points[-1]["overall"].get("bounds"):
            said = (
                f"  as zeros, the last overall would be {bounds[0]:.2f} instead of {bounds[1]:.2f}"
            )
            lines.append(_note(said, "yellow"))
    if waiting := sum(max(point["planned"] - point["asked"], 0) for point in points):
        lines.append(_note(f"! interim: {waiting:,} planned questions are not asked yet", "yellow"))
    return lines


def _note(text: str, style: str = "dim") -> Text:
    return Text(" " * _MARGIN + text, style=style)


def _label(point: Mapping[str, Any], cell: int) -> str:
    label = str(point["label"])
    return label if len(label) < cell else f"{point['days']}d"[: cell - 1]


def _count(number: int) -> str:
    return str(number) if number < 10_000 else f"{number / 1000:.0f}k"


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _name_width(names: Sequence[str]) -> int:
    return _MARGIN + max(len(name) for name in (*names, "retrieval hit@10")) + 2


def _centred(text: str, width: int) -> str:
    """The odd space stands before, as it does for numbers that are set to the right."""
    after = (width - len(text)) // 2
    return " " * (width - len(text) - after) + text + " " * after


def _hex(colour: RGB) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def _luminance(colour: RGB) -> float:
    red, green, blue = (
        v / 12.92 if (v := part / 255) <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4
        for part in colour
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
