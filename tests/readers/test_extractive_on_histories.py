"""The extractive reader on a simulated life: good where it is shown the evidence."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean

import pytest

from mnemoscope.datasets.personas import Personas
from mnemoscope.judges import Case
from mnemoscope.judges.ledger_judge import LedgerJudge
from mnemoscope.personas.simulate.history_files import write_history
from mnemoscope.personas.simulate.simulator import simulate
from mnemoscope.personas.simulate.story import shipped_story
from mnemoscope.readers import Passage
from mnemoscope.readers.extractive import Extractive
from mnemoscope.types import Query, Question, Scenario


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    folder = tmp_path_factory.mktemp("lives")
    write_history(simulate(shipped_story("backend-eng-saas"), 120, 9202), folder)
    return next(iter(Personas(folder, ranges="full", groups=True).scenarios()))


def evidence(life: Scenario, question: Question) -> list[Passage]:
    return [
        Passage(memory.id, memory.text, memory.at, memory.session)
        for memory in life.memories
        if memory.id in question.evidence
    ]


def test_with_the_evidence_before_it_most_answers_are_right(life: Scenario) -> None:
    reader, judge = Extractive(form="sentences"), LedgerJudge()
    judge.begin(life)
    scores: dict[str, list[int]] = defaultdict(list)
    for question in life.questions:
        if question.expects == "answer":
            reply = reader.read(Query(question.text), evidence(life, question))
            case = Case(question, reply.text, bool(reply.abstained), memories=len(life.memories))
            scores[question.category].append(judge.judge(case).composite)

    assert fmean(fmean(own) for own in scores.values()) >= 4.8
    assert fmean(scores["factual-recall"]) >= 5


def test_it_says_nothing_that_no_passage_says(life: Scenario) -> None:
    reader = Extractive(form="sentences")
    for question in life.questions[:40]:
        passages = evidence(life, question)
        reply = reader.read(Query(question.text), passages)
        if not reply.abstained:
            text = " ".join(" ".join(passage.text for passage in passages).split())
            assert all(line.partition("] ")[2] in text for line in reply.text.splitlines())


def test_without_evidence_it_abstains(life: Scenario) -> None:
    reader = Extractive(form="sentences")
    assert all(reader.read(Query(question.text), []).abstained for question in life.questions)
