"""Chat models and embedders, and the cache that computes each text once.

Importing this package loads no model: models are loaded at their first use. Embedders need numpy,
so the names below are imported on first use, too.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mnemoscope.models.cache import ContentCache, default_cache_dir
    from mnemoscope.models.embedders import DEFAULT_EMBEDDER, EMBEDDERS, Embedder, load_embedder

__all__ = [
    "DEFAULT_EMBEDDER",
    "EMBEDDERS",
    "ContentCache",
    "Embedder",
    "default_cache_dir",
    "load_embedder",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module 'mnemoscope.models' has no attribute {name!r}")
    place = "cache" if name in ("ContentCache", "default_cache_dir") else "embedders"
    return getattr(import_module(f"mnemoscope.models.{place}"), name)
