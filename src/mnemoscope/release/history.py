"""HISTORY.md: the log of methodology changes, newest first; entries are added, never rewritten."""

from __future__ import annotations

import re
from pathlib import Path

from mnemoscope._store.errors import MissingData, UsageError
from mnemoscope._store.jsonl import write_atomically
from mnemoscope.analysis.compare import OVERALL, Comparison
from mnemoscope.release.tables import markdown, p_value, points, points_interval
from mnemoscope.release.timestamps import Moment

TITLE = "# Methodology history\n\nNewest first.\n"
_ENTRY = re.compile(r"^## ", re.MULTILINE)


def add_entry(
    file: Path,
    *,
    change: str,
    reason: str,
    when: Moment,
    author: str = "",
    impact: list[Comparison] | None = None,
) -> str:
    """Put an entry before all others; returns it."""
    if not change.strip() or not reason.strip():
        raise UsageError("an entry needs a change and a reason")
    text = file.read_text(encoding="utf-8") if file.exists() else TITLE
    first = _ENTRY.search(text)
    place = first.start() if first else len(text)
    lines = [
        f"## {when.at:%Y-%m-%d} {' '.join(change.split())}",
        f"- recorded: {when}" + (f", by {author}" if author else ""),
        f"- reason: {' '.join(reason.split())}",
    ]
    parts = [lines[0], "\n".join(lines[1:]), *map(_impact, impact or [])]
    entry = "\n\n".join(parts) + "\n"
    before = text[:place].rstrip("\n") + "\n\n"
    rest = "\n" + text[place:] if first else ""
    write_atomically(file, (before + entry + rest).encode())
    return entry


def read_history(file: Path) -> str:
    if not file.exists():
        raise MissingData(
            f"no history at {file}: add an entry with `mnemoscope release history add`"
        )
    return file.read_text(encoding="utf-8")


def _impact(comparison: Comparison) -> str:
    rows = [
        [
            row.metric,
            f"{row.base:.4f}",
            f"{row.cand:.4f}",
            f"{points(row.delta)} {points_interval(row)}",
            p_value(row.p_corrected),
        ]
        for row in comparison.rows
        if row.scope == OVERALL
    ]
    head = ["metric", "old", "new", "Δ [95 % CI]", "p_corrected"]
    return f"{comparison.benchmark}, {comparison.base} → {comparison.cand}:\n\n" + markdown(
        head, rows
    )
