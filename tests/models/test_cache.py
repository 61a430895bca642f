"""The content cache computes each text once, across processes, threads, forks and crashes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope._store.errors import DataError, MnemoscopeError
from mnemoscope.models import ContentCache, default_cache_dir

spawn = multiprocessing.get_context("spawn")
fork = multiprocessing.get_context("fork")


def shout(texts: list[str]) -> list[bytes]:
    return [text.upper().encode() for text in texts]


def never(texts: list[str]) -> list[bytes]:
    raise AssertionError(f"computed again: {texts}")


def append(path: Path, lines: list[str]) -> None:
    """One write a call, so that lines of several processes do not mix."""
    with path.open("ab", buffering=0) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited a minute in vain"
        time.sleep(0.005)


@pytest.fixture(params=["file", "memory"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> ContentCache:
    return ContentCache(tmp_path / "c.db" if request.param == "file" else None, "test")


def test_values_come_back_in_the_order_of_the_texts(cache: ContentCache) -> None:
    assert cache.get_or_compute(["b", "a", "b"], shout) == [b"B", b"A", b"B"]


def test_what_is_known_is_not_computed_again(cache: ContentCache) -> None:
    cache.get_or_compute(["a", "b"], shout)
    assert cache.get_or_compute(["b", "a"], never) == [b"B", b"A"]


def test_only_the_missing_go_to_compute_and_in_one_call(cache: ContentCache) -> None:
    calls: list[list[str]] = []

    def record(texts: list[str]) -> list[bytes]:
        calls.append(texts)
        return shout(texts)

    cache.get_or_compute(["a"], record)
    cache.get_or_compute(["c", "a", "b", "c"], record)
    assert calls == [["a"], ["c", "b"]]


def test_every_text_counts_once_as_computed_or_reused(cache: ContentCache) -> None:
    cache.get_or_compute(["a", "a", "b"], shout)
    cache.get_or_compute(["b", "c"], shout)
    assert (cache.computed, cache.reused) == (3, 2)


def test_no_texts_compute_nothing(cache: ContentCache) -> None:
    assert cache.get_or_compute([], never) == []


def test_empty_values_and_odd_texts_are_kept(cache: ContentCache) -> None:
    texts = ["", "\0", "\ud800", "é" * 10_000]
    kept = [b"", b"\0", b"x" * 2_000_000, b"\xff"]
    cache.get_or_compute(texts, lambda asked: kept)
    assert cache.get_or_compute(texts, never) == kept


def test_more_keys_than_one_select_holds(cache: ContentCache) -> None:
    texts = [f"text {n}" for n in range(1203)]
    cache.get_or_compute(texts, shout)
    assert cache.get_or_compute(texts, never) == shout(texts)


def test_a_failed_computation_stores_nothing_and_frees_the_keys(cache: ContentCache) -> None:
    with pytest.raises(AssertionError):
        cache.get_or_compute(["a"], never)
    with pytest.raises(ValueError, match="zip"):
        cache.get_or_compute(["a", "b"], lambda texts: [b"only one"])
    assert cache.get_or_compute(["a", "b"], shout) == [b"A", b"B"]
    assert cache.computed == 2


def test_namespaces_in_one_file_are_apart(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    ContentCache(path, "a").get_or_compute(["bc"], lambda texts: [b"1"])
    ContentCache(path, "ab").get_or_compute(["c"], lambda texts: [b"2"])
    assert ContentCache(path, "a").get_or_compute(["bc"], never) == [b"1"]
    assert ContentCache(path, "ab").get_or_compute(["c"], never) == [b"2"]


def test_a_closed_cache_opens_again(tmp_path: Path) -> None:
    cache = ContentCache(tmp_path / "deep" / "c.db", "test")
    cache.get_or_compute(["a"], shout)
    cache.close()
    assert cache.get_or_compute(["a"], never) == [b"A"]


@given(st.lists(st.lists(st.text(max_size=3), max_size=8), max_size=8))
def test_any_sequence_of_questions_computes_each_content_once(batches: list[list[str]]) -> None:
    cache = ContentCache(None, "test")
    computed: Counter[str] = Counter()

    def record(texts: list[str]) -> list[bytes]:
        computed.update(texts)
        return shout(texts)

    for batch in batches:
        assert cache.get_or_compute(batch, record) == shout(batch)
    assert set(computed.values()) <= {1}
    assert cache.computed == len({text for batch in batches for text in batch})
    assert cache.computed + cache.reused == sum(map(len, batches))


def ask_overlapping(path: Path, log: Path, number: int) -> None:
    cache = ContentCache(path, "test")

    def slowly(texts: list[str]) -> list[bytes]:
        append(log, texts)
        time.sleep(0.01)
        return shout(texts)

    for start in range(0, 120, 10):
        # Each process walks the same keys from another place, in another order.
        first = (start + 37 * number) % 120
        texts = [f"text {n % 120}" for n in range(first, first + 30)][:: 1 if number % 2 else -1]
        assert cache.get_or_compute(texts, slowly) == shout(texts)


def test_processes_that_ask_at_the_same_time_compute_each_content_once(tmp_path: Path) -> None:
    path, log = tmp_path / "c.db", tmp_path / "log"
    workers = [spawn.Process(target=ask_overlapping, args=(path, log, n)) for n in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0] * 6
    assert sorted(log.read_text().splitlines()) == sorted(f"text {n}" for n in range(120))


def test_threads_that_ask_at_the_same_time_compute_each_content_once(cache: ContentCache) -> None:
    computed: list[str] = []

    def slowly(texts: list[str]) -> list[bytes]:
        computed.extend(texts)
        time.sleep(0.01)
        return shout(texts)

    threads = [
        threading.Thread(target=cache.get_or_compute, args=(["a", f"own {n}"], slowly))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(computed) == ["a", *(f"own {n}" for n in range(8))]


def test_threads_with_different_texts_compute_side_by_side(cache: ContentCache) -> None:
    both = threading.Barrier(2, timeout=60)

    def together(texts: list[str]) -> list[bytes]:
        both.wait()
        return shout(texts)

    threads = [
        threading.Thread(target=cache.get_or_compute, args=([text], together)) for text in "ab"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.get_or_compute(["a", "b"], never) == [b"A", b"B"]


def compute_forever(path: Path, log: Path) -> None:
    def stuck(texts: list[str]) -> list[bytes]:
        append(log, ["stuck"])
        time.sleep(3600)
        return shout(texts)

    ContentCache(path, "test").get_or_compute(["a", "b"], stuck)


def ask_once(path: Path, log: Path) -> None:
    def record(texts: list[str]) -> list[bytes]:
        append(log, texts)
        return shout(texts)

    append(log, ["asking"])
    assert ContentCache(path, "test").get_or_compute(["b", "c"], record) == [b"B", b"C"]


def test_a_process_killed_while_computing_blocks_no_other(tmp_path: Path) -> None:
    path, log = tmp_path / "c.db", tmp_path / "log"
    log.touch()
    doomed = spawn.Process(target=compute_forever, args=(path, log))
    doomed.start()
    wait_until(lambda: "stuck" in log.read_text())
    waiting = spawn.Process(target=ask_once, args=(path, log))
    waiting.start()
    wait_until(lambda: "asking" in log.read_text())
    assert log.read_text().split() == ["stuck", "asking"]
    doomed.kill()
    waiting.join(60)
    assert waiting.exitcode == 0
    doomed.join()
    assert log.read_text().split() == ["stuck", "asking", "b", "c"]


def store_until_killed(path: Path, log: Path) -> None:
    cache = ContentCache(path, "test")
    for n in range(1_000_000):
        cache.get_or_compute([f"text {n}"], shout)
        append(log, [f"text {n}"])


def test_what_was_returned_before_kill_9_is_kept(tmp_path: Path) -> None:
    path, log = tmp_path / "c.db", tmp_path / "log"
    log.touch()
    writer = spawn.Process(target=store_until_killed, args=(path, log))
    writer.start()
    wait_until(lambda: log.stat().st_size > 2000)
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    texts = log.read_text().splitlines()
    assert ContentCache(path, "test").get_or_compute(texts, never) == shout(texts)


def test_a_cache_that_was_open_before_a_fork_works_on_both_sides(tmp_path: Path) -> None:
    cache = ContentCache(tmp_path / "c.db", "test")
    cache.get_or_compute(["before"], shout)

    def in_child() -> None:
        assert cache.get_or_compute(["before"], never) == [b"BEFORE"]
        cache.get_or_compute(["child"], shout)

    child = fork.Process(target=in_child)
    child.start()
    cache.get_or_compute(["parent"], shout)
    child.join(60)
    assert child.exitcode == 0
    expected = [b"BEFORE", b"CHILD", b"PARENT"]
    assert cache.get_or_compute(["before", "child", "parent"], never) == expected


@pytest.mark.parametrize("part", ["all", "beginning", "middle"])
def test_a_damaged_file_says_what_to_do(tmp_path: Path, part: str) -> None:
    path = tmp_path / "c.db"
    cache = ContentCache(path, "test")
    texts = [f"text {n}" for n in range(2000)]
    cache.get_or_compute(texts, shout)
    cache.close()
    content = bytearray(path.read_bytes())
    damage = {"all": slice(None), "beginning": slice(0, 100), "middle": slice(4096, None)}[part]
    content[damage] = b"\xa5" * len(content[damage])
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"c\.db: this cache is damaged .* delete it"):
        cache.get_or_compute(texts, shout)
    path.unlink()
    assert cache.get_or_compute(["a"], shout) == [b"A"]


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(MnemoscopeError, match=r"cannot create the cache.*MNEMOSCOPE_CACHE"):
        ContentCache(tmp_path / "file" / "c.db", "test").get_or_compute(["a"], shout)


def test_the_folder_comes_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(tmp_path))
    assert default_cache_dir() == tmp_path
    monkeypatch.delenv("MNEMOSCOPE_CACHE")
    assert default_cache_dir().name == "mnemoscope"
