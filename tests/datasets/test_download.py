"""Downloads against a real HTTP server on this machine that breaks off, lies and recovers."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope.datasets._io.download import DownloadError, download
from mnemoscope.datasets.base import PinnedFile

CONTENT = random.Random(7).randbytes(900_001)
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Publisher:
    """A server with one file, and a plan of what it does wrong, request by request."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.content = CONTENT
        self.ranges = True
        self.says_length = True
        self.asked: list[str | None] = []
        """The Range header of each request."""
        self.sent = 0
        self.troubles: list[int | str] = []
        """A status to answer with, or `drop` to break off after 300,000 bytes; then all is well."""

    def pin(self, *, sha256: str | None = DIGEST, size: int | None = None) -> PinnedFile:
        return PinnedFile(self.url, sha256, size)


def handler(publisher: Callable[[], Publisher]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            own = publisher()
            wanted = self.headers.get("Range")
            own.asked.append(wanted)
            trouble = own.troubles.pop(0) if own.troubles else ""
            if isinstance(trouble, int):
                self.send_error(trouble)
                return
            start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
            if not own.ranges:
                start = 0
            if start >= len(own.content):
                self.send_error(416)
                return
            body = own.content[start:]
            self.send_response(206 if start else 200)
            if own.says_length:
                self.send_header("Content-Length", str(len(body)))
            if start:
                end = len(own.content)
                self.send_header("Content-Range", f"bytes {start}-{end - 1}/{end}")
            self.end_headers()
            if trouble == "drop":
                body = body[:300_000]
            own.sent += len(body)  # first: whoever has all of it may look at once
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@contextmanager
def serving() -> Iterator[Publisher]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(lambda: one))
    one = Publisher(f"http://127.0.0.1:{server.server_port}/file.json")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield one
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    with serving() as one:
        yield one


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "er" / "file.json"


def part_of(target: Path) -> Path:
    return target.with_name("file.json.part")


def begin(target: Path, content: bytes) -> Path:
    part = part_of(target)
    part.parent.mkdir(parents=True)
    part.write_bytes(content)
    return part


def assert_delivered(target: Path) -> None:
    assert target.read_bytes() == CONTENT
    assert [path.name for path in target.parent.iterdir()] == ["file.json"]


def test_a_file_arrives_whole_and_verified(publisher: Publisher, target: Path) -> None:
    assert download(publisher.pin(), target) == DIGEST
    assert publisher.asked == [None]
    assert_delivered(target)


def test_progress_ends_at_the_whole_size(publisher: Publisher, target: Path) -> None:
    told: list[tuple[int, int | None]] = []
    download(publisher.pin(), target, lambda have, of: told.append((have, of)))
    assert [have for have, _ in told] == sorted(have for have, _ in told)
    assert told[-1] == (len(CONTENT), len(CONTENT))


def test_a_file_that_is_already_right_is_not_fetched_again(
    publisher: Publisher, target: Path
) -> None:
    target.parent.mkdir(parents=True)
    target.write_bytes(CONTENT)
    assert download(publisher.pin(), target) == DIGEST
    assert publisher.asked == []


def test_a_file_that_is_there_but_wrong_is_neither_fetched_nor_touched(
    publisher: Publisher, target: Path
) -> None:
    target.parent.mkdir(parents=True)
    target.write_bytes(b"mine")
    with pytest.raises(DownloadError, match=rf"not the pinned {DIGEST}; remove it"):
        download(publisher.pin(), target)
    assert target.read_bytes() == b"mine"
    assert publisher.asked == []


def test_a_broken_connection_is_resumed_where_it_broke(publisher: Publisher, target: Path) -> None:
    publisher.troubles = ["drop", "drop"]
    assert download(publisher.pin(), target) == DIGEST
    assert publisher.asked == [None, "bytes=300000-", "bytes=600000-"]
    assert publisher.sent == len(CONTENT)  # no byte was sent twice
    assert_delivered(target)


def test_a_later_call_continues_what_an_earlier_one_left(
    publisher: Publisher, target: Path
) -> None:
    begin(target, CONTENT[:123_456])
    assert download(publisher.pin(), target) == DIGEST
    assert publisher.asked == ["bytes=123456-"]
    assert publisher.sent == len(CONTENT) - 123_456
    assert_delivered(target)


def test_a_server_without_ranges_starts_over_and_still_delivers(
    publisher: Publisher, target: Path
) -> None:
    publisher.ranges = False
    publisher.troubles = ["drop"]
    assert download(publisher.pin(), target) == DIGEST
    assert publisher.asked == [None, "bytes=300000-"]
    assert publisher.sent == 300_000 + len(CONTENT)
    assert_delivered(target)


