"""Import your own memories as a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mnemoscope.api.arguments import Where
from mnemoscope.importers.import_memories import Advance, Imported, SecretPolicy, import_source
from mnemoscope.importers.source_record import FieldNames, ImportSource

if TYPE_CHECKING:
    from mnemoscope.importers.source_record import DateOrder


def import_memories(
    source: Where,
    out: Where,
    *,
    kind: str | None = None,
    table: str = "",
    text: str = "",
    time: str = "",
    id: str = "",
    session: str = "",
    speaker: str = "",
    where: str = "",
    files: str = "",
    section_above: int = 2000,
    file_times: bool = False,
    date_order: DateOrder | None = None,
    secrets: SecretPolicy = "mask",
    private: bool = False,
    overwrite: bool = False,
    advance: Advance | None = None,
) -> Imported:
    """Import notes, chats or a memory store as a dataset folder that `strata` reads.

    The arguments are those of `mnemoscope import`. `advance` is called now and then with the number
    of memories so far and the share of the source that was read.
    """
    return import_source(
        ImportSource(
            Path(source).expanduser(),
            FieldNames(text, time, id, session, speaker),
            table=table,
            where=where,
            files=files,
            section_above=section_above,
            file_times=file_times,
            date_order=date_order,
        ),
        Path(out).expanduser(),
        kind=kind,
        secrets=secrets,
        private=private,
        overwrite=overwrite,
        advance=advance,
    )
