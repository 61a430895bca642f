"""Servers that reply with anything: a true status each, bounded memory, and other systems run on.

All of them are systems of one run, beside bm25.
"""

from __future__ import annotations

import os
import re
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.connectors.hostile_server import (
    CASES,
    ESCAPES,
    HITS,
    SECRET,
    Asked,
    HostileServer,
    Reply,
    http,
    in_tool,
    without_end,
)

from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.connectors import child_process
from mnemoscope.connectors.mcp import transport
from mnemoscope.datasets.locomo import Locomo
from mnemoscope.models import http_client
from mnemoscope.reports.run_report import write_report
from mnemoscope.runner.run import Settings, run
from mnemoscope.runner.scheduler import Limits
from mnemoscope.systems.loader import plan
from mnemoscope.types import Trial

HERE = Path(__file__).parent / "hostile_mcp.py"
LARGEST = 2 << 20
"""Bytes of a reply in these tests."""
MOST_MEMORY = 250 << 20
"""Bytes that a process may use; a reply of gigabytes would need more."""

CONTRACT = {
    "endless body": "error: .*a reply of more than 2 MiB",
    "endless chunks": "error: .*a reply of more than 2 MiB",
    "gigabytes": "error: .*a reply of more than 2 MiB",
    "error of gigabytes": "error: .*a reply of more than 2 MiB",
    "gzip bomb": "error: .*a reply of more than 2 MiB",
    "deflate bomb": "error: .*a reply of more than 2 MiB",
    "unknown encoding": "error: .*its reply is encoded as 'br', unasked",
    "broken gzip": "error: .*its compressed reply is incomplete",
    "huge header": "error: .*(does not reply with valid HTTP|dropped the connection)",
    "endless headers": "error: .*(does not reply with valid HTTP|dropped the connection)",
    "endless 100": "timeout: .*no complete reply to POST within 1.5 s",
    "slow drip": "timeout: .*no complete reply to POST within 1.5 s",
    "never replies": "timeout: .*no complete reply to POST within 1.5 s",
    "too few bytes": "timeout: .*no complete reply to POST within 1.5 s",
    "asks to wait": r"error: .*status 503 \(later\)",
    "closes midway": "error: .*dropped the connection in the middle of POST",
    "closes at once": "error: .*dropped the connection in the middle of POST",
    "too many bytes": "error: .*the reply is not JSON",
    "not HTTP": "error: .*(does not reply with valid HTTP|dropped the connection)",
    "no status": "error: .*(does not reply with valid HTTP|dropped the connection)",
    "two lengths": "error: .*(does not reply with valid HTTP|dropped the connection)",
    "invalid bytes": "error: .*the reply is not JSON",
    "invalid JSON": "error: .*the reply is not JSON",
    "deep JSON": "error: .*the reply is not JSON",
    "deep error": r"error: .*status 500 \(\[\[\[",
    "escapes": "error: .*status 500",
    "escapes in JSON": "error: .*the reply is not JSON",
    "secret in 500": r"error: .*status 500 \(bad Bearer …\)",
    "secret in JSON": "error: .*the reply is not JSON: not Bearer …",
    "refuses the key": r"error: .*status 407 \(no\)",
    "redirects elsewhere": "error: .*redirections are not followed: give the address http",
    "reply to another call": 'error: .*expected {"hits": …}',
    **dict.fromkeys(list(HITS)[1:], "error: .*recall returned"),
    "duplicated keys": "answered: ",
    "scores without a value": "answered: ",
    "no hits": "empty: ",
    "unknown ids": "answered: ",
    "a million hits": "answered: ",
}
MAPPED = {
    "gzip bomb": "error: .*a reply of more than 2 MiB",
    "never replies": "timeout: .*no complete reply to GET within 1.5 s",
    "deep JSON": "error: .*the reply is not JSON",
    "invalid bytes": "error: .*the reply is not JSON",
    "redirects elsewhere": "error: .*redirections are not followed",
    "hits are a text": "error: .*expected a list of hits",
    "hit is null": "error: .*there is no id at",
    "id is a list": "error: .*there is no id at",
    "score is a text": "answered: ",
}
MCP = {
    "gigabytes": "error: .*a reply of more than 2 MiB",
    "endless chunks": "error: .*a reply of more than 2 MiB",
    "gzip bomb": "error: .*its reply is encoded as 'gzip', unasked",
    "endless events": "error: .*",
    "never replies": "timeout: .*search gave no reply within 1.5 s",
    "slow drip": "timeout: .*search gave no reply within 1.5 s",
    "invalid JSON": "error: .*Failed to parse JSON response",
    "deep JSON": "error: .*",
    "redirects elsewhere": "error: .*not followed",
    "closes at once": "error: .*the connection was lost",
    "reply to another id": "timeout: .*",
    "escapes in a tool": "error: .*",
    "secret in a tool": "error: .*bad Bearer …",
    "deep text": "error: .*",
}
STDIO = {
    "endless-line": "error: .*wrote a message of more than 2 MiB",
    "endless-notifications": "timeout: .*search gave no reply within 1.5 s",
    "endless-lines": "error: .*more than 1000 lines to stdout that are not messages",
    "dies": "error: .*ended with exit code 7; its last lines on stderr: no index",
    "other-id": "timeout: .*search gave no reply within 1.5 s",
    "deep": "error: .*",
    "wrong-result": "error: .*search",
    "error": "error: .*search",
    "invalid-bytes": "error: .*",
}
MAPPING = """
name: hostile
reset: [{path: /rest/reset}]
remember: {path: /rest/add, body: {text: "${memory.text}"}}
recall:
  method: GET
  path: /rest/find
  query: {q: "${query.text}"}
  hits: {each: hits, id: id, score: score}
"""
TOOLS = """
name: hostile
reset: {tool: clear}
remember: {tool: store, arguments: {key: "${memory.id}", text: "${memory.text}"}}
recall: {tool: search, arguments: {query: "${query.text}", limit: "${k}"}, hits: {id: key}}
"""


