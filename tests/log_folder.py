"""Where systems under test write their logs."""

from __future__ import annotations

from pathlib import Path


def logs(folder: Path) -> Path:
    """A folder that exists before the run: beside hidden paths a system can make no new files."""
    place = folder / "logs"
    place.mkdir(exist_ok=True)
    return place
