"""The survey's one table: what each system recalls, how fast, and whether it keeps the contract."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from rich import box
from rich.table import Table
from rich.text import Text

from mnemoscope.reports import markup
from mnemoscope.reports.view import RunView, caveats

METRIC = "recall@10"
_HEAD = ("system", "door", "contract", METRIC, "p50 ms", "p95 ms", "in/s", "lost", "untraced")
_LEGEND = (
    "contract: the conformance kit's word. ms: time of a recall. in/s: memories taken in a second. "
    "lost: memories rejected or merged. untraced: hits that are no memories which were given. With "
    f"few scenarios the intervals of {METRIC} are wide: see survey.md."
)


class Row(Struct, frozen=True, kw_only=True):
    """One system in the survey."""

    system: str
    door: str
    conforms: bool | None = None
    """None where it was not checked."""
    failed: list[str] = []
    """The checks that it failed."""
    recall: float | None = None
    low: float | None = None
    high: float | None = None
    p50_ms: float | None = None
    p95_ms: float | None = None
    memories_per_s: float | None = None
    memories: int = 0
    lost: int = 0
    hits: int = 0
    untraced: int = 0
    notes: list[str] = []
    problem: str = ""
    """Why there are no figures."""


def measured(view: RunView, of_the_data: Sequence[str] = ()) -> dict[str, object]:
    """A row's figures from a finished run; what is to be said of the data is said once for all."""
    figure = view.overall.get(METRIC, {})
    ingested, hits = view.metrics["ingestion"], view.metrics["hits"]
    seconds = view.timing["index_ms"] / 1000
    latency = view.timing["recall_ms"] or {}
    interval = figure.get("ci95") or [None, None]
    return {
        "recall": figure.get("mean"),
        "low": interval[0],
        "high": interval[1],
        "p50_ms": latency.get("p50"),
        "p95_ms": latency.get("p95"),
        "memories_per_s": ingested["memories"] / seconds if seconds else None,
        "memories": ingested["memories"],
        "lost": ingested["rejected"] + ingested["merged"],
        "hits": hits["returned"],
        "untraced": hits["unknown_ids"],
        "notes": [f"{view.label}: {note}" for note in caveats(view) if note not in of_the_data],
    }


def terminal(rows: Sequence[Row]) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD, caption=_LEGEND, caption_justify="left", padding=(0, 1, 0, 0)
    )
    table.add_column("system", min_width=10, max_width=18, overflow="fold")
    table.add_column("door", no_wrap=True)
    table.add_column("contract", min_width=8, overflow="fold")
    for name in _HEAD[3:]:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        colour = {True: "green", False: "bold red", None: "dim"}[row.conforms]
        system, door, contract, *figures = _cells(row)
        table.add_row(Text(system, "bold cyan"), door, Text(contract, colour), *figures)
    return table


def markdown(title: str, rows: Sequence[Row], of_the_data: Sequence[str] = ()) -> str:
    notes = "\n".join(f"- {note}" for note in [*of_the_data, *beside(rows)])
    table = markup.table(_HEAD, map(_with_interval, rows))
    return "\n\n".join([f"# {title}", table, _LEGEND, notes]).rstrip() + "\n"


def beside(rows: Sequence[Row]) -> list[str]:
    """What a reader must be told beside the table."""
    notes = [note for row in rows for note in row.notes]
    return notes + [f"{row.system}: {row.problem}" for row in rows if row.problem]


def _cells(row: Row) -> list[str]:
    contract = {True: "kept", False: f"fails {', '.join(row.failed)}", None: "not checked"}
    if row.recall is None:
        return [row.system, row.door, contract[row.conforms], *["–"] * 6]
    return [
        row.system,
        row.door,
        contract[row.conforms],
        f"{row.recall:.3f}",
        _number(row.p50_ms),
        _number(row.p95_ms),
        _number(row.memories_per_s),
        f"{row.lost:,}/{row.memories:,}",
        f"{row.untraced:,}" if row.hits else "no hits",
    ]


def _with_interval(row: Row) -> list[str]:
    """Figures that leave the terminal never go without."""
    cells = _cells(row)
    if row.low is not None and row.high is not None:
        cells[_HEAD.index(METRIC)] += f" [{row.low:.3f}, {row.high:.3f}]"
    return cells


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}" if value < 1 else f"{value:.1f}"
