"""`mnemoscope import`: your notes, chats or memory store as a dataset folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from mnemoscope.cli.console import err, out, print_json, progress_bar, say
from mnemoscope.importers.source_record import DateOrder


def import_source(
    source: Path,
    /,
    *,
    out_folder: Annotated[Path, Parameter(name="--out")],
    kind: str | None = None,
    table: str | None = None,
    text: str | None = None,
    time: str | None = None,
    id: str | None = None,
    session: str | None = None,
    speaker: str | None = None,
    where: str | None = None,
    files: str | None = None,
    section_above: int = 2000,
    file_times: bool = False,
    date_order: DateOrder | None = None,
    secrets: Literal["mask", "withhold", "fail"] = "mask",
    private: bool = False,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Import your notes, chats or memory store as a dataset folder.

    The kind of the source is detected: notes, chatgpt, claude, slack, whatsapp, sqlite, csv, jsonl,
    mem0, claude-memory, letta or mcp-graph. Times are kept. What is deleted or marked as sensitive
    in the source is left out, and secrets are masked. The source is not changed.

    For example:

        mnemoscope import ~/notes --out my-memory

        mnemoscope import chatgpt-export.zip --out my-memory --private

        mnemoscope import store.db --out my-memory --table notes --text body --time written

        mnemoscope import log.jsonl --out my-memory --text message.content --time created

        mnemoscope import ~/vault --out my-memory --secrets withhold

    Then draft questions, and run systems: `mnemoscope run strata --data my-memory --system bm25`.

    Parameters
    ----------
    source
        A folder, a file or a zip file.
    out_folder
        The dataset folder to write: corpus.jsonl, import.json, left-out.jsonl.
    kind
        The kind of the source, if it is not detected rightly.
    table
        sqlite: the table with the memories.
    text
        sqlite, csv, jsonl: the column or field with the text. Of jsonl also a path, such as a.b[0].
    time
        sqlite, csv, jsonl: the column with the time.
    id
        sqlite, csv, jsonl: the column with a unique id.
    session
        sqlite, csv, jsonl: the column with the conversation.
    speaker
        sqlite, csv, jsonl: the column with the speaker.
    where
        sqlite: import only rows for which this SQL condition holds.
    files
        notes: patterns of file names, separated by commas. Default: Markdown and text files.
    section_above
        notes: a note with more characters is split at its headings, else at blank lines.
    file_times
        notes: use the time of the file, if neither the front matter nor the name has a date.
    date_order
        whatsapp: the order of day, month and year, if it cannot be decided from the dates.
    secrets
        What to do with passwords, keys and tokens: mask them, withhold the whole memory, or fail.
    private
        Keep all texts in this folder: it gets a .gitignore, and runs record only ids and figures.
    overwrite
        Import again into a folder that an import made. Questions in it stay as they are.
    json
        Print what was imported as JSON.
    """
    from mnemoscope.api import import_memories

    with progress_bar(f"import {source.name}", 1.0) as bar:

        def advance(memories: int, share: float | None) -> None:
            bar.update(
                bar.task_ids[0],
                completed=share or 0,
                count=f"{memories:,} memories",
                refresh=True,
            )

        done = import_memories(
            source,
            out_folder,
            kind=kind,
            table=table or "",
            text=text or "",
            time=time or "",
            id=id or "",
            session=session or "",
            speaker=speaker or "",
            where=where or "",
            files=files or "",
            section_above=section_above,
            file_times=file_times,
            date_order=date_order,
            secrets=secrets,
            private=private,
            overwrite=overwrite,
            advance=advance,
        )
    record = done.record
    if json:
        print_json(record)
        return
    for note in done.notes:
        say(err, note, before="[yellow]note:[/] ")
    timed = f"{record.with_time:,} with a time"
    if record.first and record.last:
        timed += f", {record.first:%Y-%m-%d} to {record.last:%Y-%m-%d}"
    say(out, f"{out_folder}: {record.memories:,} memories of kind {record.kind} ({timed})")
    for reason, n in record.left_out.items():
        say(out, f"  left out: {n:,} {reason}")
    if record.secrets:
        did = "masked" if record.secrets_were == "mask" else "withheld"
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in record.secrets.items())
        say(out, f"  secrets {did}: {kinds}")
        for secret in done.secrets:
            say(out, f"    {secret.place}: {secret.kind}")
        if (more := sum(record.secrets.values()) - len(done.secrets)) > 0:
            say(out, f"    and {more:,} more")
    if record.left_out or record.secrets:
        say(out, f"  each with its place: {out_folder / 'left-out.jsonl'}")
    if private:
        say(out, f"  private: texts stay in {out_folder}, which git ignores except import.json")