def test_what_breaks_off_every_time_is_kept_for_the_next_call(
    publisher: Publisher, target: Path
) -> None:
    publisher.content = CONTENT * 3
    publisher.troubles = ["drop"] * 5
    whole = publisher.pin(sha256=hashlib.sha256(CONTENT * 3).hexdigest())
    with pytest.raises(
        DownloadError, match="1,500,000 bytes are kept, and the next call continues there"
    ):
        download(whole, target)
    assert not target.exists()
    assert part_of(target).read_bytes() == (CONTENT * 3)[:1_500_000]
    download(whole, target)
    assert publisher.asked[-1] == "bytes=1500000-"
    assert target.read_bytes() == CONTENT * 3
    assert not part_of(target).exists()


def test_a_cut_that_only_the_hash_can_notice_leaves_no_file(
    publisher: Publisher, target: Path
) -> None:
    """Without a Content-Length a broken connection looks like the end."""
    publisher.says_length = False
    publisher.troubles = ["drop"]
    with pytest.raises(DownloadError, match="not the pinned"):
        download(publisher.pin(), target)
    assert not target.parent.parent.exists()


def test_wrong_bytes_are_not_kept(publisher: Publisher, target: Path) -> None:
    publisher.content = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])
    wrong = hashlib.sha256(publisher.content).hexdigest()
    with pytest.raises(
        DownloadError, match=rf"sha256 {wrong}, not the pinned {DIGEST}; the download was deleted"
    ):
        download(publisher.pin(), target)
    assert not target.parent.parent.exists()


def test_a_part_of_another_file_is_found_out_and_thrown_away(
    publisher: Publisher, target: Path
) -> None:
    begin(target, b"x" * 1_000)
    with pytest.raises(DownloadError, match="not the pinned"):
        download(publisher.pin(), target)
    assert list(target.parent.iterdir()) == []
    assert download(publisher.pin(), target) == DIGEST
    assert_delivered(target)


def test_without_a_pin_the_hash_is_only_reported(publisher: Publisher, target: Path) -> None:
    publisher.content = b"anything"
    found = download(publisher.pin(sha256=None), target)
    assert found == hashlib.sha256(b"anything").hexdigest()
    assert target.read_bytes() == b"anything"


def test_a_missing_file_fails_at_once_and_leaves_nothing(
    publisher: Publisher, target: Path
) -> None:
    publisher.troubles = [404] * 9
    with pytest.raises(DownloadError, match=r"file\.json: the server replied 404 Not Found"):
        download(publisher.pin(), target)
    assert len(publisher.asked) == 1
    assert not target.parent.parent.exists()


def test_a_missing_file_does_not_cost_the_part_that_is_there(
    publisher: Publisher, target: Path
) -> None:
    part = begin(target, CONTENT[:5_000])
    publisher.troubles = [404]
    with pytest.raises(DownloadError, match="404"):
        download(publisher.pin(), target)
    assert part.read_bytes() == CONTENT[:5_000]


def test_a_server_error_is_retried(publisher: Publisher, target: Path) -> None:
    publisher.troubles = [500, 503]
    assert download(publisher.pin(), target) == DIGEST
    assert len(publisher.asked) == 3
    assert_delivered(target)


def test_a_server_that_stays_broken_is_given_up_and_the_part_kept(
    publisher: Publisher, target: Path
) -> None:
    part = begin(target, CONTENT[:5_000])
    publisher.troubles = [500] * 99
    with pytest.raises(DownloadError, match=r"cannot download .*500.* 5,000 bytes are kept"):
        download(publisher.pin(), target)
    assert len(publisher.asked) < 10
    assert part.read_bytes() == CONTENT[:5_000]
    assert not target.exists()


def test_a_part_longer_than_the_file_is_begun_again(publisher: Publisher, target: Path) -> None:
    begin(target, CONTENT + b"too much")
    assert download(publisher.pin(), target) == DIGEST
    assert publisher.asked == [f"bytes={len(CONTENT) + 8}-", None]
    assert_delivered(target)


def test_a_part_that_is_the_whole_file_needs_no_request(publisher: Publisher, target: Path) -> None:
    begin(target, CONTENT)
    assert download(publisher.pin(size=len(CONTENT)), target) == DIGEST
    assert publisher.asked == []
    assert_delivered(target)


def test_an_unreachable_server_is_one_error(target: Path) -> None:
    with serving() as gone:
        pin = gone.pin()
    with pytest.raises(DownloadError, match=r"cannot download http://127\.0\.0\.1"):
        download(pin, target)
    assert not target.parent.parent.exists()


def test_the_final_name_appears_only_when_the_bytes_are_right(
    publisher: Publisher, target: Path
) -> None:
    there: list[bool] = []
    publisher.troubles = ["drop"]
    download(publisher.pin(), target, lambda have, of: there.append(target.exists()))
    assert there
    assert not any(there)
    assert target.exists()


def test_a_download_error_is_a_mnemoscope_error() -> None:
    assert issubclass(DownloadError, MnemoscopeError)
