"""The fingerprint: one hash over everything that can change a number.

Two runs with the same fingerprint give the same rankings. A run directory can only be continued
under its own fingerprint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

# Compare bytes: Python's == takes 1, 1.0 and True for the same value.
_canonical = msgspec.json.Encoder(order="sorted").encode


def fingerprint(identity: Mapping[str, Any]) -> str:
    return hashlib.sha256(_canonical(identity)).hexdigest()


def sha256_file(path: Path) -> str:
    # Most files are small, and a run is read often: hashlib.file_digest clears 256 KB for each.
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while part := file.read(1 << 16):
            digest.update(part)
    return digest.hexdigest()


def differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Where two identities differ, each as `path: old → new`."""
    found: list[str] = []
    for key in sorted({*old, *new}):
        path = f"{prefix}{key}"
        if key not in old or key not in new:
            shown = [repr(one[key]) if key in one else "nothing" for one in (old, new)]
            found.append(f"{path}: {' → '.join(shown)}")
        elif isinstance(old[key], Mapping) and isinstance(new[key], Mapping):
            found += differences(old[key], new[key], f"{path}.")
        elif _canonical(old[key]) != _canonical(new[key]):
            found.append(f"{path}: {old[key]!r} → {new[key]!r}")
    return found
