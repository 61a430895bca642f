"""The search of bytes finds a word wherever a store leaves it."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import sqlite3
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.durability import byte_search
from mnemoscope.durability.byte_search import FoundText, search_files

WORD = "Zorvexilumadekop"
TEXT = f"It was {WORD} who said it."
LONG = f"{TEXT} It was said more than once. ".encode() * 20
"""Long enough that compressing it hides its words."""


def search(folder: Path, word: str = WORD) -> list[FoundText]:
    return search_files([folder], {"m": (word,)}).found


FORMS: dict[str, Callable[[], bytes]] = {
    "UTF-8": TEXT.encode,
    "UTF-16": lambda: TEXT.encode("utf-16-le"),
    "hexadecimal": lambda: TEXT.encode().hex().upper().encode(),
    "backwards": TEXT[::-1].encode,
    "UTF-8, in zlib": lambda: b"head" + zlib.compress(LONG, 9) + b"tail",
    "UTF-8, in gzip": lambda: gzip.compress(LONG),
    "UTF-8, in bzip2": lambda: bz2.compress(LONG),
    "UTF-8, in xz": lambda: lzma.compress(LONG),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_found(form: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\x78\x9c" * 5 + FORMS[form]())
    assert {one.form for one in search(tmp_path)} == {form}


@given(before=st.binary(max_size=7))
def test_base64_is_found_wherever_it_begins(
    before: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    import base64

    folder = tmp_path_factory.mktemp("base64")
    (folder / "file").write_bytes(base64.b64encode(before + TEXT.encode()))
    assert "base64" in {one.form for one in search(folder)}


def test_an_archive_is_opened(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("one.txt", "nothing " * 50)
        archive.writestr("two.txt", TEXT * 3)
    assert {one.form for one in search(tmp_path)} == {"UTF-8, in ZIP"}


def test_a_cut_stream_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    packed = zlib.compress(LONG + b"".join(b"%d " % number for number in range(5000)))
    (tmp_path / "file").write_bytes(packed[:-1000])
    assert {one.form for one in search(tmp_path)} == {"UTF-8, in zlib"}


def test_a_word_across_two_blocks_is_found_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_search, "_BLOCK", 2048)
    (tmp_path / "file").write_bytes(b" " * 2040 + TEXT.encode() + b" " * 4000)
    [found] = search(tmp_path)
    # The first letters may be stored elsewhere, so the rest is what is searched for.
    assert found.offset == 2040 + TEXT.index(WORD) + 4


def test_a_pipe_and_a_link_are_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    (tmp_path / "outside").write_text(TEXT)
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "loop").symlink_to(folder)
    assert search(folder) == []


def test_another_text_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"Zorv and exil and umad and ekop" + os.urandom(100_000))
    assert search(tmp_path) == []


def test_free_pages_of_sqlite_are_named(tmp_path: Path) -> None:
    words = [f"abcd{number:05}efghijkl" for number in range(30)]
    with closing(sqlite3.connect(tmp_path / "db")) as db:
        db.execute("PRAGMA secure_delete = OFF")
        db.execute("CREATE TABLE t (text TEXT)")
        rows = [(f"{word} {'x' * 3000}",) for word in words]
        db.executemany("INSERT INTO t VALUES (?)", rows)
        db.commit()
        db.execute("DELETE FROM t")
        db.commit()
    found = search_files([tmp_path], {word: (word,) for word in words})
    assert len(found.texts) == len(words)
    assert sum(one.place.startswith("SQLite's free page") for one in found.found) > 10


@pytest.mark.parametrize("forget", ["delete", "rebuild"])
def test_words_that_a_full_text_index_keeps_are_found(forget: str, tmp_path: Path) -> None:
    """FTS5 stores the start of a word once for several words, and a deletion as a new segment."""
    with closing(sqlite3.connect(tmp_path / "db")) as db:
        db.execute("PRAGMA secure_delete = ON")
        db.execute("CREATE VIRTUAL TABLE t USING fts5(text, content='')")
        db.execute("INSERT INTO t(t, rank) VALUES ('automerge', 0)")
        for row, text in enumerate((TEXT, "Zorvaxis came first.", "Zorvo came last.")):
            db.execute("INSERT INTO t(rowid, text) VALUES (?, ?)", (row, text))
            db.commit()
        db.execute("INSERT INTO t(t, rowid, text) VALUES ('delete', 0, ?)", (TEXT,))
        db.commit()
        if forget == "rebuild":
            db.execute("INSERT INTO t(t) VALUES ('optimize')")
            db.commit()
            db.execute("VACUUM")
    assert bool(search(tmp_path)) == (forget == "delete")


def test_what_cannot_be_unpacked_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"\x28\xb5\x2f\xfd" + b"some zstd data")
    monkeypatch.setattr(byte_search, "_zstd", lambda: None)
    packings = [(*one[:3], lambda: None) if one[0] == "zstd" else one for one in _packings()]
    monkeypatch.setattr(byte_search, "_PACKINGS", tuple(packings))
    unread = search_files([tmp_path], {"m": (WORD,)}).unread
    assert unread == ["file: zstd data, which cannot be unpacked here"]


def _packings() -> tuple[tuple[object, ...], ...]:
    return byte_search._PACKINGS


def test_links_are_named_if_they_lead_out_of_the_folder(tmp_path: Path) -> None:
    inner, outer = tmp_path / "store", tmp_path / "elsewhere"
    inner.mkdir()
    outer.mkdir()
    (outer / "file").write_text(TEXT)
    (inner / "file").write_text("nothing")
    (inner / "same").symlink_to(inner / "file")
    (inner / "gone").symlink_to(tmp_path / "missing")
    assert search_files([inner], {"m": (WORD,)}).unread == []
    (inner / "folder").symlink_to(outer)
    (inner / "copy").symlink_to(outer / "file")
    unread = search_files([inner], {"m": (WORD,)}).unread
    assert sorted(line.partition(":")[0] for line in unread) == ["copy", "folder"]


def test_a_file_that_the_store_deletes_meanwhile_is_no_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log").write_text(TEXT)

    def listed(folder: Path, **_: object) -> list[tuple[str, list[str], list[str]]]:
        return [(str(folder), ["segment"], ["log", "temporary"])]

    monkeypatch.setattr(os, "walk", listed)
    found = search_files([tmp_path], {"m": (WORD,)})
    assert (found.texts, found.files, found.unread) == ({"m"}, 1, [])
