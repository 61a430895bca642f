"""A model as readers and judges use it: `ask` a prompt, get the reply's text.

It adds to the provider's request: retries, the cache that pays for each prompt once, the budget,
and the usage counts.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from mnemoscope._store.errors import DataError, MnemoscopeError, UsageError
from mnemoscope._store.jsonl import printable
from mnemoscope.models.budget import CostEstimate, Reservation, current_budget
from mnemoscope.models.cache import MANY_BUCKETS, ContentCache, text_cache
from mnemoscope.models.chat import (
    Completion,
    ModelFailure,
    Prompt,
    Provider,
    Transient,
    TransientTimeout,
    note,
    total,
)
from mnemoscope.models.http_errors import EmptyReply, ReplyLost, TooLong
from mnemoscope.models.prices import Price
from mnemoscope.text.token_estimate import estimate_tokens
from mnemoscope.types import Usage

TRIES = 6
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 30.0
_FIRST_LEAST_WAIT = 0.05
_LONGEST_WAIT_SECONDS = 15 * 60.0
_FAILURES_IN_A_ROW = 8
_PROBE = Prompt("", "Reply with the word OK.", max_tokens=16)


class RequestPacer:
    """Spaces out requests to a model; all threads of a process share it."""

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

    def delay(self, seconds: float) -> None:
        # Two threads at once may lose the longer wait: then the server asks for it again.
        self._not_before = max(self._not_before, self._clock() + seconds)

    def wait(self) -> None:
        """Wait until requests are allowed again; threads continue at different moments."""
        while (left := self._not_before - self._clock()) > 0:
            self._sleep(left * (1 + self._draw() / 10))

    def pause(self, failures: int) -> None:
        """Exponential backoff with full jitter: failed requests are not retried all at once."""
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (failures - 1))
        self._sleep(longest * self._draw())


_repeat = 1


def reply_for_repeat(number: int) -> None:
    """Keep the replies of one declared repeat apart: each repeat asks a model again."""
    global _repeat
    _repeat = number


class Model:
    """Any provider, with retries, cache, budget and usage counts."""

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
        pacer: RequestPacer | None = None,
    ) -> None:
        """Without a price, costs count as 0 and a budget may not be open.

        `max_tokens` replaces that of the prompts. With `estimating`, nothing is paid.
        """
        self.name = name
        self.price = price
        self._provider = provider
        self._tries = tries
        self._max_tokens = max_tokens
        self._estimating = estimating
        self._pacer = pacer or RequestPacer()
        self._estimate = CostEstimate()
        self._cache: ContentCache | None = None
        self._caching = cache and not estimating
        self._failures = 0

    def identity(self) -> dict[str, Any]:
        """What determines the replies: prices and retries do not."""
        limit = {} if self._max_tokens is None else {"max_tokens": self._max_tokens}
        return {**self._provider.identity(), **limit}

    def ask(self, prompt: Prompt) -> str:
        """The reply's text. ModelFailure if there is none; any other error must stop the run."""
        return self.complete(prompt).text

    def complete(self, prompt: Prompt) -> Completion:
        """The reply with how it ended; the failures are those of `ask`."""
        if self._max_tokens is not None:
            prompt = msgspec.structs.replace(prompt, max_tokens=self._max_tokens)
        if not self._caching:
            return self._request(prompt)
        requested = False

        def compute(_: list[str]) -> list[bytes]:
            nonlocal requested
            requested = True
            return [msgspec.json.encode(self._request(prompt))]

        place = text_cache("responses.sqlite")
        if self._cache is None:
            # A fork could inherit a lock that is held. Without one, two threads may create two
            # caches, which use one file.
            self._cache = ContentCache(place, "chat responses 1", buckets=MANY_BUCKETS)
        [value] = self._cache.get_or_compute([self._key(prompt)], compute)
        try:
            completion = msgspec.json.decode(value, type=Completion)
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"this cache is damaged ({error}); delete it and run again",
                file=place or "the cache of replies",
            ) from None
        if not requested:
            used = self._usage(*_tokens(prompt, completion))
            note(msgspec.structs.replace(used, cached=1, paid=0.0))
        return completion

    def _key(self, prompt: Prompt) -> str:
        content = (
            self._provider.identity(),
            printable(prompt.system),
            printable(prompt.user),
            prompt.max_tokens,
            prompt.schema,
            prompt.attempt,
            *([{"alternatives": prompt.alternatives}] if prompt.alternatives else []),
            *([{"repeat": _repeat}] if _repeat > 1 else []),
        )
        return msgspec.json.encode(content, order="deterministic").decode()

    def _request(self, prompt: Prompt) -> Completion:
        """One reply, after retries if needed."""
        usages: list[Usage] = []
        try:
            completion = self._ask_server(prompt, usages)
            usages.append(Usage(requests=1))
            self._failures = 0
            return completion
        finally:
            used = total(usages)
            if used and (used.requests or used.retries or used.cost):
                note(msgspec.structs.replace(used, paid=0.0) if self._estimating else used)

    def _ask_server(self, prompt: Prompt, usages: list[Usage]) -> Completion:
        try:
            return self._try(prompt, usages, self._tries)
        except TooLong:
            raise
        except ModelFailure as failure:
            # An empty reply or a refusal shows that the server works.
            if isinstance(failure, Transient) and not isinstance(failure, EmptyReply):
                self._stop_if_down(failure, usages)
            self._failures += 1
            if self._failures >= _FAILURES_IN_A_ROW:
                raise MnemoscopeError(
                    f"{self.name} failed on {self._failures} prompts in a row, the last time with: "
                    f"{failure}; resume when it works again; nothing recorded is lost"
                ) from None
            raise

    def _stop_if_down(self, failure: Transient, usages: list[Usage]) -> None:
        """Stop the run if the server answers no prompt at all: the question is not the cause."""
        usages.append(Usage(retries=1))
        try:
            self._try(_PROBE, usages, tries=1)
        except Transient as probed:
            if not isinstance(probed, EmptyReply):
                raise MnemoscopeError(
                    f"{failure}; a short test prompt fails as well, so {self.name} is down: "
                    "resume when it works again; nothing recorded is lost"
                ) from None
        except ModelFailure:
            pass  # the server works, and refuses

    def _try(self, prompt: Prompt, usages: list[Usage], tries: int) -> Completion:
        failures = limits = 0
        waited = 0.0
        while True:
            try:
                return self._once(prompt, usages)
            except Transient as failure:
                if failure.retry_after is not None:
                    # The least wait grows, so that asking for 0 seconds again and again has an end.
                    least = min(_LONGEST_PAUSE, _FIRST_LEAST_WAIT * 2**limits)
                    wait = max(failure.retry_after, least)
                    limits += 1
                    waited += wait
                    if waited > _LONGEST_WAIT_SECONDS:
                        raise MnemoscopeError(
                            f"{failure}; the server asks to wait {failure.retry_after:.0f} seconds "
                            f"more, and one prompt may wait {_LONGEST_WAIT_SECONDS / 60:.0f} "
                            "minutes at most: resume later; nothing recorded is lost"
                        ) from None
                    self._pacer.delay(wait)
                else:
                    failures += 1
                    if failures >= tries:
                        if tries > 1:
                            failure.args = (f"{failure} ({tries} tries)",)
                        raise
                    self._pacer.pause(failures)
                usages.append(Usage(retries=1))

    def _once(self, prompt: Prompt, usages: list[Usage]) -> Completion:
        """One request; its cost is counted whether or not a reply came."""
        with self._reserved(prompt) as reservation:
            tokens: tuple[int, int, bool] | None = None
            try:
                completion = self._provider.complete(prompt)
                tokens = self._counted(prompt, completion)
                return completion
            except EmptyReply as empty:
                tokens = self._counted(prompt, empty.completion)
                raise
            except (ReplyLost, TransientTimeout):
                # The server may have billed it, so the budget counts it as spent.
                if self.price is not None and not self.price.is_free:
                    asked = max(_estimated_input(prompt), self._estimate.seen_input(prompt))
                    tokens = asked, prompt.max_tokens, True
                raise
            finally:
                if tokens is not None:
                    usages.append(self._usage(*tokens))
                    if reservation is not None:
                        reservation.cost = usages[-1].cost

    def _counted(self, prompt: Prompt, completion: Completion) -> tuple[int, int, bool]:
        if prompt is not _PROBE:  # too short: the tokens that the server adds would dominate
            self._estimate.learn(prompt, completion.input_tokens)
        return _tokens(prompt, completion)

    def _usage(self, asked: int, replied: int, estimated: bool) -> Usage:
        cost = self.price.of(asked, replied) if self.price else 0.0
        return Usage(
            input_tokens=asked,
            output_tokens=replied,
            cost=cost,
            paid=cost,
            estimated=estimated or self._estimating,
        )

    @contextmanager
    def _reserved(self, prompt: Prompt) -> Iterator[Reservation | None]:
        """Wait for the pacer; reserve the worst case if a budget limits this model."""
        opened = None if self._estimating else current_budget()
        if opened is not None and self.price is None:
            raise UsageError(
                f"the price of {self.name} is not known, so --max-cost cannot be enforced; give it "
                "in dollars for a million tokens, 0 if the model costs nothing: "
                f"{self.name}?price_in=…&price_out=…"
            )
        if opened is None or self.price is None or self.price.is_free:
            self._pacer.wait()
            yield None
            return
        with self._estimate.first_alone():
            self._pacer.wait()
            most = self.price.of(self._estimate.most_input(prompt), prompt.max_tokens)
            with opened.reserve(most) as reservation:
                yield reservation


def _tokens(prompt: Prompt, completion: Completion) -> tuple[int, int, bool]:
    """Tokens of prompt and reply, and whether any of them are estimated."""
    asked, replied = completion.input_tokens, completion.output_tokens
    return (
        _estimated_input(prompt) if asked is None else asked,
        estimate_tokens(completion.text) if replied is None else replied,
        asked is None or replied is None,
    )


def _estimated_input(prompt: Prompt) -> int:
    return estimate_tokens(prompt.system) + estimate_tokens(prompt.user)
