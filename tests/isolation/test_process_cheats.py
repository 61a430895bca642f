"""A system that looks for labels in its process finds none, and systems beside it are unharmed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from tests.log_folder import logs

from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.datasets.locomo import Locomo
from mnemoscope.isolation import own_memory
from mnemoscope.runner import scheduler
from mnemoscope.runner.run import Settings, run
from mnemoscope.runner.scheduler import describe
from mnemoscope.systems.hosted import FrameExchange
from mnemoscope.systems.loader import Plan, plan, plan_here
from mnemoscope.types import Trial

HERE = Path(__file__).parent
CHEATS = ("WalksFrames", "AsksTheCollector", "PatchesTheTrialBuilder")
K, SESSIONS = 3, 12


@pytest.fixture(scope="module")
def locomo(write_locomo: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Locomo:
    folder = tmp_path_factory.mktemp("locomo")
    return Locomo(write_locomo(folder / "locomo.json", conversations=3, sessions=SESSIONS))


@pytest.fixture(autouse=True)
def _cheats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))


def put(locomo: Locomo, out: Path, *plans: Plan) -> list[RunDirectory]:
    return run(locomo, plans, out, Settings(depth=10, workers=1))


def trials(run: RunDirectory) -> list[Trial]:
    return list(run.trials())


def recall(trials: Sequence[Trial]) -> float:
    return fmean(
        len({*trial.ranking[:K]} & {*trial.evidence}) / len({*trial.evidence}) for trial in trials
    )


def hosted(name: str) -> Plan:
    return plan(Spec(f"cheating_systems:{name}"))


@pytest.fixture(scope="module")
def honest(locomo: Locomo, tmp_path_factory: pytest.TempPathFactory) -> list[RunDirectory]:
    """The same fallback without looking, and bm25 without a cheat beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))
        out = tmp_path_factory.mktemp("honest")
        return put(locomo, out, hosted("Guesses"), plan(Spec("bm25")))


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_cheat_finds_labels_in_the_worker(cheat: str, locomo: Locomo, tmp_path: Path) -> None:
    """What the other tests protect from: without a host each of these is perfect."""
    planned = plan_here(Spec(f"cheating_systems:{cheat}"))

    [done] = put(locomo, tmp_path, planned)

    assert planned.hosting == "worker"
    assert recall(trials(done)) > 0.99


def test_cheats_in_hosts_rank_as_if_they_did_not_look(
    locomo: Locomo, tmp_path: Path, honest: list[RunDirectory]
) -> None:
    plans = [hosted(cheat) for cheat in (*CHEATS, "LooksAround", "StaysBehind")]

    *cheated, beside = put(locomo, tmp_path, *plans, plan(Spec("bm25")))

    guessed, bm25 = ((run.path / "trials.jsonl").read_bytes() for run in honest)
    assert abs(recall(trials(honest[0])) - K / SESSIONS) < 0.15  # five standard errors
    for run_of_cheat in cheated:
        assert (run_of_cheat.path / "trials.jsonl").read_bytes() == guessed
    assert (beside.path / "trials.jsonl").read_bytes() == bm25


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_a_host_has_neither_our_variables_nor_keys_nor_open_files(
    locomo: Locomo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHEAT_LOG", str(logs(tmp_path) / "log"))
    monkeypatch.setenv("MNEMOSCOPE_DATA", "/data/with/labels")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-judge")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-the-system")
    monkeypatch.setenv("MNEMOSCOPE_PASS", "ANTHROPIC_API_KEY, OTHER")

    put(locomo, tmp_path / "out", hosted("LooksAround"))

    [seen] = lines(logs(tmp_path) / "log")
    ours = {name for name in seen["environment"] if name.startswith("MNEMOSCOPE_")}
    assert ours == {"MNEMOSCOPE_CACHE", "MNEMOSCOPE_DATA", "MNEMOSCOPE_RUNS"}
    for decoys in ("MNEMOSCOPE_DATA", "MNEMOSCOPE_RUNS"):
        assert "mnemoscope-data-" in seen["environment"][decoys]
    assert seen["environment"]["MNEMOSCOPE_CACHE"] != os.environ["MNEMOSCOPE_CACHE"]
    assert "OPENAI_API_KEY" not in seen["environment"]
    assert seen["environment"]["ANTHROPIC_API_KEY"] == "sk-of-the-system"
    assert seen["folder"] == str(Path.cwd())
    scratch = Path(seen["environment"]["TMPDIR"]).parent
    assert not scratch.exists()  # removed with its host
    files = [file for file in seen["files"].values() if not file.startswith("pipe:")]
    assert {file for file in files if not file.startswith("/proc/")} <= {"/dev/null"}


