"""What the cache of models' replies holds, for tests that kill whoever pays for them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def kept_replies(cache: Path) -> int:
    """How many replies are kept: whatever was paid for and is not lost with the process."""
    place = cache / "responses.sqlite"
    if not place.exists():
        return 0
    with closing(sqlite3.connect(place)) as database:
        try:
            return int(database.execute("SELECT count(*) FROM entries").fetchone()[0])
        except sqlite3.OperationalError:
            return 0  # it is just being made
