"""The journal keeps whole lines whatever happens; readers name the line that is wrong."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope._store.errors import DataError
from mnemoscope._store.jsonl import (
    Journal,
    encode_lines,
    numbered_records,
    read_records,
    write_atomically,
)

Record = dict[str, Any]

records = st.dictionaries(
    st.text(max_size=3), st.integers(-9, 9) | st.text(max_size=5) | st.none(), max_size=3
)


@settings(max_examples=40)
@given(st.lists(records, min_size=1, max_size=5), records)
def test_a_journal_cut_at_any_byte_continues_with_its_complete_lines(
    before: list[Record], after: Record
) -> None:
    content = encode_lines(before)
    # Thousands of files, none of which has to outlive a power cut.
    with tempfile.TemporaryDirectory() as folder, patch.object(os, "fsync"):
        path = Path(folder) / "journal.jsonl"
        for offset in range(len(content) + 1):
            path.write_bytes(content[:offset])

            with Journal(path) as journal:
                journal.append(after)

            whole = content[:offset].count(b"\n")
            assert list(read_records(path, dict)) == [*before[:whole], after]


@pytest.mark.parametrize("length", [65535, 65536, 65537, 200_000])
def test_an_incomplete_last_line_of_any_length_is_removed(length: int, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"{}\n" + b"x" * length)

    Journal(path).close()

    assert path.read_bytes() == b"{}\n"


def test_a_file_with_only_an_incomplete_line_becomes_empty(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"x" * 70_000)

    Journal(path).close()

    assert path.read_bytes() == b""


def test_each_line_is_there_for_others_before_append_returns(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "journal.jsonl"
    with Journal(path) as journal:
        journal.append({"n": 1})
        assert path.read_bytes() == b'{"n":1}\n'
        journal.append_bytes(b'{"n":2}\n{"n":3}\n')
        assert path.read_bytes().count(b"\n") == 3


@pytest.mark.parametrize("most", [1, 3, 7, 64])
def test_a_line_written_in_several_pieces_is_complete(most: int, tmp_path: Path) -> None:
    """A pipe, a signal or a nearly full disk lets one call of write take less than was given."""
    path = tmp_path / "journal.jsonl"
    write = os.write
    with Journal(path) as journal, patch.object(os, "write", lambda f, b: write(f, b[:most])):
        journal.append({"n": 1})
        journal.append({"name": "a longer one"})
        journal.append_bytes(b"")

    assert path.read_bytes() == b'{"n":1}\n{"name":"a longer one"}\n'


def test_a_closed_journal_is_on_the_disk_and_closing_it_again_does_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.append({"n": 1})
    inode = (tmp_path / "journal.jsonl").stat().st_ino
    synced: list[int] = []
    with patch.object(os, "fsync", lambda file: synced.append(os.fstat(file).st_ino)):
        assert not synced
        journal.close()
        journal.close()

    assert synced == [inode]


def test_a_failed_append_leaves_nothing_half_written_and_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.jsonl"
    write = os.write

    def write_three_bytes_then_fail(file: int, content: bytes) -> int:
        if len(content) > 10:
            return write(file, content[:3])
        raise OSError(errno.ENOSPC, "No space left on device")

    with Journal(path) as journal:
        journal.append({"n": 1})
        with monkeypatch.context() as disk:
            disk.setattr(os, "write", write_three_bytes_then_fail)
            with pytest.raises(OSError, match=r"No space left.*journal\.jsonl"):
                journal.append({"n": 2, "x": 3})
        assert path.read_bytes() == b'{"n":1}\n'
        journal.append({"n": 2})

    assert path.read_bytes() == b'{"n":1}\n{"n":2}\n'


def test_blank_lines_are_skipped_but_counted(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'{"n":1}\n\n  \r\n{"n":2}')

    assert list(numbered_records(path, dict[str, int])) == [(1, {"n": 1}), (4, {"n": 2})]


class Numbered(msgspec.Struct):
    n: int
    x: str = ""


@pytest.mark.parametrize(
    "bad",
    [b'{"n":', b'{"n":"one"}', b"[]", b'{"n":1} {"n":2}', b'{"n":1,"x":"\xff"}', b"[" * 100_000],
)
def test_a_bad_line_is_named_with_its_file(bad: bytes, tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'{"n":1}\n' + bad + b"\n")

    with pytest.raises(DataError) as caught:
        list(read_records(path, Numbered))

    assert (caught.value.file, caught.value.line) == (str(path), 2)
    assert str(caught.value).startswith(f"{path}, line 2: ")


def test_writing_atomically_makes_folders_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.json"

    write_atomically(path, b"old")
    write_atomically(path, b"new")

    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_atomic_write_keeps_the_old_file_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "b.json"
    path.write_bytes(b"old")

    def fail(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=r"No space left.*b\.json"):
        write_atomically(path, b"new")

    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'{"n":1}{"n":2}\n{"n":3}\n', 1),
        (b'{"n":1}\n{"n":2} {"n":3}\n', 2),
        (b'{"n":\n1}\n{"n":2}\n', 1),
        (b'{"n":1}{"n":2}\n{"n":{"m":1}\n}\n', 1),
        (b'{"n":1}\n{"n":{"m":1}\n}\n', 2),
        (b'{"n":1}\n[2]\n', 2),
    ],
)
def test_a_line_with_two_records_or_half_a_record_is_named(
    content: bytes, line: int, tmp_path: Path
) -> None:
    """Many lines are decoded in one call, which by itself would not mind where a line ends."""
    path = tmp_path / "records.jsonl"
    path.write_bytes(content)

    with pytest.raises(DataError) as refused:
        list(read_records(path, dict))
    assert refused.value.line == line


def test_lines_of_more_than_one_block_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    records = [{"n": number, "text": "x" * 1000} for number in range(3000)]
    path.write_bytes(encode_lines(records))
    assert list(read_records(path, dict)) == records

    path.write_bytes(path.read_bytes() + b"\n{}\nbad\n")
    with pytest.raises(DataError) as refused:
        list(read_records(path, dict))
    assert refused.value.line == 3003
