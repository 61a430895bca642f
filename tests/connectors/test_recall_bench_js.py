"""JavaScript adapters of Recall Bench: each runs as a child process, whatever it does there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.described import described
from tests.optional import missing

from mnemoscope import api
from mnemoscope._store.errors import DataError, MissingData, MnemoscopeError, UsageError
from mnemoscope._store.run_directory import read_journal
from mnemoscope.connectors.child_process import AdapterDied, AdapterLate
from mnemoscope.connectors.recall_bench_js import RecallBenchJs
from mnemoscope.connectors.stdio import AdapterError
from mnemoscope.reports.run_view import RunView
from mnemoscope.types import Answer, Memory, Query

EXAMPLE = Path(__file__).parents[2] / "examples" / "adapters" / "recall_bench_adapter.mjs"
DAYS = [
    Memory("p/day-0001", "one", datetime(2026, 1, 5, tzinfo=UTC), metadata={"day": 1}),
    Memory("p/day-0003", "three", datetime(2026, 1, 7, tzinfo=UTC), metadata={"day": 3}),
]
# It answers with the calls that it got; a question names what it does instead.
RECORDING = """
import { spawnSync } from "node:child_process";
import { writeSync } from "node:fs";
console.log("loaded");
export const createAdapter = async (config) => {
  const calls = [["config", config]];
  const note = (name) => async (...given) => { calls.push([name, ...given]); };
  const trouble = {
    hang: () => new Promise(() => setInterval(() => {}, 1000)),
    busy: () => { for (;;) {} },
    exit: () => process.exit(3),
    throw: () => { throw new Error("the index is locked"); },
    reject: () => Promise.reject("not an Error"),
    later: () => new Promise(() => setTimeout(() => { throw new Error("late"); }, 1)),
    number: () => 7,
    nothing: () => undefined,
    print: () => {
      console.log("chatty"); process.stdout.write("half a line");
      writeSync(1, "straight to stdout\\n"); spawnSync("echo", ["a child"], { stdio: "inherit" });
      return "said";
    },
  };
  return {
    name: "recording",
    setup: note("setup"), ingestDay: note("ingestDay"),
    finalizeIngestion: note("finalizeIngestion"),
    teardown: async () => { calls.push(["teardown"]); throw new Error("cannot tear down"); },
    query: (question) => (trouble[question] ?? (() => JSON.stringify(calls)))(),
  };
};
export default { name: "default", setup() {}, ingestDay() {}, finalizeIngestion() {}, teardown() {},
  queryDetail: async (question) => ({ answer: `detail of ${question}`, retrieval: [] }) };
