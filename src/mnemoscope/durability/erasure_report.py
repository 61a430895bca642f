"""The sentences and the table of an erasure test."""

from __future__ import annotations

from mnemoscope.durability.erasure_result import ErasureResult
from mnemoscope.reports.tables import (
    Block,
    Heading,
    NoteList,
    Paragraph,
    ReportTable,
    TableColumn,
    numeric,
)

_MOST_LISTED = 8
_LIMITS = (
    "searched: the bytes of all files of the storage, in UTF-8, UTF-16, base64, hexadecimal and "
    "backwards, also inside zlib, gzip, ZIP, bzip2, xz and zstd. Not searched: encrypted or "
    "otherwise encoded copies, vectors made from a text, blocks that the file system has freed, "
    "backups, and servers that keep their files elsewhere"
)


def blocks(result: ErasureResult) -> list[Block]:
    """The page of an erasure test."""
    found: list[Block] = [
        Heading(f"Erasure: {result.system}", 1, only="markdown"),
        Paragraph(sentence(result), style="bold"),
    ]
    if result.after_close:
        rows: dict[tuple[str, str, str], set[str]] = {}
        for one in result.after_close:
            rows.setdefault((one.file, one.place, one.form), set()).add(one.text)
        table = ReportTable(
            [
                TableColumn("file"),
                TableColumn("place"),
                TableColumn("written as"),
                numeric("texts"),
            ]
        )
        for (file, place, form), texts in list(rows.items())[:_MOST_LISTED]:
            table.rows.append([file, place, form, f"{len(texts):,}"])
        found.append(table)
        if len(rows) > _MOST_LISTED:
            found.append(Paragraph(f"and {len(rows) - _MOST_LISTED:,} further places"))
    return [*found, NoteList(notes(result))]


def sentence(result: ErasureResult) -> str:
    """The answer in one sentence."""
    name, n = result.system, result.forgotten
    match result.verdict:
        case "no files":
            return f"{name} has no files to search: {result.reason}."
        case "kept on disk":
            return (
                f"{name} keeps deleted texts on disk: {result.texts_on_disk:,} of {n:,} forgotten "
                "memories are still in its files."
            )
        case "not forgotten":
            why = result.reason or (
                f"{len(result.still_recalled):,} of {n:,} memories are still returned after forget"
            )
            return f"{name} does not forget: {why}."
        case "unknown" if not n:
            return f"{name}: no memory could be found by its own text, so none can be missed."
        case "unknown" if 2 * result.visible >= result.kept:
            return (
                f"{name}: not known. {len(result.unread):,} of its files or folders could not be "
                "searched, or not in full."
            )
        case "unknown":
            return (
                f"{name}: not known. The texts that it keeps are not visible in its files either "
                f"({result.files:,} files, {result.bytes:,} bytes), so the search proves nothing."
            )
        case "erased when closed":
            left = len({one.text for one in result.while_open})
            return (
                f"{name} erases deleted texts only when it ends: until then {left:,} of {n:,} "
                "forgotten memories were in its files."
            )
    return (
        f"{name} erases: none of {n:,} forgotten memories is in its {result.files:,} files, in "
        f"which {result.visible:,} of {result.kept:,} kept ones are visible."
    )


def notes(result: ErasureResult) -> list[str]:
    """What a reader must know beside the verdict."""
    found = []
    if result.lost:
        found.append(f"{len(result.lost):,} memories are gone that were not to be forgotten")
    if result.still_recalled and result.verdict == "kept on disk":
        found.append(f"{len(result.still_recalled):,} memories are still returned after forget")
    found += [f"not searched: {one}" for one in result.unread[:_MOST_LISTED]]
    return [*found, *([_LIMITS] if result.files else [])]
