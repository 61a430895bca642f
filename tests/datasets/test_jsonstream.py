"""JSON arrays in pieces: whatever the chunks, the same elements and verdict as json.loads."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mnemoscope._store.errors import DataError
from mnemoscope.datasets._io import json_stream
from mnemoscope.datasets._io.json_stream import (
    Element,
    array_elements,
    unpacked,
)
from mnemoscope.datasets.base import DatasetInfo, FileDataset


class AnyFile(FileDataset):
    info = DatasetInfo(name="any file")


def sha256_of(path: Path) -> str:
    return AnyFile(path).files()[0].sha256


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.text('\\"\n\t/é😀', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)
SPACE = st.text(" \n\t\r", max_size=3)
ANY: Any = Any
CHUNKS = st.integers(1, 40)
# The characters that JSON is made of, so that a random text often comes close to being JSON.
NEARLY_JSON = st.text('[]{},:"\\ud8e1.5-+0 \ntrufalsn😀', max_size=40)


@pytest.fixture(autouse=True)
def _no_test_may_hang() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("the stream reads on and on")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stream") / "array.json"


def streamed(path: Path, content: bytes, chunk: int) -> list[Element[Any]]:
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "CHUNK", chunk)
        return list(array_elements(path, ANY))


@given(elements=st.lists(JSON, max_size=5), indent=st.sampled_from([None, 1]), chunk=CHUNKS)
@example(elements=[1.5, -2e-05, 10**20, 0.1], indent=None, chunk=1)
@settings(deadline=None, max_examples=150)
def test_any_array_in_any_chunks_gives_its_elements(
    place: Path, elements: list[Any], indent: int | None, chunk: int
) -> None:
    text = json.dumps(elements, indent=indent, ensure_ascii=chunk % 2 == 0)
    read = streamed(place, text.encode(), chunk)
    assert [element.value for element in read] == json.loads(text)


@given(parts=st.lists(st.tuples(SPACE, JSON, SPACE), min_size=1, max_size=5), chunk=CHUNKS)
@settings(deadline=None, max_examples=100)
def test_each_element_comes_with_the_line_it_starts_on(
    place: Path, parts: list[tuple[str, Any, str]], chunk: int
) -> None:
    text, lines = "\n [", []
    for number, (before, value, after) in enumerate(parts):
        text += "," * bool(number) + before
        lines.append(text.count("\n") + 1)
        text += json.dumps(value, indent=1) + after
    read = streamed(place, f"{text}]\n".encode(), chunk)
    assert [element.line for element in read] == lines


@given(elements=st.lists(JSON, max_size=4), chunk=CHUNKS)
@settings(deadline=None, max_examples=50)
def test_the_digest_sees_every_byte(place: Path, elements: list[Any], chunk: int) -> None:
    content = json.dumps(elements).encode() + b" \n"
    assert len(streamed(place, content, chunk)) == len(elements)
    assert sha256_of(place) == hashlib.sha256(content).hexdigest()


def assert_same_verdict(place: Path, text: str, chunk: int) -> None:
    """Elements where json.loads gives a list that can be written again, DataError elsewhere."""
    try:
        expected = json.loads(text)
        json.dumps(expected, ensure_ascii=False).encode()
        is_array = isinstance(expected, list)
    except ValueError:
        expected, is_array = None, False
    if is_array:
        assert repr([e.value for e in streamed(place, text.encode(), chunk)]) == repr(expected)
    else:
        with pytest.raises(DataError) as caught:
            streamed(place, text.encode(), chunk)
        assert caught.value.line is not None
        assert 1 <= caught.value.line <= text.count("\n") + 1
        assert caught.value.file == str(place)


@given(text=NEARLY_JSON.map("[{}".format) | NEARLY_JSON, chunk=CHUNKS)
@example(text="[1.]", chunk=1)
@example(text="[1e5,1E+5,-0.5e-3]", chunk=2)
@example(text="[tru]", chunk=1)
@example(text='["\\ud8e1"]', chunk=3)
@example(text='["\\ud8', chunk=2)
@example(text="[1,]", chunk=1)
@example(text="[] 0", chunk=2)
@example(text="[0][0]", chunk=2)
@settings(deadline=None, max_examples=600)
def test_text_that_is_nearly_json_gets_the_verdict_of_json_loads(
    place: Path, text: str, chunk: int
) -> None:
    assert_same_verdict(place, text, chunk)


@given(
    elements=st.lists(JSON, min_size=1, max_size=3),
    at=st.floats(0, 1, exclude_max=True),
    chunk=CHUNKS,
)
@settings(deadline=None, max_examples=200)
def test_a_file_cut_anywhere_is_an_error_and_no_shorter_array(
    place: Path, elements: list[Any], at: float, chunk: int
) -> None:
    text = json.dumps(elements)
    cut = text[: int(len(text) * at)]
    with pytest.raises(DataError):
        streamed(place, cut.encode(), chunk)


@given(
    elements=st.lists(JSON, min_size=1, max_size=3),
    at=st.floats(0, 1, exclude_max=True),
    put=st.sampled_from(["", "]", "[", ",", '"', "{", "}", "\\", "x", "\n", "\x00", "0", ":"]),
    chunk=CHUNKS,
)
@settings(deadline=None, max_examples=400)
def test_one_wrong_character_anywhere_gets_the_verdict_of_json_loads(
    place: Path, elements: list[Any], at: float, put: str, chunk: int
) -> None:
    text = json.dumps(elements, indent=1)
    position = int(len(text) * at)
    assert_same_verdict(place, text[:position] + put + text[position + 1 :], chunk)


@given(chunk=CHUNKS, bad=st.integers(0, 5))
@settings(deadline=None, max_examples=40)
def test_bytes_that_are_no_utf8_are_an_error_that_names_a_line(
    place: Path, chunk: int, bad: int
) -> None:
    lines = [b'"abc"'] * 6
    lines[bad] = b'"a\xffc"'
    with pytest.raises(DataError, match="not UTF-8") as caught:
        streamed(place, b"[\n" + b",\n".join(lines) + b"]", chunk)
    assert caught.value.line is not None
    assert 1 <= caught.value.line <= bad + 2


def test_a_character_split_between_two_chunks_is_read_whole(place: Path) -> None:
    for chunk in range(1, 8):
        read = streamed(place, '["é😀日本"]'.encode(), chunk)
        assert [element.value for element in read] == ["é😀日本"]


def test_elements_come_before_the_error_that_follows_them(place: Path) -> None:
    """What is read is read one by one: a loader can report what it had before the bad line."""
    place.write_text("[1,\n2,\noops]")
    stream = array_elements(place, ANY)
    assert [next(stream), next(stream)] == [Element(1, 1), Element(2, 2)]
    with pytest.raises(DataError, match=r"line 3: malformed JSON: Expecting value"):
        next(stream)


def test_an_error_deep_in_a_long_element_names_the_line_it_is_on(place: Path) -> None:
    rows = [f'"k{number}": {number}' for number in range(5_000)]
    rows[3_000] = '"k3000" 3000'
    text = "[1,\n{" + ",\n".join(rows) + "}]"
    for chunk in (7, 1_000, 1 << 20):
        with pytest.raises(DataError) as caught:
            streamed(place, text.encode(), chunk)
        assert caught.value.line == 3_002


@pytest.mark.parametrize("depth", [2_000, 500_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_nesting_too_deep_for_python_is_an_error(
    place: Path, depth: int, opening: str, closing: str
) -> None:
    text = f"[\n{opening * depth}1{closing * depth}]"
    with pytest.raises(DataError, match="line 2: malformed JSON: nested too deeply"):
        streamed(place, text.encode(), 4 << 20)


def test_a_number_too_long_for_python_is_an_error(place: Path) -> None:
    with pytest.raises(DataError, match="line 1: malformed JSON: Exceeds the limit"):
        streamed(place, b"[" + b"9" * 10_000 + b"]", 4 << 20)


@pytest.mark.parametrize("kind", ["xz", "gz"])
def test_archives_are_unpacked_hashed_by_content_and_checked(tmp_path: Path, kind: str) -> None:
    content = json.dumps(list(range(3_000))).encode()
    packed = lzma.compress(content) if kind == "xz" else gzip.compress(content)
    path = tmp_path / f"array.json.{kind}"
    path.write_bytes(packed)
    assert [element.value for element in array_elements(path, ANY)] == list(range(3_000))
    assert sha256_of(path) == hashlib.sha256(content).hexdigest()
    assert b"".join(unpacked(path)) == content
    assert list(unpacked(path, lines=True)) == content.splitlines(keepends=True)
    for length in range(1, len(packed), 97):
        path.write_bytes(packed[:length])
        with pytest.raises(DataError, match="cannot unpack"):
            list(array_elements(path, ANY))
        with pytest.raises(DataError, match="cannot unpack"):
            sha256_of(path)


def test_a_damaged_archive_never_gives_other_elements(tmp_path: Path) -> None:
    content = json.dumps(list(range(3_000))).encode()
    for kind, packed in (("xz", lzma.compress(content)), ("gz", gzip.compress(content))):
        path = tmp_path / f"array.json.{kind}"
        for position in range(12, len(packed), len(packed) // 60):
            damaged = bytearray(packed)
            damaged[position] ^= 0x55
            path.write_bytes(damaged)
            try:
                read = [element.value for element in array_elements(path, ANY)]
            except DataError:
                continue
            assert read == list(range(3_000))
