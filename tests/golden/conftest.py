"""Runs that several golden tests read."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.datasets import open_dataset
from mnemoscope.runner.run import run
from mnemoscope.systems.loader import plan

SYSTEMS = ("bm25", "hybrid", "random", "oracle")


@pytest.fixture(scope="session")
def locomo_runs(
    shared_data: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, RunDirectory]:
    """Sessions of LoCoMo, recalled by four systems; made once for all processes of pytest."""
    data = shared_data("locomo")
    base = tmp_path_factory.getbasetemp()
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    out, made = root / "locomo-sessions", root / "locomo-sessions.made"
    with (root / "locomo-sessions.lock").open("w") as lock, pytest.MonkeyPatch.context() as patch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            # A cache that no test has opened in this process: SQLite does not survive a fork.
            patch.setenv("MNEMOSCOPE_CACHE", str(tmp_path_factory.mktemp("locomo-cache")))
            run(open_dataset("locomo", data, {}), [plan(Spec.parse(one)) for one in SYSTEMS], out)
            made.touch()
    return {name: RunDirectory(out / name) for name in SYSTEMS}
