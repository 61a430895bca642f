"""`mnemoscope serve`: a memory system or an embedding model behind a port."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from types import FrameType

from cyclopts import App
from rich.console import Console

from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import err, out, say

app = App(name="serve", help="Put a memory system, or an embedding model, behind a port.")
_LAST_PORT = 65_535
_SYSTEM = "system"


@app.command(name="embeddings")
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
    _serve_until_ended(server.serve_forever, server.close, err)


@app.command(name="grpc")
def serve_grpc(
    spec: str,
    /,
    *,
    port: int = 50052,
    host: str = "127.0.0.1",
    reader: str | None = None,
    depth: int | None = None,
    recall_bench_only: bool = False,
) -> None:
    """Serve a memory system over gRPC until Ctrl-C.

    Two services on one port: recall.bench.MemoryBenchService, so that Recall Bench can benchmark
    any system of ours, and mnemoscope.v1.Memory, which `--system grpc:HOST:PORT` speaks. There is
    no encryption and no password: it listens on this machine only, unless --host says otherwise.

    For example:

        mnemoscope serve grpc bm25

        mnemoscope serve grpc hybrid --reader openai:gpt-4o-mini --port 50060

        mnemoscope serve grpc my_memory:Mine --reader system --recall-bench-only

    Parameters
    ----------
    spec
        The system with its options, or your own as package.module:Name.
    port
        Where to listen; 0 takes one that is free, and the first line says which.
    host
        The address to listen at; 0.0.0.0 for all of this machine.
    reader
        Who answers Recall Bench's questions from what the system recalls: `extractive`, a model,
        your own, or `system`. Default: the system itself where it can answer, else `extractive`.
    depth
        How many hits the reader gets.
    recall_bench_only
        Leave mnemoscope.v1 away.
    """
    from mnemoscope._store.spec import Spec
    from mnemoscope.runner.pipeline import plan_reader
    from mnemoscope.runner.run import DEPTH
    from mnemoscope.serving.sessions import served_hello
    from mnemoscope.serving.with_reader import serve_grpc as start_server
    from mnemoscope.systems.loader import plan

    if not 0 <= port <= _LAST_PORT:
        raise UsageError(f"--port {port}: give a number from 0 to {_LAST_PORT}")
    depth = DEPTH if depth is None else depth
    if depth < 1:
        raise UsageError(f"--depth {depth}: ask for at least one hit")
    with redirect_stdout(sys.stderr):  # what a system says while it is built is no result
        system = plan(Spec.parse(spec))
        hello = served_hello(system)
        if reader is None:
            reader = _SYSTEM if "answer" in hello.methods else "extractive"
        reads = None if reader == _SYSTEM else plan_reader(Spec.parse(reader))
        server = start_server(
            system,
            hello,
            host=host,
            port=port,
            reader=reads,
            depth=depth,
            recall_bench_only=recall_bench_only,
        )
    services = "recall.bench" if recall_bench_only else "recall.bench and mnemoscope.v1"
    say(out, f"serving {spec} on {server.address} ({services}); Ctrl-C ends it")
    sys.stdout.flush()
    _serve_until_ended(server.wait, server.close, out)


@app.command(name="http")
def serve_http(
    spec: str = "",
    /,
    *,
    port: int = 8000,
    host: str = "127.0.0.1",
    key: str = "",
    contract: bool = False,
) -> None:
    """Serve a system over HTTP, so that anything that speaks the contract can use it.

    For example:

        mnemoscope serve http bm25

        mnemoscope run locomo --system http:http://localhost:8000 --out runs/http

        mnemoscope serve http --contract

    Parameters
    ----------
    spec
        The system with its options, or your own as package.module:Name.
    port
        The port to listen on; 0 takes a free one and says which.
    host
        The address to listen on; 0.0.0.0 lets other machines in.
    key
        The name of an environment variable: whoever asks must send its value as a Bearer token.
    contract
        Print the contract (OpenAPI 3.1) and do nothing else.
    """
    from mnemoscope.connectors.http.http_connector import openapi

    if contract:
        print(openapi(), end="")
        return
    if not spec:
        raise UsageError("say what to serve: mnemoscope serve http bm25; or --contract")
    token = os.environ.get(key, "").strip() if key else ""
    if key and not token:
        raise UsageError(f"--key {key}: there is no such environment variable, or it is empty")

    from mnemoscope._store.spec import Spec
    from mnemoscope.serving.http_server import HttpServer
    from mnemoscope.systems.loader import plan

    serving = HttpServer(plan(Spec.parse(spec)), host=host, port=port, key=token)
    say(err, f"serving {spec} at {serving.url}; Ctrl-C ends it")
    _serve_until_ended(serving.serve_forever, serving.close, err)


def _serve_until_ended(
    serve: Callable[[], None], close: Callable[[], None], console: Console
) -> None:
    """Serve until Ctrl-C or SIGTERM, and leave nothing running."""
    signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        serve()
    except KeyboardInterrupt:
        # A second signal would only interrupt the closing.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        say(console, "ended")
    finally:
        close()


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
