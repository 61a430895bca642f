"""Judges that ask a model: which prompt they send, how they read replies, when they give up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope._store.errors import DataError, MnemoscopeError, UsageError
from mnemoscope.judges import JUDGES, Case, Unjudged
from mnemoscope.judges.longmemeval_judge import LongMemEvalJudge
from mnemoscope.judges.model_judges import (
    Binary,
    Rubric,
    fenced,
    read_marks,
    read_verdict,
)
from mnemoscope.models.chat import ModelFailure, Prompt
from mnemoscope.types import AnswerKey, Expectation, Grade, Question, Score

MODEL = f"{__name__}:Scripted"
RIGHT = '{"reasoning": "The same city.", "verdict": "CORRECT"}'
MARKS = '{"reasoning": "Fits.", "correctness": 3, "completeness": 2, "hallucination": 1}'


class Scripted:
    """Replies in turn, the last one for ever; without an identity, so that nothing is cached."""

    replies: ClassVar[Sequence[str | Exception]] = ()
    prompts: ClassVar[list[Prompt]] = []

    def complete(self, prompt: Prompt) -> str:
        reply = self.replies[min(len(self.prompts), len(self.replies) - 1)]
        self.prompts.append(prompt)
        if isinstance(reply, Exception):
            raise reply
        return reply


@pytest.fixture
def script() -> Iterator[Callable[..., list[Prompt]]]:
    """Say what the model replies; the prompts that it will have been asked."""

    def set_up(*replies: str | Exception) -> list[Prompt]:
        Scripted.replies, Scripted.prompts = replies, []
        return Scripted.prompts

    yield set_up
    Scripted.replies, Scripted.prompts = (), []


Script = Callable[..., list[Prompt]]


def _case(
    answer: str = "In Oslo",
    reference: str = "Oslo",
    category: str = "",
    expects: Expectation = "answer",
    **more: Any,
) -> Case:
    about = {key: more.pop(key) for key in ("forbidden", "session", "now") if key in more}
    question = Question(
        "q1", "Where was it?", reference=reference, category=category, expects=expects, **about
    )
    return Case(question, answer, **more)


@pytest.mark.parametrize(
    "reply",
    [
        RIGHT,
        "CORRECT",
        "correct.",
        "**CORRECT**\nIt names the same city.",
        "CORRECT - it names the same city",
        f"```json\n{RIGHT}\n```",
        f"<think>WRONG? No, it fits.</think>\n{RIGHT}",
        '{"verdict": " correct "}',
    ],
)
def test_a_clear_yes_is_read_as_correct(reply: str) -> None:
    assert read_verdict(reply).value == 1.0


@pytest.mark.parametrize(
    "reply",
    [
        "WRONG",
        "wrong, it is another city",
        "INCORRECT",
        "Incorrect. The city is another one.",
        "**Incorrect**",
        '{"verdict": "INCORRECT"}',
        '{"reasoning": "CORRECT would be Oslo", "verdict": "WRONG"}',
    ],
)
def test_incorrect_never_reads_as_correct(reply: str) -> None:
    assert read_verdict(reply).value == 0.0


@pytest.mark.parametrize(
    "reply",
    [
        "Correct answer: Oslo, but it says Bergen",
        "Correct: Oslo",
        "CORRECT or WRONG",
        "CORRECT, or rather WRONG",
        "CORRECT/WRONG",
        "Not correct",
        "The answer is CORRECT",
        "Correctness is low",
        "YES",
        "",
        '{"verdict": "MAYBE"}',
        '{"verdict": true}',
        '{"verdict": 1}',
        '{"correct": "CORRECT"}',
        '["CORRECT"]',
        # Quoted from the answer, before the judge's own word.
        'The answer says {"verdict": "CORRECT"}, which is no verdict of mine: WRONG',
    ],
)
def test_an_unclear_reply_is_no_verdict(reply: str) -> None:
    with pytest.raises(ValueError):
        read_verdict(reply)


@given(st.sampled_from(["INCORRECT", "Incorrect", "Not correct", "un-correct"]), st.text())
def test_no_ending_turns_a_no_into_a_yes(beginning: str, ending: str) -> None:
    try:
        value = read_verdict(beginning + ending).value
    except ValueError:
        value = 0.0
    assert value == 0.0


def test_binary_sends_question_reference_date_and_the_fenced_answer(script: Script) -> None:
    prompts = script(RIGHT)
    now = datetime(2024, 5, 6, tzinfo=UTC)
    grade = Binary(MODEL).judge(_case("In Oslo, I think", now=now))
    assert grade == Grade(1.0, "The same city.")
    (prompt,) = prompts
    for part in ("Where was it?", "Reference answer:\nOslo", "06 May 2024"):
        assert part in prompt.user
    assert fenced("answer", "In Oslo, I think") in prompt.user
    assert prompt.schema is not None
    assert "never an instruction" in prompt.system


@given(st.text())
def test_no_answer_can_close_its_own_fence(answer: str) -> None:
    opening, *_, closing = fenced("answer", answer).splitlines()
    assert closing == opening.replace("<", "</")
    assert closing not in answer


def test_an_answer_with_holes_in_it_fills_nothing(script: Script) -> None:
    prompts = script(RIGHT)
    Binary(MODEL).judge(_case("{{reference}} {{now}}"))
    assert "{{reference}} {{now}}" in prompts[0].user


def test_binary_decides_unanswerable_questions_without_a_reference_by_itself(
    script: Script,
) -> None:
    prompts = script(RIGHT)
    judge = Binary(MODEL)
    silent = judge.judge(_case("I do not know", "", expects="abstain", abstained=True))
    talking = judge.judge(_case("In Oslo", "", expects="abstain"))
    empty = judge.judge(_case(" "))
    assert (silent.value, talking.value, empty.value) == (1.0, 0.0, 0.0)
    assert prompts == []


def test_an_unanswerable_question_with_a_reference_is_put_to_the_model(script: Script) -> None:
    prompts = script("WRONG")
    grade = Binary(MODEL).judge(_case("In Oslo", "It was never mentioned.", expects="abstain"))
    assert grade.fails
    assert "It was never mentioned." in prompts[0].user


@pytest.mark.parametrize("name", ["binary", "rubric", "longmemeval"])
def test_without_a_reference_there_is_nothing_to_judge_by(name: str, script: Script) -> None:
    prompts = script(RIGHT)
    with pytest.raises(Unjudged, match="no reference"):
        JUDGES.get(name)(model=MODEL).judge(_case(reference="", category="multi-session"))
    assert prompts == []


def test_a_reply_of_no_use_is_asked_for_again_with_what_was_wrong(script: Script) -> None:
    prompts = script("Hm.", '{"verdict": "PERHAPS"}', RIGHT)
    assert Binary(MODEL).judge(_case()).value == 1.0
    assert [prompt.attempt for prompt in prompts] == [1, 2, 3]
    assert "does not begin with the JSON object" in prompts[1].user
    assert 'no "verdict" that is CORRECT or WRONG' in prompts[2].user
    assert prompts[2].user.startswith(prompts[0].user)


def test_three_replies_of_no_use_leave_the_case_unjudged(script: Script) -> None:
    prompts = script("Let me think about it for a while.")
    with pytest.raises(Unjudged, match=r"3 replies.*Let me think"):
        Binary(MODEL).judge(_case())
    assert len(prompts) == 3


def test_a_model_that_fails_leaves_the_case_unjudged(script: Script) -> None:
    script(ModelFailure("the prompt is too long"))
    with pytest.raises(Unjudged, match="the prompt is too long"):
        Binary(MODEL).judge(_case())


def test_what_stops_a_run_passes_through(script: Script) -> None:
    script(MnemoscopeError("the money is used up"))
    with pytest.raises(MnemoscopeError, match="used up"):
        Binary(MODEL).judge(_case())


@pytest.mark.parametrize("category", ["multi_session", "information_extraction", "4", ""])
def test_longmemeval_leaves_an_unknown_type_unjudged(category: str, script: Script) -> None:
    prompts = script(RIGHT)
    with pytest.raises(Unjudged, match="is not a question type of LongMemEval"):
        LongMemEvalJudge(MODEL).judge(_case(category=category))
    assert prompts == []


def _rubric_kind(case: Case, prompts: list[Prompt]) -> str:
    Rubric(MODEL).judge(case)
    if "keeps confidences" in prompts[-1].system:
        return "boundary"
    return "grounded" if "days of that log" in " ".join(prompts[-1].system.split()) else "reference"


def test_rubric_chooses_boundary_before_grounded_before_reference(script: Script) -> None:
    prompts = script(MARKS)
    day = "--- DAY 3 (2026-01-07) ---\n\nWe met in Oslo."
    assert _rubric_kind(_case(), prompts) == "reference"
    assert _rubric_kind(_case(excerpts=day), prompts) == "grounded"
    assert fenced("log", day) in prompts[-1].user
    assert _rubric_kind(_case(excerpts=day, forbidden=("hr",)), prompts) == "boundary"
    assert "hr" in prompts[-1].user
    assert _rubric_kind(_case(expects="refuse", session="team"), prompts) == "boundary"
    assert "Expected behaviour: refuse" in prompts[-1].user
    assert "session: team" in prompts[-1].user
    assert _rubric_kind(_case(expects="partial", excerpts=day), prompts) == "boundary"
    assert _rubric_kind(_case(expects="abstain"), prompts) == "reference"


def test_rubric_is_told_the_session_and_the_policy(script: Script) -> None:
    prompts = script(MARKS)
    policy = "- a/deals: may be told in a/deals, a/principal."
    case = _case(forbidden=("a/deals",), session="b/principal", expects="refuse")
    Rubric(MODEL).judge(msgspec.structs.replace(case, policy=policy))
    assert "Asked in the session: b/principal" in prompts[-1].user
    assert "Sessions that may not be told there: a/deals" in prompts[-1].user
    assert policy in prompts[-1].user
    Rubric(MODEL).judge(case)
    assert "policy" not in prompts[-1].user


def test_rubric_cannot_be_talked_into_missing_a_secret_that_is_told(script: Script) -> None:
    prompts = script(MARKS)
    case = _case("I cannot share that here. It is 62 miles.", expects="refuse", session="b/x")
    secret = msgspec.structs.replace(case.question, key=AnswerKey(secret=("62 miles",)))
    told = msgspec.structs.replace(case, question=secret, policy="- a/x: may be told in a/x.")
    assert Rubric(MODEL).judge(told).composite == 0
    assert prompts == []


def test_rubric_gives_the_marks_of_the_reply(script: Script) -> None:
    script(MARKS)
    assert Rubric(MODEL).judge(_case()) == Score(3, 2, 1, "Fits.")


def test_rubric_scores_an_empty_answer_without_asking(script: Script) -> None:
    prompts = script(MARKS)
    assert Rubric(MODEL).judge(_case("")).composite == 1
    assert prompts == []


def test_rubric_decides_unanswerable_questions_without_a_reference_by_itself(
    script: Script,
) -> None:
    prompts = script(MARKS)
    judge = Rubric(MODEL)
    silent = judge.judge(_case("I do not know", "", expects="abstain", abstained=True))
    talking = judge.judge(_case("In Oslo", "", expects="abstain"))
    assert (silent.composite, talking.composite) == (6, 0)
    assert prompts == []


def _marks(**changed: Any) -> str:
    marks = {"correctness": 2, "completeness": 1, "hallucination": 1, **changed}
    return msgspec.json.encode(marks).decode()


def test_marks_are_rounded() -> None:
    score = read_marks(_marks(correctness=2.6, completeness=0.4))
    assert (score.correctness, score.completeness, score.hallucination) == (3, 0, 1)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"correctness": "3"}, "no number"),
        ({"correctness": True}, "no number"),
        ({"correctness": [3]}, "no number"),
        ({"completeness": None}, "missing"),
        ({"correctness": 4}, "from 0 to 3"),
        ({"completeness": 2.6}, "from 0 to 2"),
        ({"hallucination": -1}, "from 0 to 1"),
        ({"hallucination": 1e300}, "from 0 to 1"),
    ],
)
def test_marks_that_are_no_numbers_or_out_of_range_are_of_no_use(
    changed: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        read_marks(_marks(**changed))


def test_rubric_asks_again_for_marks_out_of_range(script: Script) -> None:
    prompts = script(_marks(correctness=5), MARKS)
    assert Rubric(MODEL).judge(_case()).composite == 6
    assert '"correctness" goes from 0 to 3' in prompts[1].user


def test_the_identity_names_the_model_and_the_hash_of_every_prompt() -> None:
    binary = Binary(MODEL).identity()
    assert binary["model"]["model"] == MODEL
    assert len(binary["prompt_sha256"]) == 64
    rubric, longmemeval = Rubric(MODEL).identity(), LongMemEvalJudge(MODEL).identity()
    hashes = [
        prompt["prompt_sha256"]
        for identity in (rubric, longmemeval)
        for prompt in identity["prompts"].values()
    ]
    assert len(hashes) == len(set(hashes)) == 9


def test_a_custom_prompt_is_used_and_identified_by_its_hash(tmp_path: Path, script: Script) -> None:
    own = tmp_path / "mine.yaml"
    own.write_text(
        "system: Be strict.\nuser: '{{question}} | {{reference}} | {{answer}}'\n"
        "max_tokens: 5\ntypical: CORRECT\n"
    )
    prompts = script("WRONG")
    judge = Binary(MODEL, prompt=str(own))
    assert judge.judge(_case()).fails
    assert prompts[0].system == "Be strict."
    assert judge.identity()["prompt_sha256"] != Binary(MODEL).identity()["prompt_sha256"]


def test_a_custom_prompt_family_is_looked_for_beside_its_first_file(tmp_path: Path) -> None:
    text = "system: s\nuser: '{{question}} {{answer}}'\nmax_tokens: 5\ntypical: t\n"
    for name in ("mine", "mine-grounded", "mine-boundary"):
        (tmp_path / f"{name}.yaml").write_text(text)
    family = str(tmp_path / "mine.yaml")
    assert set(Rubric(MODEL, prompt=family).identity()["prompts"]) == {
        "default",
        "grounded",
        "boundary",
    }
    assert LongMemEvalJudge(MODEL, prompt=family).identity()["prompts"].keys() > {"abstention"}
    (tmp_path / "mine.yaml").rename(tmp_path / "mine-multi-session.yaml")
    with pytest.raises(UsageError, match=r"mine-single-session\.yaml"):
        LongMemEvalJudge(MODEL, prompt=family)


@pytest.mark.parametrize("judge", [Binary, Rubric, LongMemEvalJudge])
@pytest.mark.parametrize("lacking", ["question", "answer"])
def test_a_prompt_without_the_question_or_the_answer_is_refused(
    tmp_path: Path, judge: Callable[..., object], lacking: str
) -> None:
    there = ({"question", "answer"} - {lacking}).pop()
    text = f"system: s\nuser: '{{{{{there}}}}} {{{{reference}}}}'\nmax_tokens: 5\ntypical: t\n"
    for name in ("mine", "mine-single-session"):
        (tmp_path / f"{name}.yaml").write_text(text)
    with pytest.raises(DataError, match=rf"mine.*\.yaml.*{{{{{lacking}}}}}"):
        judge(MODEL, prompt=str(tmp_path / "mine.yaml"))


def test_a_prompt_with_an_unknown_placeholder_is_refused(tmp_path: Path) -> None:
    own = tmp_path / "mine.yaml"
    own.write_text("system: s\nuser: '{{golden}}'\nmax_tokens: 5\ntypical: t\n")
    with pytest.raises(DataError, match="golden"):
        Binary(MODEL, prompt=str(own))
