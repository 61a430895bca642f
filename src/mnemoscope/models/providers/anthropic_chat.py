"""Anthropic's messages API.

A reply that must fit a schema is requested as the input of a tool that the model must use.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mnemoscope._store.jsonl import printable
from mnemoscope.models.chat import Completion, Prompt
from mnemoscope.models.http_errors import key_from, refuses, token_count
from mnemoscope.models.providers.http_chat import HttpProvider, with_schema

_VERSION = "2026-10-21"
"""The protocol version that the vendor's SDK 2.8.0 sends."""
_TOOL = "reply"


class AnthropicProvider(HttpProvider):
    """POST {base_url}/v1/messages."""

    kind = "anthropic"
    key_variable = "ANTHROPIC_API_KEY"
    at_limit = "max_tokens"
    address = "https://api.anthropic.com"

    def _address(self) -> tuple[str, dict[str, str]]:
        key = key_from(self.key_variable, needed_by=f"anthropic:{self._model}")
        headers = {"Authorization": f"Bearer {key}", "anthropic-version": _VERSION}
        return f"{self._base_url}/v1/messages", headers

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

    def _refused_parameter(
        self, request: dict[str, Any], message: str, code: str, named: str | None
    ) -> str | None:
        if "temperature" in request and refuses("temperature", None, message):
            return "temperature"
        of_tools = ("tools", "tool_choice", "input_schema")
        if "tools" in request and any(refuses(name, None, message) for name in of_tools):
            return "tools"
        return None

    def _read(self, raw: bytes) -> Completion:
        answer = _decoder.decode(raw)
        texts = [block.text for block in answer.content if block.type == "text"]
        for block in answer.content:
            if block.type == "tool_use":
                texts = [msgspec.json.encode(block.input).decode()]
                break
        usage = answer.usage or _MessageUsage()
        asked = token_count(usage.input_tokens)
        if asked is not None:
            cached = (usage.cache_creation_input_tokens, usage.cache_read_input_tokens)
            asked += sum(token_count(count) or 0 for count in cached)
        return Completion(
            "".join(texts), asked, token_count(usage.output_tokens), answer.stop_reason or ""
        )


class _ContentBlock(msgspec.Struct):
    type: str
    text: str = ""
    input: Any = None


class _MessageUsage(msgspec.Struct):
    input_tokens: Any = None
    cache_creation_input_tokens: Any = None
    cache_read_input_tokens: Any = None
    output_tokens: Any = None


class _MessageReply(msgspec.Struct):
    content: list[_ContentBlock]
    stop_reason: str | None = None
    usage: _MessageUsage | None = None


_decoder = msgspec.json.Decoder(_MessageReply)
