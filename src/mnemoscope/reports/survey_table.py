"""The survey's one table: what each system recalls, how fast, and whether it keeps the contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from mnemoscope.analysis.measure import few_clusters
from mnemoscope.metrics import PRIMARY
from mnemoscope.reports import markdown_table
from mnemoscope.reports.run_view import RunView, caveats, plain

_HEAD = ("system", "door", "contract", PRIMARY, "p50 ms", "p95 ms", "in/s", "lost", "untraced")
_LEGEND = (
    "contract: the conformance kit's word. ms: time of a recall. in/s: memories taken in a second. "
    "lost: memories rejected or merged. untraced: hits that are no memories which were given. "
    f"{PRIMARY} with its 95 % interval: with few scenarios it is wide."
)
_SYSTEM_WIDTH = 18
"""Characters: the longest name on the shelf, mcp-memory-service."""
_CHECK_WIDTH = 11
"""Characters: the longest word among the names of checks, determinism."""


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
    figure = view.overall.get(PRIMARY, {})
    ingested, hits = view.metrics["ingestion"], view.metrics["hits"]
    seconds = view.timing["index_ms"] / 1000
    latency = view.timing["recall_ms"] or {}
    interval = figure.get("ci95") or [None, None]
    # The legend says of all rows how far few scenarios go.
    said = {*of_the_data, *few_clusters(view.metrics["questions"].get("clusters", 0))}
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
        "notes": [f"{view.label}: {note}" for note in caveats(view) if note not in said],
    }


def title(name: str, options: Mapping[str, object]) -> str:
    """The benchmark and its options, spelt as a run's report spells them."""
    about = ", ".join(f"{key}={plain(value)}" for key, value in options.items() if value != "")
    return f"{name} ({about})" if about else name


def terminal(rows: Sequence[Row]) -> Group:
    """The table for eighty columns: what else a cell has to say stands below its figure."""
    # No padding: the box already puts a space between columns.
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    # An option a line: a spec has no spaces at which it could be wrapped.
    names = [row.system.replace(",", ",\n") for row in rows]
    longest = max((len(line) for name in names for line in name.splitlines()), default=0)
    width = min(longest, _SYSTEM_WIDTH)
    table.add_column("system", min_width=width, max_width=_SYSTEM_WIDTH, overflow="fold")
    table.add_column("contract", max_width=_CHECK_WIDTH)
    for name in _HEAD[3:]:
        table.add_column(name, justify="right", no_wrap=True)
    for row, name in zip(rows, names, strict=True):
        colour = {True: "green", False: "bold red", None: "dim"}[row.conforms]
        _, door, contract, recall, p50, p95, speed, lost, untraced = _cells(row)
        table.add_row(
            Text.assemble((name, "bold cyan"), (f"\n{door}", "dim")),
            Text(contract.replace(", ", "\n"), colour),
            Text.assemble(recall, (_interval(row, "\n{:.2f}–{:.2f}"), "dim")),
            *(p50, p95, speed, lost.replace("/", "\nof "), untraced),
        )
    return Group(table, Text(_LEGEND, "dim italic"))


def markdown(title: str, rows: Sequence[Row], of_the_data: Sequence[str] = ()) -> str:
    notes = "\n".join(f"- {note}" for note in [*of_the_data, *beside(rows)])
    table = markdown_table.table(_HEAD, map(_with_interval, rows))
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
    """A line of the document, where there is room for the interval beside its figure."""
    cells = _cells(row)
    cells[_HEAD.index(PRIMARY)] += _interval(row, " [{:.3f}, {:.3f}]")
    return cells


def _interval(row: Row, form: str) -> str:
    """Nothing where there is none."""
    return "" if row.low is None or row.high is None else form.format(row.low, row.high)


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}" if value < 1 else f"{value:.1f}"
