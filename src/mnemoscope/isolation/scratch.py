"""The scratch folders of children, below one folder of the user that every lock hides.

A system may use its own scratch folder and not those of systems that run at the same time. The
folder above them exists before a lock is computed, so it hides those that are made later, too.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from mnemoscope._store.errors import UsageError

_NOTE = "Scratch folders of systems under test. A locked system cannot open this file.\n"


def scratch_root() -> Path:
    """The folder of all scratch folders of this user; it is made if it is missing."""
    refused = ""
    for place in _places():
        root = Path(os.path.realpath(place)) / f"mnemoscope-{os.geteuid()}"
        try:
            _make_own(root)
        except OSError as error:
            refused = f"{root} cannot be used for scratch folders: {error.strerror}"
        else:
            return root
    raise UsageError(f"{refused}. Remove it, or set TMPDIR to a folder of your own")


def make_scratch(name: str) -> str:
    """A new folder for one child, which `Child` removes when the child ends."""
    folder = tempfile.mkdtemp(prefix=f"{name}-", dir=scratch_root())
    for part in ("tmp", "cache"):
        Path(folder, part).mkdir()
    return folder


def _places() -> Iterator[str]:
    # With Landlock nothing new can be made directly in a folder that contains something hidden.
    # Many programs write to /tmp by that name; few write to /var/tmp.
    temporary = tempfile.gettempdir()
    if temporary == "/tmp":
        yield "/var/tmp"
    yield temporary


def _make_own(root: Path) -> None:
    """Make the folder, or check that it is this user's: in /tmp another user could have made it."""
    # PostgreSQL does not run as root, so it runs as another user, in a scratch folder of root.
    mode = 0o711 if os.geteuid() == 0 else 0o700
    with suppress(FileExistsError):
        root.mkdir(mode)
    found = root.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(0, "it belongs to another user, or is not a folder")
    if stat.S_IMODE(found.st_mode) != mode:
        root.chmod(mode)
    with suppress(FileExistsError):  # the self-test of each start tries to open it
        note = os.open(root / "README", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(note, "w") as file:
            file.write(_NOTE)
