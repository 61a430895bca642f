"""Integrations: real memory systems, each installed in its own environment.

`catalog` lists them, `environments` installs them, `integration` runs them, and `memory_adapters`
is the code that runs inside those environments.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any, Literal

from mnemoscope._store.errors import UsageError
from mnemoscope._store.registry import Entry
from mnemoscope.integrations.catalog import ITEMS, CatalogItem


def entries() -> dict[str, Entry]:
    """The catalog as entries of the table of systems."""
    return {
        name: Entry(f"{__name__}:{_attribute(name)}", item.summary) for name, item in ITEMS.items()
    }


def __getattr__(attribute: str) -> Callable[..., Any]:
    for name in ITEMS:
        if _attribute(name) == attribute:
            return factory(name)
    raise AttributeError(attribute)


def factory(name: str) -> Callable[..., Any]:
    """A function that builds the system; it takes the adapter's and the common options."""
    item = ITEMS[name]
    if item.untested:
        raise UsageError(f"{name} cannot be run: {item.untested}")
    options_of = _of_mcp if item.mapping else _adapter(item).__init__
    own = {key: p for key, p in inspect.signature(options_of).parameters.items() if key != "self"}
    common = {
        key: parameter
        for key, parameter in inspect.signature(_common).parameters.items()
        if (key != "model" or item.embeds) and (key != "llm" or item.model != "never")
    }

    def build(**options: Any) -> Any:
        given = {key: value for key, value in options.items() if key in own}
        embedder, timeout = options.get("model", ""), options["timeout"]
        if item.mapping:
            from mnemoscope.integrations.mcp_integration import McpIntegration

            return McpIntegration(name, embedder=embedder, timeout=timeout, **given)
        from mnemoscope.integrations.integration import Integration

        llm = options.get("llm", "")
        return Integration(name, given, embedder=embedder, llm=llm, timeout=timeout)

    hints = {**inspect.get_annotations(_common, eval_str=True)}
    hints |= inspect.get_annotations(options_of, eval_str=True)
    build.__signature__ = inspect.Signature(list((own | common).values()))  # type: ignore[attr-defined]
    build.__annotations__ = {key: hints[key] for key in own | common}
    return build


def _adapter(item: CatalogItem) -> Any:
    module, _, attribute = item.adapter.partition(":")
    return getattr(importlib.import_module(f"{__name__}.memory_adapters.{module}"), attribute)


def _of_mcp(*, strategy: Literal["mapped", "whole", "keywords"] = "mapped") -> None:
    """The options of MCP servers."""


def _common(*, model: str = "wordllama", llm: str = "", timeout: float = 3600.0) -> None:
    """The options that all integrations have, if they apply to the system."""


def _attribute(name: str) -> str:
    return name.replace("-", "_")
