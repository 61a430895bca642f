"""What one worker of a system needs on a node: `cpus=2,memory=8GB,gpus=0.5`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import msgspec

from mnemoscope._store.errors import UsageError

_SIZES = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]B)?", re.IGNORECASE)


class Resources(msgspec.Struct, frozen=True):
    """What the cluster reserves for one worker."""

    cpus: float = 1.0
    gpus: float = 0.0
    memory: int = 0
    """Bytes; 0 for no demand."""


def resources_of(slugs: Sequence[str], texts: Sequence[str]) -> list[Resources]:
    """The resources of each system; a text without `LABEL:` is for all that have no text."""
    given: dict[str, Resources] = {}
    for text in texts:
        label, colon, pairs = text.rpartition(":")
        if colon and label not in slugs:
            known = ", ".join(slugs)
            raise UsageError(
                f"--resources {text}: no system is labelled {label}; there are {known}"
            )
        if label in given:
            raise UsageError(f"--resources {text}: {label or 'the rest'} is given twice")
        given[label] = _parse(pairs, text)
    return [given.get(slug, given.get("", Resources())) for slug in slugs]


def _parse(pairs: str, text: str) -> Resources:
    found: dict[str, float] = {}
    for pair in pairs.split(","):
        name, _, value = pair.partition("=")
        matched = _MEMORY.fullmatch(value.strip())
        unit = (matched[2] or "").upper() if matched else ""
        if (
            matched is None
            or name not in Resources.__struct_fields__
            or (unit and name != "memory")
        ):
            raise UsageError(
                f"--resources {text}: write [LABEL:]cpus=N,memory=SIZE,gpus=N, such as "
                "hybrid:cpus=2,memory=8GB"
            )
        found[name] = float(matched[1]) * _SIZES[unit]
    if "cpus" in found and not found["cpus"] and not found.get("gpus"):
        raise UsageError(f"--resources {text}: a worker needs a part of a CPU or of a GPU")
    memory = math.ceil(found.get("memory", 0))
    return Resources(found.get("cpus", 1.0), found.get("gpus", 0.0), memory)
