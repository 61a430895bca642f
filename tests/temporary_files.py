"""Where temporary files of tests are: in memory if there is room, because they are many and small.

/dev/shm is open to every locked system, so the tests of locks import the fixtures of this module
and get folders on the disk.
"""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")
_PREFIX = "mnemoscope-tests-"
_ROOM = 12 << 30
"""Bytes that must be free; all tests together write about 3 GB."""


def use_memory() -> Path | None:
    """Let the temporary files of this process and its children be in memory; the folder, if any.

    Someone who sets TMPDIR has chosen a place.
    """
    if "TMPDIR" in os.environ or not _has_room():
        return None
    for old in _MEMORY.glob(f"{_PREFIX}*"):  # those of a run that failed or was killed
        if not Path("/proc", old.name.removeprefix(_PREFIX)).exists():
            shutil.rmtree(old, ignore_errors=True)
    folder = _MEMORY / f"{_PREFIX}{os.getpid()}"
    # Others may pass through, not look: PostgreSQL refuses to run as root, and becomes `nobody`.
    folder.mkdir(mode=0o711)
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None
    return folder


def _has_room() -> bool:
    with suppress(OSError):
        fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        available = int(fields["MemAvailable"].split()[0]) << 10
        return min(shutil.disk_usage(_MEMORY).free, available) > _ROOM
    return False


@pytest.fixture(scope="session")
def tmp_path_factory(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[pytest.TempPathFactory]:
    """As pytest's own, with its folders on the disk."""
    on_disk = copy.copy(tmp_path_factory)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=_disk()) as folder:
        on_disk._basetemp = Path(folder).resolve()
        yield on_disk


@pytest.fixture(scope="module", autouse=True)
def temporary_files_on_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", _disk())
        patch.setattr(tempfile, "tempdir", None)
        yield


def _disk() -> str:
    """The folder for temporary files that is not in memory."""
    chosen = os.environ.get("TMPDIR", "/tmp")
    return "/tmp" if Path(chosen).is_relative_to(_MEMORY) else chosen
