"""Erasure tests find deleted texts in the files of a store, and blame no store without them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.integrations.needed import need

import mnemoscope as ms
from mnemoscope._store.errors import UsageError
from mnemoscope.cli.app import invoke
from mnemoscope.durability import ErasureResult, byte_search
from mnemoscope.durability.erasure_report import sentence
from mnemoscope.durability.erasure_result import verdict_of

STORES = Path(__file__).with_name("stores.py")


def erasure_of(kind: str, out: Path, memories: int = 12) -> ErasureResult:
    system = f"{kind}=stdio:{sys.executable} -S -E {STORES} {kind} {{storage}}"
    return ms.erasure_test(system, memories=memories, out=out)


def test_sqlite_that_leaves_deleted_rows_is_found(tmp_path: Path) -> None:
    result = erasure_of("LeavesDeletedRows", tmp_path)

    assert result.verdict == "kept on disk"
    assert not result.passed
    assert result.texts_on_disk == result.forgotten == 6
    assert result.still_recalled == result.lost == []
    assert {one.file for one in result.after_close} == {"memories.sqlite"}
    assert all(one.place.startswith("SQLite's page") for one in result.after_close)
    assert "keeps deleted texts on disk: 6 of 6" in (tmp_path / "erasure.md").read_text()
    assert json.loads((tmp_path / "erasure.json").read_bytes())["verdict"] == "kept on disk"
    assert (tmp_path / "storage" / "memories.sqlite").is_file()  # to look at


def test_sqlite_that_overwrites_deleted_rows_passes(tmp_path: Path) -> None:
    result = erasure_of("OverwritesDeletedRows", tmp_path)

    assert result.verdict == "erased"
    assert result.passed
    assert result.visible == result.kept == 6
    assert "none of 6 forgotten memories" in sentence(result)
    assert not (tmp_path / "storage").exists()


def test_a_log_that_is_cleared_at_the_end_is_reported(tmp_path: Path) -> None:
    result = erasure_of("CheckpointsAtTheEnd", tmp_path)

    assert result.verdict == "erased when closed"
    assert {one.place for one in result.while_open} == {"SQLite's write-ahead log"}
    assert result.after_close == []


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("KeepsACopy", "base64"),
        ("KeepsACompressedCopy", "UTF-8, in gzip, in zlib"),
        ("KeepsACopyAtHome", "UTF-16"),
    ],
)
def test_a_copy_elsewhere_or_in_another_form_is_found(kind: str, form: str, tmp_path: Path) -> None:
    result = erasure_of(kind, tmp_path)

    assert result.verdict == "kept on disk"
    assert result.texts_on_disk == 6
    assert form in {one.form for one in result.after_close}


def test_files_in_which_nothing_can_be_read_prove_nothing(tmp_path: Path) -> None:
    result = erasure_of("KeepsOnlyCodedTexts", tmp_path)

    assert result.verdict == "unknown"
    assert not result.passed
    assert result.visible == 0
    assert "proves nothing" in sentence(result)


def test_a_store_whose_files_are_not_all_searched_does_not_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_search, "_MOST_STREAMS", 50)
    result = erasure_of("KeepsACopyThatLooksPacked", tmp_path, memories=4)

    assert result.visible == result.kept == 2  # all that it may keep is seen
    assert result.verdict == "unknown"
    assert not result.passed
    assert "too much that looks compressed" in result.unread[0]
    assert "could not be searched" in sentence(result)


def test_a_deletion_in_memory_only_is_found_in_the_file(tmp_path: Path) -> None:
    result = erasure_of("ForgetsOnlyInMemory", tmp_path)
    assert result.verdict == "kept on disk"
    assert result.texts_on_disk == 6


def test_a_system_without_forget_does_not_pass(tmp_path: Path) -> None:
    result = erasure_of("AcknowledgesBeforeWriting", tmp_path)
    assert result.verdict == "not forgotten"
    assert "has no forget" in sentence(result)


def test_the_command_fails_unless_the_text_is_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(kind: str) -> list[str]:
        system = f"{kind}=stdio:{sys.executable} -S -E {STORES} {kind} {{storage}}"
        return ["erasure", "--system", system, "--memories", "4", "--out", str(tmp_path / kind)]

    assert invoke(command("LeavesDeletedRows")) == 1
    assert "memories.sqlite" in capsys.readouterr().out
    assert invoke(command("OverwritesDeletedRows")) == 0
    assert "erases" in capsys.readouterr().out
    assert invoke(["erasure", "--system", "bm25", "--out", str(tmp_path / "bm25")]) == 0
    assert "has no files to search" in capsys.readouterr().out


def test_options_are_checked_before_a_system_starts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--memories 1"):
        ms.erasure_test("sqlite-vec", memories=1, out=tmp_path)
    with pytest.raises(UsageError, match="is not a folder"):
        ms.erasure_test("sqlite-vec", also=[tmp_path / "missing"], out=tmp_path)


def test_most_of_what_is_kept_must_be_visible() -> None:
    counts = {"forgotten": 10, "still_recalled": 0, "while_open": 0, "after_close": 0}
    assert verdict_of(kept=10, visible=4, **counts) == "unknown"
    assert verdict_of(kept=10, visible=5, **counts) == "erased"
    assert verdict_of(kept=10, visible=10, unread=1, **counts) == "unknown"
    assert verdict_of(kept=10, visible=10, **{**counts, "still_recalled": 1}) == "not forgotten"
    assert verdict_of(kept=10, visible=10, **{**counts, "forgotten": 0}) == "unknown"


def test_an_integration_erases(tmp_path: Path) -> None:
    need("sqlite-vec")
    assert ms.erasure_test("sqlite-vec", memories=12, out=tmp_path).verdict == "erased"
