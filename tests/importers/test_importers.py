"""Every kind of source becomes the memories that its format says."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.importers.sources import (
    Row,
    chatgpt_conversations,
    claude_conversations,
    claude_memory,
    database,
    files,
    imported,
    slack_files,
    zipped,
)

from mnemoscope._store.errors import DataError, MnemoscopeError, UsageError
from mnemoscope.datasets.strata import Strata
from mnemoscope.importers.kinds import KINDS, detect
from mnemoscope.importers.note_folders import sections


def texts(rows: list[Row]) -> list[str]:
    return [row["content"] for row in rows]


def test_notes_are_read_with_front_matter_and_dates_of_daily_notes(tmp_path: Path) -> None:
    vault = files(
        tmp_path / "vault",
        {
            "Tea.md": "---\ntitle: On tea\ntags: [drink, hot]\ncreated: 2024-03-02\n---\n"
            "Green tea.\n",
            "daily/2024-05-01.md": "Met Ann.\r\n",
            "daily/20240502 Thursday.md": "Met Bo.",
            "plan.txt": "No date here.",
            "secret.md": "---\nprivate: true\n---\nmy diary",
            "empty.md": "---\ntags: x\n---\n\n",
            "broken.md": "---\na: [\n---\ntext",
            "picture.png": "png",
            ".obsidian/workspace.md": "not a note",
            "latin.md": "",
        },
    )
    (vault / "latin.md").write_bytes("one\ncaf\u00e9".encode("latin-1"))
    (vault / "link.md").symlink_to(vault / "Tea.md")
    done, rows = imported(vault, tmp_path / "out")

    assert done.record.kind == "notes"
    by_text = {row["content"]: row for row in rows}
    assert by_text["Green tea."]["at"] == "2024-03-02T00:00:00Z"
    assert by_text["Green tea."]["tags"] == "drink,hot"
    assert by_text["Green tea."]["metadata"] == {"title": "On tea"}
    assert by_text["Met Ann."]["at"] == "2024-05-01T00:00:00Z"
    assert by_text["Met Bo."]["at"] == "2024-05-02T00:00:00Z"
    assert "at" not in by_text["No date here."]
    assert "---\na: [\n---\ntext" in by_text  # front matter that is not YAML is text
    assert len(rows) == 5
    assert done.record.left_out == {
        "another type of file": 1,
        "marked as sensitive": 1,
        "without text": 1,
        "not UTF-8 text": 1,
    }
    told = (tmp_path / "out" / "left-out.jsonl").read_text()
    assert '{"place":"latin.md, line 2","left_out":"not UTF-8 text"}' in told
    assert [row.get("at", "") for row in rows] == sorted(row.get("at", "") for row in rows)


def test_a_long_note_is_split_at_headings_and_each_part_says_what_it_is_about() -> None:
    body = "intro\n# One\na\n## Two\nb\n```\n# not a heading\n```\n# Three\n\n\nSetext\n------\nc\n"
    found = list(sections(body, 30))
    assert [(one.headings, one.text.strip(), one.line) for one in found] == [
        ((), "intro", 1),
        (("One",), "a", 3),
        (("One", "Two"), "b\n```\n# not a heading\n```", 5),
        (("Three", "Setext"), "c", 13),
    ]
    long = list(sections("aa\nbb\n\ncc\ndd\nee\n\nff", 6))
    assert [(one.text.strip(), one.line, one.part) for one in long] == [
        ("aa\nbb", 1, 1),
        ("cc\ndd\nee", 4, 2),
        ("ff", 8, 3),
    ]
    assert [one.text for one in sections("aaaa\nbbbb\ncccc", 4)] == ["aaaa", "bbbb", "cccc"]


def test_ids_of_notes_follow_their_place_and_not_their_text(tmp_path: Path) -> None:
    note = "# A\nfirst\n# B\nsecond\n# B\nthird\n"
    vault = files(tmp_path / "v", {"n.md": note, "copy.md": "alone"})
    _, before = imported(vault, tmp_path / "one", section_above=5)
    files(vault, {"n.md": note.replace("first", "FIRST"), "0.md": "new"})
    _, after = imported(vault, tmp_path / "two", section_above=5)

    old, new = ({row["content"]: row["id"] for row in rows} for rows in (before, after))
    assert new["n > A\n\nFIRST"] == old["n > A\n\nfirst"]
    assert {old[text] for text in old if "B" in text} == {new[text] for text in new if "B" in text}
    assert len(set(new.values())) == 5


def test_chatgpt_shows_the_branch_that_the_user_sees(tmp_path: Path) -> None:
    content = {"conversations.json": json.dumps(chatgpt_conversations()), "chat.html": "<html>"}
    done, rows = imported(zipped(tmp_path / "export.zip", content), tmp_path / "out")

    assert done.record.kind == "chatgpt"
    assert [(row["id"], row["speaker"]) for row in rows] == [
        ("u2", "user"),
        ("u1", "user"),
        ("a1", "assistant"),
    ]
    assert rows[0]["at"] == "2024-05-01T07:53:20Z"  # of the conversation: its own is null
    assert rows[1]["at"] == "2024-05-01T08:00:00.500000Z"
    assert {row["session"] for row in rows} == {"c-1"}
    assert rows[0]["metadata"] == {"title": "Bicycle"}
    assert done.record.left_out == {
        "written by the product or a tool": 2,
        "replaced by an edited message": 1,
    }


def test_claude_keeps_what_was_said_and_attached(tmp_path: Path) -> None:
    plain = files(tmp_path, {"conversations.json": json.dumps(claude_conversations())})
    done, rows = imported(plain / "conversations.json", tmp_path / "out")

    assert done.record.kind == "claude"
    assert texts(rows) == ["keep this list\n\nmilk and lamp oil", "found the shop"]
    assert [row["speaker"] for row in rows] == ["user", "assistant"]
    assert rows[0]["at"] == "2024-05-01T08:00:00.123456Z"
    assert done.record.left_out == {"without text": 1}


@pytest.mark.parametrize("packed", [True, False])
def test_slack_names_people_and_leaves_out_events(tmp_path: Path, packed: bool) -> None:
    contents = slack_files()
    source = zipped(tmp_path / "s.zip", contents) if packed else files(tmp_path / "s", contents)
    done, rows = imported(source, tmp_path / "out")

    assert done.record.kind == "slack"
    assert texts(rows) == ["@bo the key is at <desk>", "see the plan (https://x.org)"]
    assert [row["speaker"] for row in rows] == ["Ann Bell", "bo"]
    assert rows[1]["metadata"] == {"thread": "1714550400.000100"}
    assert {row["session"] for row in rows} == {"office"}
    assert done.record.left_out == {"an event, not a message": 1, "deleted in the source": 1}


_TO_THE_MINUTE = ["2023-12-31T23:59", "2024-01-01T00:10"]
_TO_THE_SECOND = ["2023-12-31T23:59:01", "2024-01-01T00:10:02"]


@pytest.mark.parametrize(
    ("first", "second", "times"),
    [
        ("31/12/2023, 23:59 - ", "01/01/2024, 00:10 - ", _TO_THE_MINUTE),
        ("12/31/23, 11:59\u202fPM - ", "1/1/24, 12:10\u202fAM - ", _TO_THE_MINUTE),
        ("[31.12.23, 23:59:01] ", "\u200e[01.01.24, 00:10:02] ", _TO_THE_SECOND),
        ("2023-12-31, 23:59 - ", "2024-01-01, 00:10 - ", _TO_THE_MINUTE),
        ("[31.12.2023 klo 23.59.01] ", "[1.1.2024 klo 0.10.02] ", _TO_THE_SECOND),
        ("31/12/23 11:59 p. m. - ", "1/1/24 12:10 a. m. - ", _TO_THE_MINUTE),
        # Only their order tells that the month comes first.
        ("01/02/2024, 10:00 - ", "02/01/2024, 09:00 - ", ["2024-01-02T10:00", "2024-02-01T09:00"]),
    ],
)
def test_whatsapp_reads_the_dates_of_many_countries(
    tmp_path: Path, first: str, second: str, times: list[str]
) -> None:
    lines = [f"{first}Ann: one", f"{second}Bo: two", "more of two", ""]
    lines += [f"{second}Bo: <Media omitted>", f"{second}Ann added Bo"]
    lines.append(f"{second}Bo: This message was deleted")
    chat = files(tmp_path, {"WhatsApp Chat with Ann.txt": "\r\n".join(lines)})
    done, rows = imported(chat / "WhatsApp Chat with Ann.txt", tmp_path / "out")

    assert done.record.kind == "whatsapp"
    assert [(row["speaker"], row["content"]) for row in rows] == [
        ("Ann", "one"),
        ("Bo", "two\nmore of two"),
    ]
    assert [row["at"][: len(time)] for row, time in zip(rows, times, strict=True)] == times
    assert sum(done.record.left_out.values()) == 3


def test_whatsapp_says_so_if_the_dates_can_be_read_in_two_ways(tmp_path: Path) -> None:
    chat = files(tmp_path, {"_chat.txt": "[01/02/24, 10:00:00] Ann: one\n"}) / "_chat.txt"
    done, rows = imported(chat, tmp_path / "a")
    assert rows[0]["at"].startswith("2024-02-01")
    assert "can be read in two ways and were read as day/month" in done.notes[0]
    done, rows = imported(chat, tmp_path / "b", date_order="mdy")
    assert rows[0]["at"].startswith("2024-01-02")
    assert not done.notes


def test_claude_memory_leaves_out_sensitive_and_deleted_rows(tmp_path: Path) -> None:
    store = claude_memory(tmp_path / "memory.db")
    before = store.read_bytes()
    done, rows = imported(store, tmp_path / "out")

    assert done.record.kind == "claude-memory"
    assert [(row["id"], row["content"]) for row in rows] == [
        (7, "the lamp is broken"),
        (1, "we chose tea"),
    ]
    assert rows[1] == {
        "id": 1,
        "content": "we chose tea",
        "category": "decisions",
        "tags": "a,b",
        "expanded_keywords": "beverage hot",
        "importance": 0.85,
        "at": "2024-05-01T08:00:00Z",
    }
    assert done.record.left_out == {
        "marked as sensitive": 1,
        "deleted in the source": 1,
        "without text": 1,
    }
    assert store.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["memory.db", "out"]


def test_any_table_is_read_by_its_columns_whatever_their_names_are(tmp_path: Path) -> None:
    name = 'my "table"; DROP TABLE x; --'
    quoted = '"' + name.replace('"', '""') + '"'
    store = database(
        tmp_path / "any.db",
        f'CREATE TABLE {quoted} ("the ""text""" TEXT, "when?" INTEGER, k TEXT, who TEXT)',
        "CREATE TABLE x (content TEXT)",
        rows={
            quoted: [("one", 1714550400, "a", "Ann"), ("two", 1714550400000, "b", "Bo")],
            "x": [("kept",)],
        },
    )
    options: dict[str, Any] = {"table": name, "text": 'the "text"', "time": "when?", "id": "k"}
    _, rows = imported(store, tmp_path / "out", **options, speaker="who")
    assert [(row["id"], row["speaker"]) for row in rows] == [("a", "Ann"), ("b", "Bo")]
    assert {row["at"] for row in rows} == {"2024-05-01T08:00:00Z"}
    _, rows = imported(store, tmp_path / "some", **options, where="who = 'Bo' OR 1 = 2")
    assert texts(rows) == ["two"]
    with sqlite3.connect(store) as database_:
        assert database_.execute("SELECT count(*) FROM x").fetchone() == (1,)


