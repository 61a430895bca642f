"""Citations of published numbers: each with its conditions, its source, its link and its marks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

from mnemoscope.published.cohorts import cohort_of
from mnemoscope.published.published_results import Published, number

_BRACES = re.compile(r"[{}\\]")


def citation(row: Published) -> str:
    """One number as a sentence that can be checked."""
    parts = [f"{row.system}: {number(row)} ({cohort_of(row).description})"]
    source = row.source + (f", {row.year}" if row.year else "")
    parts.append(f"{source}, reported by {row.reported_by}")
    if row.where:
        parts.append(row.where)
    if row.link:
        parts.append(row.link + (f" (read {row.read_on})" if row.read_on else ""))
    if row.marks:
        parts.append(f"[{'; '.join(row.marks)}]")
    return ". ".join(parts)


def bibtex(rows: Iterable[Published]) -> str:
    """One entry for each source, with the numbers that are cited from it in its note."""
    by_source: dict[tuple[str, str], list[Published]] = {}
    for row in rows:
        by_source.setdefault((row.source, row.link), []).append(row)
    return "\n\n".join(_entry(own) for own in by_source.values())


def _entry(rows: Sequence[Published]) -> str:
    first = rows[0]
    digest = hashlib.sha256(f"{first.source} {first.link}".encode()).hexdigest()[:8]
    stem = re.sub(r"[^A-Za-z0-9]+", "", first.source.split("/")[0])[:24].lower()
    fields = {"title": first.source}
    if first.year:
        fields["year"] = str(first.year)
    if first.link_kind == "doi":
        fields["doi"] = first.link.removeprefix("https://doi.org/")
    elif first.link:
        fields["howpublished"] = f"\\url{{{first.link}}}"
    if first.read_on:
        fields["urldate"] = first.read_on
    cited = "; ".join(f"{row.system} {number(row)}" for row in rows)
    marks = dict.fromkeys(mark for row in rows for mark in row.marks)
    fields["note"] = cited + (f" [{', '.join(marks)}]" if marks else "")
    lines = [
        f"  {name} = {{{text if name == 'howpublished' else _BRACES.sub('', text)}}},"
        for name, text in fields.items()
    ]
    return "\n".join([f"@misc{{{stem or 'source'}{digest},", *lines, "}"])
