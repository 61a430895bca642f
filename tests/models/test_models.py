"""Specs of chat models: the models they name, and the errors for wrong ones."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope.models.budget import Budget, open_budget
from mnemoscope.models.chat import Completion, ModelFailure, Prompt, metered
from mnemoscope.models.model import Model
from mnemoscope.models.model_loader import load_model
from mnemoscope.models.prices import FREE, Price, known_price, price_table

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
    try:
        load_model(spec)
    except MnemoscopeError as error:  # of one that is not installed here
        assert "is not a model" not in str(error)


@pytest.mark.parametrize(
    "spec", ["", "bm25", "openai", "openai:", "command:", "m@host", "a b", "openai:gpt-4o?x=1"]
)
def test_these_are_not_models(spec: str) -> None:
    with pytest.raises(UsageError):
        load_model(spec)


def test_the_identity_of_a_model_contains_what_determines_its_replies() -> None:
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


def test_the_identity_of_a_server_is_its_model_and_address() -> None:
    identity = load_model("llama3:8b@http://localhost:11434/v1/").identity()
    assert identity["model"] == "llama3:8b"
    assert identity["endpoint"] == "http://localhost:11434/v1"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("openai:m?temprature=0", "did you mean 'temperature'"),
        ("openai:m?tries=many", "tries=many"),
        ("openai:m?tries=0", "tries is a whole number"),
        ("openai:m?timeout=0", "timeout=0"),
        ("openai:m?timeout=nan", "timeout=nan"),
        ("openai:m?tries=1&tries=2", "twice"),
        ("openai:m?", "cannot read the options"),
        ("azure:m?price_in=1", "two parts"),
        ("smollm2?temperature=0", "smollm2 has no option 'temperature'"),
        ("openai:m@http://localhost/v1", "takes no vendor"),
        ("smolm2", "did you mean 'smollm2'"),
        ("gpt-4o", "openai:MODEL"),
    ],
)
def test_the_error_for_a_wrong_spec_names_the_mistake(spec: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
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
def test_no_sdk_is_needed(sdk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, sdk, None)
    assert load_model(f"{sdk}:m").identity()["provider"] == sdk
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
        ("command:cat", None),
        ("command:cat?price_in=0&price_out=0", FREE),
        ("their_models:Upper", None),
        ("their_models:Upper?price_in=1&price_out=2", Price(1, 2)),
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
        if prompt.user == "leak":
            raise RuntimeError(f"no right for {os.environ['OPENAI_API_KEY']}")
        if prompt.user == "leak in words of ours":
            raise ModelFailure(f"no right for {os.environ['OPENAI_API_KEY']}")
        return "" if prompt.user == "silence" else f"{Speaker.calls}"


@pytest.fixture(autouse=True)
def own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(tmp_path))
    module = ModuleType("their_models")
    module.__dict__.update(Upper=Upper, Speaker=Speaker, Mute=object, Needy=lambda name: None)
    module.__dict__.update(ready=partial(Upper))
    monkeypatch.setitem(sys.modules, "their_models", module)


def test_a_factory_of_the_user_is_a_model() -> None:
    model = load_model("their_models:Upper")
    with metered() as usages:
        assert model.ask(PROMPT) == "U"
    assert (usages[0].input_tokens, usages[0].output_tokens) == (7, 8)
    identity = model.identity()
    assert identity.pop("code") == {__name__: sha256_file(Path(__file__))}
    assert identity == {"provider": "factory", "model": "their_models:Upper", "version": 3}


def test_edited_code_is_another_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))

    def written(reply: str) -> Model:
        (tmp_path / "edited_model.py").write_text(
            "class Says:\n"
            "    def identity(self):\n        return {}\n\n"
            f"    def complete(self, prompt):\n        return {reply!r}\n"
        )
        sys.modules.pop("edited_model", None)
        importlib.invalidate_caches()
        for old in tmp_path.rglob("edited_model*.pyc"):  # its second of writing is the same
            old.unlink()
        return load_model("edited_model:Says")

    first = written("Friday")
    assert first.ask(PROMPT) == "Friday"
    edited = written("Monday")
    assert edited.ask(PROMPT) == "Monday"
    assert first.identity() != edited.identity()


def test_a_factory_without_source_code_is_a_model() -> None:
    assert load_model("their_models:ready").identity()["code"] == {
        __name__: sha256_file(Path(__file__))
    }


def test_a_changed_script_gives_no_old_replies(tmp_path: Path) -> None:
    script = tmp_path / "agent.sh"
    model = load_model(f"command:sh {script}")
    replies = []
    for reply in ("Friday", "Monday"):
        script.write_text(f"cat > /dev/null; echo {reply}\n")
        replies.append(model.ask(PROMPT))
    assert replies == ["Friday", "Monday"]


@pytest.mark.parametrize("spec", ["command:cat", "their_models:Upper"])
def test_a_model_of_unknown_price_is_refused_under_a_budget(spec: str, tmp_path: Path) -> None:
    open_budget(Budget(1.0, 0.0, 1, tmp_path / "budget.lock"))
    try:
        with pytest.raises(UsageError, match=r"model costs nothing: .*\?price_in=…&price_out=…"):
            load_model(spec).ask(PROMPT)
        assert load_model(f"{spec}?price_in=0&price_out=0").ask(PROMPT)
    finally:
        open_budget(None)


def test_a_factory_without_identity_is_never_cached() -> None:
    model = load_model("their_models:Speaker")
    assert model.ask(PROMPT) != model.ask(PROMPT)


def test_an_error_inside_a_factory_fails_its_prompt_only() -> None:
    with pytest.raises(ModelFailure, match="KeyError"):
        load_model("their_models:Speaker").ask(Prompt("s", "crash"))
    with pytest.raises(ModelFailure, match="empty reply"):
        load_model("their_models:Speaker?tries=1").ask(Prompt("s", "silence"))


@pytest.mark.parametrize("user", ["leak", "leak in words of ours"])
def test_a_key_in_the_error_of_a_factory_is_removed(
    user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hunter2")
    with pytest.raises(ModelFailure, match=r"no right for …$"):
        load_model("their_models:Speaker").ask(Prompt("s", user))


@pytest.mark.parametrize("name", ["Mute", "Needy", "Nothing"])
def test_a_factory_that_makes_no_model_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        load_model(f"their_models:{name}")


def test_a_command_may_contain_question_marks() -> None:
    assert load_model("command:cat ?x=1").name == "command:cat ?x=1"
    assert load_model("command:cat?tries=2").name == "command:cat"


def test_identities_contain_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AZURE_OPENAI_API_KEY", "MNEMOSCOPE_MODEL_KEY")
    for name in names:
        monkeypatch.setenv(name, "hunter2")
    for spec in ("openai:m", "anthropic:m", "azure:m", "m@http://localhost/v1"):
        assert "hunter2" not in json.dumps(load_model(spec).identity())
