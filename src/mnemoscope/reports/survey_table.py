"""The survey's table: each system's recall, speed and conformance to the contract."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mnemoscope.analysis.estimates import few_clusters
from mnemoscope.analysis.system_groups import SystemGroups
from mnemoscope.metrics import PRIMARY
from mnemoscope.reports import group_tables
from mnemoscope.reports.run_view import Figures, RunView, caveats
from mnemoscope.reports.tables import (
    MUTED,
    Block,
    Cell,
    Heading,
    Lines,
    Markup,
    NoteList,
    Paragraph,
    ReportTable,
    TableColumn,
    numeric,
)

_LEGEND = (
    "contract: result of the conformance kit. ms: time of a recall. in/s: memories ingested per "
    "second. lost: memories rejected or merged. untraced: hits that are not memories of the "
    f"scenario. {PRIMARY} with its 95 % interval, which is wide if there are few scenarios."
)
_SYSTEM_WIDTH = 18
"""The length of the longest name of an integration, mcp-memory-service."""
_CHECK_WIDTH = 11
"""The length of the longest name of a check, determinism."""
_UNKNOWN = "–"
_REUSED = ("vectors_reused", "tokens_reused")
"""Counters of texts that our caches returned."""
_ASKED = re.compile(r"leg_(\w+)_asked")


class SurveyRow(Struct, frozen=True, kw_only=True):
    """One system in the survey."""

    system: str
    """The spec or the user's label: what runs it again."""
    name: str = ""
    """What it is, with its language model and its embedder."""
    profile: str = "controlled"
    """controlled, as shipped, both, or as given."""
    door: str
    conforms: bool | None = None
    """None if it was not checked."""
    failed: list[str] = []
    """The failed checks."""
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
    legs: dict[str, tuple[int, int]] = {}
    """Of systems that count it: in how many recalls each leg answered, and was asked."""
    notes: list[str] = []
    problem: str = ""
    """Why there are no figures."""
    unavailable: str = ""
    """Why it was not run, if it cannot run here."""
    group: str = ""
    """Systems that share a letter cannot be told apart by their recall."""
    ranks: tuple[int, int] | None = None
    is_best: bool = False

    @property
    def shown(self) -> str:
        return self.name or self.system


def measured(view: RunView, of_the_data: Sequence[str], name: str) -> dict[str, object]:
    """A row's figures from a finished run, without the caveats that concern all rows."""
    figure: Figures = view.metrics["overall"].get(PRIMARY) or {}
    ingested, hits = view.metrics["ingestion"], view.metrics["hits"]
    seconds = view.timing["index_ms"] / 1000
    latency = view.timing["recall_ms"] or {}
    low, high = figure.get("ci95") or (None, None)
    # The legend already has the caveat on few scenarios.
    shown = {*of_the_data, *few_clusters(view.metrics["questions"].get("clusters", 0))}
    counters = view.timing.get("counters", {})
    legs = _legs(counters)
    cached = sum(counters.get(name, 0) for name in _REUSED)
    about = [note for note in caveats(view) if note not in shown]
    about += [_leg_note(leg, *counted) for leg, counted in legs.items() if counted[0] < counted[1]]
    if cached:
        about.append(
            f"{cached:,} texts came from our caches, so the time of ingestion is not shown"
        )
        seconds = 0
    return {
        "recall": figure.get("mean"),
        "low": low,
        "high": high,
        "p50_ms": latency.get("p50"),
        "p95_ms": latency.get("p95"),
        "memories_per_s": ingested["memories"] / seconds if seconds else None,
        "memories": ingested["memories"],
        "lost": ingested["rejected"] + ingested["merged"],
        "hits": hits["returned"],
        "untraced": hits["unknown_ids"],
        "legs": legs,
        "notes": [f"{name}: {note}" for note in about],
    }


