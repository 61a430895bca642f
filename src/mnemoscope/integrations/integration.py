"""An installed memory system: a worker in its own environment, behind the stdio connector.

Mnemoscope gives the worker an endpoint for embeddings and, if one is configured, for a language
model. Nothing is downloaded, and the system's requests are counted as its own cost.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope.connectors import serve_stdio
from mnemoscope.connectors.child_process import Child
from mnemoscope.connectors.stdio import Stdio
from mnemoscope.integrations import environments
from mnemoscope.integrations.catalog import ITEMS
from mnemoscope.isolation.scratch import make_scratch
from mnemoscope.models.chat import note
from mnemoscope.models.embedders import load_embedder
from mnemoscope.models.http_errors import KEY_VARIABLES
from mnemoscope.models.model_loader import load_model
from mnemoscope.models.openai_server import ServedModels
from mnemoscope.types import Query, Scalar

_HERE = Path(__file__).parent
# Other variables could change a system without a trace, or be keys.
_KEPT = re.compile(
    r"PATH|HOME|USER|LOGNAME|TMPDIR|LANG|LC_\w+|TZ|LD_LIBRARY_PATH|\w+_NUM_THREADS|PG\w+"
    r"|MNEMOSCOPE_\w+"
)


class Integration(Stdio):
    """A system of the catalog, run by its adapter.

    `embedder` and `llm` are specs of models; with an empty `llm` the system has no language model.
    """

    def __init__(
        self,
        name: str,
        options: Mapping[str, Scalar],
        *,
        embedder: str,
        llm: str = "",
        timeout: float = 3600.0,
        start: float = 300.0,
    ) -> None:
        environments.require(name)
        item = ITEMS[name]
        asks = [option for option in item.model_for if options.get(option)]
        if (item.model == "required" or asks) and not llm:
            chosen = "".join(f",{option}=on" for option in asks)
            raise UsageError(
                f"{name}{chosen} ingests memories with a language model: give it one, for "
                f"example {name}{chosen},llm=openai:gpt-4o-mini"
            )
        # Values are written as JSON, so that a text that looks like a number stays a text.
        given = [f"{key}={msgspec.json.encode(value).decode()}" for key, value in options.items()]
        program = f"memory_adapters.{item.adapter}"
        # -P: modules beside serve_stdio.py must not hide others of the same name.
        words = [str(environments.python_of(name)), "-P", serve_stdio.__file__, program, *given]
        super().__init__(words, timeout, start)
        self._name = name
        self._models = ServedModels(
            load_embedder(embedder) if item.embeds else None, load_model(llm) if llm else None
        )

    def identity(self) -> dict[str, Any]:
        """What determines the results; paths on this machine do not."""
        # All adapters, because they import one another.
        sources = sorted((_HERE / "memory_adapters").glob("*.py"))
        adapters = sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
        return {
            "shelf": self._name,
            "packages_sha256": environments.lock_sha256(self._name),
            "adapters_sha256": adapters,
            "hello": msgspec.to_builtins(self._introduction()),
            **self._models.identity(),
            **({"other_versions": others} if (others := self._other_versions()) else {}),
        }

    def _other_versions(self) -> dict[str, str]:
        """The packages that run in another version than the one that was pinned."""
        running = self._introduction().identity.get("versions")
        if not isinstance(running, dict):
            return {}
        return environments.other_versions(self._name, running)

    def _spawn(self) -> Child:
        scratch = make_scratch(self._name)
        return Child(self._words, self._environment(scratch), scratch)

    def _environment(self, scratch: str) -> dict[str, str]:
        """The worker's environment variables: few of ours, and no keys."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if _KEPT.fullmatch(name) and name not in KEY_VARIABLES
        }
        return {
            **kept,
            "PYTHONPATH": str(_HERE),
            "PYTHONNOUSERSITE": "1",
            "HF_HUB_OFFLINE": "1",
            "MNEMOSCOPE_SCRATCH": scratch,
            "MNEMOSCOPE_ENDPOINT": self._models.server.url if self._models else "",
            "MNEMOSCOPE_EMBEDDER": self._models.embedder.name if self._models.embedder else "",
            "MNEMOSCOPE_LLM": self._models.model.name if self._models.model else "",
        }

    def close(self) -> None:
        super().close()
        self._models.close()

    def _recall(self, query: Query, k: int) -> Any:
        # Many backends refuse a limit of 0, and the result is empty anyway.
        return super()._recall(query, k) if k > 0 else []

    def _call(self, method: str, params: dict[str, Any], handle: int = 0) -> Any:
        try:
            return super()._call(method, params, handle)
        finally:
            if self._models.model is not None:
                for usage in self._models.server.settle():
                    note(usage)

    def _stats(self) -> dict[str, Any]:
        counted = super()._stats()
        return {**counted, **self._models.server.counters} if self._models else counted
