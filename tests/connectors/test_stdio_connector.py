"""The stdio connector: an adapter gives the same results as in process, or an error."""

from __future__ import annotations

import gc
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.described import described
from tests.optional import missing
from tests.waiting import all_gone, eventually

from mnemoscope._store.errors import BadReply, UsageError
from mnemoscope._store.spec import Spec
from mnemoscope.connectors import child_process
from mnemoscope.connectors.child_process import AdapterDied, AdapterLate
from mnemoscope.connectors.stdio import AdapterError, Stdio
from mnemoscope.datasets.locomo import Locomo
from mnemoscope.runner.run import Settings, run
from mnemoscope.runner.scheduler import Limits
from mnemoscope.systems.loader import Driver, plan
from mnemoscope.types import Hit, Memory, Query, Question, Receipt, Selector, Trial

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "examples" / "adapters"
PYTHON_EXAMPLE = f"stdio:{sys.executable} {EXAMPLES / 'python_adapter.py'}"
JAVASCRIPT_EXAMPLE = f"stdio:node {EXAMPLES / 'javascript_adapter.mjs'}"
MEMORIES = [Memory(f"m{number}", f"text {number}") for number in range(5)]
TROUBLE = Query("here is trouble")
IDS = ["m0", "m1", "m2", "m3", "m4"]


@pytest.fixture
def python() -> str:
    return PYTHON_EXAMPLE


@pytest.fixture
def javascript() -> str:
    if shutil.which("node") is None:
        missing("no node on the PATH")
    return JAVASCRIPT_EXAMPLE


@pytest.fixture
def opened() -> Iterator[Callable[..., Stdio]]:
    """Open the connector to raw_adapter.py, and store these memories."""
    systems: list[Stdio] = []

    def open_system(trouble: str, place: str = "") -> Stdio:
        # What it leaves in the place is outside of its scratch folder.
        system = Stdio(raw(trouble, place), timeout=30.0, live=bool(place))
        systems.append(system)
        system.reset("scope")
        system.remember(MEMORIES)
        return system

    yield open_system
    for system in systems:
        system.close()


Opened = Callable[..., Stdio]


def raw(trouble: str, place: object = "") -> str:
    return f"{sys.executable} {HERE / 'raw_adapter.py'} {trouble} {place}"


def driver(spec: str) -> Driver:
    made = Driver(plan(Spec.parse(spec)).build)
    made.begin("scope")
    return made


# In a run