def _legs(counters: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Each leg's answered and asked recalls, from `leg_NAME_answered` and `leg_NAME_asked`."""
    found = (_ASKED.fullmatch(key) for key in counters)
    return {
        one[1]: (counters.get(f"leg_{one[1]}_answered", 0), counters[one[0]])
        for one in found
        if one
    }


def _leg_note(leg: str, answered: int, asked: int) -> str:
    if not answered:
        return f"its {leg} leg never answered ({asked:,} questions): the figures are without it"
    return f"its {leg} leg answered {answered:,} of {asked:,} questions"


def with_groups(
    rows: Sequence[SurveyRow], groups: SystemGroups, labels: Mapping[str, str]
) -> list[SurveyRow]:
    """The rows with letters and ranks; `labels` gives the label of each system's run."""
    found = []
    for row in rows:
        if own := groups.of(labels.get(row.system, "")):
            row = replace(row, group=own.letters, ranks=own.ranks, is_best=own.is_best)
        found.append(row)
    return found


def survey(
    title: str,
    rows: Sequence[SurveyRow],
    of_the_data: Sequence[str] = (),
    groups: SystemGroups | str | None = None,
) -> list[Block]:
    """The table; to fit into eighty columns, details are below each figure."""
    names = [_folded(row) for row in rows]
    longest = max((len(line) for name in names for line in name.splitlines()), default=0)
    width = min(longest, _SYSTEM_WIDTH)
    columns = [
        TableColumn("system", fold=True, min_width=width, max_width=_SYSTEM_WIDTH),
        TableColumn("connector", only="markdown"),
        TableColumn("profile", only="markdown"),
        TableColumn("contract", max_width=_CHECK_WIDTH),
        *group_tables.MARKDOWN_COLUMNS,
        *map(numeric, (PRIMARY, "p50 ms", "p95 ms", "in/s", "lost", "untraced")),
    ]
    caveats_shown = [*of_the_data, *notes(rows), *group_tables.notes(groups)]
    legend = _LEGEND
    if isinstance(groups, SystemGroups):
        legend += f" Below it group and ranks. {group_tables.legend(groups)}."
    return [
        Heading(title, 1, only="markdown"),
        ReportTable(columns, [_cells(row) for row in rows], frame="narrow"),
        Paragraph(legend, MUTED),
        *([NoteList(caveats_shown, only="markdown")] if caveats_shown else []),
    ]


def notes(rows: Sequence[SurveyRow]) -> list[str]:
    """The caveats and the problems of all systems."""
    found = [note for row in rows for note in row.notes]
    found += [f"{row.shown}: {row.problem}" for row in rows if row.problem]
    return found + [
        f"{row.shown}, {row.profile}, cannot run here: {row.unavailable}"
        for row in rows
        if row.unavailable
    ]


def _folded(row: SurveyRow) -> str:
    """The name with one part and one option on each line: a spec has no spaces to wrap at."""
    return row.shown.replace(",", ",\n").replace(" · ", "\n· ")


def _cells(row: SurveyRow) -> list[Cell | str]:
    contract, colour = {
        True: ("kept", "green"),
        False: (f"fails {', '.join(row.failed)}", "bold red"),
        None: ("not checked", "dim"),
    }[row.conforms]
    if row.unavailable:
        contract, colour = "cannot run", "dim"
    below = row.door if row.profile == "controlled" else f"{row.door}\n{row.profile}"
    known: list[Cell | str] = [
        Cell(Lines(_folded(row)), "bold cyan", f"\n{below}", row.shown),
        row.door,
        row.profile,
        Cell(Lines(contract.replace(", ", "\n")), colour, markdown=contract),
    ]
    if row.recall is None:
        return [*known, *[_UNKNOWN] * (6 + len(group_tables.MARKDOWN_COLUMNS))]
    recall, below, beside = f"{row.recall:.3f}", "", ""
    if row.low is not None and row.high is not None:
        below = f"\n{row.low:.2f}–{row.high:.2f}"
        beside = f" [{row.low:.3f}, {row.high:.3f}]"
    ranked = [_UNKNOWN] * len(group_tables.MARKDOWN_COLUMNS)
    if row.ranks:
        ranked = [row.group, group_tables.rank_text(row.ranks)]
        below += f"\n{' · '.join(ranked)}"
    precise = Markup(f"**{recall + beside}**") if row.is_best else recall + beside
    lost = f"{row.lost:,}/{row.memories:,}"
    return [
        *known,
        *ranked,
        Cell(recall, "bold" if row.is_best else "", below, precise),
        *map(_number, (row.p50_ms, row.p95_ms, row.memories_per_s)),
        Cell(Lines(lost.replace("/", "\nof ")), markdown=lost),
        f"{row.untraced:,}" if row.hits else "no hits",
    ]


def _number(value: float | None) -> str:
    if value is None:
        return _UNKNOWN
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}" if value < 1 else f"{value:.1f}"
