"""A full disk stops a run with one clear error; with room again it ends as if nothing had been.

The disk is full for files above a size: RLIMIT_FSIZE, which needs no mount and no privilege.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.log_folder import logs

from mnemoscope._store.run_directory import RECORDED, RunDirectory

if TYPE_CHECKING:
    from tests.conftest import StartCommand

SYSTEMS = ("hostile_systems:Slow", "bm25", "random")
FOLDERS = ("hostile_systems-Slow", "bm25", "random")


@pytest.fixture(scope="module")
def locomo(write_locomo: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_locomo(tmp_path_factory.mktemp("data") / "locomo10.json")


def command(data: Path, out: Path, systems: tuple[str, ...] = SYSTEMS) -> list[object]:
    chosen = [part for name in systems for part in ("--system", name)]
    return ["run", "locomo", "--data", data, "--out", out, *chosen, "--no-arms", "--workers", 2]


@pytest.fixture(scope="module")
def undisturbed(
    locomo: Path, start_command: StartCommand, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out = tmp_path_factory.mktemp("undisturbed")
    process = start_command(command(locomo, out))
    assert process.wait() == 0, process.output
    return out


def journal(out: Path, folder: str) -> bytes:
    path = out / folder / "trials.jsonl"
    return path.read_bytes() if path.exists() else b""


def test_a_full_disk_gives_one_clear_error_and_loses_nothing(
    locomo: Path, undisturbed: Path, start_command: StartCommand, tmp_path: Path
) -> None:
    out, log = tmp_path / "out", logs(tmp_path) / "asked.txt"
    start = functools.partial(
        start_command, command(locomo, out), SLOW_LOG=log, MNEMOSCOPE_CACHE=tmp_path / "cache"
    )
    grown = 0
    for limit in (4_500, 9_000, 20_000, 40_000):
        process = start(file_bytes=limit)

        assert process.wait() == 1
        assert process.output.count("error:") == 1
        assert "File too large" in process.output or "disk I/O error" in process.output
        assert str(tmp_path) in process.output.replace("\n", ""), "which file is not said"
        assert "Traceback" not in process.output
        for folder in FOLDERS:
            assert journal(undisturbed, folder).startswith(journal(out, folder))
            assert RunDirectory(out / folder).manifest().state != "complete"
        assert sum(len(journal(out, folder)) for folder in FOLDERS) >= grown
        grown = sum(len(journal(out, folder)) for folder in FOLDERS)
    assert grown, "the last limit left no room for anything"

    process = start()

    assert process.wait() == 0, process.output
    for folder in FOLDERS:
        assert_same_bytes(out / folder, undisturbed / folder)


def assert_same_bytes(run: Path, expected: Path) -> None:
    for name in RECORDED:
        assert (run / name).read_bytes() == (expected / name).read_bytes(), f"{run.name}/{name}"


def test_a_full_disk_while_measuring_keeps_the_whole_journal(
    locomo: Path, undisturbed: Path, start_command: StartCommand, tmp_path: Path
) -> None:
    whole = journal(undisturbed, "random")
    figures = (undisturbed / "random" / "metrics.json").stat().st_size
    assert figures > len(whole), "no size admits the journal but not the figures"
    out = tmp_path / "out"
    start = functools.partial(start_command, command(locomo, out, ("random",)))

    process = start(file_bytes=len(whole))

    assert process.wait() == 1
    assert "metrics.json" in process.output.replace("\n", "")
    assert journal(out, "random") == whole
    assert not (out / "random" / "metrics.json").exists()

    process = start()

    assert process.wait() == 0, process.output
    assert_same_bytes(out / "random", undisturbed / "random")
