"""Short cuts for usual replies let nothing past that the long way refuses."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from mnemoscope._store.errors import BadReply
from mnemoscope.connectors.stdio import OutOfStep
from mnemoscope.systems import system_replies
from mnemoscope.systems.builtin.bm25 import Bm25
from mnemoscope.systems.host import SystemHost
from mnemoscope.systems.host_frames import LENGTH, HostReply, PlainReply, frame
from mnemoscope.systems.hosted import FrameExchange, Hosted, HostedCopy, _result
from mnemoscope.systems.loader import Driver, _is_hosted
from mnemoscope.systems.plain_hits import PlainHits
from mnemoscope.systems.system_replies import CheckedHits, read_hits
from mnemoscope.types import Hit, Memory, Query, Question

LONGEST = system_replies._LONGEST_ID
SURROGATE = "\ud800"


def reply_of(hits: list[Hit]) -> HostReply:
    return HostReply(1, msgspec.Raw(msgspec.msgpack.encode(hits)))


# Replies of a host, as the worker reads them


def test_a_short_reply_is_read_without_a_look_at_each_hit() -> None:
    hits = [Hit("a", 1.0), Hit("é", text="naïve ☃", sources=("b", "ü"))]

    read = _result("recall", reply_of(hits))

    assert type(read) is CheckedHits
    assert read_hits(read, 10, decoded=True) == hits
    assert read_hits(read, 1, decoded=True) == hits[:1]


@pytest.mark.parametrize("ids", [["x" * (LONGEST + 1)], ["a", "é" * (LONGEST + 1)]])
def test_an_id_that_is_too_long_is_refused_however_little_else_the_reply_has(
    ids: list[str],
) -> None:
    read = _result("recall", reply_of([Hit(id) for id in ids]))

    with pytest.raises(BadReply, match="an id of 10,001 characters"):
        read_hits(read, 10, decoded=True)


def plain_reply(ids: list[str], scores: list[float | None]) -> HostReply:
    return HostReply(1, msgspec.Raw(msgspec.msgpack.encode(PlainReply(ids, scores))))


def test_a_reply_of_plain_hits_makes_no_object_a_hit() -> None:
    read = _result("recall", plain_reply(["a", "b", "c"], [1.0, None, 0.5]))

    assert type(read) is PlainHits
    assert list(read_hits(read, 2, decoded=True)) == [Hit("a", 1.0), Hit("b")]


def test_a_long_reply_of_plain_hits_is_checked() -> None:
    ids = ["a", "x" * (LONGEST + 1)]

    with pytest.raises(BadReply, match="an id of 10,001 characters"):
        read_hits(_result("recall", plain_reply(ids, [None, None])), 10, decoded=True)


def test_plain_hits_need_a_score_each() -> None:
    with pytest.raises(OutOfStep, match="not one score for each id"):
        _result("recall", plain_reply(["a", "b"], [1.0]))


@pytest.mark.parametrize(
    "hits",
    [
        [Hit("a", 1.0), Hit("b")],
        [Hit("a", text="told"), Hit("b")],
        [Hit("a", sources=("b", "a"), ordered=True)],
        [],
    ],
)
def test_a_host_sends_plain_hits_only_where_nothing_is_lost(hits: list[Hit]) -> None:
    host = SystemHost(-1)
    driver = Driver(lambda: SimpleNamespace(recall=lambda query, k: hits))
    driver.begin("s")
    params = msgspec.Raw(msgspec.msgpack.encode({"query": Query("?"), "k": 5}))

    sent = msgspec.Raw(msgspec.msgpack.encode(host._recall(driver, params)))

    assert list(_result("recall", HostReply(1, sent))) == hits


def test_a_source_that_is_too_long_is_refused() -> None:
    read = _result("recall", reply_of([Hit("a", sources=("x" * (LONGEST + 1),))]))

    with pytest.raises(BadReply, match="an id of 10,001 characters"):
        read_hits(read, 10, decoded=True)


@pytest.mark.parametrize("bytes_over", [-200, -1, 0, 1, 200])
def test_replies_of_about_the_length_of_the_short_cut_are_read_alike(bytes_over: int) -> None:
    """The longest id that is read does not fit into a reply that takes the short cut."""
    hits = [Hit(f"m{number}", 0.5) for number in range(100)]
    left = LONGEST + bytes_over - len(reply_of(hits).result)
    hits.append(Hit("é" * (left // 4), text="x" * (left // 4)))

    read = _result("recall", reply_of(hits))

    assert read_hits(read, 1000, decoded=True) == hits


def test_a_reply_that_is_not_utf_8_is_out_of_step_and_not_a_hit() -> None:
    raw = msgspec.msgpack.encode([Hit("abc")]).replace(b"abc", b"\xed\xa0\x80")

    with pytest.raises(OutOfStep, match="cannot be read"):
        _result("recall", HostReply(1, msgspec.Raw(raw)))


# Replies of a class in the worker


@pytest.mark.parametrize(
    ("hits", "problem"),
    [
        ([Hit("a" + SURROGATE)], "not valid Unicode"),
        ([Hit("a"), Hit("b", 1.0), Hit(SURROGATE, 1.0)], "not valid Unicode"),
        ([Hit("x" * (LONGEST + 1))], "10,001 characters"),
        ([Hit("a", text="t"), Hit("x" * (LONGEST + 1), 1.0)], "10,001 characters"),
    ],
)
def test_ids_that_cannot_be_recorded_are_refused(hits: list[Hit], problem: str) -> None:
    with pytest.raises(BadReply, match=problem):
        read_hits(hits, 10)


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (PlainHits([object()], [None]), "id"),  # type: ignore[list-item]
        (PlainHits(["a"], ["high"]), "score"),  # type: ignore[list-item]
        (PlainHits(["x" * (LONGEST + 1)], [None]), "10,001 characters"),
        (CheckedHits([Hit("x" * (LONGEST + 1))]), "10,001 characters"),
    ],
)
def test_a_system_that_fills_our_own_classes_is_checked_as_any_other(
    reply: Sequence[Hit], problem: str
) -> None:
    """The cheat: in the worker's process nothing else checks what is recorded."""

    class Importing:
        def remember(self, memories: Sequence[Memory]) -> None: ...

        def recall(self, query: Query, k: int) -> Sequence[Hit]:
            return reply

    with pytest.raises(BadReply, match=problem):
        Driver(Importing, Importing()).ask(Query("?"), 1)