@pytest.mark.parametrize(
    "where",
    [
        "1); DROP TABLE memories; --",
        "id IN (SELECT load_extension('x'))",
        "1) UNION SELECT 1 FROM pragma_database_list; ATTACH 'y.db' AS y; --",
    ],
)
def test_where_cannot_do_more_than_read(tmp_path: Path, where: str) -> None:
    store = claude_memory(tmp_path / "memory.db")
    before = store.read_bytes()
    with pytest.raises(MnemoscopeError):
        imported(store, tmp_path / "out", where=where)
    assert store.read_bytes() == before
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("state", ["closed", "not closed", "open"])
def test_nothing_is_written_beside_a_store_with_a_write_ahead_log(
    tmp_path: Path, state: str
) -> None:
    made, rows = tmp_path / "made" / "a.db", list[Row]()
    made.parent.mkdir()
    with closing(sqlite3.connect(made)) as writer:
        writer.execute("PRAGMA journal_mode = wal")
        writer.execute("CREATE TABLE memories (id INTEGER PRIMARY KEY, content TEXT)")
        writer.execute("INSERT INTO memories VALUES (1, 'tea')")
        writer.commit()
        copied = tmp_path / "copied"
        shutil.copytree(made.parent, copied)
        (copied / "a.db-shm").unlink()
        if state == "open":
            beside = sorted(path.name for path in made.parent.iterdir())
            _, rows = imported(made, tmp_path / "out")
            assert sorted(path.name for path in made.parent.iterdir()) == beside
    if state != "open":
        store = made if state == "closed" else copied / "a.db"
        before = {path.name: path.read_bytes() for path in store.parent.iterdir()}
        _, rows = imported(store, tmp_path / "out")
        assert {path.name: path.read_bytes() for path in store.parent.iterdir()} == before
    assert texts(rows) == ["tea"]


