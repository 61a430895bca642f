"""What a failure of a model's server means, and messages with no key in them."""

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

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope.models.chat import Completion, ModelFailure, Transient

T = TypeVar("T")

KEY_VARIABLES = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "MNEMOSCOPE_MODEL_KEY",
)
# Commands and other people's code have keys of their own, and may repeat them in complaints.
_SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$", re.I)
# Shorter ones are no secrets, but the x that a local server is content with.
_SHORTEST, _SHORTEST_OF_OTHERS = 4, 8
_SAID_CHARACTERS = 300
_AGAIN = frozenset({408, 409, 425, 429})
_ADVICE = {
    401: "the key is not accepted; set {key} to one that this server takes, then resume",
    402: "the account has no money left; fill it up, then resume",
    403: "the key has no right to this model; choose another of either, then resume",
    404: "nothing is there; check the model's name, and the address, which usually ends in /v1",
}
_TOO_LONG = re.compile(
    r"context[ _](length|window|size)|too long|too large|too many tokens|maximum.{0,40}token", re.I
)
_NO_MONEY = re.compile(r"insufficient_quota|credit balance|billing_hard_limit|billing_error", re.I)
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
    """A reply without text. It was paid for like any other."""

    def __init__(self, message: str, completion: Completion) -> None:
        super().__init__(message)
        self.completion = completion


class ReplyLost(Transient):
    """The request went out and no whole reply came back: it may have been paid for."""


class TooLong(ModelFailure):
    """More than this model takes. Says nothing about the next prompt."""


class PerProcess(Generic[T]):
    """Something that a fork must not share, made at its first use in each process."""

    _making: ClassVar = threading.RLock()

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        # What a fork inherits stays here untouched: ending it could end the parent's.
        self._made: dict[int, T] = {}

    def get(self) -> T:
        process = os.getpid()
        if (made := self._made.get(process)) is None:
            with PerProcess._making:
                if (made := self._made.get(process)) is None:
                    made = self._made[process] = self._make()
        return made

    def drop(self) -> T | None:
        """What was made in this process, which the next `get` makes anew."""
        return self._made.pop(os.getpid(), None)


# Another thread of the parent may have held the lock, and does not exist in the child.
os.register_at_fork(after_in_child=lambda: setattr(PerProcess, "_making", threading.RLock()))


def key_from(variable: str, *, needed_by: str) -> str:
    if key := os.environ.get(variable, "").strip():
        return key
    raise UsageError(f"{needed_by} needs a key; set {variable}")


def without_keys(text: str) -> str:
    """The text without what the environment holds under the name of a key, token or password."""
    found = ((name, value.strip()) for name, value in os.environ.items() if _SECRET.search(name))
    keys = [
        key
        for name, key in found
        if len(key) >= (_SHORTEST if name in KEY_VARIABLES else _SHORTEST_OF_OTHERS)
    ]
    for key in sorted(keys, key=len, reverse=True):  # one may be the beginning of another
        text = text.replace(key, "…")
    return text


def shortened(text: object) -> str:
    """One line for people, with no key in it."""
    line = " ".join(without_keys(str(text)).split())
    return line if len(line) <= _SAID_CHARACTERS else line[: _SAID_CHARACTERS - 1] + "…"


def refuses(parameter: str, named: str | None, said: str) -> bool:
    """Whether a 400 means that this server does not take the parameter at all."""
    if _TOO_LONG.search(said):
        return False
    is_named = named == parameter or re.search(rf"\b{re.escape(parameter)}\b", said)
    return bool(is_named and _REFUSED.search(said))


def failure_of_status(
    status: int, said: str, code: str, headers: Mapping[str, str], where: str, key: str
) -> Exception:
    """What a response of an error status means: try again, give up this prompt, stop the run."""
    problem = f"{where}: status {status} ({shortened(said) or 'no reason given'})"
    if _NO_MONEY.search(f"{code} {said}") and status in (400, 402, 403, 429):
        return MnemoscopeError(
            f"{problem}; the account's money or quota is used up and waiting will not help: "
            "fill it up, then resume; nothing recorded is lost"
        )
    if status in _AGAIN or status >= 500:
        return Transient(problem, retry_after=retry_after(headers))
    if status in _ADVICE:
        return MnemoscopeError(f"{problem}; {_ADVICE[status].format(key=key)}")
    if _TOO_LONG.search(said) or status == 413:
        return TooLong(problem)
    if _NO_KEY.search(said):
        return MnemoscopeError(f"{problem}; {_ADVICE[401].format(key=key)}")
    return ModelFailure(problem)


def checked(completion: Completion, where: str, *, at_limit: bool) -> Completion:
    """The completion, unless there is no text in it."""
    if completion.text.strip():
        return completion
    if completion.finish in ("content_filter", "refusal"):
        raise ModelFailure(f"{where}: the server held the reply back ({completion.finish})")
    advice = (
        "; it ran into its limit of tokens: raise the prompt's max_tokens, or add ?max_tokens=… "
        "to the model"
        if at_limit
        else ""
    )
    raise EmptyReply(f"{where}: empty reply{advice}", completion)


def retry_after(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Seconds that the server asks to wait, from a number, a date or OpenAI's milliseconds."""
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
    """A count as the server reports it; servers that send something else report none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
