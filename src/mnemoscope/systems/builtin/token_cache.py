"""Tokens by content: each distinct text is tokenised once, whoever asks and however often."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from mnemoscope.models.cache import ContentCache, default_cache_dir

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[str]).decode


class TokenCache:
    """A tokeniser with a memory that all worker processes share."""

    def __init__(
        self, tokenise: Callable[[str], list[str]], namespace: str, *, on_disk: bool = True
    ) -> None:
        self._tokenise = tokenise
        path = default_cache_dir() / "tokens.sqlite" if on_disk else None
        self._cache = ContentCache(path, namespace)

    def of(self, texts: Sequence[str]) -> list[list[str]]:
        packed = self._cache.get_or_compute(
            texts, lambda missing: [_encode(self._tokenise(text)) for text in missing]
        )
        return [_decode(blob) for blob in packed]

    def counters(self) -> dict[str, int]:
        return {"texts_tokenised": self._cache.computed, "tokens_reused": self._cache.reused}
