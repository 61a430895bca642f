"""Mistakes in a system or an adapter are refused with a suggestion, never scored."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.connectors.mcp_running import SERVERS
from tests.connectors.misspelt_systems import Misspelt, bare_function
from tests.connectors.raw_http import RawServer, Said
from tests.described import described
from tests.optional import missing

from mnemoscope._store.errors import BadReply, MnemoscopeError, UsageError
from mnemoscope._store.spec import Spec
from mnemoscope.connectors.child_process import ChildStderr, split_command
from mnemoscope.connectors.http import Http
from mnemoscope.connectors.mcp.mcp_connector import Mcp
from mnemoscope.connectors.mcp.session import Tool
from mnemoscope.connectors.mcp.tool_mapping import read, wrong_arguments
from mnemoscope.connectors.stdio import OutOfStep, Stdio
from mnemoscope.runner.conformance import CHECKS, check_system
from mnemoscope.serving.http_server import HttpServer
from mnemoscope.systems.loader import Driver, Plan, plan
from mnemoscope.systems.system_replies import read_hits
from mnemoscope.types import Memory, Question

HERE = Path(__file__).parent
ADAPTER = """
import json, sys
for line in sys.stdin:
    order = json.loads(line)
    hello = {"name": "slip", "methods": METHODS}
    result = hello if order["method"] == "hello" else None
    reply = {"jsonrpc": "2.0", "id": order["id"], "result": result}
    if order["method"] == "reset":
        reply = REPLY
    print(json.dumps(reply), flush=True)
