"""Chat completions by OpenAI, Azure, and all servers with the same protocol."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import quote

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import printable
from mnemoscope.models.chat import Completion, Prompt
from mnemoscope.models.http_errors import key_from, refuses, setting, token_count
from mnemoscope.models.providers.http_chat import HttpProvider, with_schema

_LIMITS = ("max_completion_tokens", "max_tokens")


class OpenAIProvider(HttpProvider):
    """POST {base_url}/chat/completions."""

    kind = "openai"
    key_variable = "OPENAI_API_KEY"
    at_limit = "length"
    address = "https://api.openai.com/v1"
    limits = _LIMITS

    def _address(self) -> tuple[str, dict[str, str]]:
        key = key_from(self.key_variable, needed_by=f"openai:{self._model}")
        headers = {"Authorization": f"Bearer {key}", **account_headers()}
        return f"{self._base_url}/chat/completions", headers

    def _request(self, prompt: Prompt, without: frozenset[str]) -> dict[str, Any]:
        system = printable(prompt.system)
        request: dict[str, Any] = {"model": self._model}
        if limit := next((name for name in self.limits if name not in without), None):
            request[limit] = prompt.max_tokens
        if "temperature" not in without:
            request["temperature"] = self._temperature
        if prompt.schema is not None:
            if "response_format" not in without:
                described: dict[str, Any] = {"name": "reply", "schema": prompt.schema}
                if _is_closed(prompt.schema):
                    # Servers refuse strict mode for a schema that allows other properties.
                    described["strict"] = True
                request["response_format"] = {"type": "json_schema", "json_schema": described}
            else:
                system = with_schema(system, prompt.schema)
        messages = [{"role": "system", "content": system}] if system else []
        request["messages"] = [*messages, {"role": "user", "content": printable(prompt.user)}]
        return request

    def _refused_parameter(
        self, request: dict[str, Any], message: str, code: str, named: str | None
    ) -> str | None:
        for parameter in (*_LIMITS, "temperature", "response_format"):
            if parameter in request and refuses(parameter, named, f"{message} {code}"):
                return parameter
        return None

    def _read(self, raw: bytes) -> Completion:
        answer = _decoder.decode(raw)
        choice = answer.choices[0]
        text = choice.message.content or choice.message.refusal or ""
        if isinstance(text, list):
            text = "".join(part["text"] for part in text if part.get("type") == "text")
        return Completion(
            text,
            token_count(answer.usage.prompt_tokens if answer.usage else None),
            token_count(answer.usage.completion_tokens if answer.usage else None),
            choice.finish_reason or "",
            refusal=bool(choice.message.refusal and not choice.message.content),
        )


class CompatibleProvider(OpenAIProvider):
    """A server with OpenAI's protocol: vLLM, Ollama, llama.cpp and others.

    It never gets the key, organisation or project for OpenAI.
    """

    kind = "openai-compatible"
    key_variable = "MNEMOSCOPE_MODEL_KEY"
    limits = _LIMITS[::-1]

    def _address(self) -> tuple[str, dict[str, str]]:
        # Local servers need no key; some need the header.
        key = os.environ.get(self.key_variable, "").strip() or "none"
        return f"{self._base_url}/chat/completions", {"Authorization": f"Bearer {key}"}


class AzureProvider(OpenAIProvider):
    """A deployment in Azure; MODEL is the deployment's name."""

    kind = "azure"
    key_variable = "AZURE_OPENAI_API_KEY"
    address = ""

    def __init__(self, model: str, *, temperature: float = 0.0, timeout: float = 120.0) -> None:
        endpoint = os.environ.get("AZURE_OPENAI_ENDPOINT", "")
        super().__init__(model, base_url=endpoint, temperature=temperature, timeout=timeout)

    def _address(self) -> tuple[str, dict[str, str]]:
        needed = {
            name: setting(name)
            for name in (self.key_variable, "AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION")
        }
        if missing := [name for name, value in needed.items() if not value]:
            raise UsageError(
                f"azure:{self._model} needs {' and '.join(missing)} in the environment"
            )
        key, endpoint, version = needed.values()
        deployment = quote(self._model, safe="!$&'()*+,;=:@")
        return (
            f"{endpoint.rstrip('/')}/openai/deployments/{deployment}/chat/completions"
            f"?api-version={quote(version)}",
            {"api-key": key, **account_headers()},
        )


def account_headers() -> dict[str, str]:
    """The organisation and the project that OpenAI bills, if the environment names them."""
    names = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
    found = {header: os.environ.get(variable, "") for header, variable in names.items()}
    return {header: value for header, value in found.items() if value}


def _is_closed(schema: Any) -> bool:
    """Whether every object in the schema requires all its properties and allows no others."""
    if isinstance(schema, list):
        return all(map(_is_closed, schema))
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False:
            return False
        if set(schema.get("required", [])) != set(properties):
            return False
    return all(map(_is_closed, schema.values()))


class _Message(msgspec.Struct):
    content: str | list[dict[str, Any]] | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _CompletionUsage(msgspec.Struct):
    prompt_tokens: Any = None
    completion_tokens: Any = None


class _ChatCompletion(msgspec.Struct):
    choices: list[_Choice]
    usage: _CompletionUsage | None = None


_decoder = msgspec.json.Decoder(_ChatCompletion)