@pytest.fixture(scope="module")
def locomo(write_locomo: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("data") / "locomo10.json"
    return write_locomo(place, conversations=3, sessions=6, questions=5)


def trials(data: Path, out: Path, *systems: str, recall: float = 120.0) -> list[list[Trial]]:
    plans = [plan(Spec.parse(system)) for system in systems]
    settings = Settings(depth=10, workers=2, limits=Limits(recall))
    return [list(one.trials()) for one in run(Locomo(data), plans, out, settings)]


@pytest.mark.parametrize("language", ["python", "javascript"])
def test_an_example_ranks_as_the_same_system_in_process(
    language: str,
    locomo: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    example = request.getfixturevalue(language)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    inside, outside = trials(locomo, tmp_path, "python_adapter:SharedWords", example)
    assert len(inside) == 15
    assert {trial.status for trial in inside} == {"answered"}
    assert outside == inside


def test_a_built_in_system_ranks_alike_on_both_sides_of_the_connector(
    locomo: Path, tmp_path: Path
) -> None:
    served = f"{sys.executable} -m mnemoscope.connectors.serve_stdio"
    inside, outside = trials(
        locomo,
        tmp_path,
        "fts5,variant=product",
        f"stdio:{served} mnemoscope.systems.builtin.fts5:Fts5 variant=product",
    )
    assert outside == inside


def with_trouble(locomo: Path, tmp_path: Path) -> Path:
    """One question of the first conversation asks for a failure."""
    asked = locomo.read_text().replace("conv-0/q2 What", "conv-0/q2 trouble What")
    place = tmp_path / "locomo10.json"
    place.write_text(asked)
    return place


def test_an_exit_costs_one_question_and_a_new_child_gets_the_others(
    locomo: Path, tmp_path: Path
) -> None:
    [asked] = trials(with_trouble(locomo, tmp_path), tmp_path / "out", f"stdio:{raw('exit')}")
    dead = asked.pop(2)
    assert (dead.question, dead.status) == ("conv-0/q2", "error")
    assert dead.error == (
        "AdapterDied: recall: python raw_adapter.py exit ended with exit code 7; "
        "its last lines on stderr: the index is | not what it was"
    )
    assert {trial.status for trial in asked} == {"answered"}
    assert not any(trial.unknown for trial in asked)


def test_a_hanging_child_is_ended_with_its_worker(locomo: Path, tmp_path: Path) -> None:
    place = tmp_path / "pids"
    place.mkdir()
    hanging = f"stdio:{raw('hang', place)},live=on"
    [asked] = trials(with_trouble(locomo, tmp_path), tmp_path / "out", hanging, recall=2.0)
    assert [trial.status for trial in asked].count("timeout") == 1
    assert [trial.status for trial in asked].count("answered") == 14
    assert eventually(lambda: all_gone(place))


# Methods and identity


def test_only_methods_that_hello_lists_exist(opened: Opened) -> None:
    system = opened("none")
    has = {verb for verb in (*dir(Driver), "ready", "retrieve", "stats") if hasattr(system, verb)}
    assert has >= {"remember", "recall", "answer", "stats"}
    assert not has & {"forget", "ready", "fork", "dance", "retrieve"}


def test_the_examples_forget_and_count(javascript: str) -> None:
    for spec in (PYTHON_EXAMPLE, javascript):
        made = driver(spec)
        assert made.remember([*MEMORIES, Memory("silent", "…")]) == Receipt(
            rejected={"silent": "no words in it"}
        )
        made.forget(Selector(tuple(MEMORIES[:4])))
        assert made.recall(Question("q", "text"), 5) == [Hit("m4", 1.0)]
        assert made.counted().counters == {"memories_held": 1}
        made.close()


def test_the_identity_covers_the_command_its_files_and_hello(tmp_path: Path) -> None:
    script = tmp_path / "adapter.py"
    settings = tmp_path / "settings.toml"
    script.write_text((HERE / "raw_adapter.py").read_text())
    settings.write_text("a = 1")
    spec = Spec.parse(f"stdio:{sys.executable} {script} none . --settings={settings}")
    before = described(spec).identity
    assert before["command"][1:] == [
        str(script),
        "none",
        ".",
        f"--settings={settings}",
    ]
    assert set(before["files_sha256"]) == {sys.executable, str(script), str(settings)}
    assert before["hello"]["identity"] == {"trouble": "none"}
    settings.write_text("a = 2")
    changed = described(spec).identity["files_sha256"]
    assert {name for name in changed if changed[name] != before["files_sha256"][name]} == {
        str(settings)
    }


# Messages and other output


def test_other_lines_on_stdout_go_to_the_log(
    opened: Opened, capfd: pytest.CaptureFixture[str]
) -> None:
    assert opened("chatter").recall(TROUBLE, 5) == IDS
    logged = capfd.readouterr()
    assert logged.out == ""
    for line in ("loading…", "42", '{"loss": 0.5}', '"method": "note"', "50%"):
        assert line in logged.err


def test_five_megabytes_are_sent_and_received(opened: Opened, javascript: str) -> None:
    big = "é\u2028🙂" * 600_000
    assert opened("none").answer(Query(big)) == big
    for spec in (PYTHON_EXAMPLE, javascript):
        made = driver(spec)
        made.remember(
            [Memory(f"m{number}", f"{number} " + "word " * 500) for number in range(2000)]
        )
        assert made.recall(Question("q", "7 " + big), 1) == [Hit("m7", 1.0)]
        made.close()


def test_a_child_that_writes_before_it_reads_does_not_block() -> None:
    system = Stdio(raw("writes-first"))
    system.reset("scope")
    system.remember([Memory("m", "x" * 5_000_000)])
    assert system.recall(Query("?"), 1) == ["m"]
    system.close()


def test_any_text_is_transmitted_unchanged(opened: Opened) -> None:
    for text in ("", "\0", "\n\r\u2028", "🙂 é ∑", '"}\\', "half \ud800"):
        assert opened("none").answer(Query(text)) == text


def test_nan_and_infinity_are_read() -> None:
    made = driver(f"stdio:{raw('nan')}")
    made.remember(MEMORIES)
    nan, infinite = made.recall(Question("q", TROUBLE.text), 2)
    assert nan.score != nan.score
    assert infinite == Hit("m1", float("inf"))
    made.close()


# Failures

OUT_OF_STEP = {
    "wrong-id": r"recall: a reply to call 5; expected 4",
    "true-id": r"recall: a reply to call True; expected 4",
    "no-id": r"recall: a reply to call None; expected 4",
    "nothing": r"recall: a reply without result and without error",
    "broken": r"a reply is not valid JSON: .*\"result\": \[\}",
    "deep": r"a reply is not valid JSON: ",
    "endless": r"recall: python raw_adapter.py endless wrote a line of more than 64 MiB",
    "babble": r"more than 1000 lines on stdout are not replies; .* The last one: la la",
}


@pytest.mark.parametrize("trouble", OUT_OF_STEP)
def test_a_reply_to_another_call_is_an_error_and_ends_the_child(
    trouble: str, opened: Opened
) -> None:
    system = opened(trouble)
    with pytest.raises(BadReply, match=OUT_OF_STEP[trouble]):
        system.recall(TROUBLE, 5)
    with pytest.raises(AdapterDied, match="it ended in an earlier call"):
        system.recall(Query("fine"), 5)
    system.reset("scope")
    assert system.recall(Query("fine"), 5) == []


def test_a_second_reply_is_not_used_for_the_next_call(opened: Opened) -> None:
    system = opened("twice")
    assert system.recall(TROUBLE, 5) == IDS
    with pytest.raises(BadReply, match="a reply to call 4; expected 5"):
        system.recall(Query("fine"), 5)


@pytest.mark.parametrize("trouble", ["object", "words"])
def test_hits_of_another_shape_are_the_questions_error_alone(trouble: str) -> None:
    made = driver(f"stdio:{raw(trouble)}")
    made.remember(MEMORIES)
    with pytest.raises(BadReply, match="expected a list of hits"):
        made.recall(Question("q", TROUBLE.text), 5)
    assert [hit.id for hit in made.recall(Question("q", "fine"), 5)] == IDS
    made.close()


def test_a_receipt_of_another_shape_is_an_error(opened: Opened) -> None:
    with pytest.raises(BadReply, match="remember returned list"):
        opened("odd-receipt")


@pytest.mark.parametrize("trouble", ["refuse", "refuse-strangely"])
def test_an_error_reply_is_raised_and_the_child_goes_on(trouble: str, opened: Opened) -> None:
    system = opened(trouble)
    with pytest.raises(AdapterError, match=r"^recall: no idea$"):
        system.recall(TROUBLE, 5)
    assert system.recall(Query("fine"), 5) == IDS


DEATHS = {
    "exit": r"exit code 7; its last lines on stderr: the index is \| not what it was",
    "kill": r"died of SIGKILL",
    "half-and-exit": r"exit code 0 in the middle of the line '\{\"jsonrpc\": \"2.0\", \"id\"'",
    "stdout": r"closed its stdout",
}


@pytest.mark.parametrize("trouble", DEATHS)
def test_an_exit_is_raised_with_its_cause_and_only_a_reset_starts_a_new_child(
    trouble: str, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    if trouble == "stdout":  # this one does not exit
        monkeypatch.setattr(child_process, "_EXIT_SECONDS", 0.2)
    system = opened(trouble)
    for _ in range(2):
        with pytest.raises(AdapterDied, match=DEATHS[trouble]):
            system.recall(TROUBLE, 5)
    system.reset("scope")
    system.remember(MEMORIES[:1])
    assert system.recall(Query("fine"), 5) == ["m0"]


@pytest.mark.parametrize("trouble", ["hang", "half-and-hang"])
def test_a_deadline_ends_the_child_and_its_own_children(
    trouble: str, opened: Opened, tmp_path: Path
) -> None:
    system = opened(trouble, str(tmp_path))
    system._timeout = 0.5  # the start of a process may take longer
    with pytest.raises(AdapterLate, match=r"recall: .* gave no reply within 0.5 s"):
        system.recall(TROUBLE, 5)
    assert eventually(lambda: all_gone(tmp_path))


def test_a_closed_or_dropped_system_leaves_nothing_running(opened: Opened, tmp_path: Path) -> None:
    opened("none", str(tmp_path)).close()
    assert all_gone(tmp_path)
    let_go = Stdio(raw("none", tmp_path), live=True)
    assert hasattr(let_go, "recall")
    assert not all_gone(tmp_path)
    del let_go
    gc.collect()
    assert all_gone(tmp_path)


@pytest.mark.parametrize(("trouble", "asked"), [("closes", True), ("none", False)])
def test_a_healthy_adapter_gets_close_if_its_hello_lists_it(
    trouble: str, asked: bool, opened: Opened, tmp_path: Path
) -> None:
    opened(trouble, str(tmp_path)).close()
    assert (tmp_path / "closed").exists() == asked


def test_an_adapter_that_failed_does_not_get_close(opened: Opened, tmp_path: Path) -> None:
    system = opened("closes", str(tmp_path))
    with pytest.raises(BadReply):
        system.recall(TROUBLE, 5)
    system.close()
    assert not (tmp_path / "closed").exists()


def test_a_forked_process_neither_uses_nor_ends_the_child_of_its_parent(opened: Opened) -> None:
    system = opened("none")
    forked = os.fork()
    if forked == 0:
        try:
            system.recall(Query("mine?"), 5)
        except AdapterDied:
            system.reset("scope")
            fresh = system.recall(Query("mine"), 5) == []
            system.close()
            os._exit(0 if fresh else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
    assert system.recall(Query("mine"), 5) == IDS


# Invalid specs


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("stdio", "the command is missing"),
        ("stdio:", "the command is missing"),
        ("stdio:'half", "cannot be read: No closing quotation"),
        ("stdio:no-such-program x", "the program 'no-such-program' is not on the PATH"),
        ("stdio:cat,speed=1", "has no option 'speed'"),
        ("stdio:cat,timeout=0", "seconds above 0"),
        (f"stdio:{raw('dead')}", r"AdapterDied: hello: .* exit code 1; .*: no model here"),
        (f"stdio:{raw('no-hello')}", r"hello cannot be read: .*; expected \{\"name\""),
        ("stdio:cat,start=0.2", r"AdapterLate: hello: cat gave no reply within 0.2 s"),
    ],
)
def test_invalid_specs_are_refused_with_the_reason(spec: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        described(spec)


def test_a_long_command_still_makes_a_folder_name() -> None:
    one, other = (Spec.parse(f"stdio:python {'long/' * 100}{name}.py").slug for name in "ab")
    assert one != other
    assert len(one) < 200
    assert re.fullmatch(r"[\w.-]+", one)


# serve_stdio, for adapters in Python


def served(target: str, *words: str) -> str:
    """Run by the file's path, without site-packages: it needs only Python."""
    import mnemoscope.connectors.serve_stdio as module

    options = " ".join(words)
    return f"stdio:{sys.executable} -S -E {module.__file__} {target} {options}"


@pytest.fixture
def _beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)


@pytest.mark.usefixtures("_beside")
def test_an_object_is_served_without_mnemoscope_and_may_print(
    capfd: pytest.CaptureFixture[str],
) -> None:
    made = driver(served("served_objects:Talks", "greeting=hi", "louder=true"))
    moment = datetime(2024, 2, 29, 12, tzinfo=UTC)
    made.remember([Memory("m", "text", moment, speaker="Ann")])
    asked = Question("q", "?", moment.replace(day=1))
    assert made.recall(asked, 5) == [Hit("m", None, "2024-02-29 2024-02-01 Ann HI")]
    with pytest.raises(AdapterError, match=r"SystemExit: nothing about \?"):
        made.answer(asked)
    made.begin("another")
    assert made.recall(asked, 5) == []
    made.close()
    logged = capfd.readouterr()
    assert logged.out == ""
    for said in ("imported, without an end of line", "remembering", "from a shell", "SystemExit"):
        assert said in logged.err


@pytest.mark.usefixtures("_beside")
def test_an_async_object_is_served() -> None:
    spec = served("served_objects:Waits")
    hello = described(spec).identity["hello"]
    assert hello["methods"] == ["reset", "remember", "recall", "forget", "close"]
    assert hello["identity"]["model"] == "none"
    assert re.fullmatch("[0-9a-f]{64}", hello["identity"]["source_sha256"])
    made = driver(spec)
    assert made.remember(MEMORIES) == Receipt(merged={"m0": "nothing"})
    made.forget(Selector((MEMORIES[0],)))
    assert [hit.id for hit in made.recall(Question("q", "?"), 2)] == ["m1", "m2"]
    made.close()
