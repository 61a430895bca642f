"""Builds the documentation site for tests, once for all test processes."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def build_site(folders: pytest.TempPathFactory) -> Path:
    """The built site, for reading; whichever process needs it first builds it."""
    own = folders.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "site-sources" / "site-is-built").exists():
            _build(shared / "site-sources")
            (shared / "site-sources" / "site-is-built").touch()
    return shared / "site-sources" / "site"


def _build(folder: Path) -> None:
    """Build from a copy: the build also writes a cache beside its settings."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder / "docs")
    shutil.copy(ROOT / "zensical.toml", folder)
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
