"""A third party's Python system runs in a host, and everything that it could do it still can."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.log_folder import logs
from tests.runner.test_statuses import Made, asks_for_trouble, assert_answered_well
from tests.waiting import all_gone, eventually

from mnemoscope._store.errors import BadReply, SystemLost, UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.datasets.locomo import Locomo
from mnemoscope.runner.conformance import check_system
from mnemoscope.runner.pipeline import Pipeline
from mnemoscope.runner.run import Settings, run
from mnemoscope.runner.scheduler import describe
from mnemoscope.systems import hosted
from mnemoscope.systems.builtin.bm25 import Bm25
from mnemoscope.systems.hosted import Hosted
from mnemoscope.systems.loader import Driver, plan
from mnemoscope.types import Memory, Query, Question, Selector, Trial

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _findable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))


@pytest.fixture(scope="module")
def locomo(write_locomo: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Locomo:
    folder = tmp_path_factory.mktemp("locomo")
    return Locomo(write_locomo(folder / "locomo.json", conversations=3))


def named(text: str) -> Spec:
    return Spec.parse(f"hosted_systems:{text}")


BM25_COPY = Spec("hosted_bm25:Bm25Copy")


def put(*specs: Spec, out: Path, **pipeline: Any) -> list[RunDirectory]:
    plans = [plan(spec) for spec in specs]
    settings = Settings(depth=3, workers=1)
    return run(Made(), plans, out, settings, pipeline=Pipeline(**pipeline))


@pytest.fixture
def driver() -> Iterator[Callable[[str | Spec], Driver]]:
    made: list[Driver] = []

    def make(system: str | Spec) -> Driver:
        spec = named(system) if isinstance(system, str) else system
        made.append(Driver(plan(spec).build))
        return made[-1]

    yield make
    for one in made:
        one.close()


MEMORIES = [Memory("1", "the piano is in the garden"), Memory("2", "the lantern is at sea")]


# Where a system runs


def test_a_plan_says_where_a_system_runs_and_imports_no_third_party_s_module(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "hosted_systems", raising=False)

    assert plan(named("Plain")).hosting == "child"
    assert plan(Spec("no_such_module:Thing")).hosting == "child"
    assert plan(Spec("bm25")).hosting == "built-in"
    assert plan(Spec("mnemoscope.systems.builtin.bm25:Bm25")).hosting == "built-in"
    assert "hosted_systems" not in sys.modules


class AtTheTop(Bm25):
    pass


def test_a_class_given_from_python_is_hosted_if_another_process_can_import_it() -> None:
    class Local(Bm25):
        pass

    assert plan(Spec("x"), AtTheTop).hosting == "child"
    assert plan(Spec("x"), Local).hosting == "worker"
    assert plan(Spec("x"), lambda query, k: []).hosting == "worker"
    assert plan(Spec("x"), Bm25).hosting == "built-in"


# The same figures


def test_a_hosted_copy_of_bm25_gives_the_same_bytes(locomo: Locomo, tmp_path: Path) -> None:
    plans = [plan(Spec("bm25")), plan(BM25_COPY)]

    inside, copy = run(locomo, plans, tmp_path / "one", Settings(workers=1))
    settings, several = Settings(workers=2), Pipeline(parallelism=4)
    [parallel] = run(locomo, plans[1:], tmp_path / "four", settings, pipeline=several)

    journal = (inside.path / "trials.jsonl").read_bytes()
    assert (copy.path / "trials.jsonl").read_bytes() == journal
    assert sorted((parallel.path / "trials.jsonl").read_bytes().splitlines()) == sorted(
        journal.splitlines()
    )
    identity = copy.manifest().identity["system"]
    assert identity["arguments"] == {"k1": 1.5, "b": 0.75, "cache": True, "tokens": "stems"}
    assert len(identity["source_sha256"]) == 64
    assert copy.read_json("timing.json")["index_bytes"] > 0


def test_a_host_that_is_killed_is_replaced_and_the_bytes_are_the_same(
    locomo: Locomo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIES_ONCE", str(logs(tmp_path) / "died"))
    plans = [plan(Spec("bm25")), plan(Spec("hosted_bm25:DiesOnce"))]

    inside, mortal = run(locomo, plans, tmp_path / "out", Settings(workers=1))

    assert (logs(tmp_path) / "died").exists()
    assert (mortal.path / "trials.jsonl").read_bytes() == (
        inside.path / "trials.jsonl"
    ).read_bytes()


def test_a_hosted_system_passes_the_conformance_kit() -> None:
    results = check_system(plan(BM25_COPY))

    assert {result.verdict for result in results} == {"passed"}


def test_a_host_ends_with_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOST_PIDS", str(tmp_path / "pids"))
    (tmp_path / "pids").mkdir()
    parent = os.fork()
    if not parent:
        try:
            put(named("NeverReturns"), out=tmp_path / "out")
        finally:
            os._exit(0)
    try:
        assert eventually(lambda: any((tmp_path / "pids").iterdir()))
    finally:
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)

    assert eventually(lambda: all_gone(tmp_path / "pids"))


# What a system may return and raise


@pytest.mark.parametrize("parallelism", [1, 2])
def test_every_kind_of_system_answers_every_question(parallelism: int, tmp_path: Path) -> None:
    names = ["Retriever", "bare_function", "one_object", "Shapes", "Shapes,shape=dict"]

    runs = put(*map(named, names), out=tmp_path, parallelism=parallelism)

    for done in runs:
        assert_answered_well(list(done.trials()))
    assert runs[0].read_json("timing.json")["index_bytes"] == 2 * 1234
    first = next(runs[3].trials())
    assert first.scores == (0.5, 0.5, 0.5)


def test_hits_keep_sources_and_lone_surrogates_in_texts_become_printable(
    tmp_path: Path,
) -> None:
    names = ["Shapes,shape=sources", "Shapes,shape=surrogate", "Shapes,shape=surrogate id"]

    merged, texts, ids = put(*map(named, names), out=tmp_path)

    assert next(merged.trials()).sources == {f"fact {id}": (id,) for id in "012"}
    assert_answered_well(list(texts.trials()))
    failed = [trial for trial in ids.trials() if trial.status == "error"]
    assert failed
    assert all("an id that is not valid Unicode: \\ud800" in trial.error for trial in failed)


def test_an_exception_of_any_type_is_the_status_of_its_question_only(tmp_path: Path) -> None:
    expected = {
        "base": ("error", "BaseException: as bare as it gets"),
        "interrupt": ("error", "KeyboardInterrupt: "),
        "exit": ("error", "SystemExit: 3"),
        "late": ("timeout", "TimeoutError: took too long"),
        "text": ("error", "ValueError: half \\ud800 and long"),
        "gigabytes": (
            "error",
            "BadReply: recall returned texts of more than 64 million",
        ),
    }

    runs = put(*(named(f"Raises,what={what}") for what in expected), out=tmp_path)

    for done, (status, error) in zip(runs, expected.values(), strict=True):
        trials: list[Trial] = list(done.trials())
        failed = [trial for trial in trials if asks_for_trouble(trial)]
        assert {trial.status for trial in failed} == {status}
        assert all(trial.error.startswith(error) for trial in failed), failed
        assert_answered_well([trial for trial in trials if not asks_for_trouble(trial)])


def test_a_system_that_forks_in_a_call_answers_once(tmp_path: Path) -> None:
    [done] = put(named("Raises,what=fork"), out=tmp_path)

    assert_answered_well(list(done.trials()))
    assert len(list(done.trials())) == 12


def test_several_questions_are_in_flight_in_one_host(tmp_path: Path) -> None:
    [done] = put(named("Together"), out=tmp_path, parallelism=2)

    assert_answered_well(sorted(done.trials(), key=lambda trial: trial.question))


def test_copies_and_forgetting_work_in_the_host(driver: Callable[[Spec], Driver]) -> None:
    original = driver(BM25_COPY)
    original.begin("scope")
    original.remember(MEMORIES)

    copy = original.fork()
    copy.forget(Selector((MEMORIES[0],)))

    asked = Question("", "where is the piano")
    assert [hit.id for hit in original.recall(asked, 3)] == ["1"]
    assert copy.recall(asked, 3) == []
    copy.close()
    assert [hit.id for hit in original.recall(asked, 3)] == ["1"]


def test_a_copy_whose_host_ended_is_lost(driver: Callable[[Spec], Driver]) -> None:
    original = driver(BM25_COPY)
    original.begin("scope")
    copy = original.fork()
    original.close()
    original.begin("scope")

    with pytest.raises(SystemLost, match="its host process has ended"):
        copy.recall(Question("", "anything"), 3)


def test_a_question_that_cannot_be_sent_does_not_end_the_host() -> None:
    system: Any = Hosted("hosted_bm25:Bm25Copy", BM25_COPY)
    system.reset("scope")

    with pytest.raises(Exception, match="recall: a text cannot be sent as UTF-8"):
        system.recall(Query("half \ud800"), 3)

    assert system.recall(Query("a whole one"), 3) == []
    system.close()


def test_a_reply_that_is_not_a_frame_loses_the_system() -> None:
    system: Any = Hosted("hosted_bm25:Bm25Copy", BM25_COPY)
    system.reset("scope")
    system._exchange._inbox += (1 << 31).to_bytes(4, "big")

    with pytest.raises(BadReply, match="returned more than 64 MiB") as caught:
        system.recall(Query("anything"), 3)

    assert isinstance(caught.value, SystemLost)
    system.close()


# Mistakes


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "no_such_module:Thing",
            "cannot import system 'no_such_module:Thing': ModuleNotFoundError",
        ),
        ("hosted_systems:Plane", "module 'hosted_systems' has no 'Plane'"),
        ("hosted_bm25:Bm25Copy,token=plain", "has no option 'token': did you mean 'tokens'"),
        ("hosted_bm25:Bm25Copy,k1=x", "k1=x is not a number"),
        ("hosted_systems:OtherNames", r"has no remember\(memories\) method; did you mean its"),
        ("hosted_systems:one_object,a=1", "is an object and takes no options"),
    ],
)
def test_a_mistake_in_a_spec_is_found_before_a_question_is_asked(text: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        describe([plan(Spec.parse(text))])


def test_a_constructor_that_hangs_is_refused_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosted, "START_SECONDS", 0.5)

    with pytest.raises(UsageError, match=r"building it: .*NeverBuilt gave no reply within 0.5 s"):
        describe([plan(named("NeverBuilt"))])
