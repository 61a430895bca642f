"""Answers as people see them: no figure without its n and interval, and all of it in 80 columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import StringIO
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from mnemoscope.analysis.answers import answer_figures
from mnemoscope.analysis.costs import Costs, accounts
from mnemoscope.analysis.diagnosis import diagnose
from mnemoscope.analysis.question_records import QuestionRecord
from mnemoscope.reports.answer_tables import (
    SystemAnswers,
    exam_line,
    failure_sections,
    notes,
    report_sections,
    systems_tables,
)
from mnemoscope.reports.render_markdown import render as markdown
from mnemoscope.reports.render_terminal import render as terminal
from mnemoscope.types import (
    Answer,
    Expectation,
    Grade,
    Question,
    Scale,
    Score,
    Status,
    Timing,
    Trial,
    Usage,
    Verdict,
)

NAMES = {"1": "multi-hop", "4": "single-hop", "5": "adversarial"}
EXAM = {
    "passed": True,
    "false_accept": {"count": 3, "of": 60},
    "false_reject": {"count": 2, "of": 40},
}


def category_name(key: str) -> str:
    return f"{key} {NAMES[key]}"


def asked(
    number: int,
    mark: Grade | Score | None,
    *,
    category: str = "1",
    status: Status = "answered",
) -> QuestionRecord:
    expects: Expectation = "abstain" if category == "5" else "answer"
    evidence = () if category == "5" else ("m1",)
    question = Question(
        f"q{number:02}", "What?", category=category, expects=expects, evidence=evidence
    )
    about = ("s", question.id)
    return QuestionRecord(
        question,
        Trial(*about, "answered", evidence=evidence, reachable=len(evidence), ranking=("m1",)),
        Answer(*about, status, "three small words"),
        Verdict(
            *about,
            score=mark if isinstance(mark, Score) else None,
            grade=mark if isinstance(mark, Grade) else None,
        ),
        "s",
    )


def rows(right: int = 5, *, missing: bool = False) -> list[QuestionRecord]:
    made = [asked(n, Grade(float(n < right)), category="14"[n % 2]) for n in range(8)]
    made += [asked(n, Grade(1.0), category="5", status="abstained") for n in range(8, 11)]
    if missing:
        made += [asked(20, None), asked(21, None, status="timeout")]
    return made


def spent(*, estimated: bool = False) -> Costs:
    usage = Usage(
        requests=1,
        input_tokens=900_000,
        output_tokens=40,
        cost=1.25,
        paid=1.25,
        estimated=estimated,
    )
    return accounts([Timing("s", "q00", answer_ms=1.0, usage=usage)])


def printed(
    systems: Sequence[SystemAnswers], exam: dict[str, Any] | None = None, width: int = 80
) -> str:
    console = Console(width=width, file=StringIO(), color_system=None)
    console.print(terminal(systems_tables(systems, category_name, exam)))
    file = console.file
    assert isinstance(file, StringIO)
    return file.getvalue()


def page(made: list[QuestionRecord], exam: dict[str, Any] | None = None) -> str:
    figures, diagnosis = answer_figures(made), diagnose(made, {})
    return markdown(report_sections(figures, diagnosis, spent(), category_name, exam))


def test_the_page_has_all_its_sections_in_order() -> None:
    found = re.findall(r"^## (.*)$", page(rows()), re.MULTILINE)
    assert found == [
        "Answers",
        "By category",
        "Abstention",
        "Judges",
        "Diagnosis",
        "Tokens and money",
    ]


def test_both_headlines_stand_with_interval_and_number() -> None:
    told = page(rows())
    assert "| accuracy, questions with an answer | 0.6250 | [0.3057, 0.8632] | 8 |" in told
    assert "| accuracy, all questions | 0.7273 | [0.4344, 0.9025] | 11 |" in told


def test_a_category_without_answerable_questions_shows_a_dash_and_not_a_zero() -> None:
    assert "| 5 adversarial | -- | 0 | 1.0000 [0.4385, 1.0000] | 3 |" in page(rows())


def test_bounds_are_shown_where_questions_have_no_grade() -> None:
    told = page(rows(missing=True))
    assert "| 8 | [0.5000, 0.6250] |" in told
    assert "1 failed (1 timeout); 11 judged, 1 unjudged" in told


def test_diagnosis_names_classes_with_examples() -> None:
    told = page(rows())
    assert "3 of 11 judged answers failed. In 3 of them (1.0000 [0.4385, 1.0000])" in told
    assert "| answered wrongly with the evidence in hand | 3 |" in told
    assert "q05, q06, q07" in told


def test_without_failures_the_diagnosis_says_only_that() -> None:
    assert page(rows(right=8)).count("0 of 11 judged answers failed.") == 1


def test_money_is_split_by_phase_and_side() -> None:
    told = page(rows())
    assert "| answer | 1 | 0 | 0 | 900,000 | 40 | $1.25 | $1.25 |" in told
    assert "| *system side* | 0 |" in told
    assert "estimated" not in told


def test_panels_and_appeals_are_told_of_where_there_were_any() -> None:
    made = [asked(1, Grade(1.0, votes={"a": 1.0, "b": 0.0})), asked(2, Grade(1.0))]
    verdict = Verdict("s", "q02", grade=Grade(1.0), primary_grade=Grade(0.0))
    told = page([made[0], made[1]._replace(verdict=verdict)])
    assert "the mildest and the strictest lie 1.0000" in told
    assert "Appeals heard: 1, of which 1 changed the mark and 1 turned" in told
    assert "Appeals" not in page(rows())


def test_a_bar_in_a_name_does_not_break_the_markdown_table() -> None:
    made = answer_figures([asked(1, Grade(1.0)), asked(2, Grade(0.0), category="4")])
    told = markdown(report_sections(made, None, None, lambda key: f"{key}|{key}"))
    assert "| 1\\|1 |" in told


@pytest.mark.parametrize("exam", [None, EXAM, {**EXAM, "passed": False}])
def test_tables_fit_into_eighty_columns_with_many_long_labels(exam: dict[str, Any] | None) -> None:
    systems = [
        SystemAnswers(f"hybrid,embedder=wordllama,k={n}", answer_figures(rows(n)), n > 5, spent())
        for n in range(7)
    ]
    told = printed(systems, exam)
    assert max(map(cell_len, told.splitlines())) <= 80
    assert "…" not in told


def test_no_figure_stands_in_the_terminal_without_interval_and_number() -> None:
    told = printed([SystemAnswers("one", answer_figures(rows()), False)], EXAM)
    before_notes = told[: told.index("below each figure")]
    figures = re.findall(r"(?<![.\d–])\d\.\d+(?!\d*–)", before_notes)
    assert len(figures) > 5
    assert len(re.findall(r"n \d", before_notes)) == len(figures)
    assert len(re.findall(r"–|all alike", before_notes)) >= len(figures)


def test_all_systems_stand_in_the_tables() -> None:
    told = printed(
        [
            SystemAnswers("one", answer_figures(rows(2))),
            SystemAnswers("two", answer_figures(rows()), True),
        ]
    )
    assert "one" in told
    assert "two" in told


def test_the_best_system_of_a_category_is_bold_and_an_arm_never_is() -> None:
    systems = [
        SystemAnswers("one", answer_figures(rows(2)), False),
        SystemAnswers("arm", answer_figures(rows(8)), True),
    ]
    console = Console(width=80, file=StringIO(), force_terminal=True, color_system="standard")
    with console.capture() as captured:
        console.print(terminal(systems_tables(systems, category_name)))
    answerable = captured.get().split("questions with an answer")[1].split("all questions")[0]
    assert re.findall(r"\x1b\[1m(\d\.\d+)", answerable) == ["0.250", "0.250"]
    assert len(re.findall(r"(?<!–)1\.000", answerable)) == 2


def test_systems_measured_otherwise_do_not_share_a_column() -> None:
    f1 = answer_figures([asked(1, Grade(0.3)), asked(2, Grade(0.6))], scale=Scale("f1"))
    told = printed(
        [SystemAnswers("one", answer_figures(rows()), False), SystemAnswers("two", f1, False)]
    )
    first, second = told.split("Answers\n")[1:]
    assert "one" in first
    assert "two" not in first
    assert "f1" in second


def test_scores_of_the_rubric_bring_a_column_for_hallucination() -> None:
    made = [asked(1, Score(3, 2, 1)), asked(2, Score(0, 0, 0))]
    told = printed([SystemAnswers("one", answer_figures(made), False)])
    assert "composite/6" in told
    assert "halluci-" in told
    assert "halluci-" not in printed([SystemAnswers("one", answer_figures(rows()), False)])


def test_cost_is_shown_where_models_were_asked_and_marked_where_estimated() -> None:
    figures = answer_figures(rows())
    assert "$1.25" in printed([SystemAnswers("one", figures, False, spent())])
    assert "~$1.25" in printed([SystemAnswers("one", figures, False, spent(estimated=True))])
    assert "cost" not in printed([SystemAnswers("one", figures, False, accounts([]))])


def test_what_has_no_grade_is_told_with_what_it_would_change() -> None:
    (line,) = notes([SystemAnswers("one", answer_figures(rows(missing=True)))])
    assert line == (
        "one: 2 of 13 questions have no grade (1 timeout, 1 unjudged); "
        "with them as wrong accuracy is 0.615"
    )
    assert notes([SystemAnswers("one", answer_figures(rows()))]) == []


def test_a_judge_without_or_with_a_failed_exam_is_named_beside_its_scores() -> None:
    assert "taken no exam" in printed([SystemAnswers("one", answer_figures(rows()), False)])
    failed = exam_line({**EXAM, "passed": False})
    assert "failed its exam" in failed
    assert "0.050 [0.0171, 0.1370], 3 of 60" in failed
    assert "cannot be VERIFIED" in failed
    assert "cannot" not in exam_line(EXAM)
    assert "passed its exam" in page(rows(), EXAM)


def test_each_of_several_judges_is_named_with_its_own_exam() -> None:
    exams = {"binary,model=a": EXAM, "binary,model=b": None}
    told = page(rows(), exams)
    assert "The judge binary,model=a passed its exam" in told
    assert "The judge binary,model=b has taken no exam" in told
    told = " ".join(printed([SystemAnswers("one", answer_figures(rows()), False)], exams).split())
    assert "! The judge binary,model=b has taken no exam" in told
    assert "! The judge binary,model=a" not in told


def test_a_run_that_nobody_judged_says_nothing_of_judges() -> None:
    assert "## Judges" not in page([asked(1, None)], {})


def test_failures_and_money_can_be_told_without_the_answers() -> None:
    told = markdown(failure_sections(diagnose(rows(), {}), spent(), category_name))
    assert [line for line in told.splitlines() if line.startswith("## ")] == [
        "## Diagnosis",
        "## Tokens and money",
    ]
    assert failure_sections(None, None, category_name) == []


def test_a_run_in_which_everything_failed_can_be_shown() -> None:
    made = [asked(n, None, status="error") for n in range(3)]
    told = printed([SystemAnswers("one", answer_figures(made), False)])
    assert "3 of 3 questions have no grade (3 error)" in told
    assert "0 of 0 judged answers failed." in page(made)
