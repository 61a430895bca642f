"""Hits are mapped to memories by the tags that we sent, by the server's ids, or by text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from mnemoscope._store.errors import BadReply
from mnemoscope.connectors.id_mapping import IdMapping
from mnemoscope.connectors.mcp.tool_mapping import BatchCall
from mnemoscope.types import Hit, Memory

DAY = datetime(2023, 5, 8, tzinfo=UTC)
GARDEN = Memory("d/1", "Rex the dog likes the garden", DAY)
LONGER = Memory("d/2", "They say that Rex the dog likes the garden by the sea", DAY)
OK = Memory("d/3", "ok", DAY)
EACH = BatchCall(tool="forget")


def sent(*memories: Memory) -> IdMapping:
    trace = IdMapping(by_text=True)
    trace.add(memories)
    return trace


@pytest.mark.parametrize(
    ("said", "ids"),
    [
        ("Rex the  dog\nlikes the garden", ["d/1"]),
        ("[2023-05-08] Rex the dog likes the garden", ["d/1"]),
        ("Ann: Rex the dog likes the garden", ["d/1"]),
        ("Ann: They say that Rex the dog likes the garden by the sea", ["d/2"]),
        ("the garden by the sea", ["d/2"]),
        ("ok", ["d/3"]),
        ("[2023-05-08] ok", ["d/3"]),
        ("a book that nobody told of", ["untraced: a book that nobody told of"]),
        ("the garden", ["untraced: the garden"]),
        ("", ["untraced: "]),
    ],
)
def test_a_text_is_traced_unless_it_is_too_short(said: str, ids: list[str]) -> None:
    assert [hit.id for hit in sent(GARDEN, LONGER, OK).resolve([Hit(said)])] == ids


def test_memories_with_the_same_text_are_distinguished_only_by_date() -> None:
    twin, later = Memory("twin", GARDEN.text, DAY), Memory("later", GARDEN.text)
    trace = sent(GARDEN, twin, later)
    [plain] = trace.resolve([Hit(GARDEN.text)])
    assert plain.sources == ("d/1", "twin", "later")
    [dated] = trace.resolve([Hit(f"[2023-05-08] {GARDEN.text}")])
    assert dated.sources == ("d/1", "twin")


def test_a_server_id_equal_to_one_of_our_ids_is_not_confused_with_it() -> None:
    trace = IdMapping()
    first, second = Memory("1", "a"), Memory("2", "b")
    trace.add([first, second], tags=True)
    assert trace.keep([first, second], {"ids": [2, 1]}, "ids") == {}
    assert [values["kept"] for _, values in trace.batches(EACH, [first, second], {})] == [2, 1]
    assert trace.with_server_id([first, Memory("3", "c"), second]) == [first, second]
    assert [hit.id for hit in trace.resolve([Hit("2"), Hit("1"), Hit("2")])] == ["2", "1"]


def test_two_memories_with_one_server_id_count_as_merged() -> None:
    trace = IdMapping()
    trace.add([GARDEN, OK])
    assert trace.keep([GARDEN], "x", "@") == {}
    assert trace.keep([OK], "x", "@") == {"d/3": "d/1"}
    assert trace.keep([OK], "x", "@") == {"d/3": "d/1"}
    assert trace.resolve([Hit("x", 0.5)]) == [Hit("d/1", 0.5, sources=("d/1", "d/3"))]


@pytest.mark.parametrize("found", [None, "", True, {"id": 1}, ["a", "b"], [["a"]], []])
def test_an_invalid_server_id_is_an_error(found: Any) -> None:
    with pytest.raises(BadReply, match=r"remember\.keep"):
        IdMapping().keep([GARDEN], found, "@")