def test_csv_and_json_lines_are_mapped(tmp_path: Path) -> None:
    table = 'id;body;when;deleted\n1;"a\nb";2024-05-01;\n2;c;2024-05-02;1\n3;d;;0\n'
    source = files(
        tmp_path,
        {
            "t.csv": table,
            "l.jsonl": '{"m": {"said": "hello", "t": "2024-05-01T10:00:00+02:00"}, "n": [9]}\n\n',
            "a.json": '[{"text": "x", "timestamp": 1714550400}]',
        },
    )
    _, rows = imported(source / "t.csv", tmp_path / "csv", time="when")
    assert [(row["id"], row["content"]) for row in rows] == [(3, "d"), (1, "a\nb")]
    _, rows = imported(source / "l.jsonl", tmp_path / "l", text="m.said", time="m.t", id="n[0]")
    assert rows == [{"id": 9, "content": "hello", "at": "2024-05-01T08:00:00Z"}]
    done, rows = imported(source / "a.json", tmp_path / "a")
    assert (done.record.kind, rows[0]["at"]) == ("jsonl", "2024-05-01T08:00:00Z")


def test_mem0_is_read_from_its_history_and_from_json(tmp_path: Path) -> None:
    columns = (
        "id TEXT, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT,"
        " created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT"
    )
    first, later = "2024-05-01T08:00:00-07:00", "2024-06-01T08:00:00-07:00"
    rows = [
        ("h1", "m1", None, "likes tea", "ADD", first, None, 0, None, "user"),
        ("h2", "m1", "likes tea", "likes coffee", "UPDATE", first, later, 0, None, "user"),
        ("h3", "m2", None, "has a dog", "ADD", first, None, 0, None, None),
        ("h4", "m2", "has a dog", None, "DELETE", first, later, 1, None, None),
    ]
    folder = tmp_path / "mem0"
    folder.mkdir()
    database(folder / "history.db", f"CREATE TABLE history ({columns})", rows={"history": rows})
    done, found = imported(folder, tmp_path / "out")
    assert done.record.kind == "mem0"
    assert [(row["id"], row["content"], row["at"]) for row in found] == [
        ("m1", "likes coffee", "2024-06-01T15:00:00Z")
    ]
    results = [
        {"id": "m9", "memory": "likes tea", "created_at": first, "metadata": {"a": 1, "b": []}}
    ]
    files(tmp_path, {"all.json": json.dumps({"results": results})})
    done, found = imported(tmp_path / "all.json", tmp_path / "json")
    assert done.record.kind == "mem0"
    assert (found[0]["id"], found[0]["metadata"]) == ("m9", {"a": 1})


