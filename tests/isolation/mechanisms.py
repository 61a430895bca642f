"""The locks that tests use on this machine."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from tests.optional import missing

from mnemoscope.isolation import lock
from mnemoscope.isolation.landlock import landlock_abi
from mnemoscope.runner import isolation_setup

LOCKS: tuple[lock.Mechanism, ...] = ("Landlock", "bubblewrap")


def require(mechanism: lock.Mechanism) -> None:
    """Skip the test where the machine does not have this lock."""
    if mechanism == "Landlock" and landlock_abi() == 0:
        missing("this machine has no Landlock")
    if mechanism == "bubblewrap":
        command = ["bwrap", "--bind", "/", "/", *lock._BWRAP, "true"]
        if shutil.which("bwrap") is None:
            missing("this machine has no bubblewrap")
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("this machine does not allow bubblewrap to make namespaces")


def use(mechanism: lock.Mechanism, patch: pytest.MonkeyPatch) -> None:
    """Let runs in this process lock their children with it."""
    require(mechanism)
    patch.setattr(isolation_setup, "best_mechanism", lambda: mechanism)
