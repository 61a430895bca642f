"""Checks a judge without a model: its scale, and whether its grades follow the reference."""

from __future__ import annotations

from mnemoscope.judges import Case, Judge, Unjudged, scale_of
from mnemoscope.types import Grade, Memory, Question, Scenario, Score

_CASES = {
    "Where does Eve live?": ("She lives in Oslo", "The ferry was late"),
    "How many crates were there?": ("There were 12 crates", "No idea about lorries"),
    "Who is Rex?": ("Rex is the dog of Bob", "A blue boat"),
}


def check_judge(judge: Judge) -> list[str]:
    """The problems of the judge, one sentence each."""
    scale = scale_of(judge)
    if scale is None:
        return ["it declares no scale: set `scale = Scale(name, low, high)` in its class"]
    problems: dict[str, None] = {}
    questions = [
        Question(f"q{number}", text, reference=right, evidence=("m1",), category="all")
        for number, (text, (right, _)) in enumerate(_CASES.items())
    ]
    scenario = Scenario("check", (Memory("m1", "Eve lives in Oslo"),), tuple(questions))
    judge.begin(scenario)
    for question in questions:
        right, wrong = _CASES[question.text]
        values = []
        for answer in (right, wrong, "", right):
            try:
                verdict = judge.judge(Case(question, answer, memories=1))
            except Unjudged:
                continue
            except Exception as error:
                problems[f"judge() raised {type(error).__name__}: {error}"] = None
                continue
            if not isinstance(verdict, Grade | Score):
                problems[f"judge() returned {type(verdict).__name__}, not a Grade or Score"] = None
                continue
            value = verdict.value if isinstance(verdict, Grade) else float(verdict.composite)
            if not scale.holds(value):
                problems[f"a grade of {value:g} is not on its scale, {scale.range}"] = None
            values.append((answer, value))
        grades = dict(values)
        if right in grades and wrong in grades and not grades[right] > grades[wrong]:
            problems["the reference as answer does not get a better grade than a wrong answer"] = (
                None
            )
        if len({value for answer, value in values if answer == right}) > 1:
            problems["the same case gets different grades"] = None
    return list(problems)
