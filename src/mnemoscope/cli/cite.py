"""`mnemoscope cite`: the citation of a run, as text, BibTeX or CITATION.cff."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from mnemoscope import api
from mnemoscope._store.jsonl import write_atomically
from mnemoscope.cli.console import out as stdout
from mnemoscope.cli.console import say


def cite(
    run: Path,
    /,
    *,
    base: Path | None = None,
    format: Literal["text", "bibtex", "cff"] = "text",
    author: str = "",
    out: Path | None = None,
) -> None:
    """Print the citation of a run: values with intervals, protocol, artefacts and hashes.

    Both runs must be VERIFIED. With --base each value is shown as base → new, with the interval of
    the difference. An improvement is named only where the comparison says “better”.

    For example:

        mnemoscope cite runs/locomo/hybrid --base runs/locomo/bm25

        mnemoscope cite runs/locomo/hybrid --format cff --author "name of the author" \\
            --out CITATION.cff

    Parameters
    ----------
    run
        The run directory.
    base
        The run of the previous version.
    format
        The format.
    author
        Who made the run.
    out
        Write to this file instead.
    """
    content = getattr(api.cite(run, base=base, author=author), format)
    if out is None:
        say(stdout, content.rstrip("\n"), lines=True)
        return
    write_atomically(out, content.encode())
    say(stdout, f"written: {out}")