def test_only_our_client_of_a_host_is_believed_to_have_decoded() -> None:
    class Mine(Hosted):
        pass

    assert [_is_hosted(kind) for kind in (Hosted, HostedCopy, Mine)] == [True, True, False]


def test_a_list_that_only_looks_like_checked_hits_is_checked() -> None:
    class Mine(CheckedHits):
        pass

    with pytest.raises(BadReply, match="10,001 characters"):
        read_hits(Mine([Hit("x" * (LONGEST + 1))]), 10, decoded=True)


def test_ids_as_long_as_allowed_and_not_ascii_are_read() -> None:
    hits = [Hit("x" * LONGEST), Hit("☃" * LONGEST), Hit("naïve")]

    assert read_hits(hits, 10) == hits


# Our own systems, whose hits have no object each


def ingested(system: Any, *ids: str) -> Driver:
    driver = Driver(lambda: system)
    driver.begin("s")
    driver.remember([Memory(id, "the piano is in the garden") for id in ids])
    return driver


def test_our_own_hits_are_those_of_recall() -> None:
    system = Bm25(cache=False)
    driver = ingested(system, "a", "b", "c")
    question = Question("q", "where is the piano?")

    hits = driver.hits(question, 2)

    assert isinstance(hits, PlainHits)
    assert list(hits) == driver.recall(question, 2) == system.recall(Query(question.text), 2)
    assert list(hits[1:]) == list(hits)[1:]


