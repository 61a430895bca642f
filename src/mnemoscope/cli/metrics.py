"""`mnemoscope metrics`: list the metrics, check your own."""

from __future__ import annotations

from cyclopts import App

from mnemoscope.cli.console import (
    name_cell,
    out,
    print_json,
    print_problems,
    print_table,
    say,
)

app = App(name="metrics", help="List and check the metrics of rankings.")


@app.command(name="list")
def list_metrics(*, json: bool = False) -> None:
    """List the metrics with their definitions, including those of plug-ins.

    For example:

        mnemoscope metrics list

    Parameters
    ----------
    json
        Print JSON instead of a table.
    """
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
    print_table([*rows[0]], [(name_cell(row.pop("name")), *row.values()) for row in rows])
    say(out, "Your own: `mnemoscope new metric NAME`, or the entry-point group mnemoscope.metrics")


@app.command
def check(spec: str, /) -> int:
    """Check a metric: its range from 0 to 1, its chance level on random rankings, its ceiling.

    The exit code is 0 if the metric passes and 1 if not.

    For example:

        mnemoscope metrics check ndcg

        mnemoscope metrics check my_metric:MyMetric

    Parameters
    ----------
    spec
        The name of a metric, or your own `module:Name`.
    """
    from mnemoscope.metrics import METRICS, check_metric

    loaded = METRICS.get(spec)
    return print_problems(spec, check_metric(loaded() if isinstance(loaded, type) else loaded))
