"""MiniLM-L6 as an ONNX graph, built from its safetensors without torch.

A BERT encoder (Devlin et al. 2019, arXiv:1810.04805) written out operator by operator. It takes
token ids only: texts are never padded together, so there is no mask, and every token has type 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Part of the embedder's identity and of the cached file's name: raise it when the graph changes.
GRAPH_VERSION = 1
LAYERS = 6
WIDTH = 384
HEADS = 12
EPSILON = 1e-12
# The first operator set with Gelu.
_OPSET = 20
_IR_VERSION = 9

Weights = Mapping[str, NDArray[np.float32]]


def build_graph(weights: Weights) -> bytes:
    """The serialised model: `input_ids` [batch, tokens] to `last_hidden_state`."""
    from onnx import TensorProto, helper

    graph = _Graph(weights)
    hidden = graph.embed("input_ids")
    for layer in range(LAYERS):
        hidden = graph.encode(f"encoder.layer.{layer}", hidden)
    graph.add("Identity", [hidden], output="last_hidden_state")
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "minilm-l6",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "tokens"])],
            [
                helper.make_tensor_value_info(
                    "last_hidden_state", TensorProto.FLOAT, ["batch", "tokens", WIDTH]
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


class _Graph:
    """Nodes and constants in the making; each step returns the name of its output."""

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
        shape = self.constant(np.array([0, 0, HEADS, WIDTH // HEADS]))
        query = self.add("Transpose", [self.add("Reshape", [query, shape])], perm=[0, 2, 1, 3])
        key = self.add("Transpose", [self.add("Reshape", [key, shape])], perm=[0, 2, 3, 1])
        value = self.add("Transpose", [self.add("Reshape", [value, shape])], perm=[0, 2, 1, 3])
        scale = self.constant(np.array((WIDTH // HEADS) ** -0.5, np.float32))
        scores = self.add("Mul", [self.add("MatMul", [query, key]), scale])
        context = self.add("MatMul", [self.add("Softmax", [scores], axis=-1), value])
        joined = self.constant(np.array([0, 0, WIDTH]))
        return self.add("Reshape", [self.add("Transpose", [context], perm=[0, 2, 1, 3]), joined])

    def dense(self, layer: str, hidden: str) -> str:
        weight = self.constant(self.weights[f"{layer}.weight"].T)
        product = self.add("MatMul", [hidden, weight])
        return self.add("Add", [product, self.constant(self.weights[f"{layer}.bias"])])

    def normalise(self, layer: str, hidden: str) -> str:
        scale = self.constant(self.weights[f"{layer}.weight"])
        bias = self.constant(self.weights[f"{layer}.bias"])
        return self.add("LayerNormalization", [hidden, scale, bias], axis=-1, epsilon=EPSILON)