def other_replies(elsewhere: str) -> dict[str, Reply]:
    def failed(text: Callable[[Asked], str]) -> Callable[[Asked], Any]:
        def reply(asked: Asked) -> Any:
            said = in_tool(text(asked))(asked)
            return {**said, "result": {**said["result"], "isError": True}}

        return reply

    million = b'{"hits": [%s"m1"]}' % (b'"x", ' * 300_000)
    return {
        **CASES,
        **{name: http(body) for name, body in HITS.items()},
        "redirects elsewhere": http(b"", 307, Location=elsewhere),
        "duplicated keys": http(b'{"hits": [7, null], "hits": ["m1"]}'),
        "scores without a value": http(
            b'{"hits": [{"id": "m1", "score": NaN}, ["m2", Infinity], ["m3", -1e999]]}'
        ),
        "no hits": http({"hits": []}),
        "unknown ids": http({"hits": [ESCAPES, "", "\x00", "../../etc/passwd", 7]}),
        "a million hits": http(million),
        "endless events": without_end(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
            b": %s\n\n" % (b"x" * 60_000),
        ),
        "reply to another id": http(
            lambda asked: {"jsonrpc": "2.0", "id": "other", "result": {"content": []}}
        ),
        "escapes in a tool": http(failed(lambda asked: ESCAPES)),
        "secret in a tool": http(failed(lambda asked: f"bad {asked.key}")),
        "deep text": http(in_tool("[" * 100_000)),
    }


@contextmanager
def stderr_in(file: Path) -> Iterator[None]:
    """Let this process and its children write to the file, not to stderr."""
    ours = os.dup(2)
    with file.open("wb") as output:
        os.dup2(output.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)


def patience(says: str) -> str:
    """Short only where a timeout is expected: on a busy machine any reply can take seconds."""
    return "timeout=1.5" if says.startswith("timeout") else "timeout=25"


class Outcome(NamedTuple):
    out: Path
    runs: dict[str, RunDirectory]
    redirected: list[Asked]
    memory_before: int
    """The memory of this process, of which workers are forks, and of its earlier children."""


