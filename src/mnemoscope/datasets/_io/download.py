"""Downloads: resumed after an interruption, and verified before they get their final name.

Until its sha256 matches the pin, a file is a `.part` file, which the next call continues.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.private_files import make_private_folder, write_private
from mnemoscope.datasets.base import PinnedFile

_BLOCK = 1 << 18
_TRIES = 5
_TIMEOUT = 60

Progress = Callable[[int, int | None], None]
"""Called with the bytes received and the expected total."""


class DownloadError(MnemoscopeError):
    """A download that could not be completed or verified."""


def download(file: PinnedFile, target: Path, progress: Progress = lambda have, of: None) -> str:
    """Download `file` to `target` unless it is there; return its sha256."""
    if target.exists():
        found = sha256_file(target)
        if file.sha256 in (None, found):
            return found
        raise DownloadError(
            f"{target} exists, but its sha256 is {found}, not the pinned {file.sha256}; "
            "remove it to download it again"
        )
    missing = [folder for folder in target.parents if not folder.exists()]
    make_private_folder(target.parent)
    part = target.with_name(target.name + ".part")
    try:
        digest = _receive_all(file, part, progress)
    except BaseException:
        _remove_empty(part, missing)
        raise
    if file.sha256 is not None and digest != file.sha256:
        part.unlink()
        _remove_empty(part, missing)
        raise DownloadError(
            f"{file.url}: the content has sha256 {digest}, not the pinned {file.sha256}; "
            "the download was deleted"
        )
    part.replace(target)
    return digest


def _remove_empty(part: Path, folders: Sequence[Path]) -> None:
    """Remove what a failed download made, except bytes that the next call continues."""
    if part.exists() and part.stat().st_size == 0:
        part.unlink()
    with suppress(OSError):  # a folder that is not empty
        for folder in folders:
            folder.rmdir()


def _receive_all(file: PinnedFile, part: Path, progress: Progress) -> str:
    failure: Exception | None = None
    for _ in range(_TRIES):
        before = part.stat().st_size if part.exists() else 0
        try:
            return _receive(file, part, progress)
        except urllib.error.HTTPError as error:
            if error.code == 416:  # the part does not match the file of the server
                part.unlink(missing_ok=True)
            elif error.code < 500:
                raise DownloadError(
                    f"{file.url}: the server replied {error.code} {error.reason}"
                ) from None
            failure = error
        except (OSError, http.client.HTTPException) as error:
            failure = error
            after = part.stat().st_size if part.exists() else 0
            if after == before and isinstance(error, urllib.error.URLError):
                break
    kept = ""
    if part.exists():
        kept = f"; {part.stat().st_size:,} bytes are kept, and the next call continues there"
    raise DownloadError(f"cannot download {file.url}: {failure}{kept}")


def _receive(file: PinnedFile, part: Path, progress: Progress) -> str:
    digest = hashlib.sha256()
    have = 0
    if part.exists():
        with part.open("rb") as begun:
            while block := begun.read(_BLOCK):
                digest.update(block)
                have += len(block)
    if file.bytes is not None and have == file.bytes:
        return digest.hexdigest()
    request = urllib.request.Request(file.url, headers={"User-Agent": "mnemoscope"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as reply:
        if have and reply.status != 206:  # the server sends the whole file
            digest, have = hashlib.sha256(), 0
        length = reply.headers.get("Content-Length")
        expected = have + int(length) if length else None
        with write_private(part, append=have > 0) as out:
            while block := reply.read(_BLOCK):
                out.write(block)
                digest.update(block)
                have += len(block)
                progress(have, expected)
            out.flush()
            os.fsync(out.fileno())
    if expected is not None and have < expected:
        raise http.client.IncompleteRead(b"", expected - have)
    return digest.hexdigest()
