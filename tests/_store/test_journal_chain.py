"""The hash chain: every edited line is found, and an interrupted merge is undone."""

from __future__ import annotations

import errno
import hashlib
import random
from pathlib import Path

import pytest

from mnemoscope._store.errors import EditedRun
from mnemoscope._store.journal_chain import (
    CHAIN,
    FileHead,
    JournalChain,
    SpoolJournal,
    chain_of_spool,
    checked_spool,
    extend,
    heads,
)

MERGED = {"a": (b"1\n2\n3\n", b"t1\n"), "b": (b"4\n5\n", b"t2\nt3\n"), "c": (b"6\n", b"")}


@pytest.fixture
def chain(tmp_path: Path) -> JournalChain:
    """The chain of three merged scenarios."""
    chain = JournalChain(tmp_path, "f" * 64)
    head = chain.start()
    for name, (trials, timings) in MERGED.items():
        head = chain.advance(head, name, trials, timings)
        for file, lines in (("trials.jsonl", trials), ("timings.jsonl", timings)):
            with (tmp_path / file).open("ab") as journal:
                journal.write(lines)
    return chain


def test_each_head_is_the_hash_of_the_one_before_and_the_line() -> None:
    first, second, third = heads(b"x\ny\ntorn", "trials.jsonl", "f")

    assert first == hashlib.sha256(b"trials.jsonl\nf").hexdigest()
    assert second == hashlib.sha256(bytes.fromhex(first) + b"x\n").hexdigest()
    assert third == hashlib.sha256(bytes.fromhex(second) + b"y\n").hexdigest()
    assert extend(FileHead(1, second), b"y\n") == FileHead(2, third)


def test_the_end_of_the_chain_is_that_of_the_whole_journal(chain: JournalChain) -> None:
    end = chain.check()

    assert [record.scenario for record in chain.records()] == list(MERGED)
    assert end.trials == FileHead(6, heads(b"1\n2\n3\n4\n5\n6\n", "trials.jsonl", "f" * 64)[-1])
    assert end.timings.lines == 3


def test_every_changed_byte_is_found(chain: JournalChain, tmp_path: Path) -> None:
    draw = random.Random(2)
    for name in ("trials.jsonl", "timings.jsonl", CHAIN):
        whole = (tmp_path / name).read_bytes()
        for _ in range(40):
            damaged = bytearray(whole)
            place = draw.randrange(len(whole) - 1)
            damaged[place] ^= draw.randrange(1, 256)
            (tmp_path / name).write_bytes(damaged)
            if name == CHAIN and b'"scenario"' in damaged and _only_the_name(whole, place):
                continue  # the name of a scenario vouches for nothing
            with pytest.raises(EditedRun):
                chain.check()
        (tmp_path / name).write_bytes(whole)


def _only_the_name(whole: bytes, place: int) -> bool:
    start = whole.rfind(b"\n", 0, place) + 1
    return whole[start:].startswith(b'{"scenario":"') and place - start == len('{"scenario":"')


@pytest.mark.parametrize("written", range(4))
def test_a_merge_that_was_interrupted_is_undone(
    written: int, chain: JournalChain, tmp_path: Path
) -> None:
    chain.advance(chain.last(), "d", b"7\n8\n", b"t4\n")
    with (tmp_path / "trials.jsonl").open("ab") as journal:
        journal.write(b"7\n8\n"[:written])

    chain.resume()

    assert (tmp_path / "trials.jsonl").read_bytes() == b"1\n2\n3\n4\n5\n6\n"
    assert [record.scenario for record in chain.records()] == list(MERGED)
    assert chain.check().trials.lines == 6


@pytest.mark.parametrize("content", [b"1\n2\n3\n4\n", b"1\n2\n3\n4\n5\n6\n7\n", b"", b"1\n2\n"])
def test_a_journal_that_lacks_a_scenario_or_has_more_is_refused(
    content: bytes, chain: JournalChain, tmp_path: Path
) -> None:
    (tmp_path / "trials.jsonl").write_bytes(content)

    with pytest.raises(EditedRun, match=r"trials\.jsonl does not match its hash chain"):
        chain.resume()


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    path = tmp_path / "bm25" / "units" / "000000.trials.jsonl"
    with SpoolJournal(path) as journal:
        for number in range(5):
            journal.append({"line": number})
    return path


def test_a_spool_goes_on_after_a_kill_in_the_middle_of_a_line(spool: Path) -> None:
    whole = spool.read_bytes()
    for torn in (whole[:-1], whole[:-5], whole[:-11]):
        spool.write_bytes(torn)
        with SpoolJournal(spool) as journal:
            journal.append({"line": 4})
        assert checked_spool(spool) == whole


@pytest.mark.parametrize(
    ("edit", "what"),
    [
        (lambda lines: [lines[0].replace(b"0", b"9"), *lines[1:]], "an edited line"),
        (lambda lines: [*lines[:1], *lines[2:]], "a deleted line"),
        (lambda lines: [*lines, lines[0]], "an added line"),
        (lambda lines: lines[:3], "two lines deleted at the end"),
    ],
)
def test_an_edited_spool_is_refused(edit: object, what: str, spool: Path) -> None:
    assert callable(edit)
    spool.write_bytes(b"".join(edit(spool.read_bytes().splitlines(keepends=True))))

    with pytest.raises(EditedRun, match="does not match its hash chain"):
        SpoolJournal(spool)


def test_a_hash_that_was_written_before_its_line_is_no_edit(spool: Path) -> None:
    """The process was killed in between; its parent must not merge what it left."""
    whole = spool.read_bytes()
    spool.write_bytes(whole[: -len(b'{"line":4}\n')])

    with pytest.raises(EditedRun, match="does not match its hash chain"):
        checked_spool(spool)
    with SpoolJournal(spool) as journal:
        journal.append({"line": "another"})
    assert checked_spool(spool).endswith(b'{"line":3}\n{"line":"another"}\n')


def test_a_line_that_could_not_be_written_leaves_the_spool_as_it_was(
    spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "no space")

    whole = spool.read_bytes()
    with SpoolJournal(spool) as journal:
        with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
            patch.setattr("os.write", full)
            journal.append({"line": 5})
        journal.append({"line": 6})
    assert checked_spool(spool) == whole + b'{"line":6}\n'


def test_a_file_system_without_shared_memory_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(errno.ENODEV, "no such device")

    monkeypatch.setattr("mmap.mmap", refuse)
    path = tmp_path / "bm25" / "units" / "000000.trials.jsonl"
    for number in range(3):
        with SpoolJournal(path) as journal:
            journal.append({"line": number})

    assert checked_spool(path).count(b"\n") == 3


def test_a_spool_of_another_system_is_refused(spool: Path, tmp_path: Path) -> None:
    other = tmp_path / "hybrid" / "units" / spool.name
    other.parent.mkdir(parents=True)
    other.write_bytes(spool.read_bytes())
    chain_of_spool(other).write_bytes(chain_of_spool(spool).read_bytes())

    with pytest.raises(EditedRun, match="does not match its hash chain"):
        SpoolJournal(other)
