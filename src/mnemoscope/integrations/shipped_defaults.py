"""What the systems of the catalog use as they are shipped: their own embedder and language model.

Our adapters give all systems the same embedder and no model. Here is what their own defaults are,
how to run those here, or why that is not possible.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class ShippedDefaults:
    """A system's own defaults; with neither `args` nor `missing` it has no embedder or model."""

    args: dict[str, str] = field(default_factory=dict)
    """The options that make our adapter run with its defaults."""
    note: str = ""
    """What differs from the product all the same."""
    missing: str = ""
    """Why its defaults cannot be run here."""


_STORE = ShippedDefaults(note="it ships no embedder and no model")
_NAMED_BY_USERS = "its users name the language model that it needs: there is no default to run"

SHIPPED: dict[str, ShippedDefaults] = {
    "qdrant": _STORE,
    "sqlite-vec": _STORE,
    "postgres": _STORE,
    "pgmnemo": _STORE,
    "lancedb": _STORE,
    "langgraph": _STORE,
    "langmem": _STORE,
    "server-memory": _STORE,
    "chroma": ShippedDefaults(
        args={"model": "minilm"},
        note="all-MiniLM-L6-v2, its default, from the wheel of another project; by cosine, which "
        "ranks its unit vectors as its default l2 does",
    ),
    "mcp-memory-service": ShippedDefaults(
        args={"model": "minilm"},
        note="all-MiniLM-L6-v2, its default, from the wheel of another project, over its option "
        "for an external endpoint",
    ),
    "mem0": ShippedDefaults(
        missing="its defaults are text-embedding-3-small and gpt-5-mini, behind a key of OpenAI; "
        "with one: mem0,infer=on,threshold=0.1,llm=openai:gpt-5-mini,"
        "model=openai@text-embedding-3-small@https://api.openai.com/v1"
    ),
    "llamaindex": ShippedDefaults(missing="its default embedder is behind a key of OpenAI"),
    "graphiti": ShippedDefaults(
        missing="its default model and embedder are behind a key of OpenAI"
    ),
    "cognee": ShippedDefaults(missing="its default model and embedder are behind a key of OpenAI"),
    "letta": ShippedDefaults(missing="its default embedder is a hosted service"),
    "hindsight": ShippedDefaults(
        missing="its default embedder and cross-encoder need PyTorch, and it needs a language model"
    ),
    "lightrag": ShippedDefaults(missing=_NAMED_BY_USERS),
    "memos": ShippedDefaults(missing=_NAMED_BY_USERS),
    "nexus": ShippedDefaults(
        args={"search": "keyword"},
        note="its default embedder is behind a key of OpenRouter; without one it searches by "
        "keywords, as here",
    ),
}
