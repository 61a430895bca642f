"""`mnemoscope metrics`: list the metrics, check one of your own."""

from __future__ import annotations

from cyclopts import App

from mnemoscope.cli.console import out, print_json, print_problems, say

app = App(name="metrics", help="The metrics of rankings.")


@app.command(name="list")
def list_metrics(*, json: bool = False) -> None:
    """List the metrics with their definitions, those of plug-ins included.

    For example:

        mnemoscope metrics list

    Parameters
    ----------
    json
        Print JSON instead of a table.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from mnemoscope.metrics import installed_metrics

    rows = [
        {
            "name": metric.name if metric.at == "all" else f"{metric.name}@k",
            "definition": " ".join((type(metric).__doc__ or "").split()),
            "interval": metric.interval,
            "also called": ", ".join(metric.aliases),
        }
        for metric in installed_metrics().values()
    ]
    if json:
        print_json(rows)
        return
    table = Table(*rows[0], box=box.SIMPLE_HEAD)
    for row in rows:
        first, *rest = row.values()
        table.add_row(Text(first, "bold cyan"), *map(Text, rest))
    out.print(table)
    say(out, "Your own: `mnemoscope new metric NAME`, or the entry-point group mnemoscope.metrics")


@app.command
def check(spec: str, /) -> int:
    """Check a metric: values from 0 to 1, chance against random rankings, the ceiling.

    The exit code is 0 if it keeps its promises and 1 if not.

    For example:

        mnemoscope metrics check ndcg

        mnemoscope metrics check my_metric:MyMetric

    Parameters
    ----------
    spec
        A metric's name, or your own `module:Name`.
    """
    from mnemoscope.metrics import METRICS, check_metric

    loaded = METRICS.get(spec)
    return print_problems(spec, check_metric(loaded() if isinstance(loaded, type) else loaded))
