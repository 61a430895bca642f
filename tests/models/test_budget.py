"""The budget: its limit holds for concurrent requests."""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scripted_server import Request, ScriptedServer, slow

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope.models.budget import Budget, BudgetExhausted, current_budget, open_budget
from mnemoscope.models.chat import Prompt
from mnemoscope.models.model import Model
from mnemoscope.models.model_loader import load_model


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "run" / "budget.lock"
    open_budget(None)


def spend(account: Budget, amount: float, cost: float) -> None:
    with account.reserve(amount) as reservation:
        reservation.cost = cost


def fork(work: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child


def test_the_real_cost_replaces_the_reservation(lock: Path) -> None:
    account = Budget(1.0, 0.25, 1, lock)
    spend(account, 0.7, 0.1)
    assert account.spent == pytest.approx(0.35)
    spend(account, 0.65, 0.65)
    assert account.spent == pytest.approx(1.0)


def test_the_error_for_an_exhausted_budget_says_what_to_do(lock: Path) -> None:
    account = Budget(1.0, 0.9, 1, lock)
    with (
        pytest.raises(
            BudgetExhausted, match=r"\$0\.9000 of \$1\.0000 .*give a higher --max-cost"
        ) as it,
        account.reserve(0.2),
    ):
        pass
    assert isinstance(it.value, MnemoscopeError)
    assert account.spent == pytest.approx(0.9)


@pytest.mark.parametrize("limit", [0.0, -1.0, math.nan, math.inf])
def test_an_impossible_limit_is_refused(lock: Path, limit: float) -> None:
    with pytest.raises(UsageError, match=f"--max-cost {limit} "):
        Budget(limit, 0.0, 1, lock)


def test_a_failed_request_releases_its_reservation(lock: Path) -> None:
    account = Budget(1.0, 0.0, 1, lock)
    with pytest.raises(RuntimeError), account.reserve(1.0):
        raise RuntimeError
    spend(account, 1.0, 1.0)
    assert account.spent == pytest.approx(1.0)


def test_a_request_waits_for_other_reservations(lock: Path) -> None:
    account = Budget(1.0, 0.0, 1, lock)
    held, let_go = threading.Event(), threading.Event()

    def first() -> None:
        with account.reserve(0.9) as reservation:
            held.set()
            let_go.wait(30)
            reservation.cost = 0.1

    thread = threading.Thread(target=first)
    thread.start()
    assert held.wait(30)
    waiting = threading.Thread(target=spend, args=(account, 0.5, 0.5))
    waiting.start()
    assert waiting.is_alive()
    let_go.set()
    waiting.join(30)
    thread.join(30)
    assert account.spent == pytest.approx(0.6)


def test_reservations_of_a_killed_worker_are_released_for_its_successor(lock: Path) -> None:
    account = Budget(1.0, 0.0, 3, lock)
    reading, writing = os.pipe()

    def worker() -> None:
        account.adopt(1)
        spend(account, 0.3, 0.3)
        with account.reserve(0.6):
            os.write(writing, b"!")
            threading.Event().wait(60)

    child = fork(worker)
    assert os.read(reading, 1) == b"!"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)

    def successor() -> None:
        account.adopt(1)
        spend(account, 0.6, 0.2)

    os.waitpid(fork(successor), 0)
    os.close(reading)
    os.close(writing)
    assert account.spent == pytest.approx(0.5)


def test_an_abandoned_slot_can_be_freed(lock: Path) -> None:
    account = Budget(1.0, 0.0, 2, lock)

    def worker() -> None:
        account.adopt(1)
        with account.reserve(0.9):
            os._exit(0)

    os.waitpid(fork(worker), 0)
    account.free(1)
    spend(account, 0.9, 0.9)
    assert account.spent == pytest.approx(0.9)


