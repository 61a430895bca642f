"""The page docs/discrimination.md and its plot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from discrimination_data import BenchmarkFigures, Reference, ShownSystem
from mnemoscope.reports.dot_plots import row_height
from mnemoscope.reports.plot_style import Look, Picture, plot_page

COMMAND = "python benchmarks/discrimination.py page"
PICTURE = Path("img") / "discrimination.png"
_NONE = "–"
_REFERENCES = ("oracle", "random", "recency", "none")


def page(found: Sequence[BenchmarkFigures]) -> str:
    """The whole page in Markdown."""
    lines = [
        "# Which benchmark tells systems apart",
        "",
        "The built-in systems that read the question, on every benchmark at hand: how far they lie "
        "apart, how much room is left above the best, how many questions say nothing, and which "
        "difference can be found. One command writes this page from the figures in "
        "`docs/discrimination/`; `collect` makes those from finished runs:",
        "",
        "```",
        "python benchmarks/discrimination.py collect RUNS --name NAME --title TITLE \\",
        "    --command COMMAND --commit REVISION",
        COMMAND,
        "```",
        "",
        "| benchmark | questions | conversations | systems | pairs told apart | lowest–highest "
        "| spread | saturation | dead: none finds | dead: all find | dead in all "
        "| smallest difference |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
        *map(_line, found),
        "",
        f"![The means of the systems on each benchmark]({PICTURE})",
        "",
        *_legend(),
        "",
        "## Full context",
        "",
        "A reader that is shown every memory misses no evidence that is stored, so its recall is "
        "that of the oracle without a limit of ten hits. What it costs is tokens, and what a model "
        "makes of them is not measured here: no model was run. "
        "[Answers that were given elsewhere](other-answers.md) has judged answers of full context "
        "on LoCoMo.",
        "",
        "| benchmark | memories for a question | tokens of all memories | tokens of ten hits "
        "| all / ten | evidence among the memories |",
        "|---|---|---|---|---|---|",
        *(line for one in found for line in _full(one)),
        "",
        "Tokens of all memories are estimated: their number times the mean tokens of the hits of "
        "`random`. Those of ten hits are of the system with the highest mean.",
        "",
        "## Systems and commands",
    ]
    for one in found:
        lines += ["", *_benchmark(one)]
    return "\n".join(lines) + "\n"


def _line(one: BenchmarkFigures) -> str:
    spread, dead = one.spread, one.dead
    smallest = _NONE
    if one.smallest:
        smallest = f"{one.smallest.median:.3f} ({one.smallest.least:.3f}–{one.smallest.most:.3f})"
    cells = [
        one.title,
        f"{one.questions:,}",
        f"{one.clusters:,}",
        f"{len(one.systems)}",
        f"{one.apart} of {one.pairs}",
        f"{spread.lowest:.3f}–{spread.highest:.3f}",
        f"{spread.width:.3f}",
        _NONE if spread.saturation is None else f"{spread.saturation:.0%}",
        *(f"{share:.0%}" for share in (dead.none, dead.full, dead.equal)),
        smallest,
    ]
    return f"| {' | '.join(cells)} |"


def _legend() -> Iterator[str]:
    yield "- The metric is recall@10, unless a section below says otherwise."
    yield (
        "- **pairs told apart**: by one error rate of 5 % for all pairs of a benchmark "
        "([how](compare-and-verify.md)). Rows are in this order."
    )
    yield "- **spread**: the highest mean of a system that reads the question, minus the lowest."
    yield (
        "- **saturation**: the part of the way from chance to the oracle that the system with "
        "the highest mean has gone. At 100 % the benchmark is at its ceiling."
    )
    yield (
        "- **dead**: the share of questions of which no system finds anything, of which every "
        "system finds all that the oracle finds, and of which all systems have the same value, "
        "both included. They say nothing about differences between these systems."
    )
    yield (
        "- **smallest difference**: what is found with power 0.8 between two of the systems: the "
        "median over their pairs, in brackets the least and the most. With fewer than five "
        "conversations it is about these conversations only."
    )
    yield (
        "- **What this cannot say**: the systems are built in and related, and those with an "
        "embedder share one. A benchmark on which they are alike may tell other systems apart. "
        "It is about retrieval, not about answers."
    )
    yield (
        "- No run here was made under a protocol such as `mnemoscope-retrieval-2`, so none of them "
        "is VERIFIED."
    )


def _full(one: BenchmarkFigures) -> Iterator[str]:
    if (found := one.full_context) is None:
        return
    ten = one.systems[0].tokens
    yield (
        f"| {one.title} | {found.memories:,.0f} | {found.tokens:,.0f} | {ten:,.0f} | "
        f"{found.tokens / ten:,.0f} | {found.evidence:.1%} |"
    )


def _benchmark(one: BenchmarkFigures) -> Iterator[str]:
    options = ", ".join(f"{name}={_option(value)}" for name, value in one.options.items())
    yield f"### {one.title}"
    yield ""
    yield "```"
    yield one.command
    yield "```"
    yield ""
    yield (
        f"Mnemoscope at {one.commit}; {options or 'no options'}; sha256 of the data "
        f"{', '.join(f'`{sha[:16]}…`' for sha in one.data_sha256)}."
    )
    yield ""
    yield (
        f"| system | {one.metric} | chance | group | tokens of ten hits | trials.jsonl, sha256 |"
    )
    yield "|---|---|---|---|---|---|"
    for own in one.systems:
        yield (
            f"| {own.system} | {_mean(own)} | {one.chance:.3f} | {own.group} | "
            f"{own.tokens:,.0f} | `{own.trials_sha256[:16]}…` |"
        )
    for name in _REFERENCES:
        if name in one.references:
            reference = _mean(one.references[name])
            yield f"| {name} | {reference} | {one.chance:.3f} | {_NONE} | {_NONE} | {_NONE} |"
    if one.notes:
        yield ""
        yield from (f"- {note}" for note in one.notes)


def _mean(one: ShownSystem | Reference) -> str:
    low, high = one.ci95
    return f"{one.mean:.3f} [{low:.3f}, {high:.3f}]"


def _option(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def picture(found: Sequence[BenchmarkFigures]) -> Picture:
    """A row for each benchmark: its systems between chance and the oracle."""
    look = Look(width="page")
    notes = [
        "Dots: systems that read the question. Grey line: from chance to the oracle. Right: pairs "
        "of systems told apart."
    ]
    title = "How far a benchmark spreads the built-in systems, recall@10"
    with plot_page(look, row_height(look) * len(found) * 1.4 + 0.42, title, notes) as sheet:
        axes, theme = sheet.figure.add_subplot(), sheet.theme
        sheet.tidy(axes)
        axes.grid(axis="x", color=theme.grid, linewidth=0.6)
        for place, one in enumerate(found):
            ends = [one.chance, one.references["oracle"].mean]
            axes.plot(ends, [place, place], color=theme.faint, linewidth=1, marker="|")
            means = [own.mean for own in one.systems]
            axes.plot(means, [place] * len(means), "o", color=theme.colours[0], markersize=4.2,
                      alpha=0.7)  # fmt: skip
            axes.annotate(
                f"{one.apart} of {one.pairs}", (1.02, place), xycoords=("axes fraction", "data"),
                color=theme.text, va="center", annotation_clip=False,
            )  # fmt: skip
        axes.set_yticks(range(len(found)), [one.title for one in found])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(found) - 0.4, -0.6)
        axes.set_xlim(0, 1.02)
        return sheet.picture()
