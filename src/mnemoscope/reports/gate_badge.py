"""A badge that says whether a gate passed: an SVG, or the JSON that badge servers read."""

from __future__ import annotations

import json

from mnemoscope.text.display import as_html, one_line

LABEL = "memory gate"
_COLOURS = {True: ("brightgreen", "#2e7d32"), False: ("red", "#c62828")}
_LETTER = 7
"""Estimated width of a letter, in pixels."""


def badge_json(passed: bool, message: str) -> str:
    """The endpoint format of badge servers."""
    colour, _ = _COLOURS[passed]
    content = {"schemaVersion": 1, "label": LABEL, "message": one_line(message), "color": colour}
    return json.dumps(content, ensure_ascii=False) + "\n"


def badge_svg(passed: bool, message: str) -> str:
    """A picture that needs no server."""
    text, (_, colour) = one_line(message), _COLOURS[passed]
    left, right = (len(one) * _LETTER + 12 for one in (LABEL, text))
    shown = as_html(text)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{LABEL}: {shown}"><title>{LABEL}: {shown}</title>'
        f'<rect width="{left}" height="20" fill="#555"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,sans-serif" font-size="11">'
        f'<text x="{left / 2:g}" y="14">{LABEL}</text>'
        f'<text x="{left + right / 2:g}" y="14">{shown}</text></g></svg>\n'
    )
