"""Failures of model servers: what they mean, and messages without keys."""

from __future__ import annotations

import math
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import ClassVar, Generic, TypeVar

import msgspec

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope.models.chat import Completion, ModelFailure, Transient

T = TypeVar("T")

KEY_VARIABLES = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "MNEMOSCOPE_MODEL_KEY",
)
_OTHER_NAMES = {"OPENAI_API_VERSION": "AZURE_OPENAI_API_VERSION"}
"""Variables that other programs, such as Recall Bench, name differently."""
# Commands and users' code have other keys, and may repeat them in error messages.
_SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$", re.I)
# Shorter values are placeholders, such as the x that a local server accepts.
_SHORTEST, _SHORTEST_OF_OTHERS = 4, 8
_SHOWN_CHARACTERS = 300
_TRANSIENT = frozenset({408, 409, 425, 429})
_ADVICE = {
    401: "the key is not accepted; set {key} to one that this server accepts, then resume",
    402: "the account has no credit left; add credit, then resume",
    403: "the key may not use this model; choose another key or model, then resume",
    404: "not found; check the model's name, and the address, which usually ends in /v1",
}
_TOO_LONG = re.compile(
    r"context[ _](length|window|size)|too long|too large|too many tokens|maximum.{0,40}token", re.I
)
_NO_CREDIT = re.compile(r"insufficient_quota|credit balance|billing_hard_limit|billing_error", re.I)
_NO_KEY = re.compile(
    r"(invalid|incorrect|missing|no) api[ _-]?key|"
    r"api[ _-]?key (is )?(not valid|invalid|incorrect|missing|required|expired)",
    re.I,
)
_REFUSED = re.compile(
    r"support|unrecogni|unknown|unexpected|extra (inputs|fields)|not permitted|not allowed|"
    r"invalid (parameter|schema)|only the default|deprecated|not available",
    re.I,
)


class EmptyReply(Transient):
    """A reply without text. It costs as much as any other."""

    def __init__(self, message: str, completion: Completion) -> None:
        super().__init__(message)
        self.completion = completion


class ReplyLost(Transient):
    """The request was sent and no complete reply came back: it may have been billed."""


class TooLong(ModelFailure):
    """The prompt is too long for this model. The next one may fit."""


class PerProcess(Generic[T]):
    """Something that processes must not share, created at its first use in each of them."""

    _making: ClassVar = threading.RLock()

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        # What a fork inherits stays here untouched: closing it could close the parent's.
        self._made: dict[int, T] = {}

    def get(self) -> T:
        process = os.getpid()
        if (made := self._made.get(process)) is None:
            with PerProcess._making:
                if (made := self._made.get(process)) is None:
                    made = self._made[process] = self._make()
        return made

    def drop(self) -> T | None:
        """Remove and return this process's object; the next `get` creates a new one."""
        return self._made.pop(os.getpid(), None)


# A thread of the parent may have held the lock; it does not exist in the child.
os.register_at_fork(after_in_child=lambda: setattr(PerProcess, "_making", threading.RLock()))


def key_from(variable: str, *, needed_by: str) -> str:
    if key := os.environ.get(variable, "").strip():
        return key
    raise UsageError(f"{needed_by} needs a key; set {variable}")


def without_keys(text: str) -> str:
    """The text without the values of environment variables that are keys, tokens or passwords."""
    found = ((name, value.strip()) for name, value in os.environ.items() if _SECRET.search(name))
    keys = [
        key
        for name, key in found
        if len(key) >= (_SHORTEST if name in KEY_VARIABLES else _SHORTEST_OF_OTHERS)
    ]
    for key in sorted(keys, key=len, reverse=True):  # one may be the beginning of another
        text = text.replace(key, "…")
    return text


def setting(name: str) -> str:
    """The value of an environment variable, also under its other name; empty if it is not set."""
    names = (name, _OTHER_NAMES.get(name, name))
    return next((value for one in names if (value := os.environ.get(one, "").strip())), "")


def shortened(text: object) -> str:
    """The text as one line of limited length, without keys."""
    line = " ".join(without_keys(str(text)).split())
    return line if len(line) <= _SHOWN_CHARACTERS else line[: _SHOWN_CHARACTERS - 1] + "…"


def refuses(parameter: str, named: str | None, message: str) -> bool:
    """Whether a 400 means that this server does not support the parameter."""
    if _TOO_LONG.search(message):
        return False
    is_named = named == parameter or re.search(rf"\b{re.escape(parameter)}\b", message)
    return bool(is_named and _REFUSED.search(message))


def failure_of_status(
    status: int, message: str, code: str, headers: Mapping[str, str], where: str, key: str
) -> Exception:
    """What an error status means: retry, fail this prompt, or stop the run."""
    problem = f"{where}: status {status} ({shortened(message) or 'no reason given'})"
    if _NO_CREDIT.search(f"{code} {message}") and status in (400, 402, 403, 429):
        return MnemoscopeError(
            f"{problem}; the account's credit or quota is used up, and a retry cannot help: "
            "add credit, then resume; nothing recorded is lost"
        )
    if status in _TRANSIENT or status >= 500:
        return Transient(problem, retry_after=retry_after(headers))
    if status in _ADVICE:
        return MnemoscopeError(f"{problem}; {_ADVICE[status].format(key=key)}")
    if _TOO_LONG.search(message) or status == 413:
        return TooLong(problem)
    if _NO_KEY.search(message):
        return MnemoscopeError(f"{problem}; {_ADVICE[401].format(key=key)}")
    return ModelFailure(problem)


def checked(completion: Completion, where: str, *, at_limit: bool) -> Completion:
    """The completion; raises if it has no text and is not a refusal of the model."""
    if completion.finish == "refusal":  # Anthropic's stop reason
        completion = msgspec.structs.replace(completion, refusal=True)
    if completion.text.strip() or completion.refusal:
        return completion
    if completion.finish == "content_filter":
        raise ModelFailure(f"{where}: the server withheld the reply ({completion.finish})")
    advice = (
        "; it reached its limit of tokens: raise the prompt's max_tokens, or add ?max_tokens=… "
        "to the model"
        if at_limit
        else ""
    )
    raise EmptyReply(f"{where}: empty reply{advice}", completion)


def retry_after(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Seconds that the server asks to wait: a number, a date, or OpenAI's milliseconds."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(ValueError):
            if math.isfinite(wait := float(headers.get(name, ""))):
                return max(0.0, wait) / unit
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, date.timestamp() - now())
    except (ValueError, TypeError, OverflowError):
        return None


def token_count(value: object) -> int | None:
    """The token count that the server reports; None if it is not a count."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