def test_letta_is_read_from_its_store_and_from_an_agent_file(tmp_path: Path) -> None:
    store = database(
        tmp_path / "sqlite.db",
        "CREATE TABLE archival_passages (id TEXT, text TEXT, embedding_config JSON,"
        " is_deleted BOOL, created_at DATETIME)",
        "CREATE TABLE block (id TEXT, label TEXT, value TEXT, is_deleted BOOL)",
        rows={
            "archival_passages": [
                ("passage-1", "Ann is a vet", "{}", 0, "2024-05-01 08:00:00"),
                ("passage-2", "gone", "{}", 1, "2024-05-01 08:00:00"),
            ],
            "block": [("block-1", "human", "Name: Bo", 0)],
        },
    )
    done, rows = imported(store, tmp_path / "out")
    assert done.record.kind == "letta"
    assert [(row["id"], row["content"]) for row in rows] == [
        ("block-1", "Name: Bo"),
        ("passage-1", "Ann is a vet"),
    ]
    said = [
        {"role": "system", "content": "you are", "created_at": "2024-05-01T08:00:00"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "hi"}],
            "created_at": "2024-05-01T08:00:00",
        },
    ]
    agent = {
        "agents": [{"id": "agent-0", "messages": said}],
        "blocks": [{"id": "block-0", "label": "human", "value": "Name: Bo"}],
    }
    files(tmp_path, {"bo.af": json.dumps(agent)})
    done, rows = imported(tmp_path / "bo.af", tmp_path / "af")
    assert done.record.kind == "letta"
    assert texts(rows) == ["Name: Bo", "hi"]


