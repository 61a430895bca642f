"""HISTORY.md: the log of methodology changes, newest first. Entries are only added."""

from __future__ import annotations

import re
from pathlib import Path

from mnemoscope._store.errors import MissingData, UsageError
from mnemoscope._store.jsonl import read_text, write_atomically
from mnemoscope.analysis.comparison import Comparison
from mnemoscope.release.claims import refuse_claims
from mnemoscope.release.report_tables import impact_table
from mnemoscope.release.state import Moment
from mnemoscope.reports.render_markdown import table
from mnemoscope.text.display import as_markdown

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
    """Add an entry before all others, and return it."""
    if not change.strip() or not reason.strip():
        raise UsageError("an entry needs --change and --reason")
    refuse_claims(change, "--change")
    refuse_claims(reason, "--reason")
    text = read_text(file) if file.exists() else TITLE
    first = _ENTRY.search(text)
    place = first.start() if first else len(text)
    by = f", by {author}" if author else ""
    parts = [
        f"## {when.at:%Y-%m-%d} {' '.join(change.split())}",
        f"- recorded: {when}{by}\n- reason: {' '.join(reason.split())}",
        *(
            f"{one.benchmark}, {as_markdown(one.base)} → {as_markdown(one.cand)}:\n\n"
            f"{table(impact_table(one))}"
            for one in impact or []
        ),
    ]
    entry = "\n\n".join(parts) + "\n"
    before = text[:place].rstrip("\n") + "\n\n"
    rest = "\n" + text[place:] if first else ""
    write_atomically(file, (before + entry + rest).encode())
    return entry


def read_history(file: Path) -> str:
    if not file.exists():
        raise MissingData(
            f"{file} does not exist: add an entry with `mnemoscope release history add`"
        )
    return read_text(file)
