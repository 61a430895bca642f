"""The embedders that released protocols demand in words, as data that `verify` can check."""

from __future__ import annotations

import msgspec

from mnemoscope.protocols import Protocol


class RequiredEmbedder(msgspec.Struct, frozen=True):
    """The embedder of a benchmark, and at how many tokens it cuts texts."""

    model: str
    max_tokens: int


_SYSTEMS_OWN = "the system's own"
_REQUIRED = {
    ("pgmnemo-recall-1.0.0", "locomo"): RequiredEmbedder("facebook/dragon-plus", 512),
    ("pgmnemo-recall-1.0.0", "longmemeval"): RequiredEmbedder("BAAI/bge-m3", 512),
}
"""A released file cannot get new fields."""


def required_embedder(protocol: Protocol, dataset: str) -> RequiredEmbedder | str:
    """The embedder that a protocol demands; its own words if they are not known as data.

    The words are empty if every system uses its own embedder.
    """
    found = _REQUIRED.get((protocol.id, dataset))
    return found or ("" if protocol.embedder.startswith(_SYSTEMS_OWN) else protocol.embedder)
