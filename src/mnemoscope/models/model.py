"""A model as readers and judges use it: `ask` a prompt, get the reply's text.

Around the provider's one request stand patience, the cache that pays for each prompt once, the
purse, and the accounts.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import msgspec

from mnemoscope._store.errors import DataError, MnemoscopeError, UsageError
from mnemoscope._store.jsonl import printable
from mnemoscope.models.budget import Budget, CostEstimate, Reservation, current_budget
from mnemoscope.models.cache import MANY_BUCKETS, ContentCache, default_cache_dir
from mnemoscope.models.chat import (
    Completion,
    ModelFailure,
    Prompt,
    Provider,
    Transient,
    TransientTimeout,
    note,
)
from mnemoscope.models.http_errors import EmptyReply, Lost, TooLong
from mnemoscope.models.prices import Price
from mnemoscope.text.token_estimate import estimate_tokens
from mnemoscope.types import Usage

TRIES = 6
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 30.0
_FIRST_FLOOR = 0.05
_PATIENCE_SECONDS = 15 * 60.0
_FAILURES_IN_A_ROW = 8
_PROBE = Prompt("", "Reply with the word OK.", max_tokens=16)


class Turn:
    """When a model may be asked next; all threads of a process keep to it."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._draw = draw
        self._not_before = 0.0

    def keep_off(self, seconds: float) -> None:
        # Two threads at once may lose the longer wait: then the server says it again.
        self._not_before = max(self._not_before, self._clock() + seconds)

    def wait(self) -> None:
        """Return when the server may be asked again, not everybody at the same moment."""
        while (left := self._not_before - self._clock()) > 0:
            self._sleep(left * (1 + self._draw() / 10))

    def pause(self, failures: int) -> None:
        """Exponential, with full jitter: those that failed together do not come back together."""
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (failures - 1))
        self._sleep(longest * self._draw())


class _Spending:
    """What one prompt has cost so far, all its tries together."""

    def __init__(self) -> None:
        self.retries = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.cost = 0.0
        self.estimated = False

    def usage(self, *, requests: int) -> Usage:
        return Usage(
            requests=requests,
            retries=self.retries,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cost=self.cost,
            paid=self.cost,
            estimated=self.estimated,
        )