@given(
    costs=st.lists(st.floats(0.001, 0.2), min_size=1, max_size=30),
    limit=st.floats(0.1, 2.0),
)
def test_never_more_than_the_limit_is_spent(
    tmp_path_factory: pytest.TempPathFactory, costs: list[float], limit: float
) -> None:
    account = Budget(limit, 0.0, 1, tmp_path_factory.getbasetemp() / "budgets.lock")
    refused = 0
    for cost in costs:
        try:
            spend(account, 1.5 * cost, cost)
        except BudgetExhausted:
            refused += 1
    assert account.spent <= limit + 1e-9
    assert refused or sum(costs) <= limit + 1e-9


def test_the_open_budget_is_global(lock: Path) -> None:
    account = Budget(1.0, 0.0, 1, lock)
    open_budget(account)
    assert current_budget() is account
    open_budget(None)
    assert current_budget() is None


def test_two_processes_of_sixteen_threads_stop_within_one_request(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A request costs 1,000 tokens of input and 100 of output, together 0.0012 dollars; the worst
    # case that is set aside for it is a little more.
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(lock.parent / "cache"))
    prompt, limit, price = "x" * 3300, 0.05, 0.0012
    with ScriptedServer(
        lambda request: "y" * 100, tokens=lambda text: 100 if text[0] == "y" else 1000
    ) as server:
        account = Budget(limit, 0.0, 3, lock)
        open_budget(account)
        model = load_model(f"m@{server.url}?price_in=1&price_out=2")

        def worker(slot: int) -> None:
            account.adopt(slot)

            def ask(number: int) -> str:
                try:
                    return model.ask(Prompt("s", f"{prompt} {slot} {number}", max_tokens=100))
                except BudgetExhausted:
                    return ""

            with ThreadPoolExecutor(16) as pool:
                list(pool.map(ask, range(60)))

        children = [fork(lambda slot=slot: worker(slot)) for slot in (1, 2)]  # type: ignore[misc]
        for child in children:
            os.waitpid(child, 0)
        paid = server.delivered * price
    assert paid <= limit
    assert paid > limit - 2 * price
    assert account.spent == pytest.approx(paid)


def ask_many(model: Model, threads: int, prompts: int) -> int:
    """How many of the prompts were answered before the budget was exhausted."""

    def ask(number: int) -> bool:
        try:
            return bool(model.ask(Prompt("s", f"{'x' * 990} {number:03}", max_tokens=10)))
        except BudgetExhausted:
            return False

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(ask, range(prompts)))


def test_one_token_per_character_does_not_exceed_the_limit(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(lock.parent / "cache"))
    with ScriptedServer(lambda request: "y" * 10, tokens=len) as server:
        # Each costs 996 + 10 tokens; dollars for a thousand.
        open_budget(Budget(8.0, 0.0, 1, lock))
        model = load_model(f"m@{server.url}?price_in=1000&price_out=1000")
        answered = ask_many(model, threads=16, prompts=40)
        paid = server.delivered * 1.006
    assert answered == server.delivered
    assert 8.0 - 2 * 1.006 < paid <= 8.0


def test_until_the_first_reply_requests_go_one_at_a_time(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(lock.parent / "cache"))
    at_first: list[int] = []
    with ScriptedServer(tokens=len) as server:

        def reply(request: Request) -> str:
            if request.number == 2:
                at_first.append(server.delivered)
            return "y"

        server.reply(reply)
        server.at(1, slow(0.001))
        open_budget(Budget(1000.0, 0.0, 1, lock))
        model = load_model(f"m@{server.url}?price_in=1&price_out=1")
        assert ask_many(model, threads=8, prompts=8) == 8
    assert at_first == [1]


def test_a_server_without_token_counts_gets_concurrent_requests(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(lock.parent / "cache"))
    with ScriptedServer(lambda request: "y", tokens=None) as server:
        open_budget(Budget(1000.0, 0.0, 1, lock))
        model = load_model(f"m@{server.url}?price_in=1&price_out=1")
        model.ask(Prompt("s", "first"))
        server.hold()
        with ThreadPoolExecutor(1) as one:
            asked = one.submit(ask_many, model, threads=4, prompts=4)
            together = server.wait_for(lambda s: s.running == 4)
            server.release()
            assert asked.result() == 4
    assert together
