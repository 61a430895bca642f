"""Questions answered and judged by a model behind a real socket: faults, kills, money.

The model is scripted and counts what it was asked; everything else is the real thing.
"""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.response_cache import kept_replies
from tests.scripted_server import (
    Request,
    ScriptedServer,
    dropped,
    empty,
    failing,
    rate_limited,
    says,
    slow,
    torn,
    truncated,
)
from tests.waiting import eventually

from mnemoscope._store.run_directory import RECORDED, RunDirectory
from mnemoscope.cli.app import invoke
from mnemoscope.types import Answer, Verdict

if TYPE_CHECKING:
    from tests.conftest import StartCommand

CONVERSATIONS, QUESTIONS = 3, 20
ASKED = CONVERSATIONS * QUESTIONS
ADVERSARIAL = ASKED // 5
QUESTION = re.compile(r"conv-\d+/q\d+")
TOFU_QUESTION = re.compile(r"What about author (\d+), point (\d+)\?")


def is_judging(request: Request) -> bool:
    return "CORRECT" in request.system or "CORRECT" in request.text


def scripted(request: Request) -> str:
    """Answers with the first thing asked for, which is the reference; judges by its script."""
    if is_judging(request):
        return "CORRECT" if "fog" not in request.text else "WRONG"
    found = re.search(r"What of the (\w+)", request.text)
    return found[1] if found else "fog"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(tmp_path / "cache"))
    with ScriptedServer(scripted) as running:
        yield running


