"""The details of each question: they agree with the figures, and say what each hit counts for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

import mnemoscope as ms
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.read_questions import hits_of, named_memories, question_details
from mnemoscope.runner.dataset_texts import dataset_of, dataset_texts
from mnemoscope.types import Trial


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, write_locomo: Callable[..., Path]) -> Path:
    return write_locomo(tmp_path_factory.mktemp("data") / "l.json", 2, 6, 10)


@pytest.fixture(scope="module")
def run(data: Path) -> RunDirectory:
    options: dict[str, Any] = {"reader": "extractive", "judge": "f1", "baselines": False}
    found = ms.run(
        "locomo", systems="bm25", data=data, out=data.parent / "run", granularity="turn", **options
    )
    return found.runs[0].directory


def test_the_metrics_of_the_questions_have_the_means_of_the_run(run: RunDirectory) -> None:
    found = question_details(run)
    overall = run.read_json("metrics.json")["overall"]
    measured = [one for one in found.questions if one.metrics]
    assert found.metric_names
    for name in found.metric_names:
        assert mean(one.metrics[name] for one in measured) == pytest.approx(
            overall[name]["mean"], abs=1e-4
        )
    answers = run.read_json("answers.json")
    classes = {kind: own["count"] for kind, own in answers["diagnosis"]["classes"].items()}
    lost = [one.failure for one in found.questions]
    assert {kind: lost.count(kind) for kind in classes} == classes


def test_found_partly_and_missed_are_about_the_first_ten(run: RunDirectory) -> None:
    for one in question_details(run).questions:
        ranks = [evidence.rank for evidence in one.evidence]
        first = [rank for rank in ranks if rank and rank <= 10]
        if not ranks:
            assert one.found is None
        else:
            expected = "found" if len(first) == len(ranks) else "partly" if first else "missed"
            assert one.found == expected
            assert one.k == 10


def test_texts_and_dates_come_from_the_dataset_and_are_cut(run: RunDirectory, data: Path) -> None:
    dataset = dataset_of(run.manifest(), data)
    assert dataset is not None
    texts = dataset_texts(dataset.scenarios(), named_memories(run, 2), 12)
    found = question_details(run, texts, depth=2)
    one = next(question for question in found.questions if question.evidence)
    memory = one.evidence[0].memory
    assert found.has_texts
    assert memory is not None and memory.at is not None
    assert len(memory.text) == 12 < memory.length
    assert len(one.hits) == 2 < one.returned
    assert all(hit.memory for hit in one.hits)

    without = question_details(run)
    assert not without.has_texts
    assert without.questions[0].hits[0].memory is None
    assert [q.metrics for q in without.questions] == [q.metrics for q in found.questions]


def test_other_data_gives_no_texts(run: RunDirectory, write_locomo: Callable[..., Path]) -> None:
    other = write_locomo(run.path.parent.parent / "other.json", 2, 6, 10, seed=2)
    with pytest.raises(ms.MnemoscopeError, match="sha256"):
        dataset_of(run.manifest(), other)
    assert dataset_of(run.manifest()) is None


def test_one_question_can_be_read_alone(run: RunDirectory) -> None:
    [one] = question_details(run, only="conv-1/q3").questions
    assert one == next(q for q in question_details(run).questions if q.id == "conv-1/q3")
    assert one.answer is not None
    assert one.verdict is not None
    assert one.recall_ms is not None


def test_a_hit_is_right_carried_only_claimed_or_wrong() -> None:
    trial = Trial(
        "s",
        "q",
        "answered",
        evidence=("m1", "m2", "m3"),
        ranking=("m1", "m9", "fact1", "fact2", "m1"),
        sources={"fact1": ("m2", "m8"), "fact2": ("m3",)},
        texts={"fact1": "says m2", "fact2": "says nothing"},
        carried={"fact2": ()},
        pool=10,
    )
    hits = list(hits_of(trial))
    assert [hit.kind for hit in hits] == ["right", "wrong", "carried", "claimed", "right"]
    assert [hit.rank for hit in hits] == [1, 2, 3, 4, 5]
    assert hits[2].credited == ("m2",)
    assert hits[2].places == 2
    assert hits[3].credited == ()
    assert hits[3].claimed == ("m3",)
    assert [hit.is_repeated for hit in hits] == [False] * 4 + [True]
    unlabelled = Trial("s", "q", "answered", ranking=("m1",))
    assert [hit.kind for hit in hits_of(unlabelled)] == ["unlabelled"]


def test_a_list_that_may_go_on_leaves_open_what_was_found(data: Path, tmp_path: Path) -> None:
    lines = [{"question": f"conv-0/q{number}", "ranking": ["conv-0/D1:1"]} for number in range(10)]
    lines[0]["ranking"] = [f"conv-0/D{number}:1" for number in range(1, 7)]
    file = tmp_path / "rankings.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))

    def found(name: str, **options: Any) -> set[str | None]:
        place = tmp_path / name
        scored = ms.score(
            file, dataset="locomo", data=data, out=place, granularity="turn", **options
        )
        assert (scored.path / "report.html").exists()
        own = question_details(scored.directory).questions
        return {one.found for one in own if one.hits and one.evidence}

    assert None in found("open")
    assert None not in found("complete", depth=10)


def test_questions_are_read_at_each_checkpoint(
    tmp_path: Path, write_persona: Callable[..., Path]
) -> None:
    write_persona(tmp_path / "personas", 12)
    found = ms.run(
        "personas",
        systems="bm25",
        data=tmp_path / "personas",
        out=tmp_path / "run",
        ranges="4,12",
        baselines=False,
        heatmap_png=False,
    )
    questions = question_details(found.runs[0].directory).questions
    points = found.runs[0].directory.read_json("longitudinal.json")["checkpoints"]
    for point in points:
        own = [one for one in questions if one.checkpoint == point["label"]]
        assert len(own) == point["asked"]
        assert all(one.verdict and one.verdict.final and one.verdict.final.rubric for one in own)
    first = next(one for one in questions if one.evidence)
    assert first.text.startswith(first.id)
    assert first.difficulty == "easy"
