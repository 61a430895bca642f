"""`mnemoscope gate`: fail if a metric dropped too far."""

from __future__ import annotations

from pathlib import Path

from mnemoscope import api
from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import out, pass_cell, print_json, print_table, say
from mnemoscope.reports.tables import Cells, numeric


def gate(
    run: Path,
    /,
    *,
    baseline: Path,
    max_drop: list[str],
    junit: Path | None = None,
    summary: Path | None = None,
    json: bool = False,
) -> int:
    """Fail if a metric of a run dropped below a baseline by more than is allowed.

    This is not a significance test; `mnemoscope compare` is. Failed questions count as wrong.
    Exit codes: 0 all within bounds, 1 a drop too large, 2 wrong usage, 3 not comparable.

    For example:

        mnemoscope gate runs/mine --baseline baseline/metrics.json --max-drop recall@10=0.02

        mnemoscope gate runs/mine --baseline runs/old \\
            --max-drop recall@10=0.02 --max-drop mrr@50=0.03

        mnemoscope gate runs/mine --baseline runs/old --max-drop recall@10=0.02 \\
            --junit gate.xml --summary gate.md

    Parameters
    ----------
    run
        The run directory to check.
    baseline
        A run directory, or a metrics.json in our format or in that of pgmnemo.
    max_drop
        A metric and the largest drop allowed: METRIC=DROP. Repeatable.
    junit
        Also write the outcome to this file as JUnit XML: a test case for each metric.
    summary
        Also write six lines of Markdown to this file.
    json
        Print JSON instead of a table; its schema is in docs/schemas/gate.json.
    """
    from mnemoscope.reports.gate_outputs import gate_junit, gate_report, gate_summary

    found = api.gate(run, baseline=baseline, max_drop=_allowed(max_drop))
    told = gate_report(str(run), str(baseline), found.rows)
    for file, write in ((junit, gate_junit), (summary, gate_summary)):
        if file is not None:
            _write(file, write(told))
    if json:
        print_json(told)
    else:
        titles = ("baseline", "current", "drop", "allowed")
        rows: list[Cells] = [
            [row.metric, *(f"{getattr(row, name):.4f}" for name in titles), pass_cell(row.passed)]
            for row in found.rows
        ]
        print_table(("metric", *map(numeric, titles), ""), rows, frame="dense")
        say(out, "gate passed" if found.passed else "gate failed: a metric dropped too far")
    return 0 if found.passed else 1


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from None


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
        raise UsageError("--max-drop names a metric twice")
    return allowed
