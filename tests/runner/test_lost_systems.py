"""After the loss of a system its scenario is ingested again; recorded questions stay."""

from __future__ import annotations

import functools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.log_folder import logs

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.datasets.base import Dataset
from mnemoscope.datasets.locomo import Locomo
from mnemoscope.datasets.personas import Personas
from mnemoscope.reports.run_report import write_report
from mnemoscope.reports.run_tables import notes
from mnemoscope.reports.run_view import RunView
from mnemoscope.runner.lost_questions import cause_of_death
from mnemoscope.runner.pipeline import Pipeline, plan_judge, plan_reader
from mnemoscope.runner.run import Settings, run
from mnemoscope.runner.scheduler import Limits
from mnemoscope.systems.loader import plan
from mnemoscope.types import Answer, Ingestion, Trial, Verdict

if TYPE_CHECKING:
    from tests.conftest import StartCommand

HERE = Path(__file__).parent
STDIO = f"stdio:{sys.executable} -S {HERE / 'mortal_memory.py'},live=on"
IN_PROCESS = "mortal_memory:Mortal"
REMOTE = "mortal_memory:Remote"
CONVERSATIONS, QUESTIONS = 3, 5
RANGES = "3d,6d,full"
# The order in which the questions of conv-1 are asked; it follows from their texts.
ORDER = [f"conv-1/q{number}" for number in (2, 0, 4, 1, 3)]
SOME, LAST = ORDER[2], ORDER[-1]
OTHERS = CONVERSATIONS * QUESTIONS - 1


def fate(verb: str, match: str = "", times: int = 1, how: str = "dies") -> dict[str, Any]:
    return {"verb": verb, "match": match, "times": times, "how": how}


ALWAYS = 1000


