"""Where the files of local models are: a path, or the folder of `mnemoscope models fetch`."""

from __future__ import annotations

import os
from pathlib import Path

from mnemoscope._store.errors import UsageError
from mnemoscope._store.suggest import did_you_mean
from mnemoscope.models.cache import default_cache_dir

_SUFFIX = ".gguf"


def models_folder() -> Path:
    """Where fetched models are: $MNEMOSCOPE_MODELS, else a folder of the cache."""
    chosen = os.environ.get("MNEMOSCOPE_MODELS", "").strip()
    return Path(chosen).expanduser() if chosen else default_cache_dir() / "models"


def local_file(name: str) -> Path:
    """The file of `local:NAME`: a path that ends in .gguf, or the name of a fetched model."""
    if name.lower().endswith(_SUFFIX):
        path = Path(name).expanduser()
        if not path.is_file():
            raise UsageError(f"local:{name}: there is no such file")
        return path.absolute()
    path = models_folder() / f"{name}{_SUFFIX}"
    if path.is_file():
        return path
    from mnemoscope.models.model_catalog import model_catalog

    if name in (known := model_catalog()):
        raise UsageError(f"local:{name} is not there yet: mnemoscope models fetch {name}")
    raise UsageError(
        f"local:{name}: {did_you_mean(name, known)}write local:PATH.gguf, or local:NAME with a "
        f"model of `mnemoscope models list`: {', '.join(known)}"
    )
