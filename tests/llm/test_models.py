"""Specs of chat models: what they mean, and what is said about those that mean nothing."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mnemoscope.core.errors import MissingExtra, UsageError
from mnemoscope.llm.chat import Completion, ModelFailure, Prompt, metered
from mnemoscope.llm.models import is_model, load_model
from mnemoscope.llm.prices import FREE, Price, known_price, price_table

PROMPT = Prompt("s", "u")


@pytest.mark.parametrize(
    "spec",
    [
        "openai:gpt-4o-mini",
        "anthropic:claude-haiku-4-5",
        "azure:my-deployment",
        "llama3:8b@http://localhost:11434/v1",
        "org/model-7B@https://gpu.example.org/v1",
        "claude",
        "codex",
        "copilot",
        "command:ollama run llama3",
        "smollm2",
        "estimate:openai:gpt-4o",
        "estimate:m@http://localhost/v1",
        "my_package.models:Factory",
        "openai:gpt-4o?temperature=1&timeout=5",
    ],
)
def test_these_are_models(spec: str) -> None:
    assert is_model(spec)


@pytest.mark.parametrize(
    "spec", ["", "bm25", "openai", "openai:", "command:", "m@host", "a b", "openai:gpt-4o?x=1"]
)
def test_these_are_none(spec: str) -> None:
    assert not is_model(spec)
    with pytest.raises(UsageError):
        load_model(spec)


def test_a_model_is_known_by_what_decides_its_replies() -> None:
    plain = load_model("openai:gpt-4o-mini")
    assert plain.name == "openai:gpt-4o-mini"
    assert plain.identity() == {
        "provider": "openai",
        "model": "gpt-4o-mini",
        "endpoint": "https://api.openai.com/v1",
        "temperature": 0.0,
    }
    same = load_model("openai:gpt-4o-mini?price_in=1&price_out=2&timeout=9&tries=2")
    assert same.identity() == plain.identity()
    assert load_model("openai:gpt-4o-mini?temperature=0.7").identity() != plain.identity()


def test_a_server_is_known_by_model_and_address() -> None:
    identity = load_model("llama3:8b@http://localhost:11434/v1/").identity()
    assert identity["model"] == "llama3:8b"
    assert identity["endpoint"] == "http://localhost:11434/v1"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("openai:m?temprature=0", "did you mean 'temperature'"),
        ("openai:m?tries=many", "tries=many"),
        ("openai:m?tries=0", "tries is a whole number"),
        ("openai:m?timeout=0", "timeout=0"),
        ("openai:m?timeout=nan", "timeout=nan"),
        ("openai:m?tries=1&tries=2", "twice"),
        ("openai:m?", "cannot read the options"),
        ("azure:m?price_in=1", "two sides"),
        ("smollm2?temperature=0", "smollm2 has no 'temperature'"),
        ("openai:m@http://localhost/v1", "has no vendor"),
        ("smolm2", "did you mean 'smollm2'"),
        ("gpt-4o", "openai:MODEL"),
    ],
)
def test_a_wrong_spec_is_told_what_is_wrong(spec: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load_model(spec)


@pytest.mark.parametrize(
    "spec",
    [
        "m@https://someone:hunter2@host/v1",
        "m@https://host/v1?api_key=hunter2",
        "m@https://host/v1?api_key=/hunter2",
        "m@https://host/v1#hunter2",
    ],
)
def test_an_address_with_a_secret_in_it_is_refused_and_not_repeated(spec: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_model(spec)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
def test_a_missing_sdk_names_the_extra(sdk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "mnemoscope.llm.models.find_spec", lambda name: None if name == sdk else real(name)
    )
    with pytest.raises(MissingExtra, match=rf"mnemoscope\[{sdk}\]"):
        load_model(f"{sdk}:m")
    assert load_model(f"estimate:{sdk}:m").ask(Prompt("s", "u", typical="t")) == "t"


def test_listed_prices_cover_dated_releases_and_nothing_else() -> None:
    assert known_price("openai", "gpt-4o-mini") == Price(0.15, 0.6)
    assert known_price("openai", "gpt-4o-2024-11-20") == Price(2.5, 10)
    assert known_price("openai", "gpt-4o-2024-05-13") == Price(5, 15)
    assert known_price("anthropic", "claude-haiku-4-5-20251001") == Price(1, 5)
    assert known_price("openai", "gpt-4o-audio-preview") is None
    assert known_price("openai", "gpt-5.1") is None
    assert known_price("nobody", "gpt-4o") is None


def test_every_vendor_in_the_table_has_a_source_and_sensible_prices() -> None:
    table = price_table()
    assert table.written == "2026-11"
    for vendor in table.vendors.values():
        assert vendor.source.startswith("https://")
        assert all(0 < rate.input < rate.output < 1000 for rate in vendor.models.values())


@pytest.mark.parametrize(
    ("spec", "price"),
    [
        ("openai:gpt-4o-mini", Price(0.15, 0.6)),
        ("openai:gpt-4o-mini?price_in=1", Price(1, 0.6)),
        ("openai:unheard-of", None),
        ("openai:unheard-of?price_in=1&price_out=2", Price(1, 2)),
        ("m@http://localhost:8000/v1", FREE),
        ("m@http://gpu-box:8000/v1", FREE),
        ("m@http://10.1.2.3/v1", FREE),
        ("m@https://api.example.com/v1", None),
        ("m@http://localhost/v1?price_in=1&price_out=2", Price(1, 2)),
        ("command:cat", FREE),
        ("estimate:openai:gpt-4o", Price(2.5, 10)),
    ],
)
def test_prices_are_listed_given_or_not_known(spec: str, price: Price | None) -> None:
    assert load_model(spec).price == price


class Upper:
    def identity(self) -> dict[str, Any]:
        return {"version": 3}

    def complete(self, prompt: Prompt) -> Completion:
        return Completion(prompt.user.upper(), 7, 8)


class Speaker:
    """No identity, and strings."""

    calls = 0

    def complete(self, prompt: Prompt) -> str:
        Speaker.calls += 1
        if prompt.user == "crash":
            raise KeyError("inside")
        return "" if prompt.user == "silence" else f"{Speaker.calls}"


@pytest.fixture(autouse=True)
def own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(tmp_path))
    module = ModuleType("their_models")
    module.__dict__.update(Upper=Upper, Speaker=Speaker, Mute=object, Needy=lambda name: None)
    monkeypatch.setitem(sys.modules, "their_models", module)


def test_anybodys_factory_is_a_model() -> None:
    model = load_model("their_models:Upper")
    with metered() as usages:
        assert model.ask(PROMPT) == "U"
    assert (usages[0].input_tokens, usages[0].output_tokens) == (7, 8)
    assert model.identity() == {"provider": "factory", "model": "their_models:Upper", "version": 3}


def test_a_factory_without_identity_is_never_cached() -> None:
    model = load_model("their_models:Speaker")
    assert model.ask(PROMPT) != model.ask(PROMPT)


def test_what_breaks_inside_a_factory_fails_its_prompt_only() -> None:
    with pytest.raises(ModelFailure, match="KeyError"):
        load_model("their_models:Speaker").ask(Prompt("s", "crash"))
    with pytest.raises(ModelFailure, match="empty reply"):
        load_model("their_models:Speaker?tries=1").ask(Prompt("s", "silence"))


@pytest.mark.parametrize("name", ["Mute", "Needy", "Nothing"])
def test_a_factory_that_makes_no_model_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        load_model(f"their_models:{name}")


def test_a_command_may_hold_question_marks() -> None:
    assert load_model("command:cat ?x=1").name == "command:cat ?x=1"
    assert load_model("command:cat?tries=2").name == "command:cat"


def test_no_identity_holds_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AZURE_OPENAI_API_KEY", "MNEMOSCOPE_MODEL_KEY")
    for name in names:
        monkeypatch.setenv(name, "hunter2")
    for spec in ("openai:m", "anthropic:m", "azure:m", "m@http://localhost/v1"):
        assert "hunter2" not in json.dumps(load_model(spec).identity())
