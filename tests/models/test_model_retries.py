"""A model with a scripted provider: retries, waits, the cache, the usage counts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope.models.budget import Budget, open_budget
from mnemoscope.models.chat import (
    Completion,
    ModelFailure,
    Prompt,
    Transient,
    TransientTimeout,
    metered,
    total,
)
from mnemoscope.models.http_errors import EmptyReply, ReplyLost, TooLong
from mnemoscope.models.model import Model, RequestPacer
from mnemoscope.models.prices import Price
from mnemoscope.types import Usage

GOOD = Completion("Friday", 1000, 10, "stop")


class Clock:
    """Time that passes only in `sleep`."""

    def __init__(self) -> None:
        self.now = 100.0
        self.naps: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += seconds


class Provider:
    """Raises or returns what it was given, in order; the last one for ever.

    It answers the probe, or raises `probed`.
    """

    def __init__(
        self,
        *results: Completion | Exception,
        name: str = "fake",
        probed: Completion | Exception = Completion("OK", 20, 1, "stop"),
    ) -> None:
        self.results = list(results)
        self.asked: list[Prompt] = []
        self.probes: list[Prompt] = []
        self.name = name
        self.probed = probed

    def identity(self) -> dict[str, Any]:
        return {"model": self.name}

    def complete(self, prompt: Prompt) -> Completion:
        if not prompt.system:
            self.probes.append(prompt)
            result = self.probed
        else:
            self.asked.append(prompt)
            result = self.results.pop(0) if len(self.results) > 1 else self.results[0]
        if isinstance(result, Exception):
            raise result
        return result


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def _fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(tmp_path / "cache"))


Build = Callable[..., Model]


@pytest.fixture
def build(clock: Clock) -> Build:
    def model(provider: Provider, **settings: Any) -> Model:
        pacer = RequestPacer(lambda: clock.now, clock.sleep, lambda: 1.0)
        return Model("fake", provider, **{"price": Price(1.0, 2.0), "pacer": pacer, **settings})

    return model


def asking(model: Model, prompt: Prompt) -> Usage:
    with metered() as usages, suppress(ModelFailure):
        model.ask(prompt)
    counted = total(usages)
    assert counted is not None
    return counted


def test_transient_failures_are_tried_again_with_growing_pauses(build: Build, clock: Clock) -> None:
    provider = Provider(Transient("a"), Transient("b"), Transient("c"), GOOD)
    assert build(provider).ask(Prompt("s", "u")) == "Friday"
    assert clock.naps == [1.0, 2.0, 4.0]


def test_pauses_are_drawn_up_to_their_length() -> None:
    naps: list[float] = []
    RequestPacer(lambda: 0.0, naps.append, lambda: 0.25).pause(4)
    assert naps == [2.0]


def test_the_failure_after_the_last_try_says_how_many(build: Build) -> None:
    provider = Provider(Transient("overloaded"))
    with pytest.raises(ModelFailure, match=r"overloaded \(3 tries\)") as caught:
        build(provider, tries=3).ask(Prompt("s", "u"))
    assert len(provider.asked) == 3
    assert not caught.value.timed_out


def test_a_timeout_on_every_try_is_a_timeout(build: Build) -> None:
    with pytest.raises(ModelFailure) as caught:
        build(Provider(TransientTimeout("late")), tries=2).ask(Prompt("s", "u"))
    assert caught.value.timed_out


def test_waits_that_the_server_asks_for_do_not_count_as_tries(build: Build, clock: Clock) -> None:
    limits = [Transient("429", retry_after=7.0) for _ in range(5)]
    assert build(Provider(*limits, GOOD), tries=2).ask(Prompt("s", "u")) == "Friday"
    assert clock.now - 100 >= 35


def test_a_wait_for_one_thread_holds_back_all_threads(clock: Clock) -> None:
    pacer = RequestPacer(lambda: clock.now, clock.sleep, lambda: 0.0)
    sent_at: list[float] = []

    class Stamping(Provider):
        def complete(self, prompt: Prompt) -> Completion:
            sent_at.append(clock.now)
            return super().complete(prompt)

    pacer.delay(60)
    model = Model("fake", Stamping(GOOD), price=None, pacer=pacer)
    thread = threading.Thread(target=lambda: model.ask(Prompt("s", "u")))
    thread.start()
    thread.join()
    assert sent_at == [160.0]


def test_a_wait_beyond_the_limit_stops_the_run(build: Build, clock: Clock) -> None:
    provider = Provider(Transient("429", retry_after=3600.0))
    with pytest.raises(MnemoscopeError, match="resume later"):
        build(provider).ask(Prompt("s", "u"))
    assert clock.naps == []


def test_waits_of_zero_seconds_come_to_an_end(build: Build) -> None:
    provider = Provider(Transient("429", retry_after=0.0))
    with pytest.raises(MnemoscopeError, match="resume later"):
        build(provider).ask(Prompt("s", "u"))
    assert len(provider.asked) < 100


def test_permanent_failures_are_not_retried(build: Build) -> None:
    provider = Provider(ModelFailure("bad request"))
    with pytest.raises(ModelFailure, match=r"^bad request$"):
        build(provider).ask(Prompt("s", "u"))
    assert len(provider.asked) == 1


@pytest.mark.parametrize(
    "failure", [Transient("status 503"), ReplyLost("cut"), TransientTimeout("late")]
)
def test_a_server_that_is_down_stops_the_run_and_fails_no_question(
    build: Build, failure: Transient
) -> None:
    provider = Provider(failure, probed=Transient("status 503"))
    with pytest.raises(MnemoscopeError, match=r"fake is down.*nothing recorded is lost"):
        build(provider, tries=3).ask(Prompt("s", "u"))
    assert (len(provider.asked), len(provider.probes)) == (3, 1)


@pytest.mark.parametrize(
    "sign_of_life",
    [
        Completion("OK", 20, 1),
        EmptyReply("it only thought", Completion("", 20, 16, "length")),
        ModelFailure("16 tokens are too few"),
    ],
)
def test_if_the_probe_is_answered_only_the_prompt_fails(
    build: Build, sign_of_life: Completion | Exception
) -> None:
    provider = Provider(Transient("status 500"), probed=sign_of_life)
    with pytest.raises(ModelFailure, match=r"^status 500 \(2 tries\)$"):
        build(provider, tries=2).ask(Prompt("s", "u"))
    assert len(provider.probes) == 1


@pytest.mark.parametrize(
    "failure", [EmptyReply("empty", Completion("", 10, 0)), ModelFailure("bad request")]
)
def test_a_server_that_replied_is_not_probed(build: Build, failure: ModelFailure) -> None:
    provider = Provider(failure, probed=Transient("never asked"))
    with pytest.raises(ModelFailure):
        build(provider, tries=2).ask(Prompt("s", "u"))
    assert provider.probes == []


def test_a_probe_waits_if_the_server_asks_for_it(build: Build, clock: Clock) -> None:
    provider = Provider(Transient("status 500"), probed=Transient("429", retry_after=3600.0))
    with pytest.raises(MnemoscopeError, match="resume later"):
        build(provider, tries=1).ask(Prompt("s", "u"))
    assert clock.naps == []


def test_a_probe_is_charged_and_not_cached(build: Build) -> None:
    provider = Provider(Transient("status 500"), probed=Completion("OK", 1000, 10))
    model = build(provider, tries=2)
    usages = [asking(model, Prompt("s", f"u{number}")) for number in range(2)]
    assert [usage.paid for usage in usages] == [pytest.approx(0.00102)] * 2
    assert [(usage.requests, usage.retries) for usage in usages] == [(0, 2)] * 2
    assert len(provider.probes) == 2


def test_eight_failures_in_a_row_stop_the_run(build: Build) -> None:
    model = build(Provider(Transient("in trouble")), tries=2)
    for number in range(7):
        with pytest.raises(ModelFailure):
            model.ask(Prompt("s", f"u{number}"))
    with pytest.raises(MnemoscopeError, match=r"8 prompts in a row.*nothing recorded is lost"):
        model.ask(Prompt("s", "u8"))


def test_a_success_between_starts_the_count_again(build: Build) -> None:
    provider = Provider(*[ModelFailure("bad")] * 7, GOOD, *[ModelFailure("bad")] * 7)
    model = build(provider)
    for number in range(15):
        with suppress(ModelFailure):
            model.ask(Prompt("s", f"u{number}"))
    assert len(provider.asked) == 15


def test_prompts_too_long_for_the_model_never_stop_the_run(build: Build) -> None:
    model = build(Provider(TooLong("8192 tokens")))
    for number in range(20):
        with pytest.raises(TooLong):
            model.ask(Prompt("s", f"u{number}"))


def test_the_same_prompt_is_paid_once_even_by_another_model_object(build: Build) -> None:
    first, second = Provider(GOOD), Provider(Completion("never asked"))
    paid = asking(build(first), Prompt("s", "u"))
    again = asking(build(second), Prompt("s", "u"))
    assert (paid.requests, paid.cached) == (1, 0)
    assert paid.paid == pytest.approx(0.00102)
    assert (again.requests, again.cached, again.paid) == (0, 1, 0.0)
    assert (again.input_tokens, again.output_tokens, again.cost) == (1000, 10, paid.cost)
    assert second.asked == []


def test_threads_that_ask_the_same_at_once_pay_once(build: Build) -> None:
    provider = Provider(GOOD)
    model = build(provider)
    threads = [threading.Thread(target=model.ask, args=(Prompt("s", "u"),)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(provider.asked) == 1


@pytest.mark.parametrize(
    "other",
    [
        Prompt("S", "u"),
        Prompt("s", "U"),
        Prompt("s", "u", max_tokens=9),
        Prompt("s", "u", schema={"type": "object"}),
        Prompt("s", "u", attempt=2),
    ],
)
def test_a_different_prompt_is_a_new_request(build: Build, other: Prompt) -> None:
    provider = Provider(GOOD)
    model = build(provider)
    model.ask(Prompt("s", "u"))
    model.ask(other)
    assert len(provider.asked) == 2


def test_the_typical_reply_is_not_part_of_the_cache_key(build: Build) -> None:
    provider = Provider(GOOD)
    model = build(provider)
    model.ask(Prompt("s", "u", typical="a"))
    model.ask(Prompt("s", "u", typical="b"))
    assert len(provider.asked) == 1


def test_another_model_never_gets_the_first_ones_reply(build: Build) -> None:
    other = Provider(Completion("Monday"), name="other")
    build(Provider(GOOD)).ask(Prompt("s", "u"))
    assert build(other).ask(Prompt("s", "u")) == "Monday"


def test_failures_are_not_cached(build: Build) -> None:
    model = build(Provider(ModelFailure("bad"), GOOD))
    with pytest.raises(ModelFailure):
        model.ask(Prompt("s", "u"))
    assert model.ask(Prompt("s", "u")) == "Friday"


def test_without_the_cache_each_prompt_is_a_request(build: Build) -> None:
    provider = Provider(GOOD)
    model = build(provider, cache=False)
    model.ask(Prompt("s", "u"))
    model.ask(Prompt("s", "u"))
    assert len(provider.asked) == 2


def test_a_lone_surrogate_in_a_prompt_is_accepted(build: Build) -> None:
    assert build(Provider(GOOD)).ask(Prompt("s", "broken \ud83d emoji")) == "Friday"


def test_tokens_that_the_server_did_not_count_are_estimated_and_marked(build: Build) -> None:
    usage = asking(build(Provider(Completion("Friday"))), Prompt("four", "eight it"))
    assert (usage.input_tokens, usage.output_tokens, usage.estimated) == (3, 2, True)


def test_an_empty_reply_is_paid_and_counted_like_any_other(build: Build) -> None:
    empty = EmptyReply("empty", Completion("", 1000, 500, "length"))
    usage = asking(build(Provider(empty, GOOD)), Prompt("s", "u"))
    assert (usage.requests, usage.retries) == (1, 1)
    assert (usage.input_tokens, usage.output_tokens) == (2000, 510)
    assert usage.paid == pytest.approx((2000 + 2 * 510) / 1e6)


@pytest.mark.parametrize("failure", [ReplyLost("cut"), TransientTimeout("late")])
def test_a_lost_reply_is_charged_at_its_worst_case(build: Build, failure: Transient) -> None:
    provider = Provider(failure, probed=ModelFailure("there, and free of charge"))
    usage = asking(build(provider, tries=1), Prompt("four", "four", max_tokens=100))
    assert usage.requests == 0
    assert usage.paid == pytest.approx((2 + 2 * 100) / 1e6)
    assert usage.estimated


def test_a_limit_given_with_the_model_replaces_the_prompts(build: Build) -> None:
    provider = Provider(GOOD)
    model = build(provider, max_tokens=2000)
    model.ask(Prompt("s", "u", max_tokens=5))
    assert provider.asked[0].max_tokens == 2000
    assert model.identity() == {"model": "fake", "max_tokens": 2000}


@pytest.fixture
def open_with(tmp_path: Path) -> Iterator[Callable[[float], Budget]]:
    def opened(limit: float) -> Budget:
        current_budget = Budget(limit, 0.0, 1, tmp_path / "budget.lock")
        open_budget(current_budget)
        return current_budget

    yield opened
    open_budget(None)


def test_a_model_is_charged_to_the_open_budget(
    build: Build, open_with: Callable[[float], Budget]
) -> None:
    current_budget = open_with(1.0)
    model = build(Provider(GOOD))
    model.ask(Prompt("s", "u"))
    model.ask(Prompt("s", "u"))
    assert current_budget.spent == pytest.approx(0.00102)


def test_a_request_that_may_cost_more_than_is_left_is_not_sent(
    build: Build, open_with: Callable[[float], Budget]
) -> None:
    open_with(0.0005)
    provider = Provider(GOOD)
    with pytest.raises(MnemoscopeError, match="give a higher --max-cost"):
        build(provider).ask(Prompt("s", "u", max_tokens=300))
    assert provider.asked == []


def test_reservations_use_the_highest_token_rate_seen(
    build: Build, open_with: Callable[[float], Budget]
) -> None:
    # Set aside for the first are 32 + 700 × 1.05 and 50 millionths; it takes 2,100 and 50: a token
    # a character, not a third of one. So the next may take 2,287, and 2,150 are left.
    open_with(0.0043)
    provider = Provider(Completion("Friday", 2100, 25))
    model = build(provider)
    assert model.ask(Prompt("s", "u" * 2099, max_tokens=25)) == "Friday"
    with pytest.raises(MnemoscopeError, match="give a higher --max-cost"):
        model.ask(Prompt("s", "v" * 2099, max_tokens=25))
    assert len(provider.asked) == 1


def test_a_lost_reply_is_charged_at_the_highest_token_rate_seen(build: Build) -> None:
    dense = Completion("Friday", 200, 1)
    model = build(Provider(dense, ReplyLost("cut"), dense), cache=False)
    asking(model, Prompt("s", "u" * 99))
    usage = asking(model, Prompt("s", "v" * 99, max_tokens=10))
    assert (usage.input_tokens, usage.output_tokens) == (400, 11)


def test_a_budget_is_refused_for_a_model_without_a_price(
    build: Build, open_with: Callable[[float], Budget]
) -> None:
    open_with(1.0)
    with pytest.raises(UsageError, match=r"fake\?price_in=…&price_out=…"):
        build(Provider(GOOD), price=None).ask(Prompt("s", "u"))


def test_estimating_pays_nothing(build: Build, open_with: Callable[[float], Budget]) -> None:
    current_budget = open_with(0.000001)
    usage = asking(build(Provider(GOOD), estimating=True), Prompt("s", "u"))
    assert (usage.paid, usage.estimated) == (0.0, True)
    assert usage.cost == pytest.approx(0.00102)
    assert current_budget.spent == 0.0