_ADAPTER = """
import json, os
from mnemoscope.connectors.serve_stdio import serve

class Looks:
    def __init__(self):
        with open(os.environ["CHEAT_LOG"], "w") as log:
            json.dump(dict(os.environ), log)

    def reset(self, scope): ...
    def remember(self, memories): ...
    def recall(self, query, k): return []

serve(Looks())
"""


def test_a_program_behind_stdio_gets_the_same_environment_as_a_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHEAT_LOG", str(logs(tmp_path) / "log"))
    monkeypatch.setenv("MNEMOSCOPE_DATA", "/data/with/labels")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-judge")
    (tmp_path / "adapter.py").write_text(_ADAPTER)

    command = f"stdio:{sys.executable} {tmp_path / 'adapter.py'}"
    describe([plan(Spec(command, {"live": True}))])  # its log is outside of its scratch folder

    environment = json.loads((logs(tmp_path) / "log").read_text())
    assert {name for name in environment if name.startswith("MNEMOSCOPE_")} == {"MNEMOSCOPE_CACHE"}
    assert "OPENAI_API_KEY" not in environment
    assert not Path(environment["TMPDIR"]).exists()


def test_nothing_of_a_system_stays_in_the_parent(
    locomo: Locomo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHEAT_LOG", str(logs(tmp_path) / "log"))
    monkeypatch.delitem(sys.modules, "cheating_systems", raising=False)  # another test's
    before = list(sys.meta_path)

    put(locomo, tmp_path / "out", hosted("StaysBehind"), plan(Spec("bm25")))

    assert sys.meta_path == before
    assert "cheating_systems" not in sys.modules
    assert os.getpid() not in {line["pid"] for line in lines(logs(tmp_path) / "log")}
    # A host ends without the functions that its system left for the end.
    assert {line["what"] for line in lines(logs(tmp_path) / "log")} <= {"built", "import seen"}


def test_no_message_to_a_host_names_a_label_or_a_later_question(
    locomo: Locomo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = tmp_path / "sent"
    ask = FrameExchange.ask

    def noted(exchange: Any, number: int, message: bytes, *rest: Any) -> Any:
        with sent.open("a") as file:
            file.write(message.decode("latin-1").replace("\n", " ") + "\n")
        return ask(exchange, number, message, *rest)

    monkeypatch.setattr(FrameExchange, "ask", noted)
    put(locomo, tmp_path / "out", hosted("Guesses"))

    messages = sent.read_text().splitlines()
    recalls = [message for message in messages if "\xa6recall" in message]
    questions = [q for scenario in locomo.scenarios() for q in scenario.questions]
    assert len(recalls) == len(questions) + 1  # and a warm-up
    for question in questions:
        # The texts of these questions begin with their ids.
        [message] = [message for message in recalls if question.text in message]
        said = message.replace(question.text, "")
        for label in (question.id, *question.evidence, "evidence", "category", "reference"):
            assert label not in said
    asked = [message for message in messages if "remember" in message]
    assert not any(question.text in message for message in asked for question in questions)


def test_the_memory_of_parent_and_workers_is_unreadable_during_a_run(
    locomo: Locomo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sys.platform != "linux":
        pytest.skip("PR_SET_DUMPABLE exists on Linux only")
    seen: list[int] = []
    original = scheduler.Scheduler.describe

    def noted(working: scheduler.Scheduler) -> list[Plan]:
        seen.append(own_memory._prctl(own_memory._PR_GET_DUMPABLE))
        return original(working)

    monkeypatch.setattr(scheduler.Scheduler, "describe", noted)

    put(locomo, tmp_path, plan(Spec("random")))

    assert seen == [0]
    assert own_memory._prctl(own_memory._PR_GET_DUMPABLE) == 1