@pytest.mark.parametrize(
    ("id", "problem"), [("x" * (LONGEST + 1), "10,001 characters"), (SURROGATE, "not valid")]
)
def test_odd_ids_of_memories_are_refused_as_those_of_any_system(id: str, problem: str) -> None:
    driver = ingested(Bm25(cache=False), "a", id)

    with pytest.raises(BadReply, match=problem):
        driver.hits(Question("q", "where is the piano?"), 5)


def test_ids_that_are_not_ascii_come_back_as_they_are() -> None:
    driver = ingested(Bm25(cache=False), "naïve", "☃")

    assert [hit.id for hit in driver.hits(Question("q", "piano"), 5)] == ["naïve", "☃"]


def test_a_subclass_of_ours_is_asked_by_the_method_that_it_overrides() -> None:
    class Mine(Bm25):
        __module__ = "elsewhere"

        def recall(self, query: Query, k: int) -> list[Hit]:
            return [Hit("mine")]

    driver = ingested(Mine(cache=False), "a")

    assert [hit.id for hit in driver.hits(Question("q", "piano"), 5)] == ["mine"]


# Several replies in one read


@pytest.fixture
def exchange() -> Iterator[tuple[FrameExchange, Callable[[bytes], object]]]:
    """An exchange with a host of which the test writes the replies."""
    orders, order_end = os.pipe()
    reply_end, replies = os.pipe()
    with (
        os.fdopen(order_end, "wb", 0) as stdin,
        os.fdopen(reply_end, "rb", 0) as stdout,
        os.fdopen(orders, "rb", 0),
        os.fdopen(replies, "wb", 0) as written,
    ):
        child: Any = SimpleNamespace(
            stdin=stdin,
            stdout=stdout,
            name="it",
            has_exited=False,
            stderr=SimpleNamespace(last_lines=""),
            exit_reason=lambda: "it ended",
        )
        yield FrameExchange(child), written.write


def answer(number: int, *ids: str) -> bytes:
    return frame((number, [Hit(id) for id in ids], None, []))


Fixture = tuple[FrameExchange, Callable[[bytes], object]]


def test_replies_that_come_in_one_read_go_to_their_callers(exchange: Fixture) -> None:
    asked, write = exchange
    found: dict[int, Any] = {}

    def ask(number: int) -> None:
        found[number] = _result("recall", asked.ask(number, b"", 20.0, "recall"))

    callers = [threading.Thread(target=ask, args=(number,)) for number in (1, 2, 3)]
    for caller in callers:
        caller.start()
    while len(asked._waiting) < len(callers):
        pass
    write(answer(3, "c") + answer(1, "a") + answer(2, "b"))
    for caller in callers:
        caller.join(20)

    assert found == {1: [Hit("a")], 2: [Hit("b")], 3: [Hit("c")]}


def test_the_rest_of_a_read_is_kept_for_the_next_call(exchange: Fixture) -> None:
    asked, write = exchange
    first, second = answer(1, "a" * 50), answer(2, "b")
    write(first + second[:3])

    assert _result("recall", asked.ask(1, b"", 20.0)) == [Hit("a" * 50)]
    write(second[3:])
    assert _result("recall", asked.ask(2, b"", 20.0)) == [Hit("b")]


def test_a_reply_that_nobody_asked_for_is_out_of_step(exchange: Fixture) -> None:
    asked, write = exchange
    write(answer(7, "planted"))

    with pytest.raises(OutOfStep, match="a reply to call 7"):
        asked.ask(1, b"", 20.0, "recall")


def test_a_frame_that_claims_to_be_endless_is_out_of_step(exchange: Fixture) -> None:
    asked, write = exchange
    write(LENGTH.pack(2**32 - 1) + b"x")

    with pytest.raises(OutOfStep, match="more than 64 MiB"):
        asked.ask(1, b"", 20.0, "recall")


def test_a_frame_whose_length_is_a_lie_is_out_of_step(exchange: Fixture) -> None:
    asked, write = exchange
    body = answer(1, "a")[LENGTH.size :]
    write(LENGTH.pack(len(body) - 2) + body)

    with pytest.raises(OutOfStep, match="cannot be read"):
        asked.ask(1, b"", 20.0, "recall")
