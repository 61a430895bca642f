"""The default embedder compared with its package, and embedders by name."""

from __future__ import annotations

import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.optional import missing
from tokenizers import Tokenizer

from mnemoscope._store.errors import MissingExtra, UsageError
from mnemoscope.models import EMBEDDERS, load_embedder
from mnemoscope.models.embedders import WordLlamaEmbedder, _word_llama, require

SENTENCES = [
    "Ana moved to Lisbon in March.",
    "  two  spaces   and\ttabs\nand lines  ",
    "naïve café, 東京, 🦊 and 3.14159",
    "<s> special </s> tokens <unk> inside",
    "▁ a literal mark ▁▁",
    "x",
    "word " * 3000,
]

# Characters on which a tokenizer can stumble, beside any others.
tricky = st.text(st.one_of(st.sampled_from(" ▁\n\t<>/sunk.a'é東🦊"), st.characters(codec="utf-8")))
texts_of_any_kind = st.one_of(tricky, st.sampled_from(SENTENCES[:6]))

EMBEDDER = WordLlamaEmbedder()
TOKENIZER = Tokenizer.from_file(str(EMBEDDER._tokenizer))


def packages_own(texts: list[str]) -> NDArray[np.float32]:
    import wordllama

    folder = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    vectors: NDArray[np.float32] = model.embed(texts, norm=True)
    return vectors


def test_vectors_equal_the_packages_own() -> None:
    np.testing.assert_allclose(EMBEDDER.embed(SENTENCES), packages_own(SENTENCES), atol=1e-5)


def test_rows_have_length_one() -> None:
    rows = EMBEDDER.embed(SENTENCES)
    assert rows.dtype == np.float32
    assert rows.shape == (len(SENTENCES), 256)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("texts", [[""], ["", "", ""], ["", "a b", ""], ["a b", ""]])
def test_an_empty_text_gives_zeros_and_does_not_change_other_rows(texts: list[str]) -> None:
    rows = EMBEDDER.embed(texts)
    for row, text in zip(rows, texts, strict=True):
        expected = EMBEDDER.embed([text])[0] if text else np.zeros(256)
        np.testing.assert_array_equal(row, expected)


def test_no_texts_give_no_rows() -> None:
    assert EMBEDDER.embed([]).shape == (0, 256)


@given(st.lists(texts_of_any_kind, max_size=12))
@settings(deadline=None)
def test_a_vector_does_not_depend_on_the_batch(texts: list[str]) -> None:
    together = EMBEDDER.embed(texts)
    alone = [EMBEDDER.embed([text])[0] for text in texts]
    assert [row.tobytes() for row in together] == [row.tobytes() for row in alone]
    assert np.isfinite(together).all()


@given(tricky)
@settings(deadline=None, max_examples=300)
def test_tokenising_piece_by_piece_gives_the_tokenizers_own_ids(text: str) -> None:
    _, tokenise = _word_llama(EMBEDDER._weights, EMBEDDER._tokenizer)
    whole = TOKENIZER.encode(text, add_special_tokens=False).ids
    assert tokenise(text).tolist() == whole


def test_no_token_of_the_vocabulary_reaches_into_the_next_word() -> None:
    vocabulary = TOKENIZER.get_vocab()
    assert [token for token in vocabulary if "▁" in token.lstrip("▁")] == []


def test_the_memory_of_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    many = " ".join(f"word{n}" for n in range(100))
    expected = EMBEDDER.embed([many])
    fresh = _word_llama.__wrapped__(EMBEDDER._weights, EMBEDDER._tokenizer)
    monkeypatch.setattr("mnemoscope.models.embedders._MEMO_PIECES", 10)
    monkeypatch.setattr("mnemoscope.models.embedders._word_llama", lambda *files: fresh)
    np.testing.assert_array_equal(EMBEDDER.embed([many]), expected)
    memo = inspect.getclosurevars(fresh[1]).nonlocals["ids_of"]
    assert 0 < len(memo) <= 10


def test_identity_names_weights_without_loading_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnemoscope.models.embedders._word_llama", None)
    identity = WordLlamaEmbedder().identity()
    assert len(str(identity["weights_sha256"])) == 64
    assert str(identity["package"]).startswith("wordllama ")


def test_all_embedders_of_a_process_share_the_vectors() -> None:
    before = _word_llama.cache_info()
    assert WordLlamaEmbedder().embed(["a"]).tobytes() == WordLlamaEmbedder().embed(["a"]).tobytes()
    after = _word_llama.cache_info()
    assert (after.currsize, after.misses) == (1, max(before.misses, 1))


def test_importing_the_package_loads_no_model_and_no_sdk() -> None:
    heavy = "wordllama", "onnxruntime", "onnx", "torch", "openai", "tokenizers", "safetensors"
    code = (
        "import sys, mnemoscope.models, "
        "mnemoscope.models.onnx_embedders, "
        "mnemoscope.models.remote_embedders; "
        f"sys.exit(' '.join(set({heavy}) & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "")


def test_embedding_leaves_the_root_logger_alone() -> None:
    code = (
        "import logging, mnemoscope.models as llm; llm.load_embedder('wordllama').embed(['a']); "
        "raise SystemExit(len(logging.getLogger().handlers))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_default_is_loaded_by_name() -> None:
    assert load_embedder("wordllama").name == "wordllama"
    assert EMBEDDERS.names()[:6] == [
        "wordllama",
        "minilm",
        "gte-small",
        "onnx",
        "sentence-transformers",
        "openai",
    ]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("wordlama", "did you mean 'wordllama'"),
        ("", "empty name"),
        ("wordllama@256", "takes no argument"),
        ("onnx", "write onnx@FOLDER"),
        ("onnx@", "write onnx@FOLDER"),
        ("openai", "write openai@MODEL@BASE_URL"),
    ],
)
def test_the_error_for_a_wrong_embedder_names_the_mistake(spec: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_embedder(spec)


def test_a_folder_with_an_at_sign_stays_whole(tmp_path: Path) -> None:
    if importlib.util.find_spec("onnxruntime") is None:
        missing("onnxruntime is not installed")
    with pytest.raises(UsageError, match=r"a@b@c has no tokenizer\.json"):
        load_embedder(f"onnx@{tmp_path}/a@b@c")


def test_a_missing_package_names_what_to_install() -> None:
    with pytest.raises(MissingExtra, match="run: pip install nothing"):
        require(["mnemoscope_has_no_such_package"], "this test", "pip install nothing")
