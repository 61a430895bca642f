"""Writes the lock files of the integrations: `python tools/lock_integrations.py [NAME …]`.

They contain the hash of every file and no package index. Existing pins that still fit are kept:
delete a lock file first to renew all of them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mnemoscope.integrations.catalog import ITEMS
from mnemoscope.integrations.environments import lock_file

_UV = Path(sys.executable).with_name("uv")
_FLAGS = (
    "--quiet --universal --generate-hashes --no-emit-index-url --no-header --no-annotate "
    "--python-version 3.11"
).split()


def lock(name: str) -> None:
    packages = "".join(f"{package}\n" for package in ITEMS[name].packages)
    words = [str(_UV), "pip", "compile", *_FLAGS, "-", "-o", str(lock_file(name))]
    subprocess.run(words, input=packages, text=True, check=True)


if __name__ == "__main__":
    lockable = [name for name, item in ITEMS.items() if item.packages]
    if unknown := set(sys.argv[1:]) - set(lockable):
        sys.exit(f"no packages to pin: {', '.join(sorted(unknown))}")
    for name in sys.argv[1:] or lockable:
        lock(name)
