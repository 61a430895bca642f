"""What a run over checkpoints shows of itself: its pictures, its page, its heatmaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mnemoscope._store.jsonl import write_atomically
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.reports import run_tables
from mnemoscope.reports.heatmap import Shown, comparison, elide, heatmap
from mnemoscope.reports.run_report import write_report
from mnemoscope.reports.run_view import RunView, losses, same_days
from mnemoscope.types import FAILED


def write_life(run: RunDirectory, *, png: bool = True) -> None:
    """report.md and, unless told otherwise, the two pictures it shows."""
    view = RunView.of(run)
    if png and view.life and view.judged:
        from mnemoscope.reports.figures import heatmap_png, scatter_png

        title = f"{view.label} on {_data(view)}"
        write_atomically(run.path / "heatmap.png", heatmap_png(view.life, title=title))
        write_atomically(run.path / "hallucination.png", scatter_png(view.life, title=title))
    write_report(run)


def shown(views: Sequence[RunView], *, width: int = 80, only: Sequence[str] = ()) -> RenderableType:
    """A heatmap of each system that is no arm (or of those named), then all beside each other.

    Runs without judged answers are shown by what was recalled.
    """
    judged = any(view.judged for view in views)
    told = [
        f"{view.label}: {line}"
        for view in views
        for line in (*failures(view), *(losses(view) if judged else ()))
    ]
    if judged:
        told += dict.fromkeys(line for view in views if view.life for line in same_days(view.life))
    notes = [Text(line, style="yellow") for line in told]
    if not judged:  # what was recalled comes with its own caveats
        by_days = [_recall(view, width) for view in views if view.life and not view.is_arm]
        return Group(run_tables.summary(views), *by_days, *notes)
    systems = [Shown(view.label, view.life or {}, view.is_arm) for view in views]
    parts: list[RenderableType] = []
    for view in views:
        if (view.label in only) if only else not view.is_arm:
            title = f"{view.label} · {_data(view)}"
            parts += [Text(), heatmap(view.life or {}, title, width=width)]
    if len(systems) > 1:
        parts += [Text(), comparison(systems, width=width)]
    return Group(*parts, *notes, Text())


def _recall(view: RunView, width: int) -> RenderableType:
    """Whether evidence was among ten hits, by category and days; for runs that nobody judged."""
    life = view.life or {}
    points = life["checkpoints"]
    head, tail = elide(len(points), (width - 30) // 7)
    kept = [points[place] for place in (*head, *tail)]
    table = Table(
        "hit@10", *(point["label"] for point in kept), box=box.SIMPLE_HEAD, title_justify="left"
    )
    table.title = f"{view.label} over the checkpoints"
    for name in life["categories"]:
        table.add_row(name, *(_share(point["categories"][name]["hit@10"]) for point in kept))
    table.add_section()
    table.add_row("all", *(_share(point["retrieval"]["hit@10"]["mean"]) for point in kept))
    return table


def _share(value: float | None) -> str:
    return "--" if value is None else f"{value:.2f}"


def failures(view: RunView) -> list[str]:
    """What a reader must be told of questions that could not be put, answered or judged."""
    life = view.life or {"checkpoints": [], "errors": {}}
    failed = sum(point["failed"] for point in life["checkpoints"])
    errors = [f"{number:,} × {error}" for error, number in life["errors"].items()]
    if view.manifest.identity.get("compat") and errors:
        return ["where no answer came, [TIMEOUT] was judged in its place", *errors]
    if not failed:
        return errors
    asked = sum(point["asked"] for point in life["checkpoints"])
    statuses: Counter[str] = Counter()
    for point in life["checkpoints"]:
        statuses.update({name: point["statuses"].get(name, 0) for name in (*FAILED, "unjudged")})
    named = ", ".join(f"{number:,} {name}" for name, number in sorted(statuses.items()) if number)
    return [f"{failed:,} of {asked:,} questions failed and are left out ({named})", *errors]


def _data(view: RunView) -> str:
    """The personas, by name where there is one."""
    personas = list((view.life or {}).get("personas", ()))
    return personas[0] if len(personas) == 1 else f"{len(personas)} personas"
