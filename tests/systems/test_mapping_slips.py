"""Slips in a mapping are errors, never a score of nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from mnemoscope.core.errors import DataError
from mnemoscope.core.nouns import Hit
from mnemoscope.systems.mapping import HitsFrom, hits
from mnemoscope.systems.mapping_checks import check_names
from mnemoscope.systems.python import BadReply


def test_a_place_that_is_not_in_the_reply_is_no_empty_list() -> None:
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
def test_what_a_memory_does_not_have_is_refused(expression: str, slip: str) -> None:
    with pytest.raises(DataError, match=rf"speaks of {slip}; a memory has .*dated_text"):
        check_names({"body": f"${{{expression}}}"}, "remember", {"memory"}, Path("m.yaml"))
    check_names({"body": "${memory.metadata.source}"}, "remember", {"memory"}, Path("m.yaml"))
