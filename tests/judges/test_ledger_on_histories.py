"""The ledger judge's ceiling and floor on a simulated life."""

from __future__ import annotations

from statistics import fmean

import pytest

from mnemoscope.datasets.personas import Personas
from mnemoscope.judges import Case
from mnemoscope.judges.ledger_judge import LedgerJudge
from mnemoscope.personas.simulate.history_files import write_history
from mnemoscope.personas.simulate.simulator import simulate
from mnemoscope.personas.simulate.story import shipped_story
from mnemoscope.types import Question, Scenario


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    folder = tmp_path_factory.mktemp("lives")
    write_history(simulate(shipped_story("backend-eng-saas"), 90, 9201), folder)
    return next(iter(Personas(folder, ranges="full", groups=True).scenarios()))


def composite(judge: LedgerJudge, question: Question, answer: str, memories: int) -> int:
    return judge.judge(Case(question, answer, memories=memories)).composite


def test_reference_answers_are_right_and_those_of_other_questions_are_not(life: Scenario) -> None:
    judge = LedgerJudge()
    judge.begin(life)
    seen = len(life.memories)
    questions = life.questions

    own = [composite(judge, question, question.reference, seen) for question in questions]
    others = [
        composite(judge, question, other.reference, seen)
        for place, question in enumerate(questions)
        for other in (questions[place - 1], questions[place - 7])
    ]

    assert fmean(own) >= 5.9
    assert fmean(others) <= 1.5


def test_a_day_of_the_log_itself_holds_nothing_invented(life: Scenario) -> None:
    judge = LedgerJudge()
    judge.begin(life)
    question = next(each for each in life.questions if each.expects == "answer")

    verdicts = [
        judge.judge(Case(question, memory.text, memories=len(life.memories)))
        for memory in life.memories
    ]

    assert [verdict.reasoning for verdict in verdicts if verdict.hallucination == 0] == []


def test_what_has_not_been_seen_yet_counts_as_invented(life: Scenario) -> None:
    judge = LedgerJudge()
    judge.begin(life)
    question = next(
        each for each in life.questions if each.expects == "answer" and each.relevant_days[0] > 60
    )
    later = next(
        each
        for each in life.questions
        if each.expects == "answer" and min(each.relevant_days) > 70 and "202" in each.reference
    )
    said = Case(question, later.reference, memories=1)
    assert judge.judge(said).hallucination == 0