export const notAnAdapter = () => ({ name: "x", setup() {}, query() {} });
export const word = "text";
"""


@pytest.fixture(scope="module", autouse=True)
def _node() -> None:
    if shutil.which("node") is None:
        missing("no node on the PATH")


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("adapters") / "adapter.mjs"
    place.write_text(RECORDING)
    return place


@pytest.fixture
def opened(adapter: Path) -> Iterator[Callable[..., RecallBenchJs]]:
    systems: list[RecallBenchJs] = []

    def open_system(factory: str = "createAdapter", config: str = "") -> RecallBenchJs:
        systems.append(RecallBenchJs(str(adapter), factory, config, timeout=30.0))
        return systems[-1]

    yield open_system
    for system in systems:
        system.close()


def test_every_call_of_the_interface_is_made_in_order(
    opened: Callable[..., RecallBenchJs], tmp_path: Path
) -> None:
    config = tmp_path / "profile.yaml"
    config.write_text("harness: {config: {words: ['a, b', c], nested: {n: 1, on: true}}}")
    system = opened(config=str(config))
    for _ in range(2):
        system.reset("persona")
        system.remember(DAYS)
        system.ready()
    first = {"dayNumber": 1, "date": "2026-01-05", "personaId": "persona", "activeArcs": []}
    third = {**first, "dayNumber": 3, "date": "2026-01-07"}
    one_life = [["setup"], ["ingestDay", 1, "one", first], ["ingestDay", 3, "three", third]]
    one_life.append(["finalizeIngestion"])
    given = {"words": ["a, b", "c"], "nested": {"n": 1, "on": True}}
    assert json.loads(system.answer(Query("?"))) == [
        ["config", given],
        *one_life,
        ["teardown"],
        *one_life,
    ]


def test_a_default_export_is_the_adapter_and_its_details_are_preferred(
    opened: Callable[..., RecallBenchJs],
) -> None:
    system = opened(factory="")
    system.reset("persona")
    assert system.answer(Query("this")) == "detail of this"


@pytest.mark.parametrize(
    ("question", "error", "said"),
    [
        ("exit", AdapterDied, "exit code 3"),
        ("later", AdapterDied, "late"),
        ("throw", AdapterError, "the index is locked"),
        ("reject", AdapterError, "not an Error"),
        ("number", AdapterError, "the answer is number, expected a text"),
        ("nothing", AdapterError, "the answer is undefined"),
    ],
)
def test_an_adapter_that_fails_gives_an_error_and_a_reset_begins_again(
    opened: Callable[..., RecallBenchJs], question: str, error: type[Exception], said: str
) -> None:
    system = opened()
    system.reset("persona")
    with pytest.raises(error, match=said):
        system.answer(Query(question))
    system.reset("persona")
    assert json.loads(system.answer(Query("?")))[-1] == ["setup"]


@pytest.mark.parametrize("question", ["hang", "busy"])
def test_an_adapter_that_hangs_is_ended(
    opened: Callable[..., RecallBenchJs], question: str
) -> None:
    system = opened()
    system.reset("persona")
    system.limit_calls(0.3, 30.0)
    with pytest.raises(AdapterLate, match=r"no reply within 0\.3 s"):
        system.answer(Query(question))
    with pytest.raises(AdapterDied, match="ended in an earlier call"):
        system.answer(Query("?"))


def test_what_an_adapter_prints_is_no_reply(opened: Callable[..., RecallBenchJs]) -> None:
    system = opened()
    system.reset("persona")
    assert system.answer(Query("print")) == "said"
    assert json.loads(system.answer(Query("?")))[-1] == ["setup"]


@pytest.mark.parametrize(
    ("factory", "said"),
    [
        ("missing", "no function missing is exported; there is createAdapter, notAnAdapter"),
        ("word", "no function word is exported"),
        ("notAnAdapter", "is no adapter: it has no ingestDay, finalizeIngestion, teardown"),
        ("default", "no function default is exported"),
    ],
)
def test_a_module_that_is_no_adapter_is_refused_before_the_run(
    adapter: Path, factory: str, said: str
) -> None:
    with pytest.raises(MnemoscopeError, match=said):
        described(f"recall-bench-js:{adapter},factory={factory}")


def test_a_module_that_cannot_be_loaded_is_refused_before_the_run(tmp_path: Path) -> None:
    broken = tmp_path / "broken.mjs"
    broken.write_text("import './nowhere.mjs';")
    with pytest.raises(MnemoscopeError, match=r"nowhere\.mjs"):
        described(f"recall-bench-js:{broken}")
    function = tmp_path / "function.cjs"
    function.write_text("module.exports = () => ({});")
    with pytest.raises(MnemoscopeError, match="is a function: write factory=default"):
        described(f"recall-bench-js:{function}")


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingData, match="there is no such file; build the adapter"):
        RecallBenchJs(str(tmp_path / "dist" / "index.js"))
    with pytest.raises(MissingData, match="config="):
        RecallBenchJs(str(EXAMPLE), config=str(tmp_path / "none.yaml"))
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(DataError, match="not a mapping"):
        RecallBenchJs(str(EXAMPLE), config=str(tmp_path / "list.json"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"needs Node 18 or later.*nodejs\.org"):
        RecallBenchJs(str(EXAMPLE))


def test_the_identity_has_the_config_without_its_keys(adapter: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    also = {"apiKeys": ["sk-very-secret-2"], "credentials": {"value": "sk-very-secret-3"}}
    config.write_text(json.dumps({"topK": 8, "deep": [{"apiKey": "sk-very-secret"}], **also}))
    planned = described(f"recall-bench-js:{adapter},factory=createAdapter,config={config}")
    identity = planned.identity
    assert identity["config"]["topK"] == 8
    assert identity["config"]["deep"][0]["apiKey"].startswith("sha256:")
    assert "sk-very-secret" not in json.dumps(identity)
    assert (planned.hosting, planned.answers, planned.recalls) == ("child", True, False)
    assert any("no hits" in note for note in planned.notes)
    before = identity["files_sha256"]["adapter"]
    copy = tmp_path / "adapter.mjs"
    copy.write_text(adapter.read_text() + "// edited\n")
    again = described(f"recall-bench-js:{copy},factory=createAdapter,config={config}")
    assert again.identity["files_sha256"]["adapter"] != before


def test_a_key_in_the_environment_is_not_given_to_an_adapter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "adapter.cjs"
    place.write_text(
        "const nothing = () => {}; module.exports = { setup: nothing, ingestDay: nothing, "
        "finalizeIngestion: nothing, teardown: nothing, "
        "query: () => `${process.env.OPENAI_API_KEY} ${process.env.OTHER}` };"
    )
    monkeypatch.setenv("OPENAI_API_KEY", "sk-judge")
    monkeypatch.setenv("OTHER", "seen")
    system = RecallBenchJs(str(place))
    system.reset("persona")
    assert system.answer(Query("?")) == "undefined seen"
    system.close()


def test_a_profile_runs_its_javascript_adapter(
    write_persona: Callable[..., Path], tmp_path: Path
) -> None:
    write_persona(tmp_path)
    shutil.copy(EXAMPLE, tmp_path / "adapter.mjs")
    profile = tmp_path / "profile.yaml"
    profile.write_text(
        "persona: {id: tester, dir: tester}\n"
        "harness: {adapter: ./adapter.mjs, factory: createAdapter, config: {nothing: 'No, no.'}}\n"
        "run: {ranges: {start: 6, end: 12, step: 6}, seed: 42}\n"
    )
    results = api.run(
        "personas",
        profile=profile,
        out=tmp_path / "runs",
        heatmap_png=False,
        workers=1,
        judge="none",
    )
    [found] = results.runs
    assert "nothing is measured" in RunView.of(found.directory).reader_and_judge[1]
    said = {
        (line.checkpoint, line.question): line.text
        for line in read_journal(found.path / "trials.jsonl")
        if isinstance(line, Answer)
    }
    assert len(said) == 12 + 24
    assert said["6d", "tester-q001"] == "We agreed that thing01 weighs 101 crates."
    assert said["12d", "tester-q023"] == "We agreed that thing12 weighs 112 crates."
