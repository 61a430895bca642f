"""Sketches: a memory is found again where it is, and its text is not in them."""

from __future__ import annotations

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import WORDS

from mnemoscope.text.memory_sketch import (
    SketchKey,
    carried_by,
    carried_together,
    sketches,
)

KEY = SketchKey("a key")
NUMBERS = st.integers(2, 9999).map(str)
SENTENCES = st.lists(st.sampled_from(WORDS) | NUMBERS, min_size=1, max_size=30).map(" ".join)


@given(SENTENCES, st.lists(SENTENCES, max_size=4), st.integers(0, 4))
def test_a_memory_is_carried_by_its_own_text_wherever_it_stands(
    text: str, others: list[str], place: int
) -> None:
    sketch = sketches({"m": text, **{str(n): one for n, one in enumerate(others)}}, ["m"], KEY)["m"]
    whole = ". ".join([*others[:place], text, *others[place:]])

    assert not carried_by(sketch, KEY.parts(text, sketch.words)).problem
    assert not carried_by(sketch, KEY.parts(whole, sketch.words)).problem


@given(SENTENCES, NUMBERS)
def test_a_text_without_a_number_of_a_memory_never_carries_it(text: str, number: str) -> None:
    without = " ".join(word for word in text.split() if word != number)
    sketch = sketches({"m": f"{text} {number}"}, ["m"], KEY)["m"]

    assert carried_by(sketch, KEY.parts(without, sketch.words)).problem
    assert carried_together(sketch, [KEY.whole(word) for word in without.split()]).problem


def test_a_sketch_has_no_word_of_the_memory_and_not_their_order() -> None:
    one, other = "The harbour has 41 lanterns", "41 lanterns has the harbour"
    first, second = (
        json.loads(msgspec.json.encode(sketches({"m": text}, ["m"], KEY))) for text in (one, other)
    )

    assert first == second
    assert not any(word in json.dumps(first) for word in one.lower().split() if len(word) > 3)
    assert list(first["m"]["stems"]) == sorted(first["m"]["stems"])


def test_another_key_gives_other_hashes() -> None:
    assert KEY.of_text("a text") != SketchKey("another").of_text("a text")
    assert KEY.of_text("  a text\n") == KEY.of_text("a text")


def test_hashes_of_every_text_exist() -> None:
    for text in ("", "\ud800", "日本語のメモ", "🎉", "a" * 100_000):
        found = sketches({"m": text}, ["m"], KEY)["m"]
        assert len(KEY.of_text(text)) == 32
        assert bool(carried_by(found, KEY.parts("something else", found.words)).problem)
