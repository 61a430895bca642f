"""Models that the instrument itself uses: embedders, and the cache that pays for each text once.

Importing this package loads no model and no provider's SDK; those wait for their first use.
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
