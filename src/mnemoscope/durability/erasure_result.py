"""The result of an erasure test, and its verdict."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from mnemoscope.durability.byte_search import FoundText

ErasureVerdict = Literal[
    "erased", "erased when closed", "kept on disk", "not forgotten", "no files", "unknown"
]


class ErasureResult(Struct, frozen=True, kw_only=True):
    """What was forgotten and what the files still contain, as erasure.json has it."""

    format: int
    system: str
    command: str
    verdict: ErasureVerdict
    reason: str = ""
    """Why nothing could be tested, if it could not."""
    forgotten: int = 0
    """Memories that the system was told to forget, and that it could find before."""
    still_recalled: list[str] = []
    """Those that it still returns."""
    kept: int = 0
    """Memories that it was not told to forget."""
    lost: list[str] = []
    """Those that it does not return any more."""
    visible: int = 0
    """Those of the kept memories whose texts the search sees in the files: the control."""
    while_open: list[FoundText] = []
    """Forgotten texts in the files after `forget` returned."""
    after_close: list[FoundText] = []
    """Forgotten texts in the files after the system had ended in the usual way."""
    files: int = 0
    bytes: int = 0
    unread: list[str] = []
    """Files that could not be searched, or not in full."""

    @property
    def texts_on_disk(self) -> int:
        return len({one.text for one in self.after_close})

    @property
    def passed(self) -> bool:
        return self.verdict in ("erased", "no files")


def verdict_of(
    *,
    forgotten: int,
    still_recalled: int,
    kept: int,
    visible: int,
    while_open: int,
    after_close: int,
    unread: int = 0,
) -> ErasureVerdict:
    """The verdict of a test in which memories were forgotten.

    A search that does not see the texts of most memories that are kept would not see deleted ones
    either, so it proves nothing; nor does one that could not read some of the files.
    """
    if after_close:
        return "kept on disk"
    if still_recalled:
        return "not forgotten"
    if not forgotten or 2 * visible < kept or unread:
        return "unknown"
    return "erased when closed" if while_open else "erased"
