"""The endpoint that a system on the shelf gets its models from, one in each process."""

from __future__ import annotations

import os

from mnemoscope.models.embedders import Embedder
from mnemoscope.models.model import Model
from mnemoscope.models.openai_server import Endpoint


class ServedModels:
    """Starts serving at the first use; a fork inherits the socket, not the thread behind it."""

    def __init__(self, embedder: Embedder | None, model: Model | None = None) -> None:
        self.embedder = embedder
        self.model = model
        self._endpoint: Endpoint | None = None
        self._owner = 0

    def __bool__(self) -> bool:
        """Whether there is anything to serve."""
        return self.embedder is not None or self.model is not None

    @property
    def endpoint(self) -> Endpoint:
        if self._endpoint is None or self._owner != os.getpid():
            self._endpoint, self._owner = Endpoint(self.embedder, self.model), os.getpid()
            self._endpoint.server.start()
        return self._endpoint

    def identity(self) -> dict[str, object]:
        return {
            **({"embedder": self.embedder.identity()} if self.embedder else {}),
            **({"model": self.model.identity()} if self.model else {}),
        }

    def close(self) -> None:
        endpoint, self._endpoint = self._endpoint, None
        if endpoint is not None and self._owner == os.getpid():
            endpoint.close()
