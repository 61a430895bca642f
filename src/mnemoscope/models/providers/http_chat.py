"""What chat providers over HTTP have in common.

Servers support different parameters. If a server refuses a parameter by name, the request is sent
again without it, and later requests omit it too.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import msgspec

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope.models import http_errors
from mnemoscope.models.chat import Completion, Prompt, TransientTimeout
from mnemoscope.models.http_client import HttpClient, HttpFailure, HttpReply


class HttpProvider(ABC):
    """One model at one address."""

    kind: ClassVar[str]
    key_variable: ClassVar[str]
    at_limit: ClassVar[str]
    """The server's finish reason for a reply that reached its limit of tokens."""
    address: ClassVar[str] = ""
    """The vendor's address."""

    def __init__(
        self, model: str, *, base_url: str = "", temperature: float = 0.0, timeout: float = 120.0
    ) -> None:
        self._model = model
        self._base_url = (base_url or self.address).rstrip("/")
        self._temperature = temperature
        self._timeout = timeout
        self._client = HttpClient(self._base_url, proxies=True, redirects=True)
        self._refused: frozenset[str] = frozenset()

    @property
    def where(self) -> str:
        return f"{self._model!r} at {self._base_url}"

    def identity(self) -> dict[str, Any]:
        return {
            "provider": self.kind,
            "model": self._model,
            "endpoint": self._base_url,
            "temperature": self._temperature,
        }

    def complete(self, prompt: Prompt) -> Completion:
        url, headers = self._address()
        while True:
            request = self._request(prompt, self._refused)
            try:
                reply = self._client.post_json(url, request, headers, self._timeout)
            except HttpFailure as failure:
                raise failure_of_exchange(failure, self._timeout, self.where) from None
            if reply.status < 300:
                return self._completion(reply)
            message, code, named = error_details(reply)
            refused = None
            if reply.status in (400, 422):
                refused = self._refused_parameter(request, message, code, named)
            if refused is None:
                raise http_errors.failure_of_status(
                    reply.status, message, code, reply.headers, self.where, self.key_variable
                )
            # Two threads at once may lose one update: then the server refuses it again.
            self._refused |= {refused}

    def _completion(self, reply: HttpReply) -> Completion:
        try:
            completion = self._read(reply.data)
        except (msgspec.MsgspecError, LookupError, TypeError, ValueError, RecursionError) as error:
            raise http_errors.ReplyLost(
                f"{self.where}: the reply is incomplete or not a completion "
                f"({http_errors.shortened(f'{type(error).__name__}: {error}')})"
            ) from None
        return http_errors.checked(
            completion, self.where, at_limit=completion.finish == self.at_limit
        )

    @abstractmethod
    def _address(self) -> tuple[str, dict[str, str]]:
        """The URL of requests, and the headers with the key."""

    @abstractmethod
    def _request(self, prompt: Prompt, without: frozenset[str]) -> dict[str, Any]: ...

    @abstractmethod
    def _refused_parameter(
        self, request: dict[str, Any], message: str, code: str, named: str | None
    ) -> str | None:
        """The parameter that the server does not support, if the error is about one."""

    @abstractmethod
    def _read(self, raw: bytes) -> Completion: ...


def with_schema(system: str, schema: dict[str, Any]) -> str:
    """The instructions with the schema, for servers that cannot enforce it."""
    text = msgspec.json.encode(schema).decode()
    return f"{system}\n\nYour whole reply is one JSON object that fits this schema: {text}".strip()


def failure_of_exchange(failure: HttpFailure, seconds: float, where: str) -> Exception:
    """The error for a connection that could not be made, was lost, or was too slow."""
    if failure.kind in ("timeout", "connect timeout"):
        return TransientTimeout(f"{where}: no complete reply within {seconds:g} seconds")
    if failure.kind in ("protocol", "size"):
        return http_errors.ReplyLost(
            f"{where}: the reply cannot be read ({http_errors.shortened(failure)})"
        )
    if failure.kind == "connect":
        reason = http_errors.shortened(failure.cause)
        return MnemoscopeError(
            f"{where}: no connection ({reason}); check the address and that the server runs, then "
            "resume; nothing recorded is lost"
        )
    return http_errors.ReplyLost(
        f"{where}: the connection was lost ({http_errors.shortened(failure)})"
    )


def error_details(reply: HttpReply) -> tuple[str, str, str | None]:
    """The server's error message, its code, and the parameter that it names."""
    text = reply.data.decode("utf-8", "replace").strip()
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return text or f"Error code: {reply.status}", "", None
    inner = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(inner, dict):
        return str(inner or f"Error code: {reply.status} - {body}"), "", None
    message = inner.get("message") or inner.get("detail") or inner.get("error")
    code = " ".join(str(inner[key]) for key in ("code", "type") if inner.get(key))
    named = inner.get("param")
    return (
        str(message or f"Error code: {reply.status} - {body}"),
        code,
        named if isinstance(named, str) else None,
    )
