"""`mnemoscope protocols`: list and show the frozen rules for runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cyclopts import App
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mnemoscope.cli.console import name_cell, out, print_json, print_table
from mnemoscope.reports.tables import Lines

if TYPE_CHECKING:
    from mnemoscope.protocols import Benchmark, Chosen, PublishedBaseline

app = App(name="protocols", help="List and show protocols: frozen rules to run and verify under.")


@app.command(name="list")
def list_protocols(*, json: bool = False) -> None:
    """List the protocols with their variants and benchmarks.

    For example:

        mnemoscope protocols list

    Parameters
    ----------
    json
        Print JSON instead of a table.
    """
    from mnemoscope.protocols import load_protocol, protocol_names

    found = [load_protocol(name) for name in protocol_names()]
    if json:
        print_json([{"id": one.protocol.id, "sha256": one.sha256} for one in found])
        return
    rows = []
    for protocol in (one.protocol for one in found):
        variants = protocol.variants
        benchmarks = dict.fromkeys(name for each in variants.values() for name in each.benchmarks)
        names = (Lines("\n".join(variants)), Lines("\n".join(benchmarks)))
        rows.append((name_cell(protocol.id), protocol.summary, *names))
    print_table(("protocol", "description", "variants", "benchmarks"), rows)


@app.command
def show(name: str, /, *, json: bool = False) -> None:
    """Show the requirements of a protocol.

    For example:

        mnemoscope protocols show mnemoscope-retrieval-1

        mnemoscope protocols show pgmnemo-recall-1.0.0:faithful

    Parameters
    ----------
    name
        The protocol. `NAME:VARIANT` selects another variant than the first.
    json
        Print JSON instead of text.
    """
    from mnemoscope.protocols import load_protocol

    chosen = load_protocol(name)
    if json:
        print_json({"id": chosen.id, "sha256": chosen.sha256, "protocol": chosen.protocol})
        return
    out.print(_page(chosen))


def _page(chosen: Chosen) -> RenderableType:
    protocol = chosen.protocol
    variant = protocol.variants[chosen.variant]
    parts: list[RenderableType] = [
        Text(chosen.id, "bold cyan"),
        Text(protocol.summary),
        Text(variant.summary, "italic"),
        Text(),
        _facts(
            {
                "cite as": protocol.cite,
                "released": protocol.released,
                "sha256": chosen.sha256,
                "variants": ", ".join(protocol.variants),
                "depth": str(protocol.depth),
                "seed": str(protocol.seed),
                "embedder": protocol.embedder or "--",
                "baselines": ", ".join(protocol.arms),
                "recorded facts": ", ".join(protocol.record),
                "artefacts": ", ".join(protocol.artefacts),
                "gates": ", ".join(protocol.gates),
                "coverage": f"at least {protocol.min_coverage:.0%}",
            }
        ),
    ]
    for name, rules in variant.benchmarks.items():
        parts += [Text(), Text(name, "bold"), _facts(_rules(rules))]
    return Group(*parts)


def _rules(rules: Benchmark) -> dict[str, str]:
    def count(n: int) -> str:
        return f"{n:,}" if n else "those of your data"

    return {
        "options": ", ".join(f"{key}={value}" for key, value in rules.options.items()),
        "data sha256": ", ".join(rules.sha256) or "that of your data",
        "questions": count(rules.questions),
        "with evidence": count(rules.measured),
        "memories": count(rules.memories),
        "primary": rules.primary,
        "secondary": rules.secondary,
        "metrics": ", ".join(rules.metrics),
        "variance": ", ".join(f"{name} ±{band}" for name, band in rules.variance.items()),
        **{f"baseline {version}": _baseline(one) for version, one in rules.baselines.items()},
    }


def _baseline(one: PublishedBaseline) -> str:
    figures = [
        f"{metric} {figure.mean} [{', '.join(map(str, figure.ci95))}]"
        if figure.ci95
        else f"{metric} {figure.mean} (no interval published)"
        for metric, figure in one.figures.items()
    ]
    return f"{', '.join(figures)}; embedder {one.embedder}; {one.source}"


def _facts(facts: dict[str, str]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in facts.items():
        table.add_row(key, Text(value))
    return table
