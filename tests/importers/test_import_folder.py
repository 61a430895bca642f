"""The dataset folder appears complete or not at all, and is not overwritten without being told."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.importers.sources import corpus, files, imported

from mnemoscope._store.errors import UsageError
from mnemoscope.cli.app import INTERRUPTED, invoke
from mnemoscope.datasets.imported_folder import import_record
from mnemoscope.datasets.leakage import leaks
from mnemoscope.importers import kinds
from mnemoscope.importers.source_record import ImportSource, SourceRecord
from mnemoscope.types import Memory, Scenario


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return files(tmp_path / "vault", {"a.md": "green tea", "2024-05-01.md": "red wine"})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_record_counts_and_names_nothing_of_the_source(vault: Path, tmp_path: Path) -> None:
    imported(vault, tmp_path / "out")
    record = import_record(tmp_path / "out")
    assert record is not None
    content = (tmp_path / "out" / "corpus.jsonl").read_bytes()
    assert record.sha256 == hashlib.sha256(content).hexdigest()
    assert (record.kind, record.memories, record.with_time) == ("notes", 2, 1)
    assert str(record.first) == str(record.last) == "2024-05-01 00:00:00+00:00"
    told = (tmp_path / "out" / "import.json").read_text()
    for private in ("tea", "wine", "vault", str(tmp_path)):
        assert private not in told
    assert names(tmp_path / "out") == ["corpus.jsonl", "import.json", "left-out.jsonl"]
    for path in (tmp_path / "out", *(tmp_path / "out").iterdir()):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077


def test_names_that_look_like_labels_do_not_stop_a_run(tmp_path: Path) -> None:
    """They were there before any question: the leakage scan would take them for labels."""
    notes = {"answers.md": "green tea", "faq/gold.md": "red wine", "plain.md": "water"}
    _, rows = imported(files(tmp_path / "vault", notes), tmp_path / "out")
    sessions = {row["content"]: row["session"] for row in rows}
    assert sessions["water"] == "plain.md"
    assert len(set(sessions.values())) == 3
    memories = [Memory(row["id"], row["content"], session=row["session"]) for row in rows]
    assert list(leaks(Scenario("all", tuple(memories), ()))) == []
    (tmp_path / "rows.csv").write_text("id,text\nanswer_7,green tea\nnote_8,water\n")
    _, rows = imported(tmp_path / "rows.csv", tmp_path / "table")
    assert [row["id"] for row in rows if row["content"] == "water"] == ["note_8"]
    assert not any("answer" in row["id"] for row in rows)


def test_an_existing_folder_is_replaced_only_on_request_and_keeps_its_questions(
    vault: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    imported(vault, out)
    (out / "queries.jsonl").write_text("mine")
    (vault / "b.md").write_text("black coffee")
    with pytest.raises(UsageError, match="--overwrite"):
        imported(vault, out)
    assert len(corpus(out)) == 2
    _, rows = imported(vault, out, overwrite=True)
    assert len(rows) == 3
    assert (out / "queries.jsonl").read_text() == "mine"
    assert invoke(["import", str(vault), "--out", str(out), "--overwrite"]) == 0
    assert f"next: mnemoscope datasets check strata --data {out}" in capsys.readouterr().out
    other = files(tmp_path / "other", {"x": "1"})
    with pytest.raises(UsageError, match="not made by"):
        imported(vault, other, overwrite=True)
    assert names(other) == ["x"]
    (tmp_path / "empty").mkdir()
    assert len(imported(vault, tmp_path / "empty")[1]) == 3


def test_a_folder_inside_the_notes_is_not_read_as_notes(vault: Path) -> None:
    imported(vault, vault / "memory")
    _, rows = imported(vault, vault / "memory", overwrite=True)
    assert len(rows) == 2


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError])
def test_an_interrupted_import_leaves_nothing(
    vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: type[BaseException]
) -> None:
    def broken(source: ImportSource) -> Iterator[SourceRecord]:
        yield SourceRecord("a", "one")
        raise stop

    monkeypatch.setitem(kinds.KINDS, "notes", (broken, ""))
    code = invoke(["import", str(vault), "--out", str(tmp_path / "out")])
    assert code == (INTERRUPTED if stop is KeyboardInterrupt else 1)
    assert names(tmp_path) == ["vault"]


def test_the_draft_of_a_killed_import_is_removed_by_the_next(vault: Path, tmp_path: Path) -> None:
    gone = os.fork()
    if gone == 0:
        os._exit(0)
    os.waitpid(gone, 0)
    files(tmp_path / f".out.{gone}.draft", {"unordered": "texts"})
    files(tmp_path / f".out.{os.getppid()}.draft", {"unordered": "of a running import"})
    imported(vault, tmp_path / "out")
    assert names(tmp_path) == [f".out.{os.getppid()}.draft", "out", "vault"]


def test_a_private_folder_shows_git_its_record_only(vault: Path, tmp_path: Path) -> None:
    ids = ["Ann Bell", 7, 491701234567, "ann@example.org", "9b2e6c1a-0000-4000-8000-00000000000a"]
    lines = (json.dumps({"id": id, "text": f"about {id}"}) for id in ids)
    source = files(tmp_path, {"x.jsonl": "\n".join(lines)})
    _, rows = imported(source / "x.jsonl", tmp_path / "out", private=True)
    ignored = (tmp_path / "out" / ".gitignore").read_text().split()
    assert ignored == ["*", "!.gitignore", "!import.json"]
    kept = [row["id"] for row in rows]  # a run records them
    assert [id for id in kept if id in ids] == [7, ids[-1]]
    assert len(set(map(str, kept))) == 5
    record = import_record(tmp_path / "out")
    assert record is not None
    assert record.private


def test_the_command_says_what_it_did(
    vault: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files(vault, {"p.png": "x", "c.md": "password: hunter2xyz"})
    out = tmp_path / "out"
    assert invoke(["import", str(vault), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert said.splitlines() == [
        f"{out}: 3 memories of kind notes (1 with a time, 2024-05-01 to 2024-05-01)",
        "  left out: 1 another type of file",
        "  secrets masked: 1 password",
        "    c.md, line 1: password",
        f"  each with its place: {out}/left-out.jsonl",
        f"next: mnemoscope questions draft {out}",
    ]
    assert invoke(["import", str(vault), "--out", str(out), "--json", "--overwrite"]) == 0
    assert json.loads(capsys.readouterr().out)["memories"] == 3
    assert invoke(["import", str(vault / "none"), "--out", str(out)]) == 1
    assert "does not exist" in capsys.readouterr().err
