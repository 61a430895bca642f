"""How a published number is written for people."""

from __future__ import annotations

from mnemoscope.published.published_results import Published


def number(row: Published) -> str:
    """Fractions with as many places as were printed; the rest with its unit."""
    if row.unit == "change":
        return f"{row.value:.1%}"
    if row.unit != "fraction":
        return f"{row.value:,g} {row.unit}".replace(" x", "×")
    _, _, places = row.as_printed.value.partition(".")
    return f"{row.value:.{len(places) + 2 * (row.as_printed.unit == 'percent')}f}"
