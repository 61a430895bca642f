"""Plots of values with intervals: systems, and the errors of judges in their exams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mnemoscope.reports.plot_style import (
    MARKERS,
    Look,
    Picture,
    PlotPage,
    plot_page,
    short,
    style_of,
)
from mnemoscope.reports.run_view import Figures
from mnemoscope.stats import wilson

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW = 0.19


class SystemMark(NamedTuple):
    """The value of one system, with its interval."""

    label: str
    mean: float | None
    low: float | None
    high: float | None
    letters: str = ""
    is_baseline: bool = False
    is_best: bool = False
    style: int = 0
    """Its place among the systems, which says its colour and marker in all plots."""


def intervals_picture(
    marks: Sequence[SystemMark],
    metric: str,
    look: Look,
    *,
    title: str,
    chance: float | None = None,
    notes: Sequence[str] = (),
) -> Picture:
    """Systems down, the metric across, with letters of groups beside the values."""
    height = row_height(look) * len(marks) + 0.42
    with plot_page(look, height, title, notes) as page:
        axes = page.figure.add_subplot()
        draw_marks(page, axes, marks, chance=chance)
        axes.set_xlabel(short(metric, 40))
        return page.picture()


def draw_marks(
    page: PlotPage,
    axes: Axes,
    marks: Sequence[SystemMark],
    *,
    chance: float | None = None,
    named: bool = True,
) -> None:
    """Draw one row for each system, the first one on top."""
    theme = page.theme
    page.tidy(axes)
    axes.grid(axis="x", color=theme.grid, linewidth=0.6)
    for place, mark in enumerate(marks):
        if mark.mean is None:
            axes.annotate(
                "not measured", (0.02, place), xycoords=("axes fraction", "data"),
                color=theme.faint, va="center", style="italic",
            )  # fmt: skip
            continue
        style = style_of(mark.style, theme, is_baseline=mark.is_baseline)
        if mark.low is not None and mark.high is not None:
            axes.plot(
                [mark.low, mark.high], [place, place], color=style["color"], linewidth=1.4,
                solid_capstyle="butt",
            )  # fmt: skip
        axes.plot(
            [mark.mean], [place], marker=style["marker"], color=style["color"], markersize=4.2,
            markerfacecolor=theme.paper if mark.is_baseline else style["color"],
        )  # fmt: skip
        said = f"{mark.mean:.3f}" + (f"  {mark.letters}" if mark.letters else "")
        axes.annotate(
            said, (1.02, place), xycoords=("axes fraction", "data"), color=theme.text,
            va="center", weight="bold" if mark.is_best else "normal", annotation_clip=False,
        )  # fmt: skip
    if chance is not None:
        axes.axvline(chance, color=theme.faint, linewidth=0.8, linestyle=(0, (1, 2)))
        axes.annotate(
            "chance", (chance, 1.0), xycoords=("data", "axes fraction"), color=theme.faint,
            ha="center", va="bottom", size=page.look.points - 1,
        )  # fmt: skip
    labels = [short(mark.label, page.look.label) for mark in marks]
    axes.set_yticks(range(len(marks)), labels if named else [])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(marks) - 0.4, -0.6)


def judge_picture(
    exams: Mapping[str, Figures], look: Look, *, title: str, notes: Sequence[str] = ()
) -> Picture:
    """The share of wrong verdicts of each judge, over all answers and by kind of answer."""
    rows = list(dict.fromkeys(name for exam in exams.values() for name in _exam_rows(exam)))
    height = row_height(look) * len(rows) * max(1.0, 0.55 * len(exams)) + 0.6
    labels = list(exams) if len(exams) > 1 else []
    with plot_page(look, height, title, notes, labels) as page:
        theme, axes = page.theme, page.figure.add_subplot()
        page.tidy(axes)
        axes.grid(axis="x", color=theme.grid, linewidth=0.6)
        handles = []
        for number, exam in enumerate(exams.values()):
            style = style_of(number, theme, is_baseline=False)
            offset = 0.0 if len(exams) == 1 else -0.25 + 0.5 * number / (len(exams) - 1)
            for name, (count, of) in _exam_rows(exam).items():
                place = rows.index(name) + offset
                if not of:
                    continue
                low, high = wilson(count, of)
                axes.plot([low, high], [place, place], color=style["color"], linewidth=1.2)
                axes.plot(
                    [count / of], [place], marker=style["marker"], color=style["color"],
                    markersize=4, clip_on=False,
                )  # fmt: skip
                if len(exams) == 1:
                    axes.annotate(
                        f"{count} of {of}", (1.02, place), xycoords=("axes fraction", "data"),
                        color=theme.text, va="center", annotation_clip=False,
                    )  # fmt: skip
            handles.append(_handle(MARKERS[number % len(MARKERS)], style["color"]))
        limits = next(iter(exams.values())).get("limits", {})
        for place, limit in enumerate(("false_accept", "false_reject", "unjudged")):
            if limit in limits:
                axes.plot(
                    [limits[limit]] * 2, [place - 0.4, place + 0.4], color=theme.text,
                    linewidth=1.2, linestyle=(0, (2, 1)),
                )  # fmt: skip
        axes.axhline(2.5, color=theme.faint, linewidth=0.6)
        axes.set_yticks(range(len(rows)), rows)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(-0.02, 1.04)
        axes.set_xlabel("share of verdicts that are wrong")
        if len(exams) > 1:
            page.legend(handles, labels)
        return page.picture()


def _exam_rows(exam: Figures) -> dict[str, tuple[int, int]]:
    """Each row of an exam: how many verdicts are wrong, and of how many."""
    rows = {
        "accepts wrong answers": exam["false_accept"],
        "rejects correct answers": exam["false_reject"],
        "gives no verdict": exam["unjudged"],
    }
    found = {name: (share["count"], share["of"]) for name, share in rows.items()}
    for kind, own in exam["kinds"].items():
        wrong = own["false_accepts"] + own["false_rejects"]
        found[kind.replace("-", " ")] = (wrong, own["wrong"] + own["right"])
    return found


def _handle(marker: str, colour: str) -> object:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, marker=marker, markersize=4)


def row_height(look: Look) -> float:
    """Inches of a row."""
    return _ROW if look.width == "column" else _ROW * 1.15
