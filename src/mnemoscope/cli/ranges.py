"""`mnemoscope ranges`: which checkpoints a text of ranges means."""

from __future__ import annotations

from mnemoscope.cli.console import out, print_json

RANGES = "30d,90d,6mo,1y,full"


def ranges(ranges: str = RANGES, /, *, json: bool = False) -> None:
    """Show which checkpoints a text of ranges means.

    For example:

        mnemoscope ranges

        mnemoscope ranges 7-1000/7

    Parameters
    ----------
    ranges
        Aliases (30d, 90d, 6mo, 1y, full), day counts, months (3mo), years (2y), a series
        START-END/STEP, or LABEL:DAYS, with commas between.
    json
        Print JSON instead of a table.
    """
    from rich import box
    from rich.table import Table

    from mnemoscope.datasets.checkpoint_plan import FULL, parse_ranges

    found = parse_ranges(ranges)
    if json:
        print_json([one._asdict() for one in found])
        return
    table = Table("checkpoint", "days remembered", box=box.SIMPLE_HEAD)
    for one in found:
        table.add_row(one.label, "all there are" if one.days == FULL else f"{one.days:,}")
    out.print(table)
