"""`mnemoscope compare`: compare two results and test whether one is worse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from mnemoscope import api
from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import out, print_json

REGRESSION = 1
WIDTH, SEED_WIDTH = 80, 100


def compare(
    base: Path,
    cand: Path,
    /,
    *others: Path,
    metrics: str = "",
    band: float | None = None,
    plan: Path | None = None,
    tests: Literal["paired", "seed"] | None = None,
    discordant: str = "",
    by_category: Annotated[bool, Parameter(negative="--no-by-category")] = True,
    full: Annotated[bool, Parameter(negative=())] = False,
    markdown: Path | None = None,
    summary: Path | None = None,
    junit: Path | None = None,
    json: bool = False,
) -> int:
    """Compare two results of one benchmark: the answer in one sentence, then the figures.

    The primary metric decides: that of the runs' protocol, else recall@10. The other declared
    metrics have simultaneous intervals; categories and other metrics are exploratory.
    Exit codes: 0 no regression, 1 the primary metric is worse or a declared metric regressed,
    2 wrong usage, 3 not comparable.

    For example:

        mnemoscope compare runs/locomo/bm25 runs/locomo/hybrid

        mnemoscope compare runs/old/mine runs/new/mine --band 0.01 --discordant hit@10

        mnemoscope compare runs/locomo/bm25 runs/new/mine --plan plan.yaml

        mnemoscope compare old/metrics.json new/metrics.json --tests seed

        mnemoscope compare theirs/result.json ours/result.json

        mnemoscope compare runs/locomo/bm25 runs/locomo/dense runs/locomo/hybrid

    Parameters
    ----------
    base
        The run directory to compare with, its metrics.json if only aggregates exist, or a
        result.json or questions.jsonl of Recall Bench.
    cand
        The candidate: the run directory, or the metrics.json, that may be better or worse.
    others
        More run directories: then all pairs are compared by one metric (--metrics NAME, else
        recall@10) with one correction, and the exit code is 0 also if some are worse.
    metrics
        The metrics to show beside the primary one, separated by commas. A metric that was not
        declared is exploratory and has no verdict.
    band
        The largest difference that does not matter, such as 0.01. Without it no verdict is
        `equivalent`.
    plan
        A plan that `mnemoscope plan --freeze` wrote before the candidate's run: its metrics decide.
        If it was edited, is younger than the run or is for something else, there is no verdict.
    tests
        paired: by question, from both journals. seed: pgmnemo's unpaired tests, from means.
        Default: paired, or seed if one side has only aggregates.
    discordant
        List the questions gained and lost in this metric, such as hit@10, with their texts.
    by_category
        Also compare each category, as exploration.
    full
        Show categories, effects, each conversation and the legend, too.
    markdown
        Also write the whole comparison as Markdown to this file.
    summary
        Also write a summary of six lines of Markdown to this file.
    junit
        Also write JUnit XML to this file: a test case a metric, failed if it regressed.
    json
        Print JSON instead of tables; its schema is in docs/schemas/compare.json.
    """
    if others:
        from mnemoscope.cli.compare_many import compare_many

        if band is not None or plan or tests or discordant:
            raise UsageError("--band, --plan, --tests and --discordant are for two runs")
        return compare_many([base, cand, *others], metrics, markdown=markdown, json=json)
    from mnemoscope.analysis.aggregates import CAVEAT
    from mnemoscope.reports import ci_outputs, comparison_tables, render_markdown, render_terminal

    found = api.compare(
        base,
        cand,
        metrics=[name.strip() for name in metrics.split(",") if name.strip()],
        band=band,
        tests=tests,
        discordant=discordant,
        by_category=by_category,
        plan=plan,
    )
    if found.paired:
        names = found.category_names
        whole = comparison_tables.comparison(found.paired, names, full=True)
        blocks = whole if full else comparison_tables.comparison(found.paired, names, full=False)
    else:
        whole = blocks = comparison_tables.seed_comparison(found.base, found.cand, found.seed)
    if (summary or junit) and not found.paired:
        raise UsageError("--summary and --junit need runs whose questions can be paired")
    if markdown:
        _write("--markdown", markdown, f"{render_markdown.render(whole)}\n")
    if summary and found.paired:
        _write("--summary", summary, ci_outputs.comparison_summary(found.paired))
    if junit and found.paired:
        _write("--junit", junit, ci_outputs.comparison_junit(found.paired))
    if json and found.paired:
        print_json(ci_outputs.comparison_json(found.paired))
    elif json:
        rows = {"base": found.base, "cand": found.cand, "rows": found.seed, "notes": [CAVEAT]}
        print_json(rows)
    else:
        # A build server reports a narrow terminal, which would cut off figures.
        width = WIDTH if found.paired else SEED_WIDTH
        Console(width=max(out.width, width)).print(render_terminal.render(blocks))
    return REGRESSION if found.regressed else 0


def _write(option: str, path: Path, content: str) -> None:
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{option} {path}: {error.strerror}") from error
