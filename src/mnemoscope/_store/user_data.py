"""The user's data folder, which holds the ledger of attempts."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def user_data_folder() -> Path:
    """MNEMOSCOPE_DATA_HOME, or the user's data folder."""
    chosen = os.environ.get("MNEMOSCOPE_DATA_HOME")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_data_dir("mnemoscope"))