@pytest.fixture(scope="module")
def outcome(
    write_locomo: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Outcome]:
    import mcp.client.session
    import mcp.client.streamable_http  # noqa: F401  # once, and not in every worker

    place = tmp_path_factory.mktemp("hostile")
    before = most_memory(resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    data = Locomo(write_locomo(place / "locomo10.json", conversations=1, sessions=2, questions=1))
    (place / "rest.yaml").write_text(MAPPING)
    (place / "tools.yaml").write_text(TOOLS)
    settings = Settings(limits=Limits(recall=30.0, remember=30.0, restarts=0), workers=4)
    with HostileServer({}) as elsewhere, pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_client, "LARGEST_REPLY", LARGEST)
        patch.setattr(transport, "LONGEST_LINE", LARGEST)
        patch.setattr(child_process, "LONGEST_LINE", LARGEST)
        patch.setenv("HOSTILE_KEY", SECRET)
        with HostileServer(other_replies(elsewhere.url("else"))) as server:
            options = "patience=0.1,key=HOSTILE_KEY"
            specs = {
                f"{kind}: {case}": f"{kind}:{server.url(case)}{path},{patience(says)},{options}"
                f"{mapping}"
                for kind, cases, path, mapping in (
                    ("http", CONTRACT, "", ""),
                    ("rest", MAPPED, "", f",mapping={place / 'rest.yaml'},live=on"),
                    ("mcp", MCP, "/mcp", f",mapping={place / 'tools.yaml'},live=on"),
                )
                for case, says in cases.items()
            }
            tools = f"mapping={place / 'tools.yaml'}"
            for case, says in STDIO.items():
                command = f"{sys.executable} -S {HERE} {case}"
                specs[f"stdio: {case}"] = f"mcp:{command},{patience(says)},{tools}"
            plans = [plan(Spec.parse("bm25"))]
            for name, spec in specs.items():
                slug = re.sub(r"\W+", "-", name)
                plans.append(plan(Spec.labelled(f"{slug}={spec.replace('rest:', 'http:', 1)}")))
            with stderr_in(place / "stderr"):
                runs = run(data, plans, place / "out", settings)
            for one in runs:
                write_report(one)
        named = dict(zip(["bm25", *specs], runs, strict=True))
        yield Outcome(place / "out", named, elsewhere.seen, before)


def shown(trial: Trial) -> str:
    return f"{trial.status}: {trial.error}"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{kind}: {case}", says)
        for kind, cases in (("http", CONTRACT), ("rest", MAPPED), ("mcp", MCP), ("stdio", STDIO))
        for case, says in cases.items()
    ],
)
def test_each_question_has_its_true_status(outcome: Outcome, name: str, expected: str) -> None:
    trials = [shown(trial) for trial in outcome.runs[name].trials()]
    assert len(trials) == 1
    assert re.match(expected, trials[0]), trials


def test_bm25_beside_them_is_as_without_them(outcome: Outcome, tmp_path: Path) -> None:
    data = Locomo(outcome.out.parent / "locomo10.json")
    settings = Settings(limits=Limits(recall=30.0, remember=30.0, restarts=0), workers=2)
    [alone] = run(data, [plan(Spec.parse("bm25"))], tmp_path, settings)
    beside = outcome.runs["bm25"].trials_path.read_bytes()
    assert beside
    assert beside == alone.trials_path.read_bytes()


def test_no_request_and_no_key_went_elsewhere(outcome: Outcome) -> None:
    assert outcome.redirected == []


def test_the_key_is_in_no_file(outcome: Outcome) -> None:
    files = [file for file in outcome.out.rglob("*") if file.is_file()]
    assert len(files) > 100
    assert [file for file in files if SECRET.encode() in file.read_bytes()] == []


def most_memory(*whose: int) -> int:
    return max(resource.getrusage(one).ru_maxrss for one in whose) << 10


def test_memory_stayed_bounded(outcome: Outcome) -> None:
    used = most_memory(resource.RUSAGE_CHILDREN)
    assert used - outcome.memory_before < MOST_MEMORY


CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def test_terminal_and_reports_are_clean(outcome: Outcome) -> None:
    printed = (outcome.out.parent / "stderr").read_text()
    assert "recorded as" in printed
    reports = list(outcome.out.rglob("*.md"))
    assert len(reports) > 50
    dirty = [file for file in reports if CONTROL.search(file.read_text())]
    assert not CONTROL.search(printed)
    assert dirty == []