@pytest.fixture(scope="module")
def locomo(write_locomo: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("data") / "locomo10.json"
    write_locomo(place, conversations=CONVERSATIONS, questions=QUESTIONS)
    samples = json.loads(place.read_text())
    for asked in (asked for sample in samples for asked in sample["qa"]):
        if asked["category"] == 5:  # as in the real file
            del asked["answer"]
    place.write_text(json.dumps(samples))
    return place


@pytest.fixture(scope="module")
def tofu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tofu")
    lines = [
        {
            "question": f"What about author {author}, point {point}?",
            "answer": f"Of author {author} the point {point} is word{author}x{point}.",
        }
        for author in range(200)
        for point in range(20)
    ]
    (folder / "full.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def command(data: Path, out: Path, server: ScriptedServer, *more: object) -> list[str]:
    model = f"scripted@{server.url}?tries=4&timeout=20"
    parts = ("--system", "bm25", "--no-arms", "--reader", model, "--judge", f"binary,model={model}")
    return [str(part) for part in ("run", "locomo", "--data", data, "--out", out, *parts, *more)]


def paid(server: ScriptedServer) -> tuple[Counter[str], Counter[str]]:
    """How often each question was answered and judged for money."""
    assert server.wait_for(lambda s: s.running == 0)
    answered: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    judges = {request.text for request in server.seen if is_judging(request)}
    for text, times in server.answered.items():
        if found := QUESTION.search(text):  # else it was only asked whether it lives
            (judged if text in judges else answered)[found[0]] += times
    return answered, judged


def bytes_of(run: Path) -> dict[str, bytes]:
    names = (*RECORDED, "answers.json")
    return {name: (run / name).read_bytes() for name in names}


def figures(run: Path) -> dict[str, Any]:
    """The figures as the judge gave them: its verdicts are withheld, since it sat no exam."""
    sheet: dict[str, Any] = json.loads((run / "answers.json").read_text())
    found: dict[str, Any] = sheet.get("raw", sheet)["figures"]
    return found


def answering_of(question: str) -> Callable[[Request], bool]:
    return lambda request: f"{question} " in request.text and not is_judging(request)


def test_a_whole_run_answers_and_judges_every_question_once(
    locomo: Path, tmp_path: Path, server: ScriptedServer
) -> None:
    assert invoke(command(locomo, tmp_path / "out", server, "--parallelism", 8)) == 0

    answered, judged = paid(server)
    told = figures(tmp_path / "out/bm25")
    assert set(answered.values()) == {1} and len(answered) == ASKED
    # Adversarial questions have no reference: whether they were declined is read, not judged.
    assert set(judged.values()) == {1} and len(judged) == ASKED - ADVERSARIAL
    assert told["metric"] == "accuracy"
    assert told["answerable"]["mean"] == 1.0
    assert told["answerable"]["n"] == ASKED - ADVERSARIAL
    assert told["abstention"]["confabulated"]["count"] == ADVERSARIAL


def test_in_parallel_and_in_two_processes_it_leaves_the_same_bytes(
    locomo: Path, tmp_path: Path, server: ScriptedServer
) -> None:
    for name, more in (("one", (1, 1)), ("many", (16, 2))):
        flags = ("--parallelism", more[0], "--workers", more[1])
        assert invoke(command(locomo, tmp_path / name, server, *flags)) == 0

    assert bytes_of(tmp_path / "one/bm25") == bytes_of(tmp_path / "many/bm25")


def test_every_fault_is_survived_and_no_question_is_paid_twice(
    locomo: Path, tmp_path: Path, server: ScriptedServer
) -> None:
    assert invoke(command(locomo, tmp_path / "calm", server)) == 0
    server.reset()
    faults = (
        rate_limited(0.01),
        failing(500),
        dropped(),
        torn(),
        truncated(),
        empty(),
        rate_limited(None),
        failing(503),
    )
    for number, fault in enumerate(faults):
        server.at(3 + 4 * number, fault)
    other = f"other@{server.url}?tries=6&timeout=20"
    arguments = command(locomo, tmp_path / "storm", server, "--parallelism", 4)
    arguments = [part.replace("scripted@", "other@") for part in arguments]

    assert other.split("?")[0] in " ".join(arguments)
    assert invoke(arguments) == 0

    answered, judged = paid(server)
    assert set(answered.values()) == {1} and set(judged.values()) == {1}
    assert figures(tmp_path / "storm/bm25") == figures(tmp_path / "calm/bm25")


def test_a_missing_reply_has_its_status_and_the_rest_is_measured(
    locomo: Path, tmp_path: Path, server: ScriptedServer
) -> None:
    cursed = {"conv-0/q1": failing(500), "conv-1/q2": empty(), "conv-2/q3": dropped()}
    for question, fault in cursed.items():
        server.when(answering_of(question), fault)
    server.when(lambda r: "conv-0/q6 " in r.text and is_judging(r), says("perhaps"))

    arguments = command(locomo, tmp_path / "out", server)
    assert invoke([part.replace("tries=4", "tries=2") for part in arguments]) == 0

    lines = list(RunDirectory(tmp_path / "out/bm25").journal())
    failed = {a.question: a.status for a in lines if isinstance(a, Answer) and a.error}
    unjudged = [v.question for v in lines if isinstance(v, Verdict) and v.final is None]
    counts = figures(tmp_path / "out/bm25")["counts"]
    assert failed == {"conv-0/q1": "error", "conv-1/q2": "error", "conv-2/q3": "error"}
    assert unjudged == ["conv-0/q6"]
    assert counts["asked"] == ASKED
    assert counts["judged"] == ASKED - 4
    assert counts["failed"] == {"error": 3} and counts["unjudged"] == 1


def test_slow_bytes_end_as_a_timeout(locomo: Path, tmp_path: Path, server: ScriptedServer) -> None:
    server.when(lambda r: "conv-0/q1 " in r.text, slow(0.2))
    arguments = command(locomo, tmp_path / "out", server, "--questions", 60, "--parallelism", 4)

    hurried = [part.replace("tries=4&timeout=20", "tries=1&timeout=2.5") for part in arguments]
    assert invoke(hurried) == 0

    lines = RunDirectory(tmp_path / "out/bm25").journal()
    late = [a.question for a in lines if isinstance(a, Answer) and a.status == "timeout"]
    assert late == ["conv-0/q1"]


def wait_until_held(server: ScriptedServer, cache: Path, before: int) -> None:
    """Until no more replies come, and all that came are kept beside the `before` ones."""
    assert server.wait_for(lambda s: s.held)
    assert eventually(lambda: kept_replies(cache) - before == server.answered.total())


@pytest.mark.parametrize("phase", ["answer", "judge"])
@pytest.mark.parametrize("parallelism", [1, 8])
def test_killed_in_a_phase_it_resumes_and_pays_no_question_twice(
    phase: str,
    parallelism: int,
    locomo: Path,
    tmp_path: Path,
    server: ScriptedServer,
    start_command: StartCommand,
) -> None:
    flags = ("--parallelism", parallelism, "--workers", 2)
    whole = command(locomo, tmp_path / "whole", server, *flags)
    assert invoke(whole) == 0
    # Another model by name, so that nothing comes from the cache.
    server.reset()
    arguments = [part.replace("scripted@", "other@") for part in whole]
    arguments = [part.replace("/whole", "/killed") for part in arguments]

    cache = tmp_path / "cache"
    left, before = 0, kept_replies(cache)

    def hold_at_the_last(request: Request) -> str:
        nonlocal left
        left -= is_judging(request) == (phase == "judge")
        if left == 0:
            server.hold()
        return scripted(request)

    server.reply(hold_at_the_last)
    for _ in range(4):
        left = 6
        process = start_command(arguments, MNEMOSCOPE_CACHE=cache)
        wait_until_held(server, cache, before)
        assert process.kill(with_workers=True) == -signal.SIGKILL
        assert server.everybody_left()
        server.release()
    left = ASKED * 2
    process = start_command(arguments, MNEMOSCOPE_CACHE=cache)
    assert process.wait() == 0, process.output

    answered, judged = paid(server)
    assert set(answered.values()) == {1} and len(answered) == ASKED
    assert set(judged.values()) == {1} and len(judged) == ASKED - ADVERSARIAL
    trials = (tmp_path / "killed/bm25/trials.jsonl").read_bytes()
    assert trials == (tmp_path / "whole/bm25/trials.jsonl").read_bytes()


def test_the_cost_limit_stops_within_one_request_and_a_higher_one_continues(
    locomo: Path, tmp_path: Path, server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    def priced(limit: float) -> list[str]:
        flags = ("--parallelism", 8, "--workers", 2, "--max-cost", limit)
        arguments = command(locomo, tmp_path / "out", server, *flags)
        return [part.replace("?tries", "?price_in=1000&price_out=1000&tries") for part in arguments]

    def spent() -> float:
        folder = tmp_path / "out/bm25"
        places = [folder / "timings.jsonl", *folder.glob("units/*.timings.jsonl")]
        texts = [place.read_text() for place in places if place.exists()]
        lines = [json.loads(one) for text in texts for one in text.splitlines()]
        return float(sum(line.get("usage", {}).get("paid", 0) for line in lines))

    assert invoke(priced(10.0)) == 1
    assert "--max-cost" in capsys.readouterr().err
    first = spent()
    dearest = 1.5
    assert 10.0 - dearest <= first <= 10.0 + dearest

    assert invoke(priced(1000.0)) == 0
    answered, judged = paid(server)
    assert set(answered.values()) == {1} and set(judged.values()) == {1}
    assert len(answered) == ASKED
    accounts = json.loads((tmp_path / "out/bm25/timing.json").read_text())["accounts"]
    assert accounts["total"]["paid"] == pytest.approx(spent())
    assert accounts["phases"]["judge"]["requests"] == ASKED - ADVERSARIAL


def test_saved_answers_are_judged_again_without_asking_system_or_reader(
    locomo: Path, tmp_path: Path, server: ScriptedServer
) -> None:
    assert invoke(command(locomo, tmp_path / "out", server)) == 0
    server.reset()
    again = ["judge", str(tmp_path / "out/bm25"), "--judge", "f1", "--data", str(locomo)]

    assert invoke([*again, "--out", str(tmp_path / "f1")]) == 0

    assert server.requests == 0
    told = figures(tmp_path / "f1/bm25")
    assert told["metric"] == "f1"
    assert told["answerable"]["mean"] == 1.0
    old, new = (RunDirectory(tmp_path / place / "bm25") for place in ("out", "f1"))
    kept = [line for line in old.journal() if not isinstance(line, Verdict)]
    assert [line for line in new.journal() if not isinstance(line, Verdict)] == kept


def test_saved_hits_are_read_again_by_another_reader(
    locomo: Path, tmp_path: Path, server: ScriptedServer
) -> None:
    places = ["--data", str(locomo), "--no-arms"]
    first = ["run", "locomo", "--system", "bm25", "--out", str(tmp_path / "out")]
    assert invoke([*first, *places]) == 0
    reader = f"scripted@{server.url}"
    again = ["answer", str(tmp_path / "out/bm25"), "--reader", reader, "--data", str(locomo)]

    assert invoke([*again, "--out", str(tmp_path / "read")]) == 0

    assert server.requests == ASKED
    assert figures(tmp_path / "read/bm25")["metric"] == "f1"


def test_a_dead_server_stops_the_run_with_one_clear_error_and_keeps_what_it_has(
    locomo: Path, tmp_path: Path, server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = command(locomo, tmp_path / "out", server)
    server.stop()

    assert invoke(arguments) == 1

    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert server.url in said


def test_an_outage_stops_the_run_and_fails_no_question(
    locomo: Path, tmp_path: Path, server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    down = True
    server.when(lambda request: down and request.number > 10, failing(503))
    arguments = command(locomo, tmp_path / "out", server, "--parallelism", 4)
    arguments = [part.replace("tries=4", "tries=2") for part in arguments]

    assert invoke(arguments) == 1
    assert "is down" in capsys.readouterr().err
    down = False
    assert invoke(arguments) == 0

    answers = [a for a in RunDirectory(tmp_path / "out/bm25").journal() if isinstance(a, Answer)]
    assert [answer.question for answer in answers if answer.error] == []
    answered, judged = paid(server)
    assert set(answered.values()) == {1} and len(answered) == ASKED
    assert set(judged.values()) == {1} and len(judged) == ASKED - ADVERSARIAL


def tofu_command(data: Path, out: Path, server: ScriptedServer, *more: object) -> list[str]:
    model = f"scripted@{server.url}?timeout=20"
    parts = (
        "--system",
        "bm25",
        "--no-arms",
        "--reader",
        model,
        "--questions",
        60,
        "--forget",
        "10",
    )
    return [str(part) for part in ("run", "tofu", "--data", data, "--out", out, *parts, *more)]


def from_excerpts(request: Request) -> str:
    """The answer that stands beside the question in the excerpts, or that there is none."""
    author, point = TOFU_QUESTION.findall(request.text)[-1]
    known = f"Of author {author} the point {point} is word{author}x{point}."
    return known if known in request.text else "No information available."


def test_tofu_is_asked_before_and_after_forgetting_and_survives_kills_in_both(
    tofu: Path, tmp_path: Path, server: ScriptedServer, start_command: StartCommand
) -> None:
    server.reply(from_excerpts)
    assert invoke(tofu_command(tofu, tmp_path / "whole", server)) == 0
    server.reset()
    server.reply(from_excerpts)
    arguments = [
        part.replace("scripted@", "other@")
        for part in tofu_command(tofu, tmp_path / "killed", server, "--parallelism", 2)
    ]
    cache = tmp_path / "cache"
    before = kept_replies(cache)
    for place in (10, 30, 61):

        def hold_once(request: Request, n: int = place) -> str:
            if request.number >= n:
                server.hold()
            return from_excerpts(request)

        server.reply(hold_once)
        process = start_command(arguments, MNEMOSCOPE_CACHE=cache)
        wait_until_held(server, cache, before)
        assert process.kill(with_workers=True) == -signal.SIGKILL
        assert server.everybody_left()
        server.reply(from_excerpts)
        server.release()
    process = start_command(arguments, MNEMOSCOPE_CACHE=cache)
    assert process.wait() == 0, process.output

    assert set(server.answered.values()) == {1}
    journals = [(tmp_path / out / "bm25/trials.jsonl").read_bytes() for out in ("whole", "killed")]
    assert journals[0] == journals[1]
    told = json.loads((tmp_path / "whole/bm25/forgetting.json").read_text())
    assert told["score"]["before"]["forget"]["mean_rouge_l"]["mean"] == 1.0
    assert told["score"]["after"]["forget"]["mean_rouge_l"]["mean"] < 0.2
    assert told["score"]["after"]["retain"]["mean_rouge_l"]["mean"] == 1.0
    assert told["score"]["leak"]["leaked"] == 0


def test_a_system_that_cannot_forget_says_so_and_gets_no_score(
    tofu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    arguments = ["run", "tofu", "--data", str(tofu), "--out", str(tmp_path), "--questions", "40"]

    invoke([*arguments, "--system", "hostile_systems:Plain", "--no-arms"])

    told = json.loads((tmp_path / "hostile_systems-Plain/forgetting.json").read_text())
    assert told["score"] is None
    assert "forget" in told["why"]
    report = (tmp_path / "hostile_systems-Plain/report.md").read_text()
    assert "No score" in report


@pytest.mark.parametrize("reader", ["extractive", "full-context"])
def test_what_is_still_recalled_after_forgetting_is_a_leak_whatever_the_reader_sees(
    reader: str,
    tofu: Path,
    tmp_path: Path,
    server: ScriptedServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    server.reply(lambda request: "No information available.")
    if reader == "full-context":
        reader = f"full-context,model=scripted@{server.url},tokens=200"
    arguments = ["run", "tofu", "--data", str(tofu), "--out", str(tmp_path), "--questions", "30"]
    parts = ["--system", "hostile_systems:ForgetsNothing", "--reader", reader, "--no-arms"]

    assert invoke([*arguments, *parts]) == 0

    told = json.loads((tmp_path / "hostile_systems-ForgetsNothing/forgetting.json").read_text())
    leak = told["score"]["leak"]
    assert leak["leaked"] == leak["n"] > 0