def test_a_knowledge_graph_gives_one_memory_for_each_observation_and_relation(
    tmp_path: Path,
) -> None:
    lines = [
        {
            "type": "entity",
            "name": "Ann",
            "entityType": "person",
            "observations": ["a vet", "has a dog"],
        },
        {"type": "entity", "name": "Bo", "entityType": "person", "observations": []},
        {"type": "relation", "from": "Ann", "to": "Bo", "relationType": "works_with"},
    ]
    content = "\n".join(map(json.dumps, lines))
    source = files(tmp_path, {"memory.jsonl": content}) / "memory.jsonl"
    done, rows = imported(source, tmp_path / "out")
    assert done.record.kind == "mcp-graph"
    assert texts(rows) == ["Ann (person): a vet", "Ann (person): has a dog", "Ann works with Bo"]
    source.write_text("\n".join(reversed(content.split("\n"))))
    _, again = imported(source, tmp_path / "again")
    assert {row["content"]: row["id"] for row in again} == {
        row["content"]: row["id"] for row in rows
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_can_be_forced_and_a_source_of_another_kind_is_an_error(
    tmp_path: Path, kind: str
) -> None:
    source = files(tmp_path, {"x.bin": "\x01\x02 not this\n"}) / "x.bin"
    if kind == "notes":
        return
    with pytest.raises(MnemoscopeError) as caught:
        imported(source, tmp_path / "out", kind=kind)
    assert "x.bin" in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.bin"]


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("conversations.json", '[{"mapping": {}},\n{"mapping": 1}]', "line 2"),
        ("conversations.json", '[{"mapping": {}},\n{"mapping":', "line 2"),
        ("x.jsonl", '{"text": "a"}\n{"text": 3}\n', "line 2"),
        ("x.jsonl", '{"text": "a"}\nnot json\n', "line 2"),
        ("x.csv", "text,b\na,b\nonly\n", "line 3"),
        ("x.csv", 'text\n"a\n', "line 2"),
        (
            "memory.jsonl",
            '{"type": "entity", "name": "a", "observations": ["b"]}\n{"type": "x"}',
            "line 2",
        ),
        ("x.db", "SQLite format 3\0 and then rubbish", "x.db"),
    ],
)
def test_broken_input_is_one_error_that_names_file_and_line(
    tmp_path: Path, name: str, content: str, place: str
) -> None:
    source = files(tmp_path, {name: content}) / name
    with pytest.raises(DataError) as caught:
        imported(source, tmp_path / "out")
    assert str(source) in str(caught.value)
    assert place in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_repeated_id_is_refused_unless_the_memory_is_the_same(tmp_path: Path) -> None:
    source = files(tmp_path, {"x.csv": "id,text\n1,a\n1,a\n"}) / "x.csv"
    done, rows = imported(source, tmp_path / "out")
    assert (len(rows), done.record.left_out) == (1, {"repeated": 1})
    source.write_text("id,text\n1,a\n1,b\n")
    with pytest.raises(UsageError, match="line 3 occurs more than once"):
        imported(source, tmp_path / "other")


def test_an_imported_folder_is_read_as_a_dataset_with_its_questions(tmp_path: Path) -> None:
    vault = files(tmp_path / "v", {"a.md": "green tea", "b.md": "red wine"})
    _, rows = imported(vault, tmp_path / "out")
    query = {"query_id": "q", "text": "tea?", "stratum": "exact"}
    judged = {"query_id": "q", "relevant_ids": [rows[0]["id"]]}
    files(tmp_path / "out", {"queries.jsonl": json.dumps(query), "qrels.jsonl": json.dumps(judged)})
    [scenario] = Strata(tmp_path / "out").scenarios()
    assert [memory.text for memory in scenario.memories] == ["green tea", "red wine"]
    assert scenario.questions[0].evidence == (scenario.memories[0].id,)


def test_kinds_are_detected_from_what_files_begin_with(tmp_path: Path) -> None:
    files(tmp_path, {"chat.txt": "notes of a chat", "x.json": '{"what": 1}'})
    assert detect(tmp_path / "chat.txt") == "notes"
    with pytest.raises(DataError, match="--kind"):
        detect(tmp_path / "x.json")
    with pytest.raises(DataError, match="unpack"):
        detect(zipped(tmp_path / "z.zip", {"a.md": "x"}))
