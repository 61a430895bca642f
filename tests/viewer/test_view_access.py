"""What the viewer refuses: paths outside its folder, other hosts, other sites, other methods."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.viewer.viewed_runs import SECRET, Viewed

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope.viewer.run_folder import RunFolder
from mnemoscope.viewer.view_server import ViewServer

PAGES = ("/", "/run", "/systems", "/forest", "/compare", "/question", "/checkpoints", "/live")
OUTSIDE = (
    "..",
    "../outside",
    "../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "%2e%2e/outside",
    "%252e%252e%252foutside",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "file:///etc/passwd",
    "linked",
    "locomo/../../outside",
    "locomo%00",
    "%00",
    "\\..\\outside",
    "a" * 60_000,
)


@pytest.mark.parametrize("given", OUTSIDE, ids=lambda given: given[:24])
def test_no_address_reaches_beyond_the_folder(viewed: Viewed, given: str) -> None:
    places = [f"/{given}", f"/report/{given}"]
    places += [f"{page}?run={given}" for page in ("/run", "/report", "/live.json", "/checkpoints")]
    places += [f"/compare?base={given}&cand={given}", f"/forest?set={given}&reference={given}"]
    for place in places:
        reply = viewed.ask("GET", place)
        assert reply.status in (400, 404, 414, 422), place
        assert SECRET not in reply.text and "root:" not in reply.text


def test_a_control_character_in_an_address_is_refused(viewed: Viewed) -> None:
    assert viewed.ask("GET", "/run?run=\x00\x01").status in (400, 404)
    assert viewed.ask("GET", "/\x00").status in (400, 404)


def test_links_are_not_followed(viewed: Viewed) -> None:
    assert SECRET not in viewed.get("/").text
    assert "linked" not in [one.name for one in RunFolder(viewed.folder).runs()]


def test_a_link_inside_a_run_is_refused(recorded: Path, tmp_path: Path) -> None:
    copy = tmp_path / "runs" / "copy"
    shutil.copytree(recorded / "locomo" / "luck", copy)
    (copy / "report.html").unlink()
    (tmp_path / "secret.txt").write_text(SECRET)
    (copy / "report.html").symlink_to(tmp_path / "secret.txt")
    [one] = RunFolder(tmp_path / "runs").runs()
    assert (one.state, one.view) == ("unreadable", None)
    assert "report.html is a symbolic link" in one.problem


@pytest.mark.parametrize("name", ["manifest.json", "seal.json"])
def test_a_pipe_in_a_run_does_not_stop_the_list(recorded: Path, tmp_path: Path, name: str) -> None:
    copy = tmp_path / "runs" / "copy"
    shutil.copytree(recorded / "locomo" / "luck", copy)
    (copy / name).unlink()
    os.mkfifo(copy / name)
    [one] = RunFolder(tmp_path / "runs").runs()
    assert (one.state, one.view) == ("edited", None)
    assert f"{name} is not a regular file" in one.problem


def test_an_edit_that_keeps_size_and_time_is_noticed(recorded: Path, tmp_path: Path) -> None:
    copy = tmp_path / "runs" / "copy"
    shutil.copytree(recorded / "locomo" / "luck", copy)
    viewer = RunFolder(tmp_path / "runs")
    assert [one.state for one in viewer.runs()] == ["complete"]
    file = copy / "raw_retrievals.jsonl"
    before, content = file.stat(), file.read_bytes()
    with file.open("r+b") as opened:
        opened.write(content.replace(b"D1", b"D2"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert [one.state for one in viewer.runs()] == ["edited"]


def test_a_run_that_is_replaced_by_a_link_after_the_listing_is_gone(
    recorded: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "runs"
    shutil.copytree(recorded / "locomo" / "luck", folder / "copy")
    viewer = RunFolder(folder)
    [one] = viewer.runs()
    shutil.move(folder / "copy", tmp_path / "moved")
    (folder / "copy").symlink_to(tmp_path / "moved", target_is_directory=True)
    assert viewer.run(one.id) is None


def test_pages_do_not_show_where_the_folder_is(viewed: Viewed, tmp_path: Path) -> None:
    place = str(viewed.folder.parent)
    for path in ("/", "/compare?base=x&cand=y", viewed.place("/run", run="locomo/lexical")):
        assert place not in viewed.ask("GET", path).text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "192.0.2.1", ""])
@pytest.mark.parametrize("path", PAGES)
def test_another_host_name_is_refused(viewed: Viewed, host: str, path: str) -> None:
    reply = viewed.ask("GET", path, Host=host)
    assert reply.status == 421
    assert "--allow-host" not in reply.text  # which this command does not have


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_web_page_of_another_site_is_refused(viewed: Viewed, headers: dict[str, str]) -> None:
    for path in ("/", "/live.json", "/view.js"):
        assert viewed.ask("GET", path, **headers).status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"])
def test_only_get_is_served(viewed: Viewed, method: str) -> None:
    sent = {"Content-Type": "application/json", "Content-Length": "0"}
    assert viewed.ask(method, "/", **sent).status in (404, 501)


def test_a_body_is_refused_before_it_is_read(viewed: Viewed) -> None:
    assert viewed.ask("POST", "/", **{"Content-Length": "1000000"}).status == 413


def test_only_loopback_is_bound(viewed: Viewed) -> None:
    where = urlsplit(viewed.url)
    assert where.hostname == "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing; chooses the address of this machine
        own = probe.getsockname()[0]
    if own.startswith("127."):
        pytest.skip("this machine has no other address")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((own, where.port or 0), 5).close()


def test_every_page_has_a_strict_policy(viewed: Viewed) -> None:
    for path in (*PAGES, "/view.css", "/view.js", "/no"):
        reply = viewed.ask("GET", path)
        if path == "/no":
            assert reply.headers["content-type"] == "application/json"
            continue
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["cache-control"] == "no-store"


def test_a_report_has_an_origin_of_its_own(viewed: Viewed) -> None:
    reply = viewed.get("/report", run="locomo/lexical")
    assert reply.status == 200
    policy = reply.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts") and "allow-same-origin" not in policy
    assert "default-src 'none'" in policy and "connect-src" not in policy


def test_nothing_is_written(viewed: Viewed) -> None:
    home = Path(os.environ["MNEMOSCOPE_DATA_HOME"])
    before = _state(viewed.folder), _state(home)
    shown = {"base": "locomo/lexical", "cand": "locomo/luck"}
    [run] = [one for one in RunFolder(viewed.folder).runs() if one.name == "locomo/lexical"]
    replies = [
        viewed.get("/"),
        viewed.get("/run", run=run.name),
        viewed.get("/systems", set=run.set),
        viewed.get("/forest", set=run.set, band="0.05"),
        viewed.get("/compare", **shown),
        viewed.get("/question", **shown, id="conv-0/q0"),
        viewed.get("/checkpoints", run="personas/bm25"),
        viewed.get("/live", run=run.name),
        viewed.get("/live.json", run=run.name),
        viewed.get("/report", run=run.name),
    ]
    assert {one.status for one in replies} == {200}
    assert (_state(viewed.folder), _state(home)) == before


def _state(folder: Path) -> dict[str, tuple[int, str]]:
    """Every file with its time of change and its hash."""
    return {
        str(path): (path.lstat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def test_a_folder_that_does_not_exist_and_a_port_in_use_are_errors(
    viewed: Viewed, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="is not a folder"):
        ViewServer(tmp_path / "no")
    with pytest.raises(MnemoscopeError, match="cannot listen"):
        ViewServer(tmp_path, port=urlsplit(viewed.url).port or 0)
