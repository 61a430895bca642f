"""`mnemoscope gate`: has a figure dropped too far?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from mnemoscope import api
from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import out, print_json, say

if TYPE_CHECKING:
    from mnemoscope.analysis.aggregates import GateRow


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
    found = api.gate(run, baseline=baseline, max_drop=_allowed(max_drop))
    if json:
        print_json(found)
    else:
        out.print(_gate_table(found.rows))
        say(out, "gate passed" if found.passed else "gate failed: a figure dropped too far")
    return 0 if found.passed else 1


def _allowed(texts: list[str]) -> dict[str, float]:
    allowed: dict[str, float] = {}
    for text in texts:
        metric, _, drop = text.partition("=")
        try:
            allowed[metric.strip()] = float(drop)
        except ValueError:
            raise UsageError(
                f"--max-drop {text}: write METRIC=DROP, such as recall@10=0.02"
            ) from None
    if len(allowed) < len(texts):
        raise UsageError("a metric is named twice in --max-drop")
    return allowed


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
