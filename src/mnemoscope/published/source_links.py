"""Links to the sources of published numbers: a commit, a DOI or a thread, or none.

A link is only what the collection states, written as an address, or a file that was read at a
commit and contains the number. A page or a file without a version is no permalink: its text can
change, so that the number cannot be checked.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

LinkKind = Literal["permalink", "doi", "thread", "none"]

_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
_ISSUE = re.compile(r"\b([\w.-]+/[\w.-]+?)( PR)?#(\d+)")
_DISCUSSION = re.compile(r"\b([\w.-]+/[\w.-]+) discussions (\d+)")
_TABLE = re.compile(r"\b(Table \d+)")
_VIA = re.compile(r"\bvia (.+)$|table reproduced in (.+)$")
_OWNER = re.compile(r"^(?:quoted in )?([\w-]+)/[\w.-]+")


class SourceLink(NamedTuple):
    """Where a number can be looked up."""

    kind: LinkKind
    address: str = ""
    where: str = ""
    """The place in the source: a table, or the text through which it was read."""


def stated_link(source: str) -> SourceLink:
    """The link that a source states: the DOI of a paper, or a numbered thread; else none."""
    table, via = _TABLE.search(source), _VIA.search(source)
    parts = [table[1]] if table else []
    if via:
        parts.append(f"read in {via[1] or via[2]}")
    where = ", ".join(parts)
    if paper := _ARXIV.search(source):
        return SourceLink("doi", f"https://doi.org/10.48550/arXiv.{paper[1]}", where)
    if talk := _DISCUSSION.search(source):
        return SourceLink("thread", f"https://github.com/{talk[1]}/discussions/{talk[2]}", where)
    if thread := _ISSUE.search(source):
        part = "pull" if thread[2] else "issues"
        return SourceLink("thread", f"https://github.com/{thread[1]}/{part}/{thread[3]}", where)
    return SourceLink("none", "", where)


def file_link(repository: str, path: str, commit: str) -> str:
    """The permalink of a file at a commit."""
    return f"https://github.com/{repository}/blob/{commit}/{path}"


def publisher(source: str) -> str:
    """The owner of the repository that a source begins with; empty if it is something else."""
    found = _OWNER.match(source)
    return found[1] if found else ""
