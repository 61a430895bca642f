"""The report of answers: each figure has its n and interval, and tables fit into 80 columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import StringIO
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console
from tests.passed_exams import exam_summary

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
EXAM = exam_summary(false_accepts=3, of=60)


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
        "Tokens and cost",
    ]


def test_both_headlines_have_an_interval_and_a_number() -> None:
    shown = page(rows())
    assert "| accuracy, questions with an answer | 0.6250 | [0.3057, 0.8632] | 8 |" in shown
    assert "| accuracy, all questions | 0.7273 | [0.4344, 0.9025] | 11 |" in shown


def test_a_category_without_answerable_questions_shows_a_dash_and_not_a_zero() -> None:
    assert "| 5 adversarial | -- | 0 | 1.0000 [0.4385, 1.0000] | 3 |" in page(rows())


def test_bounds_are_shown_if_questions_have_no_grade() -> None:
    shown = page(rows(missing=True))
    assert "| 8 | [0.5000, 0.7000] |" in shown
    assert "1 failed (1 timeout); 11 judged, 1 unjudged" in shown


def test_diagnosis_names_classes_with_examples() -> None:
    shown = page(rows())
    assert "3 of 11 judged answers failed. In 3 of them (1.0000 [0.4385, 1.0000] of" in shown
    assert "| answered wrongly with the evidence in hand | 3 |" in shown
    assert "q05, q06, q07" in shown


def test_without_failures_the_diagnosis_says_only_that() -> None:
    assert page(rows(right=8)).count("0 of 11 judged answers failed.") == 1


def test_cost_is_split_by_phase_and_side() -> None:
    shown = page(rows())
    assert "| answer | 1 | 0 | 0 | 900,000 | 40 | $1.25 | $1.25 |" in shown
    assert "| *system side* | 0 |" in shown
    assert "estimated" not in shown


def test_panels_and_appeals_are_reported_if_there_were_any() -> None:
    made = [asked(1, Grade(1.0, votes={"a": 1.0, "b": 0.0})), asked(2, Grade(1.0))]
    verdict = Verdict("s", "q02", grade=Grade(1.0), primary_grade=Grade(0.0))
    shown = page([made[0], made[1]._replace(verdict=verdict)])
    assert "the mildest and the strictest differ by 1.0000" in shown
    assert "Appeals: 1, of which 1 changed the grade and 1 turned" in shown
    assert "Appeals" not in page(rows())


def test_a_bar_in_a_name_does_not_break_the_markdown_table() -> None:
    made = answer_figures([asked(1, Grade(1.0)), asked(2, Grade(0.0), category="4")])
    shown = markdown(report_sections(made, None, None, lambda key: f"{key}|{key}"))
    assert "| 1\\|1 |" in shown


@pytest.mark.parametrize("exam", [None, EXAM, exam_summary(false_accepts=60)])
def test_tables_fit_into_eighty_columns_with_many_long_labels(exam: dict[str, Any] | None) -> None:
    systems = [
        SystemAnswers(f"hybrid,embedder=wordllama,k={n}", answer_figures(rows(n)), n > 5, spent())
        for n in range(7)
    ]
    shown = printed(systems, exam)
    assert max(map(cell_len, shown.splitlines())) <= 80
    assert "…" not in shown


def test_every_figure_in_the_terminal_has_an_interval_and_a_number() -> None:
    shown = printed([SystemAnswers("one", answer_figures(rows()), False)], EXAM)
    before_notes = shown[: shown.index("below each figure")]
    figures = re.findall(r"(?<![.\d–])\d\.\d+(?!\d*–)", before_notes)
    assert len(figures) > 5
    assert len(re.findall(r"n \d", before_notes)) == len(figures)
    assert len(re.findall(r"–|all equal", before_notes)) >= len(figures)


def test_all_systems_are_in_the_tables() -> None:
    shown = printed(
        [
            SystemAnswers("one", answer_figures(rows(2))),
            SystemAnswers("two", answer_figures(rows()), True),
        ]
    )
    assert "one" in shown
    assert "two" in shown


def test_the_best_system_of_a_category_is_bold_and_a_baseline_never_is() -> None:
    systems = [
        SystemAnswers("one", answer_figures(rows(2)), False),
        SystemAnswers("baseline", answer_figures(rows(8)), True),
    ]
    console = Console(width=80, file=StringIO(), force_terminal=True, color_system="standard")
    with console.capture() as captured:
        console.print(terminal(systems_tables(systems, category_name)))
    answerable = captured.get().split("questions with an answer")[1].split("all questions")[0]
    assert re.findall(r"\x1b\[1m(\d\.\d+)", answerable) == ["0.250", "0.250"]
    assert len(re.findall(r"(?<!–)1\.000", answerable)) == 2


def test_systems_with_different_measures_do_not_share_a_column() -> None:
    f1 = answer_figures([asked(1, Grade(0.3)), asked(2, Grade(0.6))], scale=Scale("f1"))
    shown = printed(
        [SystemAnswers("one", answer_figures(rows()), False), SystemAnswers("two", f1, False)]
    )
    first, second = shown.split("Answers\n")[1:]
    assert "one" in first
    assert "two" not in first
    assert "f1" in second


def test_scores_of_the_rubric_add_a_column_for_hallucination() -> None:
    made = [asked(1, Score(3, 2, 1)), asked(2, Score(0, 0, 0))]
    shown = printed([SystemAnswers("one", answer_figures(made), False)])
    assert "composite/6" in shown
    assert "halluci-" in shown
    assert "halluci-" not in printed([SystemAnswers("one", answer_figures(rows()), False)])


def test_cost_is_shown_if_models_were_asked_and_marked_if_estimated() -> None:
    figures = answer_figures(rows())
    assert "$1.25" in printed([SystemAnswers("one", figures, False, spent())])
    assert "~$1.25" in printed([SystemAnswers("one", figures, False, spent(estimated=True))])
    assert "cost" not in printed([SystemAnswers("one", figures, False, accounts([]))])


def test_questions_without_a_grade_are_reported_with_their_effect() -> None:
    (line,) = notes([SystemAnswers("one", answer_figures(rows(missing=True)))])
    assert line == (
        "one: 2 of 13 questions have no grade (1 timeout, 1 unjudged); "
        "counted as wrong, accuracy is 0.615, as right 0.769"
    )
    assert notes([SystemAnswers("one", answer_figures(rows()))]) == []


def test_a_judge_without_a_passed_exam_is_named_with_its_scores() -> None:
    assert "not taken an exam" in printed([SystemAnswers("one", answer_figures(rows()), False)])
    failed = exam_line(exam_summary(false_accepts=3, of=60) | {"passed": False})
    assert "failed its exam" in failed
    assert "0.050 [0.0171, 0.1370], 3 of 60" in failed
    assert "cannot be VERIFIED" in failed
    assert "cannot" not in exam_line(exam_summary())
    assert "passed its exam" in page(rows(), exam_summary())


def test_each_of_several_judges_is_named_with_its_own_exam() -> None:
    exams = {"binary,model=a": exam_summary(), "binary,model=b": None}
    shown = page(rows(), exams)
    assert "The judge binary,model=a passed its exam" in shown
    assert "The judge binary,model=b has not taken an exam" in shown
    shown = " ".join(printed([SystemAnswers("one", answer_figures(rows()), False)], exams).split())
    assert "! The judge binary,model=b has not taken an exam" in shown
    assert "! The judge binary,model=a" not in shown


def test_a_run_without_a_judge_has_no_section_on_judges() -> None:
    assert "## Judges" not in page([asked(1, None)], {})


def test_failures_and_cost_can_be_shown_without_the_answers() -> None:
    shown = markdown(failure_sections(diagnose(rows(), {}), spent(), category_name))
    assert [line for line in shown.splitlines() if line.startswith("## ")] == [
        "## Diagnosis",
        "## Tokens and cost",
    ]
    assert failure_sections(None, None, category_name) == []


def test_a_run_in_which_everything_failed_can_be_shown() -> None:
    made = [asked(n, None, status="error") for n in range(3)]
    shown = printed([SystemAnswers("one", answer_figures(made), False)])
    assert "3 of 3 questions have no grade (3 error)" in shown
    assert "0 of 0 judged answers failed." in page(made)
