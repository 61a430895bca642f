"""The versions of everything that can change a number."""

from __future__ import annotations

import sqlite3
import sys
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version

import mnemoscope

_DECISIVE_PACKAGES = ("numpy", "PyStemmer", "wordllama", "tokenizers")


def decisive_versions() -> dict[str, str]:
    """Those of this process: of Python, SQLite, our code and the decisive packages."""
    return {
        "python": ".".join(map(str, sys.version_info[:2])),
        "sqlite": sqlite3.sqlite_version,
        "mnemoscope": mnemoscope.__version__,  # the code that runs, not what is installed
        **{name: found for name in _DECISIVE_PACKAGES if (found := installed(name))},
    }


@lru_cache
def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