"""


@pytest.fixture(autouse=True)
def _misspelt_systems_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))


def adapter(tmp_path: Path, *methods: str, reply: str = "reply") -> str:
    path = tmp_path / "adapter.py"
    path.write_text(ADAPTER.replace("METHODS", repr(list(methods))).replace("REPLY", reply))
    return f"{sys.executable} {path}"


# Systems without remember


@pytest.mark.parametrize("name", ["Misspelt", "one_of_them"])
def test_a_system_without_remember_is_refused_with_a_suggestion(name: str) -> None:
    with pytest.raises(UsageError, match=r"no remember\(memories\).* its method 'rememeber'\?"):
        described(f"misspelt_systems:{name}")


def test_a_misspelt_recall_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match=r"no recall\(query, k\) method; .* its method 'recal'\?"):
        described("misspelt_systems:RecallMisspelt")


def test_a_bare_function_need_not_remember_in_process_or_served() -> None:
    made = plan(Spec.parse("misspelt_systems:bare_function"))
    server = HttpServer(made)
    server.start()
    try:
        for built in (made, plan(Spec.parse(f"http:{server.url}"))):
            driver = Driver(built.build)
            driver.begin("scope")
            driver.remember([Memory("m1", "a text")])
            assert [hit.id for hit in driver.recall(Question("", "a text"), 5)] == ["m1"]
            driver.close()
    finally:
        server.close()


def test_an_unknown_method_in_hello_is_refused_over_stdio(tmp_path: Path) -> None:
    slip = adapter(tmp_path, "reset", "remeber", "recall")
    with pytest.raises(MnemoscopeError, match=r"'remeber', .* did you mean 'remember'\?"):
        described(f"stdio:{slip}")


def test_an_adapter_that_lists_no_remember_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no remember\(memories\)"):
        described(f"stdio:{adapter(tmp_path, 'reset', 'recall', 'fork')}")


def test_an_unknown_method_in_hello_is_refused_over_http() -> None:
    hello = Said({"name": "raw", "methods": ["remeber", "recall"]})
    said = r"'remeber', .* did you mean 'remember'\?"
    with RawServer(lambda call: hello) as server, pytest.raises(MnemoscopeError, match=said):
        Http(server.url).identity()


def test_the_kit_fails_a_system_without_remember_but_not_a_bare_function() -> None:
    spec = Spec.parse("slip")
    [result] = check_system(Plan(spec, Misspelt, {}), names=("read-back",))
    assert (result.verdict, result.seen) == ("failed", "it has no remember method")
    [result] = check_system(Plan(spec, lambda: bare_function, {}), names=("read-back",))
    assert (result.verdict, result.seen) == ("not applicable", "it has no remember")


# The conformance kit reports a cause once


def test_one_error_is_one_finding_only() -> None:
    results = check_system(plan(Spec.parse("misspelt_systems:RaisesInRemember")), patience=0.1)
    assert [result.check for result in results if result.verdict == "failed"] == ["read-back"]
    others = {result.seen for result in results[1:] if result.check not in ("forget", "fork")}
    assert others == {"cannot be checked: same error as in read-back"}
    assert len(results) == len(CHECKS)


def test_the_kit_reports_a_system_that_replaces_earlier_memories() -> None:
    system = plan(Spec.parse("misspelt_systems:Replaces"))
    losses, unicode = check_system(system, patience=0.1, names=("losses", "unicode"))
    assert losses.verdict == "failed"
    assert "must keep the memories of earlier calls" in losses.fix
    assert unicode.verdict == "passed"


# Children


def last_lines(said: str) -> str:
    talk = ChildStderr(["nobody", said])
    for line in said.splitlines(keepends=True):
        talk.add(line.encode())
    return talk.last_lines.removeprefix("; its last lines on stderr: ")


FRAMES = "".join(f"    at addChunk{n} (node:internal/streams/readable:{n}:12)\n" for n in range(9))


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            'file:///ad.mjs:7\n  throw new Error("boom");\n        ^\n\nError: boom\n'
            + FRAMES
            + "\nNode.js v20.20.2\n",
            'file:///ad.mjs:7 | throw new Error("boom"); | Error: boom',
        ),
        (
            "TypeError: fetch failed\n"
            + FRAMES
            + "    at node:internal/main:28:49 {\n  code: 'X',\n  [cause]: Error: refused\n"
            "      at connect (node:net:1:1) {\n    errno: -111\n  }\n}\n\nNode.js v20.20.2\n",
            "TypeError: fetch failed | [cause]: Error: refused",
        ),
        (
            "loading\nTraceback (most recent call last):\n"
            + '  File "a.py", line 1, in <module>\n    go()\n    ~~^^\n' * 5
            + "mine.Trouble: boom\n",
            "loading | mine.Trouble: boom",
        ),
        ("the index is\n  not what it was\n", "the index is | not what it was"),
    ],
)
def test_the_last_lines_name_the_error_without_stack_frames(said: str, kept: str) -> None:
    assert last_lines(said) == kept


def test_stderr_lines_of_an_earlier_start_are_not_repeated(
    capfd: pytest.CaptureFixture[str],
) -> None:
    for number in range(3):
        talk = ChildStderr(["server", "greets"])
        for line in (b"running on stdio\n", b"retrying\n", b"retrying\n", b"start %d\n" % number):
            talk.add(line)
        assert "running on stdio" in talk.last_lines
    shown = capfd.readouterr().err.splitlines()
    assert shown == [
        f"[server greets] {line}"
        for line in ("running on stdio", "retrying", "retrying", "start 0", "start 1", "start 2")
    ]


def test_a_reply_without_id_is_an_immediate_error_that_shows_it(tmp_path: Path) -> None:
    system = Stdio(adapter(tmp_path, "reset", "remember", "recall", reply='{"result": [4711]}'))
    with pytest.raises(OutOfStep, match=r'reset: a reply without id; .*"id": 2.*4711'):
        system.reset("scope")


def test_a_file_that_is_not_executable_gets_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ad.mjs").write_text("#!/usr/bin/env node\n")
    with pytest.raises(UsageError, match=r"'\./ad\.mjs' exists, but is not executable"):
        split_command("./ad.mjs", "")
    Path("ad.mjs").chmod(0o755)
    with pytest.raises(UsageError, match=r"not on the PATH; write \./ad\.mjs"):
        split_command("ad.mjs", "")
    assert split_command("./ad.mjs", "") == ["./ad.mjs"]
    with pytest.raises(UsageError, match=r"the program '\./other' does not exist; check the path"):
        split_command("./other", "")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("misspelt_systems:Misspeld", "has no 'Misspeld'; did you mean its 'Misspelt'?"),
        ("misspelt_sistems:Misspelt", "there is no module 'misspelt_sistems'"),
        ("misspelt_systems:Misspelt", "has no remember(memories); did you mean its 'rememeber'?"),
        ("misspelt_systems:Replaces siz=3", "unexpected keyword argument 'siz'"),
    ],
)
def test_a_mistake_in_serve_stdio_is_one_line_and_an_exit_code(
    words: str, problem: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    served = f"stdio:{sys.executable} -m mnemoscope.connectors.serve_stdio {words}"
    with pytest.raises(
        UsageError, match="ended with exit code 1; its last lines on stderr: "
    ) as raised:
        described(served)
    assert problem in str(raised.value)
    assert len(capfd.readouterr().err.splitlines()) == 1


def test_a_hit_of_a_wrong_shape_is_refused_with_the_right_shape() -> None:
    with pytest.raises(BadReply, match=r"dict or Hit with id and .*; it has memory_id, text"):
        read_hits([{"memory_id": "m1", "text": "a text"}], 2)


# Arguments of MCP tools

STORE = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "entities": {"type": "array", "items": {"$ref": "#/$defs/Entity"}},
        "metadata": {"type": "object", "additionalProperties": True},
    },
    "required": ["text"],
    "$defs": {
        "Entity": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "kind": {"type": "string"}},
            "required": ["name"],
        }
    },
}
SEARCH = {"type": "object", "properties": {"query": {}, "limit": {}}, "required": ["query"]}


def found(remember: str, recall: str = '{query: "${query.text}"}', **more: object) -> list[str]:
    text = f"{{name: m, remember: {{tool: store, {remember}}}, recall: {{tool: search, "
    mapping = read(f"{text}arguments: {recall}}}}}", Path("m.yaml"))
    tools = [
        Tool("store", "", {**STORE, **more}, None, None),
        Tool("search", "", SEARCH, None, None),
    ]
    return wrong_arguments(mapping, tools)


FINE = 'arguments: {text: "${memory.text}", metadata: {any: 1}}'


def test_arguments_are_checked_against_the_schema_of_their_tool() -> None:
    assert found(FINE) == []
    assert found(FINE, '{query: "${query.text}", limitt: "${k}"}') == [
        "gives search the argument 'limitt', which it does not accept: did you mean 'limit'? it "
        "accepts query, limit"
    ]
    assert found('arguments: {txt: "${memory.text}"}') == [
        "gives store the argument 'txt', which it does not accept: did you mean 'text'? it "
        "accepts text, entities, metadata",
        "does not give store the argument 'text', which it requires",
    ]
    assert found('arguments: {text: x, entities: "${items}"}, each: {nam: "${memory.text}"}') == [
        "gives store, in entities, the argument 'nam', which it does not accept: did you mean "
        "'name'? it accepts name, kind",
        "does not give store, in entities, the argument 'name', which it requires",
    ]


def test_a_tool_that_accepts_other_arguments_may_get_them() -> None:
    more = 'arguments: {text: "${memory.text}", other: 1}'
    assert found(more)
    assert found(more, additionalProperties=True) == []
    assert found(more, properties=None, required=None) == []


def test_the_connector_refuses_an_argument_that_the_server_would_ignore(tmp_path: Path) -> None:
    if find_spec("mcp") is None:
        missing("the extra mcp is not installed")
    path = tmp_path / "slip.yaml"
    path.write_text(
        'name: slip\nremember: {tool: store, arguments: {key: "${memory.id}", txt: "${memory.text}"'
        '}}\nrecall: {tool: search, arguments: {query: "${query.text}", limit: "${k}"}}\n'
    )
    system = Mcp(f"{sys.executable} {SERVERS} plain", mapping=str(path))
    with pytest.raises(UsageError, match=r"'slip' gives store .* 'txt', .* did you mean 'text'\?"):
        system.reset("scope")
    system.close()
