"""The style of all plots: sizes of a paper, light and dark themes, and files without dates.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; a marker and a line
style say the same once more. Labels come from systems and datasets, so they are cut, shown in one
line, and never read as mathematics. matplotlib is imported when a plot is drawn.
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from math import ceil
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from mnemoscope._store.errors import UsageError
from mnemoscope.text.display import as_html, one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PlotKind = Literal["intervals", "forest", "k", "tokens", "ageing", "judge", "latency"]
ThemeName = Literal["light", "dark"]
WidthName = Literal["column", "page"]
PictureFormat = Literal["png", "svg", "pdf"]
WIDTHS: dict[WidthName, float] = {"column": 3.4, "page": 7.0}
"""Inches: a column of a paper with two columns, and its whole page."""
_SIZES: dict[WidthName, float] = {"column": 7.0, "page": 8.0}
"""Points of type."""
_DPI = 200
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)))
_WIDE = 0.56
"""The width of a character, in its size."""


class Theme(NamedTuple):
    """The colours of a plot."""

    paper: str
    text: str
    faint: str
    grid: str
    colours: tuple[str, ...]


THEMES: dict[ThemeName, Theme] = {
    "light": Theme(
        "#ffffff",
        "#1a1a1a",
        "#5f5f66",
        "#e2e2e6",
        ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00", "#56b4e9"),
    ),
    "dark": Theme(
        "#13131f",
        "#ededf2",
        "#a6a6b4",
        "#2e2e3c",
        ("#56b4e9", "#e69f00", "#2fc79a", "#e39bc4", "#f0e442", "#ff7b2e", "#ffffff"),
    ),
}


class Look(NamedTuple):
    """How a plot is drawn."""

    theme: ThemeName = "light"
    width: WidthName = "column"
    format: PictureFormat = "png"
    title: str | None = None
    """None for the title that the plot gives itself, empty for none."""

    @property
    def colours(self) -> Theme:
        return THEMES[self.theme]

    @property
    def inches(self) -> float:
        return WIDTHS[self.width]

    @property
    def points(self) -> float:
        return _SIZES[self.width]

    @property
    def label(self) -> int:
        """The most characters of a label."""
        return 22 if self.width == "column" else 32

    def columns(self, labels: Sequence[str]) -> int:
        """How many of the labels of a legend fit abreast."""
        longest = max(len(short(label, self.label)) for label in labels)
        wide = (longest * _WIDE + 5.5) * self.points / 72
        return max(1, min(len(labels), int(self.inches / wide)))


@dataclass(frozen=True)
class Picture:
    """A drawn plot; a notebook shows it."""

    content: bytes
    format: PictureFormat

    def _repr_png_(self) -> bytes | None:
        return self.content if self.format == "png" else None

    def _repr_svg_(self) -> str | None:
        return self.content.decode() if self.format == "svg" else None

    def __repr__(self) -> str:
        return f"Picture of {len(self.content):,} bytes, {self.format}"


class PlotPage:
    """A figure with its title, its notes below, and room for axes between them."""

    def __init__(self, figure: Figure, look: Look, title: str, notes: float) -> None:
        self.figure, self.look, self.title = figure, look, title
        self.theme = look.colours
        self.notes = notes
        """The height of the notes in inches."""

    def tidy(self, axes: Axes) -> None:
        """Remove what does not show data."""
        axes.set_facecolor(self.theme.paper)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.spines["bottom"].set_color(self.theme.faint)
        axes.tick_params(colors=self.theme.text, length=2.5, width=0.6, color=self.theme.faint)
        axes.tick_params(which="minor", length=0)
        axes.xaxis.label.set_color(self.theme.text)
        axes.yaxis.label.set_color(self.theme.text)
        axes.set_axisbelow(True)

    def legend(self, handles: Sequence[Any], labels: Sequence[str]) -> None:
        """A legend below the axes; matplotlib hides labels that begin with an underscore."""
        found = self.figure.legend(
            handles,
            [f"label {place}" for place in range(len(labels))],
            loc="lower center",
            bbox_to_anchor=(0.5, self.notes / self.figure.get_figheight()),
            ncols=self.look.columns(labels),
            frameon=False,
            labelcolor=self.theme.text,
            handlelength=2.8,
            columnspacing=1.4,
            borderaxespad=0,
        )
        found.set_in_layout(False)  # its room is kept free
        for text, label in zip(found.get_texts(), labels, strict=True):
            text.set_text(short(label, self.look.label))

    def picture(self) -> Picture:
        """The bytes of the file: the same figures give the same bytes."""
        about: dict[str, dict[str, Any]] = {
            "png": {"Software": None},
            "svg": {"Date": None, "Creator": None},
            "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
        }
        file = BytesIO()
        with warnings.catch_warnings():
            # A label may have characters that the font lacks; they are drawn as boxes.
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            self.figure.savefig(
                file,
                format=self.look.format,
                facecolor=self.theme.paper,
                metadata=about[self.look.format],
            )
        content = file.getvalue()
        if self.look.format == "svg":  # what a screen reader says of the picture
            named = f'version="1.1" role="img" aria-label="{as_html(one_line(self.title))}">'
            content = content.replace(b'version="1.1">', named.encode(), 1)
        return Picture(content, self.look.format)


@contextmanager
def plot_page(
    look: Look,
    height: float,
    title: str,
    notes: Sequence[str] = (),
    labels: Sequence[str] = (),
) -> Iterator[PlotPage]:
    """A figure whose axes have `height` inches, with room for a legend of these labels.

    The user's settings of matplotlib are ignored.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    said = title if look.title is None else look.title
    points, small = look.points, look.points - 1
    line, pad = 1.3 / 72, 0.06
    across = look.inches - 2 * pad
    heads = _wrapped(said, across, points + 1, 2)
    below = [part for note in notes for part in _wrapped(note, across, small, 6)]
    top = len(heads) * line * (points + 1) + pad if heads else 0.02
    noted = len(below) * line * small + pad if below else 0.02
    bottom = noted
    if labels:
        bottom += ceil(len(labels) / look.columns(labels)) * 1.55 / 72 * points + 0.06
    whole = height + top + bottom
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "text.parse_math": False,  # names may contain a $
                "text.usetex": False,
                "svg.fonttype": "none",  # text stays text, which can be found and read aloud
                "svg.hashsalt": "mnemoscope",
                "pdf.fonttype": 42,
                "font.size": points,
                "axes.titlesize": points,
                "axes.labelsize": points,
                "xtick.labelsize": points,
                "ytick.labelsize": points,
                "legend.fontsize": points,
                "axes.linewidth": 0.6,
                "axes.unicode_minus": True,
                "hatch.linewidth": 0.6,
            }
        )
        figure = Figure(
            figsize=(look.inches, whole),
            dpi=_DPI,
            facecolor=look.colours.paper,
            layout="constrained",
        )
        FigureCanvasAgg(figure)
        engine = figure.get_layout_engine()
        assert engine is not None
        engine.set(  # type: ignore[call-arg]
            rect=(0, bottom / whole, 1, height / whole), w_pad=0.06, h_pad=0.04, hspace=0.06
        )
        colours = look.colours
        for place, text in enumerate(heads):
            up = 1 - (pad + place * line * (points + 1)) / whole
            figure.text(
                pad / look.inches, up, text, size=points + 1, weight="bold", color=colours.text,
                va="top", in_layout=False,
            )  # fmt: skip
        for place, text in enumerate(below):
            up = (noted - place * line * small) / whole
            figure.text(
                pad / look.inches, up, text, size=small, color=colours.faint, va="top",
                in_layout=False,
            )  # fmt: skip
        yield PlotPage(figure, look, said or title, noted)


def _wrapped(text: str, inches: float, size: float, most: int) -> list[str]:
    """The lines of a text that fit into so many inches; at most `most` of them."""
    width = max(20, int(inches * 72 / (size * _WIDE)))
    return textwrap.wrap(one_line(text), width, max_lines=most, placeholder=" …")


def short(label: str, most: int) -> str:
    """A label in one line, cut in the middle: the ends often tell systems apart."""
    text = one_line(label).strip()
    if len(text) <= most:
        return text
    head = ceil((most - 1) * 0.6)
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"


def style_of(place: int, theme: Theme, *, is_baseline: bool) -> dict[str, Any]:
    """The colour, marker and line of the system at this place."""
    return {
        "color": theme.faint if is_baseline else theme.colours[place % len(theme.colours)],
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": (0, (1, 2)) if is_baseline else LINES[place % len(LINES)],
    }


def format_of(name: str) -> PictureFormat:
    """The format that the ending of a file's name says."""
    ending = name.lower().rpartition(".")[2]
    for known in ("png", "svg", "pdf"):
        if ending == known:
            return known
    raise UsageError(f"{name}: a plot is a .png, .svg or .pdf file")
