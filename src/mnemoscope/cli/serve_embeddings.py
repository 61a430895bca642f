"""`mnemoscope serve embeddings`: embedding models behind OpenAI's protocol, offline."""

from __future__ import annotations

from mnemoscope.cli.console import err, say
from mnemoscope.cli.serve_until_ended import until_ended


def serve_embeddings(
    model: str = "wordllama",
    /,
    *,
    llm: str = "",
    host: str = "127.0.0.1",
    port: int = 8081,
) -> None:
    """Serve an embedding model to whoever speaks OpenAI's protocol, on this machine and offline.

    For memory systems that take their embeddings from an OpenAI-compatible address: any key will
    do. Vectors are cached by content. With --llm a language model is served as well.

    For example:

        mnemoscope serve embeddings

        mnemoscope serve embeddings minilm --port 9000

        mnemoscope serve embeddings wordllama --llm smollm2

    Parameters
    ----------
    model
        The embedding model: `wordllama`, `minilm`, `onnx@FOLDER`, …
    llm
        A language model to serve beside it; `mnemoscope models list` shows how to write one.
    host
        Where to listen. Whoever can reach it can use it.
    port
        Where to listen; 0 takes a free one.
    """
    from mnemoscope.models.embedders import load_embedder
    from mnemoscope.models.model_loader import load_model
    from mnemoscope.models.openai_server import OpenAIServer

    embedder = load_embedder(model)
    embedder.embed(["loads the model, so that the first request does not wait for it"])
    server = OpenAIServer(embedder, load_model(llm) if llm else None, host=host, port=port)
    also = f" and {llm}" if llm else ""
    say(err, f"serving {embedder.name}{also} at {server.url}; Ctrl-C ends it")
    until_ended(server.serve_forever, server.close, err)
