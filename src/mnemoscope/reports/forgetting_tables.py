"""How forgetting is shown: what was known before and after, and whether anything leaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

Figures = Mapping[str, Any]
_SETS = {"forget": "to be forgotten", "retain": "to be kept"}
_LABEL_WIDTH = 16


def markdown(figures: Figures) -> str:
    """The sections of report.md that tell of forgetting."""
    score = figures["score"]
    if score is None:
        return f"## Forgetting\n\nNo score: {figures['why']}."
    lines = [
        "| questions | when | n | mean ROUGE-L | above 0.5 |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | {when} | {own['n']:,} | {_mean(own)} | {_share(own)} |"
            for name, when, own in _rows(score)
        ),
    ]
    return "\n\n".join(["## Forgetting", "\n".join(lines), *_said(score)])


def table(systems: Sequence[tuple[str, Figures, bool]]) -> RenderableType:
    """All systems: before and after for both sets, then what leaks."""
    frame = Table(box=box.SIMPLE_HEAD, title="Forgetting", title_justify="left", pad_edge=False)
    frame.title_style = "bold"
    frame.add_column("system", max_width=_LABEL_WIDTH, overflow="fold")
    sets = ("forget\nbefore", "forget\nafter", "retain\nbefore", "retain\nafter")
    for name in (*sets, "leaked", "forgets"):
        frame.add_column(name, justify="right", no_wrap=True)
    notes = []
    for label, figures, is_arm in systems:
        shown = Text(label, style="dim" if is_arm else "bold cyan")
        score = figures["score"]
        if score is None:
            frame.add_row(shown, *["--"] * 6)
            notes.append(f"{label}: no score: {figures['why']}")
            continue
        cells = [_cell(score[when][kind]) for kind in _SETS for when in ("before", "after")]
        leak = score["leak"]
        frame.add_row(shown, *cells, f"{leak['leaked']:,} of {leak['n']:,}", _verdict(score))
    return Group(
        frame,
        Text("mean ROUGE-L with its 95 % interval, and the share above 0.5 as %", style="dim"),
        *(Text(f"! {note}", style="yellow") for note in notes),
    )


def _verdict(score: Figures) -> str:
    if score["leak"]["leaked"]:
        return "leaks"
    return "yes" if score["forget_falls"] else "cannot tell"


def _rows(score: Figures) -> Iterator[tuple[str, str, Figures]]:
    for kind, name in _SETS.items():
        for when in ("before", "after"):
            yield name, when, score[when][kind]


def _said(score: Figures) -> list[str]:
    leak = score["leak"]
    lines = [
        f"- forgotten texts that are still recalled: for {leak['leaked']:,} of {leak['n']:,} "
        f"questions {_square(leak['ci95'])}" + (" (share)" if leak["ci95"] else ""),
    ]
    for kind, name in _SETS.items():
        change = score["change"][kind]["mean_rouge_l"]
        if change is not None:
            lines.append(
                f"- change of mean ROUGE-L, {name}: {change['mean']:+.4f} "
                f"{_square(change['ci95'])} over {score['change'][kind]['n']:,} questions, paired"
            )
    verdicts = {True: "yes", False: "no", None: "not known"}
    lines.append(
        f"- what was to be forgotten is known less well: {verdicts[score['forget_falls']]}"
    )
    lines.append(
        f"- what was to be kept stays within its interval: {verdicts[score['retain_stays']]}"
    )
    return ["\n".join(lines)]


def _mean(own: Figures) -> str:
    mean = own["mean_rouge_l"]
    return "--" if mean is None else f"{mean['mean']:.4f} {_square(mean['ci95'])}"


def _share(own: Figures) -> str:
    share = own["share_above_half"]
    return "--" if share is None else f"{share['share']:.4f} {_square(share['ci95'])}"


def _cell(own: Figures) -> Text:
    mean, share = own["mean_rouge_l"], own["share_above_half"]
    if mean is None:
        return Text("--", style="dim")
    low, high = mean["ci95"]
    below = f"\n{low:.3f}–{high:.3f}\n{share['share']:.0%}"
    return Text.assemble(f"{mean['mean']:.3f}", (below, "dim"))


def _square(interval: Sequence[float] | None) -> str:
    return f"[{interval[0]:.4f}, {interval[1]:.4f}]" if interval else ""
