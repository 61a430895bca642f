"""`mnemoscope compare` with three or more runs: all pairs of systems with one correction."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mnemoscope import api
from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import out, print_json, write_markdown


def compare_many(runs: Sequence[Path], metric: str, *, markdown: Path | None, json: bool) -> int:
    """Print groups, ranks and pairs; there is no candidate, so the exit code is 0."""
    from mnemoscope.reports import group_tables, render_terminal

    if "," in metric:
        raise UsageError("--metrics: several runs are compared by one metric, such as recall@10")
    groups = api.compare_many(runs, metric=metric.strip()).groups
    blocks = group_tables.group_blocks(groups)
    if markdown is not None:
        write_markdown(markdown, blocks)
    if json:
        print_json(groups)
    else:
        out.print(render_terminal.render(blocks))
    return 0
