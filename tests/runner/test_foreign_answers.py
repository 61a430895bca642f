"""Answers and verdicts of others: read, matched, counted, judged again, and never passed off."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mnemoscope as ms
from mnemoscope._store.errors import (
    DataError,
    EditedRun,
    MnemoscopeError,
    RunConflict,
    UsageError,
)
from mnemoscope.analysis.pairing import NotComparable
from mnemoscope.cli.app import invoke
from mnemoscope.reports.foreign_tables import beside, what_was_read
from mnemoscope.runner.foreign_answers import read_answers

Entry = dict[str, Any]


@pytest.fixture
def locomo(write_locomo: Callable[..., Path], tmp_path: Path) -> Path:
    return write_locomo(tmp_path / "locomo10.json", conversations=3, questions=10)


def questions(data: Path) -> list[tuple[int, int, Entry]]:
    samples = json.loads(data.read_text())
    return [(c, n, qa) for c, one in enumerate(samples) for n, qa in enumerate(one["qa"])]


def evaluation(data: Path, **changes: Any) -> Entry:
    """A mem0-style evaluation: every third answer is wrong, and judged so by two of three."""
    detailed: dict[str, list[Entry]] = {}
    for place, (conversation, number, qa) in enumerate(questions(data)):
        if qa["category"] == 5:
            continue
        right = place % 3 > 0
        detailed.setdefault(f"locomo_exp_user_{conversation}", []).append(
            {
                "question_id": f"locomo_{conversation}_qa{number}",
                "question": qa["question"],
                "generated_answer": qa["answer"] if right else "nothing like it",
                "llm_judgments": {"judgment_1": right, "judgment_2": right, "judgment_3": True},
                "category": str(qa["category"]),
            }
        )
    entries = [one for own in detailed.values() for one in own]
    votes = [sum(one["llm_judgments"].values()) for one in entries]
    content = {
        "total_questions": len(entries),
        "correct": sum(n >= 2 for n in votes),
        "accuracy": sum(votes) / 3 / len(entries),
        "detailed_results": detailed,
        "metadata": {"judge_model": "some-judge", "answer_model": "some-reader"},
    }
    return {**content, **changes}


def write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


def write_lines(path: Path, lines: list[Entry]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def scored(file: Path, data: Path, out: Path, **more: Any) -> Any:
    settings = {"judge": "exact", "workers": 1, "progress": False, **more}
    return ms.score_answers(file, dataset="locomo", data=data, out=out, **settings)


def test_a_mem0_evaluation_is_reproduced_and_judged_again(locomo: Path, tmp_path: Path) -> None:
    found = scored(write(tmp_path / "e.json", evaluation(locomo)), locomo, tmp_path / "run")
    content = found.imported
    headline, vote, *runs = content["figures"]
    assert headline["reproduced"] is True and headline["n"] == 24
    assert headline["recomputed"] == pytest.approx((16 + 16 + 24) / 72, abs=1e-9)
    assert (vote["recomputed"], len(runs)) == (pytest.approx(16 / 24), 3)
    counts = content["counts"]
    assert (counts["matched"], counts["by_id"], counts["missing"]) == (24, 24, 6)
    assert content["agreement"]["n"] == 24
    assert (content["agreement"]["kappa"], content["agreement"]["only_theirs"]) == (1.0, 0)
    assert content["unanimous"]["n"] == 16  # two of three say no to the others
    assert any("24" in note and "accuracy" in note for note in content["notes"])
    assert found.answers["figures"]["all"]["missing"] == 6  # errors, not wrong answers
    assert "sat no exam" in found.answers["figures"]["answerable"]["withheld"]
    assert found.answers["raw"]["figures"]["answerable"]["mean"] == pytest.approx(16 / 24)
    assert "Answers from outside" in found.report and "some-judge" in found.report


def test_verify_says_that_the_answers_came_from_outside(locomo: Path, tmp_path: Path) -> None:
    found = scored(write(tmp_path / "e.json", evaluation(locomo)), locomo, tmp_path / "run")
    checked = ms.verify(found)
    assert checked.status == "UNVERIFIED"
    assert "read from e.json" in checked.gate("system").why
    assert "came from outside" in checked.gate("system").why
    assert checked.gate("figures").passed and checked.gate("journal").passed


def test_an_edited_import_is_refused(locomo: Path, tmp_path: Path) -> None:
    found = scored(write(tmp_path / "e.json", evaluation(locomo)), locomo, tmp_path / "run")
    place = found.path / "imported.json"
    place.write_text(place.read_text().replace('"kappa": 1.0', '"kappa": 0.5'))
    with pytest.raises(EditedRun, match=r"imported\.json"):
        ms.load(found.path)["run"].directory.read_json("imported.json")
    assert not ms.verify(found.path).gate("files").passed


def test_the_same_command_continues_and_another_file_is_refused(
    locomo: Path, tmp_path: Path
) -> None:
    file, out = write(tmp_path / "e.json", evaluation(locomo)), tmp_path / "run"
    journal = scored(file, locomo, out).directory.trials_path
    first = journal.read_bytes()
    scored(file, locomo, out, workers=2)
    assert journal.read_bytes() == first
    write(file, evaluation(locomo, accuracy=0.1))
    with pytest.raises(RunConflict, match="contains another run"):
        scored(file, locomo, out)


def test_a_headline_that_the_verdicts_do_not_give_is_said(locomo: Path, tmp_path: Path) -> None:
    boasting = evaluation(locomo, accuracy=0.95)
    found = scored(write(tmp_path / "e.json", boasting), locomo, tmp_path / "run")
    assert found.imported["figures"][0]["reproduced"] is False
    assert "NOT reproduced" in found.report


def test_a_withheld_share_does_not_follow_from_the_agreement(
    locomo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "e.json", evaluation(locomo))
    found = scored(file, locomo, tmp_path / "run")
    assert found.imported["ours_here"] == pytest.approx(16 / 24, abs=1e-4)
    for text in (found.report, (tmp_path / "run/report.html").read_text()):
        section = text.partition("Agreement with their verdicts")[2].partition("Abstention")[0]
        assert "withheld with our accuracy" in section
        assert not any(sign in section for sign in ("both right", "by ours", "kappa 1", "0.6667"))
    flags = ["--dataset", "locomo", "--data", str(locomo), "--judge", "exact", "--workers", "1"]
    flags += ["--out", str(tmp_path / "run"), "--json"]
    assert invoke(["score", "--answers", str(file), *flags]) == 0
    told = json.loads(capsys.readouterr().out)["imported"]
    assert not {"ours_here", "agreement", "unanimous"} & set(told) and told["theirs_here"]


def test_a_figure_that_is_not_reproduced_is_shown_behind_many(locomo: Path, tmp_path: Path) -> None:
    found = scored(write(tmp_path / "e.json", evaluation(locomo)), locomo, tmp_path / "run")
    figures = found.imported["figures"]
    last = {**figures[-1], "name": "the last", "reproduced": False}
    content: Any = {**found.imported, "figures": [*figures * 3, last]}
    assert beside(content, None).rows[-1][0] == "theirs: the last"
    assert len(beside(content, None).rows) == 6
    assert any("10 more figures" in line for line in what_was_read(content))


def test_ids_that_mean_other_questions_are_refused(locomo: Path, tmp_path: Path) -> None:
    content = evaluation(locomo)
    for own in content["detailed_results"].values():
        ids = [one["question_id"] for one in own]
        for one, id in zip(own, [*ids[1:], ids[0]], strict=True):
            one["question_id"] = id
    with pytest.raises(DataError, match="the ids mean other questions"):
        scored(write(tmp_path / "e.json", content), locomo, tmp_path / "run")


def test_leaving_out_hard_questions_lowers_coverage(locomo: Path, tmp_path: Path) -> None:
    content = evaluation(locomo)
    for own in content["detailed_results"].values():
        own[:] = [one for one in own if one["llm_judgments"]["judgment_1"]]
    found = scored(write(tmp_path / "e.json", content), locomo, tmp_path / "run")
    figures = found.answers["raw"]["figures"]
    assert figures["answerable"]["mean"] == 1.0 and figures["answerable"]["missing"] == 8
    assert figures["answerable"]["bounds"][0] == pytest.approx(16 / 24)
    assert "14 questions of the dataset have no answer in the file" in found.report
    assert any("states 24 questions and has 16" in note for note in found.imported["notes"])


def test_conversations_with_one_score_are_matched_by_text(locomo: Path, tmp_path: Path) -> None:
    content: dict[str, list[Entry]] = {}
    for conversation, _, qa in questions(locomo):
        entry = {"question": qa["question"], "answer": qa["answer"], "llm_score": 1}
        content.setdefault(str(conversation), []).append({**entry, "response": qa["answer"]})
    found = scored(write(tmp_path / "e.json", content), locomo, tmp_path / "run")
    counts = found.imported["counts"]
    assert (counts["by_text"], counts["by_id"], counts["missing"]) == (30, 0, 0)
    assert found.imported["figures"][0]["rule"] == "mean of llm_score"


def test_every_line_of_a_generic_file_is_accounted_for(locomo: Path, tmp_path: Path) -> None:
    mine: list[Entry] = [
        {"qid": f"conv-{c}/q{n}", "out": {"t": q["answer"]}} for c, n, q in questions(locomo)
    ]
    lines: list[Entry] = [{**line, "ok": "CORRECT"} for line in mine[:20]]
    lines += [
        {"qid": "conv-9/q1", "out": {"t": "x"}, "ok": "no"},
        {**mine[0], "ok": "yes"},
        {**mine[1], "out": {"t": "a second try"}, "ok": "yes"},
        {"qid": mine[20]["qid"], "out": {"t": None}},
    ]
    file = write_lines(tmp_path / "g.jsonl", lines)
    names = {"question": "qid", "answer": "out.t", "verdict": "ok"}
    counts = scored(file, locomo, tmp_path / "run", fields=names).imported["counts"]
    assert counts["in_file"] == 24 == counts["matched"] + 3
    assert (counts["unknown"], counts["repeated"], counts["conflicting"]) == (1, 1, 1)
    assert counts["examples"]["conflicting"] == ["line 23: conv-0/q1"]
    assert (counts["missing"], counts["verdicts"]) == (9, 20)
    kept = {line["id"]: line for line in map(json.loads, (tmp_path / "run/questions.jsonl").open())}
    assert kept["conv-0/q1"]["answer"] == mine[1]["out"]["t"]  # the first counts
    assert kept["conv-2/q0"]["status"] == "error"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"question_id": "conv-0/q0", "answer": "a"}\n{"question_id":', "line 2"),
        ('{"question_id": "conv-0/q0", "answer": ["a"]}\n{}', "line 1: answer is an array"),
        ('{"answer": "a"}\n{"answer": "b"}', "line 1: no question id"),
        ('{"question_id": "conv-0/q0", "text": "a"}\n{}', "line 1: no answer"),
        (
            '{"question_id": "conv-0/q0", "answer": "a", "verdict": "perhaps"}\n{}',
            "line 1: verdict is 'perhaps'",
        ),
        ('{"detailed_results": {"u_0": [{"question_id": "q"}]}}', r"u_0\[0\]: no answer"),
        ('{"detailed_results": {"u_0": {}}}', "detailed_results.u_0 is an object"),
        (
            '{"detailed_results": {"u_0": [{"question": "q", "response": "a", "llm_score": 7}]}}',
            r"detailed_results.u_0\[0\]: llm_score is 7",
        ),
        ('{"detailed_results": {\n"u_0": [\n}', "line 3"),
        ('{"question_id": "a", "hypothesis": {}}', "line 1: hypothesis is an object"),
        ('{"personas": [{}]}', r"personas\[0\]: the field rangeResults is missing"),
        ('{"detailed_results": {}}', "contains no answers"),
        ("[1, 2]", "format is not recognised"),
        ("", "is empty"),
        ("\n \n", "is empty"),
    ],
)
def test_a_bad_file_gives_one_error_with_its_place(content: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_text(content)
    with pytest.raises(MnemoscopeError, match=told) as error:
        read_answers(file)
    assert "bad.json" in str(error.value) and "\n" not in str(error.value)


def test_a_file_for_another_dataset_is_refused(locomo: Path, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "h.jsonl", [{"question_id": "gpt4_1", "hypothesis": "a"}] * 2)
    with pytest.raises(UsageError, match="no answer is for a question of locomo"):
        scored(file, locomo, tmp_path / "run")


def test_a_longmemeval_log_gives_the_official_share(tmp_path: Path) -> None:
    labels = [("a", True), ("b", False), ("c_abs", True)]
    lines = [
        {"question_id": id, "hypothesis": "x", "autoeval_label": {"model": "m", "label": label}}
        for id, label in labels
    ]
    log = read_answers(write_lines(tmp_path / "log", lines))
    assert log.format == "longmemeval" and log.about == {"judge_model": "m"}
    assert [(one.name, round(one.recomputed, 4), one.n) for one in log.figures] == [
        ("accuracy", 0.6667, 3),
        ("abstention accuracy", 1.0, 1),
    ]
    bare = [{"question_id": id, "hypothesis": "x"} for id, _ in labels]
    assert read_answers(write_lines(tmp_path / "h", bare)).figures == []
    assert len(read_answers(write(tmp_path / "array", bare)).answers) == 3


def result_of_recall_bench() -> Entry:
    def point(label: str, marks: list[tuple[int, int, int]]) -> Entry:
        results = [
            {
                "qa": {"id": f"p-q{number}", "question": f"Question {number}?"},
                "systemAnswer": "an answer",
                "score": dict(
                    zip(("correctness", "completeness", "hallucination"), m, strict=True)
                ),
            }
            for number, m in enumerate(marks)
        ]
        overall = sum(map(sum, marks)) / len(marks)
        return {"range": {"label": label}, "overallScore": overall, "questionResults": results}

    points = [point("6d", [(3, 2, 1)]), point("12d", [(3, 2, 1), (0, 0, 0)])]
    return {"personas": [{"rangeResults": points}], "metadata": {"judgeModel": "j"}}


def test_recall_bench_results_are_read_at_one_checkpoint(tmp_path: Path) -> None:
    file = write(tmp_path / "result.json", result_of_recall_bench())
    last = read_answers(file)
    assert (last.asked_at, len(last.answers), last.elsewhere) == ("12d", 2, 1)
    assert [one.is_right for one in last.answers] == [True, False]
    assert last.figures[0].name == "composite at 12d" and last.figures[0].is_reproduced
    first = read_answers(file, at="6d")
    assert (len(first.answers), first.elsewhere, first.figures[0].recomputed) == (1, 2, 6.0)
    with pytest.raises(UsageError, match="has 6d, 12d"):
        read_answers(file, at="9d")


def test_imported_runs_compare_and_are_judged_again(locomo: Path, tmp_path: Path) -> None:
    better = evaluation(locomo)
    for own in better["detailed_results"].values():
        for one in own:
            number = int(one["question_id"].rpartition("qa")[2])
            one["generated_answer"] = one["question"].split()[3] if number else "none of it"
    for name, content in (("a", evaluation(locomo)), ("b", better)):
        file = write(tmp_path / f"{name}.json", content)
        for judge in ("exact", "f1"):
            scored(file, locomo, tmp_path / judge / name, judge=judge)
    with pytest.raises(NotComparable, match="withheld: the judge has sat no exam on locomo"):
        ms.compare(tmp_path / "exact/a", tmp_path / "exact/b")
    pair = ms.compare(tmp_path / "f1/a", tmp_path / "f1/b").paired
    row = pair.primary if pair else None
    assert row is not None and (row.metric, row.n) == ("f1", 24)

    again = ["judge", str(tmp_path / "exact/a"), "--judge", "f1", "--data", str(locomo)]
    assert invoke([*again, "--out", str(tmp_path / "again"), "--workers", "1"]) == 0
    imported = json.loads((tmp_path / "again/a/imported.json").read_text())
    assert imported["agreement"]["n"] == 24 and imported["figures"][0]["reproduced"]
    assert "came from outside" in ms.verify(tmp_path / "again/a").gate("system").why


def test_the_command_prints_their_headline_beside_ours(
    locomo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "e.json", evaluation(locomo))
    flags = ["--dataset", "locomo", "--data", str(locomo), "--judge", "exact", "--workers", "1"]
    assert invoke(["score", "--answers", str(file), *flags, "--out", str(tmp_path / "r")]) == 0
    told = capsys.readouterr().out
    assert "theirs: accuracy" in told and "ours: accuracy" in told and "judgment 3" in told
    assert "verdicts (all): 1.000" in told
    flags[5] = "f1"
    assert invoke(["score", "--answers", str(file), *flags, "--out", str(tmp_path / "f")]) == 0
    assert "kappa 1.000" in capsys.readouterr().out
    assert invoke(["score", str(file), "--answers", str(file), "--dataset", "locomo"]) == 2
    assert invoke(["score", "--dataset", "locomo"]) == 2
    assert invoke(["score", str(file), "--dataset", "locomo", "--format", "mem0"]) == 2
