"""Anthropic's messages, with the official SDK.

A reply that must fit a schema is asked for as the input of a tool that the model has to use.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mnemoscope._store.jsonl import printable
from mnemoscope.models import http_errors
from mnemoscope.models.chat import Completion, Prompt
from mnemoscope.models.providers.http_chat import HttpProvider, with_schema

ANTHROPIC = "https://api.anthropic.com"
_TOOL = "reply"


class AnthropicProvider(HttpProvider):
    """POST {base_url}/v1/messages."""

    kind = "anthropic"
    key_variable = "ANTHROPIC_API_KEY"
    at_limit = "max_tokens"

    def __init__(
        self,
        model: str,
        *,
        base_url: str = ANTHROPIC,
        temperature: float = 0.0,
        timeout: float = 120.0,
    ) -> None:
        super().__init__(model, base_url, temperature, timeout)

    def _attempt(self, client: Any, request: dict[str, Any]) -> Completion | str | Exception:
        import anthropic
        import httpx2

        from mnemoscope.models.deadline import within

        try:
            with within(self._timeout):
                answer = client.post("/v1/messages", cast_to=httpx2.Response, body=request)
            return _read(_decoder.decode(answer.content))
        except anthropic.APIStatusError as error:
            said, code = _error_details(error)
            if error.status_code in (400, 422):
                if "temperature" in request and http_errors.refuses("temperature", None, said):
                    return "temperature"
                if "tools" in request and _refuses_tools(said):
                    return "tools"
            return http_errors.failure_of_status(
                error.status_code, said, code, error.response.headers, self.where, self.key_variable
            )
        except anthropic.APIConnectionError as error:
            return http_errors.failure_of_connection(error, self._timeout, self.where)
        except (anthropic.AnthropicError, msgspec.MsgspecError, TypeError) as error:
            return http_errors.no_completion(self.where, f"{type(error).__name__}: {error}")

    def _request(self, prompt: Prompt, without: frozenset[str]) -> dict[str, Any]:
        system = printable(prompt.system)
        request: dict[str, Any] = {
            "model": self._model,
            "max_tokens": prompt.max_tokens,
            "messages": [{"role": "user", "content": printable(prompt.user)}],
        }
        if "temperature" not in without:
            request["temperature"] = self._temperature
        if prompt.schema is not None:
            if "tools" not in without:
                what = "Give the reply in this form."
                tool = {"name": _TOOL, "description": what, "input_schema": prompt.schema}
                request["tools"] = [tool]
                request["tool_choice"] = {"type": "tool", "name": _TOOL}
            else:
                system = with_schema(system, prompt.schema)
        if system:
            request["system"] = system
        return request

    def _connect(self) -> Any:
        import anthropic

        return anthropic.Anthropic(
            api_key=http_errors.key_from(self.key_variable, needed_by=f"anthropic:{self._model}"),
            base_url=self._base_url,
            **self._settings(),
        )


def _refuses_tools(said: str) -> bool:
    return any(
        http_errors.refuses(name, None, said) for name in ("tools", "tool_choice", "input_schema")
    )


class _Block(msgspec.Struct):
    type: str
    text: str = ""
    input: Any = None


class _Counts(msgspec.Struct):
    input_tokens: Any = None
    cache_creation_input_tokens: Any = None
    cache_read_input_tokens: Any = None
    output_tokens: Any = None


class _Answer(msgspec.Struct):
    content: list[_Block]
    stop_reason: str | None = None
    usage: _Counts | None = None


_decoder = msgspec.json.Decoder(_Answer)


def _read(answer: _Answer) -> Completion:
    texts: list[str] = []
    for block in answer.content:
        if block.type == "tool_use":
            texts = [msgspec.json.encode(block.input).decode()]
            break
        if block.type == "text":
            texts.append(block.text)
    usage = answer.usage or _Counts()
    asked = http_errors.token_count(usage.input_tokens)
    besides = (usage.cache_creation_input_tokens, usage.cache_read_input_tokens)
    return Completion(
        "".join(texts),
        None
        if asked is None
        else asked + sum(http_errors.token_count(one) or 0 for one in besides),
        http_errors.token_count(usage.output_tokens),
        answer.stop_reason or "",
    )


def _error_details(error: Any) -> tuple[str, str]:
    body = error.body
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        inner = body["error"]
        return str(inner.get("message") or error.message), str(inner.get("type") or "")
    return str(body or error.message), ""
