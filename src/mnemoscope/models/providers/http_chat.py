"""What chat over HTTP has in common, whoever serves it.

Servers differ in which parameters they take. One that refuses a parameter by name is asked again
without it, at once and from then on; it is not asked what it can beforehand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import msgspec

from mnemoscope.models import http_errors
from mnemoscope.models.chat import Completion, Prompt


class HttpProvider(ABC):
    """One model at one address, asked through an official SDK that has no patience of its own."""

    kind: ClassVar[str]
    key_variable: ClassVar[str]
    at_limit: ClassVar[str]
    """What the server says where a reply ran into its limit of tokens."""

    def __init__(self, model: str, base_url: str, temperature: float, timeout: float) -> None:
        self._model = model
        self._base_url = base_url.rstrip("/")
        self._temperature = temperature
        self._timeout = timeout
        self._client: http_errors.PerProcess[Any] = http_errors.PerProcess(self._connect)
        self._refused: frozenset[str] = frozenset()

    @property
    def where(self) -> str:
        return f"{self._model!r} at {self._base_url}"

    def identity(self) -> dict[str, Any]:
        # Without the SDK's version: it decides no reply, and would pay for all of them again.
        return {
            "provider": self.kind,
            "model": self._model,
            "endpoint": self._base_url,
            "temperature": self._temperature,
        }

    def complete(self, prompt: Prompt) -> Completion:
        client = self._client.get()
        while True:
            result = self._attempt(client, self._request(prompt, self._refused))
            if isinstance(result, Completion):
                return http_errors.checked(
                    result, self.where, at_limit=result.finish == self.at_limit
                )
            if not isinstance(result, str):
                raise result
            # Two threads at once may lose what one of them learnt: then the server says it again.
            self._refused |= {result}

    def _settings(self) -> dict[str, Any]:
        """For the SDK's client: our transport, and neither its timeouts nor its retries."""
        from mnemoscope.models.deadline import client_for

        return {"http_client": client_for(self._base_url), "timeout": None, "max_retries": 0}

    @abstractmethod
    def _connect(self) -> Any: ...

    @abstractmethod
    def _request(self, prompt: Prompt, without: frozenset[str]) -> dict[str, Any]: ...

    @abstractmethod
    def _attempt(self, client: Any, request: dict[str, Any]) -> Completion | str | Exception:
        """The completion, the name of the parameter that is not taken, or the failure."""


def with_schema(system: str, schema: dict[str, Any]) -> str:
    """The schema in words, for servers that cannot hold a model to it."""
    spelt = msgspec.json.encode(schema).decode()
    return f"{system}\n\nYour whole reply is one JSON object that fits this schema: {spelt}".strip()
