"""The table and the notes of a load test."""

from __future__ import annotations

from mnemoscope.loadtest.load_figures import Estimated, LoadStep
from mnemoscope.loadtest.load_result import LoadResult
from mnemoscope.reports.tables import (
    MISSING,
    SYSTEM,
    Block,
    Cell,
    Heading,
    NoteList,
    ReportTable,
    TableColumn,
    numeric,
    system_cell,
)

_SHOWN = ("p50", "p95", "p99", "max")


def blocks(result: LoadResult) -> list[Block]:
    """The page of a load test."""
    metric = result.steps[0].metric if result.steps else "recall"
    table = ReportTable(
        [
            SYSTEM,
            TableColumn("load", wrap=False),
            numeric("requests", only="markdown"),
            numeric("per s", markdown="answered per s"),
            *(numeric(name, markdown=f"{name} ms") for name in _SHOWN),
            numeric("errors"),
            numeric(metric),
            *([numeric("written", only="markdown")] if result.options.writers else []),
        ],
        [_row(step) for step in result.steps],
        title=f"load on {result.benchmark}; latencies in ms",
    )
    return [
        Heading(f"Load test: {result.benchmark}", 1, only="markdown"),
        table,
        NoteList(notes(result)),
    ]


def notes(result: LoadResult) -> list[str]:
    """What a reader must know beside the figures."""
    found = [
        f"{result.memories:,} memories ingested before each step, {result.questions:,} questions "
        f"asked in turn, up to {result.options.duration:g} s and {result.options.requests:,} "
        "requests a step; ranges are 95 % intervals over blocks of time, those of recall over "
        "questions of these histories only",
    ]
    if any(step.loop == "closed" for step in result.steps):
        found.append(
            "closed loop, with so many clients: a client waits for its reply before it sends "
            "again, so a stall delays requests that are never measured; judge p99 by an open loop "
            "(--rate)"
        )
    if any(step.loop == "open" for step in result.steps):
        found.append("open loop: latency counts from the time at which a request was due")
    for step in result.steps:
        name = f"{step.system}, {_load(step)}"
        if step.note:
            found.append(f"{name}: {step.note}")
        if step.unsent:
            found.append(
                f"{name}: {step.unsent:,} requests were due and not sent, because the system was "
                "slower than the rate; percentiles are lower limits"
            )
        if step.error_texts:
            text, count = next(iter(step.error_texts.items()))
            found.append(f"{name}: {count:,} × {text}")
        if step.latency_ms["p99"].value is None:
            found.append(f"{name}: fewer than 100 requests were timed, which give no p99")
        if step.written is not None and step.written.errors:
            found.append(f"{name}: {step.written.errors:,} writes failed: {step.written.error}")
    if not result.is_complete:
        found.append("interrupted: steps are missing")
    return found


def _load(step: LoadStep) -> str:
    if step.rate is None:
        return f"closed, {step.clients}"
    return f"open, {step.rate:g}/s"


def _row(step: LoadStep) -> list[Cell | str]:
    share = step.errors.value
    return [
        system_cell(step.system, False),
        _load(step),
        f"{step.requests:,}",
        _cell(step.throughput),
        *(_cell(step.latency_ms[name], below=name == "p99") for name in _SHOWN),
        MISSING if share is None else f"{100 * share:.1f}%",
        _cell(step.recall, 3, below=True),
        *([f"{step.written.memories:,}"] if step.written is not None else []),
    ]


def _cell(found: Estimated, digits: int | None = None, *, below: bool = False) -> Cell:
    """A figure; `below` shows its interval in the terminal, too, which has little room."""
    if found.value is None:
        return Cell(MISSING)
    text = _number(found.value, digits)
    if found.ci95 is None:
        return Cell(text)
    low, high = (_number(end, digits) for end in found.ci95)
    under = f"\n{low}–{high}" if below else None
    return Cell(text, below=under, markdown=f"{text} [{low}, {high}]")


def _number(value: float, digits: int | None) -> str:
    """Three digits at least, which is more than a latency is known to."""
    if digits is None:
        digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:,.{digits}f}"
