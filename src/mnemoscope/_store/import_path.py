"""Where modules that the user names are found: on our own path, and in the current folder.

The current folder is often that of the system under test. A `numpy.py` in it must not replace ours
in the processes that have the labels, so the folder is on the path of hosts, and on our own only
once the user names a module in it, such as a dataset.
"""

from __future__ import annotations

import sys
from pathlib import Path


class _Named:
    folder = ""


def name_modules_in(folder: Path) -> None:
    """Let names such as `module:Name` mean modules in this folder, too; it leaves our own path."""
    _Named.folder = str(folder)
    # Python put it first if it was started with -m or -c.
    if sys.path and sys.path[0] in ("", _Named.folder):
        del sys.path[0]


def path_of_hosts() -> list[str]:
    """Our path with the folder: after the standard library, so that a random.py in it does not
    replace a library module, and before installed packages."""
    if not _Named.folder or _Named.folder in sys.path:
        return list(sys.path)
    found = (at for at, place in enumerate(sys.path) if place.endswith("site-packages"))
    at = next(found, len(sys.path))
    return [*sys.path[:at], _Named.folder, *sys.path[at:]]


def find_named_modules() -> None:
    """Put the folder at the end of our own path, because the user named a module in it."""
    if _Named.folder and _Named.folder not in sys.path:
        sys.path.append(_Named.folder)
