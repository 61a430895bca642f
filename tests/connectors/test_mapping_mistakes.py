"""Mistakes in a mapping are errors, never a score of zero."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.connectors.raw_http import RawServer, Said

from mnemoscope._store.errors import BadReply, DataError
from mnemoscope.connectors.http import Http
from mnemoscope.connectors.http.client import ServerError
from mnemoscope.connectors.id_mapping import IdMapping
from mnemoscope.connectors.mapping import HitsFrom, check_names, hits
from mnemoscope.connectors.mcp.tool_mapping import read
from mnemoscope.types import Hit, Memory


def test_a_missing_list_of_hits_is_an_error_not_an_empty_list() -> None:
    reply = {"found": [{"id": "m1"}]}
    assert hits(reply, HitsFrom(each="found")) == [Hit("m1")]
    assert hits({"found": []}, HitsFrom(each="found")) == []
    with pytest.raises(BadReply, match=r"'results' finds nothing in the reply .*found"):
        hits(reply, HitsFrom(each="results"))
    assert hits({}, HitsFrom(each="results || `[]`")) == []


@pytest.mark.parametrize(
    ("expression", "slip"),
    [("memory.txt", "memory.txt"), ("join(' ', [memory.speaker, memory.word])", "memory.word")],
)
def test_an_unknown_field_of_a_memory_is_refused(expression: str, slip: str) -> None:
    with pytest.raises(DataError, match=rf"uses {slip}; a memory has .*dated_text"):
        check_names({"body": f"${{{expression}}}"}, "remember", {"memory"}, Path("m.yaml"))
    check_names({"body": "${memory.metadata.source}"}, "remember", {"memory"}, Path("m.yaml"))


def test_a_pattern_that_does_not_match_is_shown_with_the_value() -> None:
    where = HitsFrom(id="tags[0]", pattern="xid:(.+)")
    assert hits([{"tags": ["xid:m1"]}], where) == [Hit("m1")]
    with pytest.raises(
        BadReply, match=r"pattern 'xid:\(\.\+\)' is not found in 'mid:m1', at 'tags\[0\]'"
    ):
        hits([{"tags": ["mid:m1"]}], where)
    with pytest.raises(BadReply, match=r"no id at 'tags\[0\]' in the hit"):
        hits([{"tags": []}], where)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("{name: m, remeber: {tool: x}}", "'remember'? known here are name, env, reset, remember"),
        ("{name: m, remember: {tool: x}, recall: {tool: x, hits: {idd: a}}}", "mean 'id'? known"),
        ("{name: m, remember: {tool: x}, reset: [{tol: x}]}", "'tool'? known here are tool, arg"),
        ("{name: m, remember: {tool: x}, reset: restarts}", "'restart'? known here are forget, re"),
        (
            "{name: m, remember: {tool: x}, recall: {tool: x, strategy: words}}",
            "known here are keywords, whole",
        ),
    ],
)
def test_an_unknown_field_or_value_is_refused_with_the_known_ones(text: str, remedy: str) -> None:
    with pytest.raises(DataError, match=re.escape(remedy)):
        read(text, Path("m.yaml"))


def test_a_missing_server_id_is_an_error_with_the_expression_and_the_reply() -> None:
    told = Memory("m1", "a text")
    with pytest.raises(
        BadReply, match=r"'note\.id' finds None, which is not an id, in the reply .*4711"
    ):
        IdMapping().keep([told], {"note": {"number": 4711}}, "note.id")


def test_a_failed_health_check_shows_the_expectation_and_the_reply(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(
        "{name: m, health: {path: /ping, expect: \"status == 'ok'\"}, remember: {path: /add, body: "
        '"${memory.text}"}, recall: {path: /find, body: "${query.text}"}}'
    )
    with RawServer(lambda call: Said({"status": "up"})) as server:
        system = Http(server.url, mapping=str(path), live=True)
        with pytest.raises(
            ServerError, match=r"health\.expect, .*status == 'ok'.* not true of .*up"
        ):
            system.identity()
