"""The fingerprint: one hash over everything that can change a number.

Two runs with the same fingerprint must give the same rankings; a run directory refuses to be
continued under another one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec


def fingerprint(identity: Mapping[str, Any]) -> str:
    canonical = msgspec.json.encode(identity, order="sorted")
    return hashlib.sha256(canonical).hexdigest()


def sha256_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Where two identities differ, each as `path: old → new`."""
    found: list[str] = []
    for key in sorted({*old, *new}):
        before, after = old.get(key), new.get(key)
        path = f"{prefix}{key}"
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            found += differences(before, after, f"{path}.")
        elif before != after:
            found.append(f"{path}: {before!r} → {after!r}")
    return found
