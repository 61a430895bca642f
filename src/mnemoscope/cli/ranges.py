"""`mnemoscope ranges`: show the checkpoints that --ranges selects."""

from __future__ import annotations

from mnemoscope.cli.console import print_json, print_table

RANGES = "30d,90d,6mo,1y,full"


def ranges(*ranges: str, json: bool = False) -> None:
    """Show the checkpoints that a value of --ranges selects.

    For example:

        mnemoscope ranges

        mnemoscope ranges 7-1000/7

        mnemoscope ranges 30d 90d full

    Parameters
    ----------
    ranges
        Separated by commas or spaces: aliases (30d, 90d, 6mo, 1y, full), day counts, months (3mo),
        years (2y), a series START-END/STEP, or LABEL:DAYS.
    json
        Print JSON instead of a table.
    """
    from mnemoscope.datasets.checkpoint_plan import FULL, parse_ranges

    found = parse_ranges(",".join(ranges or [RANGES]))
    if json:
        print_json([one._asdict() for one in found])
        return
    print_table(
        ("checkpoint", "days ingested"),
        [(one.label, "all" if one.days == FULL else f"{one.days:,}") for one in found],
    )