@pytest.fixture(scope="module")
def locomo(write_locomo: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    place = tmp_path_factory.mktemp("data") / "locomo10.json"
    file = write_locomo(place, conversations=CONVERSATIONS, sessions=7, questions=QUESTIONS)
    return Locomo(file)


@pytest.fixture(scope="module")
def life(write_persona: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Personas(write_persona(tmp_path_factory.mktemp("personas")), ranges=RANGES)


class Calls:
    """The calls to the systems, over all their processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def lines(self) -> list[str]:
        return self.path.read_text().splitlines()

    def begun(self, verb: str) -> Counter[str]:
        """How often each call was begun; the warm-up is not counted."""
        words = [line.split() for line in self.lines()]
        own = Counter(word[1] for word in words if word[0] == verb)
        del own["warm-up"]
        return own

    def recalled_since(self, position: int) -> set[str]:
        words = [line.split() for line in self.lines()[position:]]
        return {word[1] for word in words if word[0] == "recall"}

    def asked_more_than_once(self, verb: str = "recall") -> dict[str, int]:
        return {about: times for about, times in self.begun(verb).items() if times > 1}


class Outcome:
    def __init__(self, run: RunDirectory, calls: Calls, said: str) -> None:
        self.run = run
        self.calls = calls
        self.said = [line for line in said.splitlines() if "the system was lost" in line]
        self.trials = {trial.question: trial for trial in run.trials()}
        self.bytes = run.trials_path.read_bytes()

    @property
    def restarts(self) -> int:
        counters: dict[str, int] = self.run.read_json("timing.json")["counters"]
        return counters.get("restarts", 0)

    def statuses(self, scenario: str = "") -> Counter[str]:
        return Counter(t.status for t in self.trials.values() if t.scenario.startswith(scenario))

    def lines(self, kind: type[Any]) -> list[Any]:
        return [line for line in self.run.journal() if isinstance(line, kind)]


Put = Callable[..., Outcome]


@pytest.fixture(scope="module")
def undisturbed(locomo: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """The conversations put to a system that does not die."""
    place = tmp_path_factory.mktemp("undisturbed")
    calls = Calls(logs(tmp_path_factory.mktemp("calls")) / "log")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))
        patch.setenv("MORTAL_LOG", str(calls.path))
        [done] = run(locomo, [plan(Spec(IN_PROCESS))], place, Settings(depth=5, workers=1))
    return Outcome(done, calls, "")


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Put:
    """Put a dataset to a mortal system with these fates."""
    monkeypatch.syspath_prepend(str(HERE))

    def put(
        dataset: Dataset,
        *fates: dict[str, Any],
        system: str = STDIO,
        limits: Limits = Limits(),
        restarts: int = 2,
        workers: int = 1,
        out: str = "out",
        **pipeline: Any,
    ) -> Outcome:
        calls = Calls(logs(tmp_path) / f"{out}.log")
        monkeypatch.setenv("MORTAL_LOG", str(calls.path))
        monkeypatch.setenv("MORTAL_FATE", json.dumps(fates))
        limits = msgspec.structs.replace(limits, restarts=restarts)
        settings = Settings(depth=5, workers=workers, limits=limits)
        plans = [plan(Spec.parse(system))]
        capfd.readouterr()
        [done] = run(dataset, plans, tmp_path / out, settings, pipeline=Pipeline(**pipeline))
        return Outcome(done, calls, capfd.readouterr().err)

    return put


# Restarts that suffice

DEATHS = {
    "while recalling": [fate("recall", SOME)],
    "between two questions": [fate("recall", SOME, how="dies after")],
    "after the last question": [fate("recall", LAST, how="dies after")],
    "while remembering": [fate("remember", times=2)],
    "after remembering": [fate("ready", how="dies after")],
    "in reset": [fate("reset", "conv-2")],
    "in ready": [fate("ready")],
    "when it is asked for its size": [fate("stats")],
    "twice": [fate("recall", SOME), fate("recall", LAST)],
    "in every scenario": [fate("recall", f"conv-{n}/q1") for n in range(CONVERSATIONS)],
}


AGAIN = "the conversation is ingested again from the start"
IN_FLIGHT = ("while recalling", "between two questions", "twice", "in every scenario")


@pytest.mark.parametrize(
    ("deaths", "parallelism"), [*((name, 1) for name in DEATHS), *((name, 4) for name in IN_FLIGHT)]
)
def test_a_death_leaves_the_journal_of_an_undisturbed_run(
    deaths: str, parallelism: int, locomo: Dataset, put: Put, undisturbed: Outcome
) -> None:
    outcome = put(locomo, *DEATHS[deaths], parallelism=parallelism)

    died_on = {f["match"] for f in DEATHS[deaths] if f["verb"] == "recall" and f["how"] == "dies"}
    number = sum(f["times"] for f in DEATHS[deaths])
    assert outcome.bytes == undisturbed.bytes
    assert outcome.statuses() == {"answered": CONVERSATIONS * QUESTIONS}
    assert outcome.calls.asked_more_than_once() == dict.fromkeys(died_on, 2)
    assert outcome.restarts == len(outcome.said) == number
    assert undisturbed.restarts == len(undisturbed.said) == 0


def test_a_death_is_printed_with_its_cause_and_counted_in_the_reports(
    locomo: Dataset, put: Put
) -> None:
    outcome = put(locomo, *DEATHS["twice"])

    cause = "AdapterDied: recall: python -S mortal_memory.py died of SIGKILL"
    assert outcome.said == [
        f"conv-1: the system was lost ({cause}); {AGAIN}, restart 1 of 2",
        f"conv-1: the system was lost ({cause}); {AGAIN}, restart 2 of 2",
    ]
    told = (
        "2 × the system was lost in the middle of a conversation; the conversation was ingested "
        "again from the start"
    )
    write_report(outcome.run)
    report = (outcome.run.path / "report.md").read_text()
    assert "| restarts | 2 |" in report
    assert f"- {told}" in report
    assert told in notes([RunView.of(outcome.run)])


def test_several_workers_and_scenarios_do_not_share_their_restarts(
    locomo: Dataset, put: Put, undisturbed: Outcome
) -> None:
    outcome = put(locomo, *DEATHS["in every scenario"], restarts=1, workers=2)

    assert outcome.bytes == undisturbed.bytes
    assert outcome.restarts == CONVERSATIONS


def test_a_system_killed_from_outside_at_any_moment_leaves_the_same_journal(
    locomo: Dataset,
    put: Put,
    undisturbed: Outcome,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MORTAL_PACE", "0.02")
    log, over, kills = logs(tmp_path) / "out.log", threading.Event(), 0
    log.touch()
    draw = random.Random(6)

    def kill_now_and_then() -> None:
        nonlocal kills
        seen = 0
        while not over.wait(0.001):
            lines = [line.split() for line in log.read_text().splitlines()]
            pids = [int(words[2]) for words in lines if len(words) == 3 and words[2].isdigit()]
            if len(pids) >= seen + 6:
                seen = len(pids) + draw.randint(0, 3)
                time.sleep(draw.uniform(0, 0.01))
                with suppress(ProcessLookupError):
                    os.kill(pids[-1], signal.SIGKILL)
                    kills += 1

    killer = threading.Thread(target=kill_now_and_then)
    killer.start()
    try:
        outcome = put(locomo, restarts=ALWAYS)
    finally:
        over.set()
        killer.join()

    assert kills >= 3
    assert outcome.bytes == undisturbed.bytes
    again = outcome.calls.asked_more_than_once().values()
    assert sum(again) - len(again) <= kills


@pytest.mark.parametrize("verb", ["reset", "remember", "ready", "recall", "fork", "stats"])
def test_any_call_of_a_system_in_process_can_lose_it(verb: str, life: Dataset, put: Put) -> None:
    system = "mortal_memory:Copied"
    undisturbed = put(life, system=system, out="undisturbed")

    outcome = put(life, fate(verb, how="raises"), system=system, restarts=1)

    assert outcome.bytes == undisturbed.bytes
    assert outcome.restarts == 1


# Checkpoints


@pytest.mark.parametrize("parallelism", [1, 4])
@pytest.mark.parametrize("lifecycle", ["fresh", "incremental"])
def test_a_history_is_ingested_again_up_to_the_checkpoint_of_the_loss(
    lifecycle: str, parallelism: int, life: Dataset, put: Put
) -> None:
    undisturbed = put(life, system=IN_PROCESS, lifecycle=lifecycle, out="undisturbed")

    later = "day-0007" if lifecycle == "incremental" else ""
    deaths = [fate("remember", later), fate("recall", "tester-q013")]
    outcome = put(life, *deaths, lifecycle=lifecycle, parallelism=parallelism)

    assert outcome.restarts == 2
    assert outcome.bytes == undisturbed.bytes
    asked, before = outcome.calls.begun("recall"), undisturbed.calls.begun("recall")
    assert asked - before == {"tester-q013": 1}


def test_a_loss_while_forgetting_restarts_the_scenario(
    tmp_path: Path, write_persona: Callable[..., Path], put: Put
) -> None:
    class Forgetting(Personas):
        def scenarios(self) -> Iterator[Any]:
            for scenario in super().scenarios():
                first, *rest = scenario.checkpoints
                ids = (scenario.memories[0].id,)
                told = (first, *(msgspec.structs.replace(one, forget=ids) for one in rest[:1]))
                yield msgspec.structs.replace(scenario, checkpoints=(*told, *rest[1:]))

    dataset = Forgetting(write_persona(tmp_path / "data"), ranges=RANGES)
    undisturbed = put(dataset, out="undisturbed")

    outcome = put(dataset, fate("forget"))

    assert undisturbed.calls.begun("forget")
    assert outcome.restarts == 1
    assert outcome.bytes == undisturbed.bytes


# Restarts that do not suffice


@pytest.mark.parametrize("parallelism", [1, 4])
@pytest.mark.parametrize("restarts", [0, 2])
def test_a_question_that_kills_each_time_is_an_error_and_the_others_are_answered(
    restarts: int, parallelism: int, locomo: Dataset, put: Put, undisturbed: Outcome
) -> None:
    outcome = put(locomo, fate("recall", SOME, ALWAYS), restarts=restarts, parallelism=parallelism)

    # Of several questions in flight the cause is unknown.
    anonymous = int(restarts == 0 and parallelism > 1)
    assert outcome.calls.asked_more_than_once().get(SOME, 1) == restarts + anonymous + 1
    assert set(outcome.calls.asked_more_than_once()) <= {SOME}
    poison = outcome.trials.pop(SOME)
    assert poison.status == "error"
    assert poison.error == "AdapterDied: recall: python -S mortal_memory.py died of SIGKILL"
    assert outcome.statuses() == {"answered": OTHERS}
    assert outcome.trials == {id: t for id, t in undisturbed.trials.items() if id != SOME}
    # In parallel the others may all have been answered before, so that a restart is not needed.
    left = outcome.said[-1].endswith(f"{SOME} is recorded as error; {AGAIN}")
    assert left or (parallelism > 1 and outcome.said[-1].endswith(f"{SOME} is recorded as error"))
    assert outcome.restarts == restarts + anonymous + left


def test_a_loss_at_the_last_question_needs_no_restart(locomo: Dataset, put: Put) -> None:
    outcome = put(locomo, fate("recall", LAST, ALWAYS), restarts=1)

    assert outcome.calls.begun("reset") == {"conv-0": 1, "conv-1": 2, "conv-2": 1}
    assert outcome.restarts == 1
    assert outcome.said[-1].endswith(f"{LAST} is recorded as error")
    assert outcome.statuses("conv-2") == {"answered": QUESTIONS}


def test_a_run_ends_though_the_system_dies_at_every_question(locomo: Dataset, put: Put) -> None:
    outcome = put(locomo, fate("recall", "conv-1", ALWAYS), restarts=2)

    asked = outcome.calls.begun("recall")
    assert [asked[question] for question in ORDER] == [3, 1, 1, 1, 1]
    assert outcome.statuses("conv-1") == {"error": QUESTIONS}
    assert outcome.statuses("conv-0") == outcome.statuses("conv-2") == {"answered": QUESTIONS}


@pytest.mark.parametrize("verb", ["remember", "reset", "ready", "stats"])
def test_a_system_that_always_dies_during_ingestion_is_not_indexed(
    verb: str, locomo: Dataset, put: Put, locomo_ids: dict[str, str]
) -> None:
    about = {"reset": "conv-1", "remember": locomo_ids["conv-1"]}.get(verb, "")
    outcome = put(locomo, fate(verb, about, ALWAYS))

    assert outcome.calls.begun("reset")["conv-1"] == 3
    assert outcome.statuses("conv-1") == {"not-indexed": QUESTIONS}
    cause = f"AdapterDied: {verb}: python -S mortal_memory.py died of SIGKILL"
    assert {t.error for t in outcome.trials.values() if t.scenario == "conv-1"} == {cause}
    others = {"answered": QUESTIONS} if about else {"not-indexed": QUESTIONS}
    assert outcome.statuses("conv-0") == outcome.statuses("conv-2") == others
    assert [bool(line.error) for line in outcome.lines(Ingestion)] == [not about, True, not about]


@pytest.fixture
def locomo_ids(locomo: Dataset) -> dict[str, str]:
    return {scenario.id: scenario.memories[0].id for scenario in locomo.scenarios()}


def test_a_negative_number_of_restarts_is_refused(locomo: Dataset, put: Put) -> None:
    with pytest.raises(UsageError, match="-1 restarts: must be 0 or more"):
        put(locomo, restarts=-1)


# Late, or out of step


@pytest.mark.parametrize(("parallelism", "late"), [(1, (0, 1)), (4, (1,))])
def test_a_late_child_fails_its_question_at_once_and_the_scenario_restarts(
    parallelism: int, late: tuple[int, ...], locomo: Dataset, put: Put
) -> None:
    hangs = [fate("recall", f"conv-1/q{number}", how="hangs") for number in late]
    outcome = put(
        locomo, *hangs, system=f"{STDIO},timeout=1.5", restarts=0, parallelism=parallelism
    )

    assert not outcome.calls.asked_more_than_once()
    assert outcome.statuses() == {"answered": OTHERS + 1 - len(late), "timeout": len(late)}
    for number in late:
        trial = outcome.trials[f"conv-1/q{number}"]
        cause = "AdapterLate: recall: python -S mortal_memory.py gave no reply within 1.5 s"
        assert trial.error.startswith(cause)
    # In parallel the last one asked may be late, so that a restart is not needed.
    assert outcome.restarts in ((2,) if parallelism == 1 else (0, 1))


@pytest.mark.parametrize(
    ("verb", "limits", "status"),
    [("recall", Limits(recall=1.5), "timeout"), ("ready", Limits(remember=1.5), "not-indexed")],
)
def test_the_limits_of_a_run_are_those_of_a_child_s_calls(
    verb: str, limits: Limits, status: str, locomo: Dataset, put: Put
) -> None:
    match = SOME if verb == "recall" else ""
    outcome = put(locomo, fate(verb, match, how="hangs"), limits=limits, restarts=0)

    failed = [trial for trial in outcome.trials.values() if trial.status == status]
    assert outcome.statuses()[status] == (1 if verb == "recall" else QUESTIONS)
    late = f"AdapterLate: {verb}: python -S mortal_memory.py gave no reply within 1.5 s"
    assert all(trial.error.startswith(late) for trial in failed)


def test_a_reply_to_another_call_fails_its_question_at_once(locomo: Dataset, put: Put) -> None:
    outcome = put(locomo, fate("recall", SOME, ALWAYS, how="babbles"), restarts=0)

    assert not outcome.calls.asked_more_than_once()
    assert outcome.statuses() == {"answered": OTHERS, "error": 1}
    assert "a reply to call" in outcome.trials[SOME].error
    assert outcome.restarts == 1


def test_a_connector_that_is_late_but_alive_is_not_restarted(locomo: Dataset, put: Put) -> None:
    late = fate("recall", SOME, ALWAYS, how="is late")
    outcome = put(locomo, late, system=IN_PROCESS)

    assert outcome.trials[SOME].status == "timeout"
    assert outcome.trials[SOME].error == "TimeoutError: took too long"
    assert outcome.statuses() == {"answered": OTHERS, "timeout": 1}
    assert outcome.calls.begun("reset") == {"conv-0": 1, "conv-1": 1, "conv-2": 1}
    assert outcome.restarts == 0


def test_a_loss_in_the_warm_up_fails_no_question(
    locomo: Dataset, put: Put, undisturbed: Outcome
) -> None:
    outcome = put(locomo, fate("recall", "warm-up", ALWAYS), restarts=0)

    assert outcome.bytes == undisturbed.bytes
    assert not outcome.calls.asked_more_than_once()


# Systems that answer by themselves


@pytest.mark.parametrize(
    ("how", "status", "times"), [("dies", "error", 2), ("hangs", "timeout", 1)]
)
def test_a_missing_answer_has_its_status(
    how: str, status: str, times: int, locomo: Dataset, put: Put
) -> None:
    undisturbed = put(locomo, system=IN_PROCESS, system_answers=True, out="undisturbed")

    poison = fate("answer", SOME, ALWAYS, how)
    system = f"{STDIO},timeout=1.5"
    outcome = put(locomo, poison, system=system, restarts=1, system_answers=True)

    answers, others = outcome.lines(Answer), undisturbed.lines(Answer)
    failed = [answer for answer in answers if answer.status in ("error", "timeout")]
    assert [(answer.question, answer.status) for answer in failed] == [(SOME, status)]
    assert [a for a in answers if a.question != SOME] == [a for a in others if a.question != SOME]
    assert outcome.calls.begun("answer")[SOME] == times
    assert len(outcome.calls.begun("answer")) == CONVERSATIONS * QUESTIONS


def test_an_answer_lost_once_is_asked_for_once_more(locomo: Dataset, put: Put) -> None:
    undisturbed = put(locomo, system_answers=True, out="undisturbed")

    outcome = put(locomo, fate("answer", SOME), system_answers=True, parallelism=4)

    assert outcome.bytes == undisturbed.bytes
    assert outcome.calls.asked_more_than_once("answer") == {SOME: 2}


def test_recall_bench_s_marker_is_judged_where_the_system_was_lost(life: Dataset, put: Put) -> None:
    outcome = put(
        life,
        fate("recall", "tester-q003", ALWAYS),
        restarts=0,
        reader=plan_reader(Spec("extractive")),
        judge=plan_judge(Spec("ledger")),
        compat="recall-bench",
    )

    lost = [line for line in outcome.lines(Answer) if line.question == "tester-q003"]
    assert [line.text for line in lost] == ["[TIMEOUT]"] * 3
    assert len(outcome.lines(Verdict)) == len(outcome.lines(Answer)) == len(outcome.lines(Trial))
    assert set(outcome.calls.begun("recall")) == {line.question for line in outcome.lines(Trial)}


# The run itself is killed, too


def test_a_run_killed_while_its_system_dies_asks_nothing_again_that_is_recorded(
    locomo: Dataset, put: Put, undisturbed: Outcome, start_command: StartCommand, tmp_path: Path
) -> None:
    data, out, calls = (
        locomo.files()[0].path,
        tmp_path / "killed",
        Calls(logs(tmp_path) / "killed.log"),
    )
    command = [
        *("run", "locomo", "--data", data, "--out", out, "--system", STDIO, "--depth", 5),
        *("--no-arms", "--workers", 2, "--restarts", 3),
    ]
    deaths = [fate("recall", f"conv-{number}/q{number + 1}", 2) for number in range(CONVERSATIONS)]
    # The last question, until the last start: none can be done before it is killed.
    fates = [*deaths, fate("recall", "conv-2/q1", ALWAYS, how="waits")]
    start = functools.partial(
        start_command, command, MORTAL_LOG=calls.path, MORTAL_FATE=json.dumps(fates)
    )
    kills: list[tuple[int, set[str]]] = []
    for wanted in (4, 11):
        process = start()
        while calls.begun("recall").total() < wanted and not process.gone:
            time.sleep(0.002)
        assert process.kill(with_workers=bool(len(kills) % 2)) == -signal.SIGKILL
        # First what is recorded: workers that outlive their parent for a moment go on asking.
        recorded = _recorded(out)
        kills.append((len(calls.lines()), recorded))
    Path(f"{calls.path}.go").touch()
    last = start()

    assert last.wait() == 0, last.output
    for position, recorded in kills:
        assert not recorded & calls.recalled_since(position)
    [done] = [RunDirectory(place.parent) for place in out.glob("*/manifest.json")]
    assert done.manifest().identity["limits"]["restarts"] == 3
    assert done.trials_path.read_bytes() == undisturbed.bytes
    asked = calls.begun("recall")
    assert len(asked) == CONVERSATIONS * QUESTIONS
    assert asked.total() - len(asked) <= 2 * CONVERSATIONS + 2 * len(kills)


def _recorded(out: Path) -> set[str]:
    files = [*out.glob("*/trials.jsonl"), *out.glob("*/units/*.trials.jsonl")]
    lines = [line for file in files for line in file.read_bytes().splitlines(keepends=True)]
    whole = (json.loads(line) for line in lines if line.endswith(b"\n"))
    return {line["question"] for line in whole if "question" in line}


def test_every_cause_of_a_loss_is_printed() -> None:
    assert cause_of_death(-9) == "the process died of SIGKILL"
    assert cause_of_death(-40) == "the process died of signal 40"
    assert cause_of_death(3) == "the process exited with code 3"


# A TCP server


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Starts a TCP server, and starts it again when it dies, unless it stays down."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("MORTAL_PORT", str(port))
    servers: list[subprocess.Popen[bytes]] = []

    def start(log: Path, *fates: dict[str, Any]) -> None:
        told = {"MORTAL_LOG": str(log), "MORTAL_FATE": json.dumps(fates)}
        command = [sys.executable, "-S", str(HERE / "mortal_memory.py"), str(port)]
        servers.append(
            subprocess.Popen(command, env={**os.environ, **told}, start_new_session=True)
        )
        until = time.monotonic() + 30
        while not _listens(port) and time.monotonic() < until:
            time.sleep(0.01)

    yield start
    for each in servers:
        with suppress(ProcessLookupError):
            os.killpg(each.pid, signal.SIGKILL)
        each.wait()


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_a_run_continues_when_a_server_comes_back(
    locomo: Dataset, put: Put, undisturbed: Outcome, server: Callable[..., None], tmp_path: Path
) -> None:
    log = logs(tmp_path) / "out.log"
    log.touch()

    server(log, fate("recall", SOME), fate("remember", times=1), fate("recall", "conv-2/q3"))
    outcome = put(locomo, system=REMOTE)

    assert outcome.bytes == undisturbed.bytes
    assert outcome.restarts == 3
    assert outcome.calls.asked_more_than_once() == {SOME: 2, "conv-2/q3": 2}


def test_a_server_that_stays_down_stops_the_run_and_the_same_call_continues_it(
    locomo: Dataset,
    put: Put,
    undisturbed: Outcome,
    server: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, down = logs(tmp_path) / "out.log", logs(tmp_path) / "out.log.stays-down"
    log.touch()
    down.touch()
    server(log, fate("recall", SOME))
    with pytest.raises(MnemoscopeError, match="the server is down: start it"):
        monkeypatch.setenv("MORTAL_PATIENCE", "1")
        put(locomo, system=REMOTE)
    [stopped] = [RunDirectory(place.parent) for place in (tmp_path / "out").glob("*/manifest.json")]
    recorded, position = _recorded(tmp_path / "out"), len(log.read_text().splitlines())

    down.unlink()
    server(log)
    monkeypatch.setenv("MORTAL_PATIENCE", "20")
    state = stopped.manifest().state
    outcome = put(locomo, system=REMOTE)

    assert state == "interrupted"
    assert len(recorded) == QUESTIONS + 2
    assert outcome.bytes == undisturbed.bytes
    assert not recorded & outcome.calls.recalled_since(position)
    assert outcome.calls.asked_more_than_once() == {SOME: 2}


def test_a_run_without_a_loss_restarts_nothing(locomo: Dataset, put: Put) -> None:
    outcome = put(locomo, workers=2)

    assert not outcome.said
    assert "restarts" not in outcome.run.read_json("timing.json")["counters"]
    assert [type(line) for line in outcome.run.journal()].count(Trial) == CONVERSATIONS * QUESTIONS
