"""An installed MCP server: started from its own environment, called through a shipped mapping."""

from __future__ import annotations

import shlex
from typing import Any, Literal

from mnemoscope.connectors.mcp.mcp_connector import Mcp
from mnemoscope.integrations import environments
from mnemoscope.integrations.catalog import ITEMS
from mnemoscope.models.embedders import load_embedder
from mnemoscope.models.openai_server import ServedModels


class McpIntegration(Mcp):
    """An MCP server of the catalog."""

    def __init__(
        self,
        name: str,
        *,
        embedder: str,
        strategy: Literal["mapped", "whole", "keywords"] = "mapped",
        timeout: float = 120.0,
    ) -> None:
        environments.require(name)
        item = ITEMS[name]
        self._name = name
        self._models = ServedModels(load_embedder(embedder) if item.embeds else None)
        where = str(environments.folder(name))
        command = shlex.join(word.replace("{env}", where) for word in item.command)
        super().__init__(command, item.mapping, strategy, timeout)

    def identity(self) -> dict[str, Any]:
        """What determines the results; paths on this machine do not."""
        about = super().identity()
        for of_this_machine in ("command", "files_sha256"):
            del about[of_this_machine]
        packages = environments.lock_sha256(self._name)
        models = self._models.identity()
        return {"shelf": self._name, "packages_sha256": packages, **about, **models}

    def close(self) -> None:
        super().close()
        self._models.close()

    def _embeddings(self) -> dict[str, str]:
        if not self._models.embedder:
            return {}
        return {"model": self._models.embedder.name, "url": self._models.server.url}
