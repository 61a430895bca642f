"""The formats of exports, what each can hold, and why it cannot hold the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from mnemoscope._store.errors import UsageError

ExportFormat = Literal[
    "csv", "json", "jsonl", "parquet", "latex", "markdown", "trec", "ranx", "ir-measures", "mteb"
]
ExportContent = Literal["figures", "questions", "rankings", "comparison"]

RANKING_FORMATS = ("trec", "ranx", "ir-measures")
_TABLES = ("latex", "markdown")
_LONG = "a {} table of so many rows cannot be read: export csv, json, jsonl or parquet"
_RANKINGS = "{} files hold rankings and judgments, not {}: export csv or json"
_MTEB = "a result of MTEB holds the figures of one system, not {}: export csv or json"
SUFFIXES: Mapping[str, str] = {"latex": "tex", "markdown": "md"}


def content_of(format: str, what: str | None) -> ExportContent:
    """What is exported: the default of the format, or what was asked for if it can hold that."""
    if format not in get_args(ExportFormat):
        raise UsageError(
            f"unknown format {format!r}; there are {', '.join(get_args(ExportFormat))}"
        )
    chosen = what or ("rankings" if format in RANKING_FORMATS else "figures")
    for content in get_args(ExportContent):
        if content == chosen:
            if why := _refusal(format, chosen):
                raise UsageError(why)
            found: ExportContent = content
            return found
    raise UsageError(f"unknown content {what!r}; there are {', '.join(get_args(ExportContent))}")


def _refusal(format: str, what: str) -> str:
    """Why a format cannot hold this; empty if it can."""
    if format in _TABLES and what in ("questions", "rankings"):
        return _LONG.format({"latex": "LaTeX", "markdown": "Markdown"}[format])
    if format in RANKING_FORMATS and what != "rankings":
        return _RANKINGS.format(format, what)
    if format == "mteb" and what != "figures":
        return _MTEB.format(what)
    return ""