class Model:
    """Any provider, with patience, cache, purse and accounts around it."""

    def __init__(
        self,
        name: str,
        provider: Provider,
        *,
        price: Price | None,
        tries: int = TRIES,
        max_tokens: int | None = None,
        cache: bool = True,
        estimating: bool = False,
        turn: Turn | None = None,
    ) -> None:
        """With no price known costs count as nothing, and no purse may be open.

        `max_tokens` takes the place of the prompts' own. Where it is only `estimating`, nothing
        is paid.
        """
        self.name = name
        self.price = price
        self._provider = provider
        self._tries = tries
        self._max_tokens = max_tokens
        self._estimating = estimating
        self._turn = turn or Turn()
        self._foresight = CostEstimate()
        self._cache: ContentCache | None = None
        self._caching = cache and not estimating
        self._failures = 0

    def identity(self) -> dict[str, Any]:
        """What decides the replies; neither prices nor patience do."""
        limit = {} if self._max_tokens is None else {"max_tokens": self._max_tokens}
        return {**self._provider.identity(), **limit}

    def ask(self, prompt: Prompt) -> str:
        """The reply's text. ModelFailure where none comes; other errors mean: stop the run."""
        if self._max_tokens is not None:
            prompt = msgspec.structs.replace(prompt, max_tokens=self._max_tokens)
        if not self._caching:
            return self._request(prompt).text
        requested = False

        def compute(_: list[str]) -> list[bytes]:
            nonlocal requested
            requested = True
            return [msgspec.json.encode(self._request(prompt))]

        [value] = self._responses().get_or_compute([self._key(prompt)], compute)
        completion = _decoded(value)
        if not requested:
            asked, said, estimated = _tokens(prompt, completion)
            cost = self.price.of(asked, said) if self.price else 0.0
            note(
                Usage(
                    cached=1,
                    input_tokens=asked,
                    output_tokens=said,
                    cost=cost,
                    estimated=estimated,
                )
            )
        return completion.text

    def _request(self, prompt: Prompt) -> Completion:
        """One reply, after as many tries as it takes and is allowed."""
        spending = _Spending()
        requests = 0
        try:
            completion = self._ask_patiently(prompt, spending)
            requests = 1
            self._failures = 0
            return completion
        finally:
            if requests or spending.retries or spending.cost:
                usage = spending.usage(requests=requests)
                note(msgspec.structs.replace(usage, paid=0.0) if self._estimating else usage)

    def _ask_patiently(self, prompt: Prompt, spending: _Spending) -> Completion:
        try:
            return self._try(prompt, spending, self._tries)
        except TooLong:
            raise
        except ModelFailure as failure:
            # A reply without text, or a refusal, is a server at work.
            if isinstance(failure, Transient) and not isinstance(failure, EmptyReply):
                self._stop_if_down(failure, spending)
            self._fail(failure)

    def _stop_if_down(self, failure: Transient, spending: _Spending) -> None:
        """Stop the run where the server answers nothing at all: no question is to blame."""
        spending.retries += 1
        try:
            self._try(_PROBE, spending, tries=1)
        except Transient as probed:
            if not isinstance(probed, EmptyReply):
                raise MnemoscopeError(
                    f"{failure}; the shortest of prompts fails as well, so {self.name} is down: "
                    "resume when it is well again; nothing recorded is lost"
                ) from None
        except ModelFailure:
            pass  # it is there, and refuses

    def _try(self, prompt: Prompt, spending: _Spending, tries: int) -> Completion:
        failures = limits = 0
        waited = 0.0
        while True:
            try:
                return self._once(prompt, spending)
            except Transient as failure:
                if failure.retry_after is not None:
                    # The floor grows, so that "come back at once" has an end too.
                    floor = min(_LONGEST_PAUSE, _FIRST_FLOOR * 2**limits)
                    wait = max(failure.retry_after, floor)
                    limits += 1
                    waited += wait
                    if waited > _PATIENCE_SECONDS:
                        raise MnemoscopeError(
                            f"{failure}; it asks to wait {failure.retry_after:.0f} seconds more, "
                            f"and {_PATIENCE_SECONDS / 60:.0f} minutes is as long as one prompt "
                            "may wait: resume later; nothing recorded is lost"
                        ) from None
                    self._turn.keep_off(wait)
                else:
                    failures += 1
                    if failures >= tries:
                        if tries > 1:
                            failure.args = (f"{failure} ({tries} tries)",)
                        raise
                    self._turn.pause(failures)
                spending.retries += 1

    def _fail(self, failure: ModelFailure) -> NoReturn:
        """Give up this prompt; where that has become a habit, the run."""
        self._failures += 1
        if self._failures >= _FAILURES_IN_A_ROW:
            raise MnemoscopeError(
                f"{self.name} gave nothing to {self._failures} prompts in a row, at last: "
                f"{failure}; resume when it is well again; nothing recorded is lost"
            ) from None
        raise failure

    def _once(self, prompt: Prompt, spending: _Spending) -> Completion:
        """One request, and what it cost, whether or not a reply came."""
        with self._reserved(prompt) as reservation:
            before = spending.cost
            try:
                completion = self._provider.complete(prompt)
                self._replied(prompt, completion, spending)
                return completion
            except EmptyReply as empty:
                self._replied(prompt, empty.completion, spending)
                raise
            except (Lost, TransientTimeout):
                # Nobody knows whether the server finished it; a ceiling must not count on luck.
                if self.price is not None and any(self.price):
                    asked = max(_estimated_input(prompt), self._foresight.seen_input(prompt))
                    self._account(spending, asked, prompt.max_tokens, True)
                raise
            finally:
                if reservation is not None:
                    reservation.cost = spending.cost - before

    def _replied(self, prompt: Prompt, completion: Completion, spending: _Spending) -> None:
        if prompt is not _PROBE:  # so short that what the server adds would look like its rate
            self._foresight.learn(prompt, completion.input_tokens)
        self._account(spending, *_tokens(prompt, completion))

    def _account(self, spending: _Spending, asked: int, said: int, estimated: bool) -> None:
        spending.input_tokens += asked
        spending.output_tokens += said
        spending.estimated |= estimated or self._estimating
        spending.cost += self.price.of(asked, said) if self.price else 0.0

    @contextmanager
    def _reserved(self, prompt: Prompt) -> Iterator[Reservation | None]:
        """When it is our turn; with the worst case set aside, if a purse is open for it."""
        opened = self._within_budget()
        if opened is None:
            self._turn.wait()
            yield None
            return
        assert self.price is not None
        with self._foresight.first_alone():
            self._turn.wait()
            most = self.price.of(self._foresight.most_input(prompt), prompt.max_tokens)
            with opened.reserve(most) as reservation:
                yield reservation

    def _within_budget(self) -> Budget | None:
        """The open purse, where this model costs money."""
        opened = current_budget()
        if opened is None or self._estimating:
            return None
        if self.price is None:
            raise UsageError(
                f"what {self.name} costs is not known, so --max-cost cannot hold; give its price "
                "in dollars for a million tokens, 0 if it costs nothing: "
                f"{self.name}?price_in=…&price_out=…"
            )
        return opened if any(self.price) else None

    def _key(self, prompt: Prompt) -> str:
        content = (
            self._provider.identity(),
            printable(prompt.system),
            printable(prompt.user),
            prompt.max_tokens,
            prompt.schema,
            prompt.attempt,
        )
        return msgspec.json.encode(content, order="deterministic").decode()

    def _responses(self) -> ContentCache:
        if self._cache is None:
            # No lock, which a fork could inherit locked: two threads may make two, on one file.
            path = default_cache_dir() / "responses.sqlite"
            self._cache = ContentCache(path, "chat responses 1", buckets=MANY_BUCKETS)
        return self._cache


def _decoded(value: bytes) -> Completion:
    try:
        return msgspec.json.decode(value, type=Completion)
    except msgspec.DecodeError as error:
        place = default_cache_dir() / "responses.sqlite"
        raise DataError(
            f"this cache is damaged ({error}); delete it and run again", file=place
        ) from None


def _tokens(prompt: Prompt, completion: Completion) -> tuple[int, int, bool]:
    """Tokens asked and replied, and whether we had to estimate any of them."""
    asked, said = completion.input_tokens, completion.output_tokens
    return (
        _estimated_input(prompt) if asked is None else asked,
        estimate_tokens(completion.text) if said is None else said,
        asked is None or said is None,
    )


def _estimated_input(prompt: Prompt) -> int:
    return estimate_tokens(prompt.system) + estimate_tokens(prompt.user)
