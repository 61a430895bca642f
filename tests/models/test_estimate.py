"""Estimates: how close they are to a real vocabulary, and that they make no request."""

from __future__ import annotations

import importlib.util
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.optional import missing

from mnemoscope.models.chat import Prompt, metered
from mnemoscope.models.model_loader import load_model
from mnemoscope.models.prompts import load_prompt
from mnemoscope.models.providers.wrappers import count_tokens


def o200k() -> Any:
    if importlib.util.find_spec("bpe_openai") is None:
        missing("bpe-openai is not installed")
    import bpe_openai

    return bpe_openai.get_encoding("o200k_base")


def answer_prompts(data: Path, memories: int) -> list[str]:
    fill = load_prompt("answer", frozenset({"context", "now", "question"})).fill
    prompts = []
    for sample in json.loads(data.read_text())[:4]:
        said = sample["conversation"]
        turns = [
            f"- {said[f'session_{n}_date_time']}: {turn['speaker']}: {turn['text']}"
            for n in range(1, 40)
            for turn in said.get(f"session_{n}", [])
        ]
        for number, asked in enumerate(sample["qa"][:15]):
            context = "\n".join(turns[number * 7 : number * 7 + memories])
            prompt = fill(context=context, now="8 May 2023", question=str(asked["question"]))
            prompts.append(f"{prompt.system}\n{prompt.user}")
    return prompts


@pytest.mark.parametrize("memories", [1, 10, 100, 1000])
def test_the_estimate_is_near_the_real_count_on_locomo(
    shared_data: Callable[[str], Path], memories: int
) -> None:
    encoding = o200k()
    prompts = answer_prompts(shared_data("locomo") / "locomo10.json", memories)
    real = [len(encoding.encode(prompt)) for prompt in prompts]
    estimated = [count_tokens(prompt) for prompt in prompts]
    assert sum(estimated) == pytest.approx(sum(real), rel=0.06)
    assert all(abs(e - r) <= 0.12 * r for e, r in zip(estimated, real, strict=True))


@pytest.mark.parametrize("text", ["你好世界，今天天气很好", "Wie schön, dass du kommst", "😀 123"])
def test_other_scripts_are_counted_to_the_right_magnitude(text: str) -> None:
    assert 0.5 <= count_tokens(text) / len(o200k().encode(text)) <= 2


def test_an_empty_text_has_no_tokens() -> None:
    assert count_tokens("") == 0


def test_an_estimate_gives_the_typical_reply_at_the_models_price_without_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_socket(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", no_socket)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model = load_model("estimate:openai:gpt-4o-mini")
    with metered() as usages:
        reply = model.ask(Prompt("Be brief.", "When is the meeting?", typical="On Friday."))
    [usage] = usages
    assert reply == "On Friday."
    assert usage.cost == pytest.approx(
        (usage.input_tokens * 0.15 + usage.output_tokens * 0.6) / 1e6
    )
    assert usage.paid == 0.0
    assert usage.estimated


def test_the_identity_of_an_estimate_differs_from_its_model() -> None:
    real = load_model("openai:gpt-4o-mini").identity()
    assert load_model("estimate:openai:gpt-4o-mini").identity() == {**real, "estimate": True}
