"""`mnemoscope compare` and `mnemoscope gate`: two results, and whether one is worse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mnemoscope._store.errors import DataError, MissingData, UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.cli.console import err, out, print_json, say

if TYPE_CHECKING:
    from mnemoscope.analysis.regression_gate import GateRow
    from mnemoscope.reports.tables import Block

REGRESSION = 1
WIDTH = 100
Tests = Literal["paired", "seed"]


def compare(
    base: Path,
    cand: Path,
    /,
    *,
    metrics: str = "",
    band: float | None = None,
    tests: Tests | None = None,
    discordant: str = "",
    by_category: Annotated[bool, Parameter(negative="--no-by-category")] = True,
    markdown: Path | None = None,
    json: bool = False,
) -> int:
    """Compare two results of one benchmark, with a verdict for each metric.

    Exit codes: 0 no regression, 1 significant regression, 2 wrong usage, 3 not comparable.

    For example:

        mnemoscope compare runs/locomo/bm25 runs/locomo/hybrid

        mnemoscope compare runs/old/mine runs/new/mine --band 0.01 --discordant hit@10

        mnemoscope compare old/metrics.json new/metrics.json --tests seed

    Parameters
    ----------
    base
        The run directory to compare with; or a metrics.json, if only aggregates exist.
    cand
        The run directory, or the metrics.json, that may be better or worse.
    metrics
        Which metrics, separated by commas; the correction for many tests covers exactly these.
    band
        The difference that does not matter, such as 0.01; without it nothing is `equivalent`.
    tests
        paired: by question, from both journals. seed: pgmnemo's unpaired procedure, from means.
        Without it paired, or seed where one side has only aggregates.
    discordant
        List the questions gained and lost in this metric, such as hit@10, with their texts.
    by_category
        Also compare category by category; the correction then covers those tests too.
    markdown
        Also write the comparison as Markdown into this file.
    json
        Print JSON instead of tables.
    """
    _exist(base, cand)
    if band is not None and not band > 0:
        raise UsageError(f"--band {band}: a difference that does not matter is above zero")
    aggregates = [path for path in (base, cand) if not _has_trials(path)]
    if aggregates and (tests == "paired" or metrics or band is not None or discordant):
        raise UsageError(
            f"{aggregates[0]} is no run directory with trials, so nothing can be paired; "
            "only --tests seed is possible, which has its own metrics and no band"
        )
    if tests == "seed" and (metrics or band is not None or discordant):
        raise UsageError("--tests seed has its own metrics, no band and no list of questions")
    if aggregates and tests is None:
        say(err, f"{aggregates[0]} has no trials: only the unpaired seed tests are possible")
    if aggregates or tests == "seed":
        return _compare_means(base, cand, markdown, json=json)
    names = [name.strip() for name in metrics.split(",") if name.strip()]
    asked = {"metrics": names, "band": band, "by_category": by_category, "discordant": discordant}
    return _compare_pairs(RunDirectory(base), RunDirectory(cand), asked, markdown, json=json)


def gate(
    run: Path,
    /,
    *,
    baseline: Path,
    max_drop: list[str],
    json: bool = False,
) -> int:
    """Fail if a run's figures have dropped further below a baseline than they may.

    No test of significance: `mnemoscope compare` makes those. Failed questions count as wrong.
    Exit codes: 0 all within bounds, 1 a drop too large, 2 wrong usage, 3 not comparable.

    For example:

        mnemoscope gate runs/mine --baseline baseline/metrics.json --max-drop recall@10=0.02

        mnemoscope gate runs/mine --baseline runs/old \\
            --max-drop recall@10=0.02 --max-drop mrr@50=0.03

    Parameters
    ----------
    run
        The run directory to judge.
    baseline
        A run directory, or a metrics.json of ours or of pgmnemo's shape.
    max_drop
        A metric and how far it may drop. Repeatable.
    json
        Print JSON instead of a table.
    """
    from mnemoscope.analysis.regression_gate import gate as judge

    _exist(run, baseline)
    with _readable():
        rows = judge(RunDirectory(run), baseline, _all_allowed(max_drop))
    passed = all(row.passed for row in rows)
    if json:
        print_json({"passed": passed, "rows": rows})
    else:
        out.print(_gate_table(rows))
        say(out, "gate passed" if passed else "gate failed: a figure dropped too far")
    return 0 if passed else REGRESSION


def _compare_pairs(
    base: RunDirectory,
    cand: RunDirectory,
    asked: dict[str, Any],
    markdown: Path | None,
    *,
    json: bool,
) -> int:
    from mnemoscope.analysis.compare import compare as compare_runs
    from mnemoscope.reports.comparison_tables import comparison
    from mnemoscope.reports.render_markdown import render

    with _readable():
        found = compare_runs(base, cand, **asked)
    blocks = comparison(found, base.manifest().category_names)
    if markdown is not None:
        _write(markdown, render(blocks) + "\n")
    if json:
        print_json(found)
    else:
        _print(blocks)
    return REGRESSION if found.regressed else 0


def _compare_means(base: Path, cand: Path, markdown: Path | None, *, json: bool) -> int:
    from mnemoscope.analysis.aggregates import CAVEAT, read_aggregates, seed_comparison
    from mnemoscope.analysis.regression_gate import refuse_unlike
    from mnemoscope.reports import comparison_tables
    from mnemoscope.reports.render_markdown import render

    with _readable():
        refuse_unlike(base, cand)
        before, after = read_aggregates(base), read_aggregates(cand)
        rows = seed_comparison(before, after)
    blocks = comparison_tables.seed_comparison(before.label, after.label, rows)
    if markdown is not None:
        _write(markdown, render(blocks) + "\n")
    if json:
        content = {"base": before.label, "cand": after.label, "rows": rows, "notes": [CAVEAT]}
        print_json(content)
    else:
        _print(blocks)
    return REGRESSION if any(row.significant and row.delta < 0 for row in rows) else 0


def _print(blocks: Sequence[Block]) -> None:
    """At full width, also in the log of a build server: figures must not be cut off."""
    from mnemoscope.reports.render_terminal import render

    Console(width=max(out.width, WIDTH)).print(render(blocks))


def _exist(*paths: Path) -> None:
    for path in paths:
        if not path.exists():
            raise UsageError(f"no such file or folder: {path}")


def _has_trials(path: Path) -> bool:
    return (path / "manifest.json").is_file() and (path / "trials.jsonl").is_file()


@contextmanager
def _readable() -> Iterator[None]:
    """What cannot be read cannot be compared; exit code 1 is kept for regressions."""
    from mnemoscope.analysis.compare import NotComparable

    try:
        yield
    except (MissingData, DataError, UnicodeDecodeError, OSError) as error:
        raise NotComparable(str(error)) from error
    except (LookupError, TypeError, ValueError) as error:
        raise NotComparable(f"no result that can be read: {error!r}") from error


def _all_allowed(texts: list[str]) -> dict[str, float]:
    allowed = dict(map(_allowed, texts))
    if len(allowed) < len(texts):
        raise UsageError("a metric is named twice in --max-drop")
    return allowed


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--markdown {file}: {error.strerror}") from error


def _allowed(text: str) -> tuple[str, float]:
    metric, _, drop = text.partition("=")
    try:
        return metric.strip(), float(drop)
    except ValueError:
        raise UsageError(f"--max-drop {text}: write METRIC=DROP, such as recall@10=0.02") from None


def _gate_table(rows: list[GateRow]) -> Table:
    table = Table("metric", box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("baseline", "current", "drop", "allowed"):
        table.add_column(title, justify="right")
    table.add_column("")
    for row in rows:
        said = Text("pass", "green") if row.passed else Text("FAIL", "bold red")
        figures = (f"{value:.4f}" for value in (row.baseline, row.current, row.drop, row.allowed))
        table.add_row(row.metric, *figures, said)
    return table
