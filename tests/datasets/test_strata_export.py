"""Exporting a SQLite memory store: only what may leave it, always in the same bytes."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemoscope._store.errors import DataError, MissingData, UsageError
from mnemoscope.datasets.strata_export import Exported, export_store

TABLE = (
    "CREATE TABLE memories (id INTEGER, content, category, tags, expanded_keywords,"
    " importance, is_sensitive)"
)


def make_store(path: Path, rows: list[tuple[Any, ...]], *, table: str = TABLE) -> Path:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.execute(table)
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            database.executemany(f"INSERT INTO memories VALUES ({marks})", rows)
        database.commit()
    return path


def row(id: object, content: object = "text", sensitive: object = 0) -> tuple[object, ...]:
    return (id, content, "facts", "a,b", "word", 0.5, sensitive)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def refusal(store: Path, out: Path, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        export_store(store, out, **options)
    assert not out.exists()
    assert str(store) in str(caught.value)
    return str(caught.value)


def test_rows_are_written_in_order_of_id_and_sensitive_ones_stay(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store.db", [row(9), row(2, "né"), row(5, "secret", 1)])
    out = tmp_path / "new" / "corpus.jsonl"

    result = export_store(store, out)

    assert result == Exported(exported=2, left_out=1, without_text=0)
    assert [line["id"] for line in lines(out)] == [2, 9]
    assert lines(out)[0] == {
        "id": 2,
        "content": "né",
        "category": "facts",
        "tags": "a,b",
        "expanded_keywords": "word",
        "importance": 0.5,
    }


@pytest.mark.parametrize("mark", [1, 2, -1, 1.0, "1", "true", "TRUE", " yes ", b"\x01", "?"])
def test_every_way_of_saying_sensitive_is_understood(tmp_path: Path, mark: object) -> None:
    store = make_store(tmp_path / "store.db", [row(1, "secret", mark)])
    assert export_store(store, tmp_path / "c.jsonl") == Exported(0, 1, 0)
    assert (tmp_path / "c.jsonl").read_bytes() == b""


@pytest.mark.parametrize("mark", [0, None, 0.0, "0", "false", "No", ""])
def test_every_way_of_saying_not_sensitive_is_understood(tmp_path: Path, mark: object) -> None:
    store = make_store(tmp_path / "store.db", [row(1, "open", mark)])
    assert export_store(store, tmp_path / "c.jsonl").exported == 1


def test_the_column_that_marks_sensitive_rows_is_found_in_any_case(tmp_path: Path) -> None:
    table = "CREATE TABLE memories (ID, Content, Is_Sensitive)"
    store = make_store(tmp_path / "store.db", [(1, "open", 0), (2, "secret", 1)], table=table)
    assert export_store(store, tmp_path / "c.jsonl") == Exported(1, 1, 0)


def test_a_store_that_cannot_tell_is_refused_unless_told(tmp_path: Path) -> None:
    table = "CREATE TABLE memories (id, content)"
    store = make_store(tmp_path / "store.db", [(1, "x")], table=table)
    out = tmp_path / "c.jsonl"
    assert "assume_not_sensitive" in refusal(store, out)
    assert export_store(store, out, assume_not_sensitive=True).exported == 1
    assert lines(out)[0]["tags"] is None


def test_assuming_that_none_is_sensitive_does_not_overrule_the_marks(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store.db", [row(1, "secret", 1)])
    assert export_store(store, tmp_path / "c.jsonl", assume_not_sensitive=True).exported == 0


def test_rows_without_text_are_counted(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store.db", [row(1, None), row(2, ""), row(3)])
    assert export_store(store, tmp_path / "c.jsonl") == Exported(1, 0, 2)


def test_other_tables_and_columns_can_be_named(tmp_path: Path) -> None:
    table = 'CREATE TABLE "odd ""name" (key INTEGER, body TEXT, is_sensitive INTEGER)'
    store = make_store(tmp_path / "store.db", [], table=table)
    with closing(sqlite3.connect(store)) as database:
        database.execute('INSERT INTO "odd ""name" VALUES (4, \'hello\', 0)')
        database.commit()
    out = tmp_path / "c.jsonl"
    export_store(store, out, table='odd "name', id_column="key", text_column="body")
    assert (lines(out)[0]["id"], lines(out)[0]["content"]) == (4, "hello")


def test_a_column_called_text_is_found(tmp_path: Path) -> None:
    table = "CREATE TABLE memories (id, text, is_sensitive)"
    store = make_store(tmp_path / "store.db", [(1, "hello", 0)], table=table)
    export_store(store, tmp_path / "c.jsonl")
    assert lines(tmp_path / "c.jsonl")[0]["content"] == "hello"


def test_the_store_is_left_as_it_was(tmp_path: Path) -> None:
    store = make_store(tmp_path / "a?b#c%20.db", [row(1)])
    before = store.read_bytes()
    export_store(store, tmp_path / "c.jsonl")
    assert store.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a?b#c%20.db", "c.jsonl"]


def test_a_store_in_use_is_read_with_its_write_ahead_log(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store.db", [row(1)])
    with closing(sqlite3.connect(store)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("INSERT INTO memories SELECT 2, content, '', '', '', 0, 0 FROM memories")
        writer.commit()
        assert export_store(store, tmp_path / "c.jsonl").exported == 2


def test_a_missing_store_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match=r"absent\.db"):
        export_store(tmp_path / "absent.db", tmp_path / "c.jsonl")
    assert not (tmp_path / "absent.db").exists()


def test_the_store_is_never_overwritten(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store.db", [row(1)])
    with pytest.raises(UsageError, match="is the store; choose another output file"):
        export_store(store, store)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    store.write_bytes(b"just some text\x00" * 100)
    assert "SQLite" in refusal(store, tmp_path / "c.jsonl")


def test_a_missing_table_lists_those_there(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store.db", [])
    message = refusal(store, tmp_path / "c.jsonl", table="notes")
    assert "'notes'" in message
    assert "its tables: memories" in message


def test_an_empty_file_has_no_tables(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    store.touch()
    assert "its tables: none" in refusal(store, tmp_path / "c.jsonl")


@pytest.mark.parametrize("column", ["id_column", "text_column"])
def test_a_missing_column_lists_those_there(tmp_path: Path, column: str) -> None:
    store = make_store(tmp_path / "store.db", [])
    message = refusal(store, tmp_path / "c.jsonl", **{column: "absent"})
    assert "'absent'" in message
    assert "its columns: id, content" in message


@pytest.mark.parametrize(
    "bad",
    [
        (1, b"blob", "", "", "", 0.5, 0),
        (1.5, "text", "", "", "", 0.5, 0),
        (1, "text", "", "", "", "high", 0),
        (1, "text", 3, "", "", 0.5, 0),
    ],
)
def test_a_value_of_the_wrong_type_is_named_by_memory(
    tmp_path: Path, bad: tuple[object, ...]
) -> None:
    store = make_store(tmp_path / "store.db", [bad])
    assert f"memory {bad[0]!r}" in refusal(store, tmp_path / "c.jsonl")


def test_an_id_used_twice_is_refused(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store.db", [row(4), row(4)])
    assert "4 occurs more than once" in refusal(store, tmp_path / "c.jsonl")


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store.db", [])
    with closing(sqlite3.connect(store)) as database:
        database.execute(
            "INSERT INTO memories VALUES (1, CAST(x'ff41' AS TEXT), '', '', '', 0.5, 0)"
        )
        database.commit()
    assert "UTF-8" in refusal(store, tmp_path / "c.jsonl")


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=40,
)
@given(
    st.dictionaries(
        st.integers(-(2**63), 2**63 - 1),
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
        max_size=10,
    )
)
def test_what_was_stored_is_exported(tmp_path: Path, texts: dict[int, str]) -> None:
    store = make_store(tmp_path / "store.db", [row(id, text) for id, text in texts.items()])
    out = tmp_path / "c.jsonl"
    assert export_store(store, out).exported == len(texts)
    exported = [json.loads(line) for line in out.read_bytes().split(b"\n") if line]
    assert [(line["id"], line["content"]) for line in exported] == sorted(texts.items())
