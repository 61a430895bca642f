"""Chat completions by OpenAI, by Azure, and by every server that speaks the same protocol."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import printable
from mnemoscope.models import http_errors
from mnemoscope.models.chat import Completion, Prompt
from mnemoscope.models.providers.http_chat import HttpProvider, with_schema

OPENAI = "https://api.openai.com/v1"
_LIMITS = ("max_completion_tokens", "max_tokens")


class OpenAIProvider(HttpProvider):
    """POST {base_url}/chat/completions with the official SDK."""

    kind = "openai"
    key_variable = "OPENAI_API_KEY"
    at_limit = "length"
    limits = _LIMITS

    def __init__(
        self,
        model: str,
        *,
        base_url: str = OPENAI,
        temperature: float = 0.0,
        timeout: float = 120.0,
    ) -> None:
        super().__init__(model, base_url, temperature, timeout)

    def _attempt(self, client: Any, request: dict[str, Any]) -> Completion | str | Exception:
        import httpx2
        import openai

        from mnemoscope.models.deadline import within

        try:
            with within(self._timeout):
                # Raw: the SDK's walk through the parameters' types and its model of the reply take
                # a third of a request's time.
                answer = client.post("/chat/completions", cast_to=httpx2.Response, body=request)
            return _read(answer.content)
        except openai.APIStatusError as error:
            said, code, named = _error_details(error)
            if error.status_code in (400, 422):
                for parameter in (*_LIMITS, "temperature", "response_format"):
                    if parameter in request and http_errors.refuses(
                        parameter, named, f"{said} {code}"
                    ):
                        return parameter
            return http_errors.failure_of_status(
                error.status_code, said, code, error.response.headers, self.where, self.key_variable
            )
        except openai.APIConnectionError as error:
            return http_errors.failure_of_connection(error, self._timeout, self.where)
        except (openai.OpenAIError, msgspec.MsgspecError, LookupError, TypeError) as error:
            return http_errors.no_completion(self.where, f"{type(error).__name__}: {error}")

    def _request(self, prompt: Prompt, without: frozenset[str]) -> dict[str, Any]:
        system = printable(prompt.system)
        request: dict[str, Any] = {"model": self._model}
        if limit := next((name for name in self.limits if name not in without), None):
            request[limit] = prompt.max_tokens
        if "temperature" not in without:
            request["temperature"] = self._temperature
        if prompt.schema is not None:
            if "response_format" not in without:
                request["response_format"] = _response_format(prompt.schema)
            else:
                system = with_schema(system, prompt.schema)
        messages = [{"role": "system", "content": system}] if system else []
        request["messages"] = [*messages, {"role": "user", "content": printable(prompt.user)}]
        return request

    def _connect(self) -> Any:
        import openai

        return openai.OpenAI(api_key=self._key(), base_url=self._base_url, **self._settings())

    def _key(self) -> str:
        return http_errors.key_from(self.key_variable, needed_by=f"openai:{self._model}")


class CompatibleProvider(OpenAIProvider):
    """Somebody's server that speaks OpenAI's protocol: vLLM, Ollama, llama.cpp and others.

    It never gets the key meant for OpenAI.
    """

    kind = "openai-compatible"
    key_variable = "MNEMOSCOPE_MODEL_KEY"

    limits = _LIMITS[::-1]

    def _connect(self) -> Any:
        import openai

        # An organisation or project is OpenAI's business too; the SDK would take both from the
        # environment.
        none = {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
        return openai.OpenAI(
            api_key=self._key(),
            base_url=self._base_url,
            default_headers=none,
            **self._settings(),
        )

    def _key(self) -> str:
        # Local servers need none, but the SDK insists on one.
        return os.environ.get(self.key_variable, "").strip() or "none"


class AzureProvider(OpenAIProvider):
    """A deployment in Azure; MODEL is the deployment's name."""

    kind = "azure"
    key_variable = "AZURE_OPENAI_API_KEY"

    def __init__(self, model: str, *, temperature: float = 0.0, timeout: float = 120.0) -> None:
        endpoint = os.environ.get("AZURE_OPENAI_ENDPOINT", "")
        super().__init__(model, base_url=endpoint, temperature=temperature, timeout=timeout)

    def _connect(self) -> Any:
        import openai

        needed = {
            name: os.environ.get(name, "").strip()
            for name in (self.key_variable, "AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION")
        }
        if missing := [name for name, value in needed.items() if not value]:
            raise UsageError(
                f"azure:{self._model} needs {' and '.join(missing)} in the environment"
            )
        key, endpoint, version = needed.values()
        return openai.AzureOpenAI(
            api_key=key, azure_endpoint=endpoint, api_version=version, **self._settings()
        )


def _response_format(schema: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {"name": "reply", "schema": schema}
    if _is_closed(schema):
        # Servers refuse to be strict about a schema that leaves anything open.
        described["strict"] = True
    return {"type": "json_schema", "json_schema": described}


def _is_closed(schema: Any) -> bool:
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


class _Counts(msgspec.Struct):
    prompt_tokens: Any = None
    completion_tokens: Any = None


class _Answer(msgspec.Struct):
    choices: list[_Choice]
    usage: _Counts | None = None


_decoder = msgspec.json.Decoder(_Answer)


def _read(raw: bytes) -> Completion:
    answer = _decoder.decode(raw)
    choice = answer.choices[0]
    text = choice.message.content or choice.message.refusal or ""
    if isinstance(text, list):
        text = "".join(part["text"] for part in text if part.get("type") == "text")
    counts = answer.usage or _Counts()
    return Completion(
        text,
        http_errors.token_count(counts.prompt_tokens),
        http_errors.token_count(counts.completion_tokens),
        choice.finish_reason or "",
    )


def _error_details(error: Any) -> tuple[str, str, str | None]:
    """What the server said, its code, and the parameter that it names."""
    body = error.body
    if isinstance(body, dict):
        if isinstance(body.get("error"), dict):
            body = body["error"]
        said = body.get("message") or body.get("detail") or body.get("error") or error.message
        code = " ".join(str(body[key]) for key in ("code", "type") if body.get(key))
        named = body.get("param")
        return str(said), code, named if isinstance(named, str) else None
    return str(body or error.message), "", None
