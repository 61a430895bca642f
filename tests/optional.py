"""What a test does where something that it needs is not on this machine."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(reason: str, *, required: bool = True) -> NoReturn:
    """Skip; or fail where MNEMOSCOPE_REQUIRE_ALL=1 says that a skip would hide something.

    What CI cannot have, it cannot require.
    """
    if required and os.environ.get("MNEMOSCOPE_REQUIRE_ALL") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason, allow_module_level=True)
