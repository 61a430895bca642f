"""What all tests share: where the data beside the repository lies."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Find ../shared/data/NAME; MNEMOSCOPE_SHARED names another root than ../shared.

    Missing data skips the test, or fails it where MNEMOSCOPE_REQUIRE_ALL=1 says that a skipped
    test would hide something.
    """
    root = Path(os.environ.get("MNEMOSCOPE_SHARED") or REPOSITORY.parent / "shared")

    def find(name: str) -> Path:
        path = root / "data" / name
        if not path.exists():
            reason = f"no shared data at {path}"
            if os.environ.get("MNEMOSCOPE_REQUIRE_ALL") == "1":
                pytest.fail(reason)
            pytest.skip(reason)
        return path

    return find
