"""Chat models and embedders, and the cache that computes each text once.

Importing this package loads no model: models are loaded at their first use.
"""

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
