"""The local 1.5B model as reader and judge, where its weights are; else skipped with the reason."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import platformdirs
import pytest
from tests.optional import missing

from mnemoscope.judges import Case
from mnemoscope.judges.contains import Cascade
from mnemoscope.readers import Passage
from mnemoscope.readers.llm_reader import Llm
from mnemoscope.types import Query, Question

NAME = "qwen2.5-coder-1.5b"
_FOLDER = os.environ.get("MNEMOSCOPE_MODELS") or platformdirs.user_cache_dir("mnemoscope")
_PLACES = [Path(_FOLDER) / f"{NAME}.gguf", Path(_FOLDER) / "models" / f"{NAME}.gguf"]
_FOUND = [place for place in _PLACES if place.is_file()]

if not _FOUND:  # CI has no gigabyte of weights
    missing(f"local:{NAME} is not there: mnemoscope models fetch {NAME}", required=False)
if find_spec("xllamacpp") is None:
    missing("xllamacpp is not installed: pip install 'mnemoscope[local]'")

SPEC = f"local:{_FOUND[0]}?context=2048"
MARCH = datetime(2021, 3, 14, tzinfo=UTC)


def test_it_reads_a_date_and_a_thing_in_few_words() -> None:
    reader = Llm(SPEC, prompt="answer-locomo-small")
    said = [
        Passage("a", "Ines: I finally bought that yellow canoe yesterday!", MARCH),
        Passage("b", "Bo: Nice. I sold my bicycle because the lock was stolen.", MARCH),
    ]
    when = reader.read(Query("When did Ines buy the canoe?", MARCH), said).text
    what = reader.read(Query("What did Bo sell?", MARCH), said).text
    assert "March 2021" in when  # it may miss what "yesterday" means
    assert "bicycle" in what
    assert len(what.split()) < 12


@pytest.mark.parametrize(("answer", "right"), [("a bright yellow canoe", 1), ("a red kayak", 0)])
def test_in_the_cascade_it_tells_right_from_wrong(answer: str, right: int) -> None:
    judge = Cascade(SPEC)
    question = Question("q", "What did Ines buy?", reference="a canoe, bright yellow")
    grade = judge.judge(Case(question, answer))
    assert grade.value == right
    if not right:
        assert grade.log_odds is not None and grade.log_odds < 0
