"""The user's data folder, which holds the ledger of attempts."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

_kept: Path | None = None


def user_data_folder() -> Path:
    """MNEMOSCOPE_DATA_HOME, or the user's data folder."""
    if _kept is not None:
        return _kept
    chosen = os.environ.get("MNEMOSCOPE_DATA_HOME")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_data_dir("mnemoscope"))


def keep_user_data_folder() -> None:
    """Keep the folder of now, in a process whose environment a system may change."""
    global _kept
    _kept = user_data_folder()
