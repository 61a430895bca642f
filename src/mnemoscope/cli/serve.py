"""`mnemoscope serve`: serve a memory system or an embedding model on a port."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import redirect_stdout

from cyclopts import App
from rich.console import Console

from mnemoscope._store.errors import UsageError
from mnemoscope._store.server_access import check_reach, read_key
from mnemoscope.cli.console import err, out, say

app = App(name="serve", help="Serve a memory system, or an embedding model, on a port.")
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
    key: str = "",
    allow_host: list[str] | None = None,
) -> None:
    """Serve an embedding model over OpenAI's protocol, on this machine and offline.

    For memory systems that get their embeddings from an OpenAI-compatible address. Without --key
    any key is accepted. Vectors are cached by content. With --llm a language model is served as
    well.

    For example:

        mnemoscope serve embeddings

        mnemoscope serve embeddings minilm --port 9000

        mnemoscope serve embeddings wordllama --llm smollm2

        export MODELS_KEY=$(openssl rand -hex 16)

        mnemoscope serve embeddings --host 0.0.0.0 --key MODELS_KEY

    Parameters
    ----------
    model
        The embedding model: `wordllama`, `minilm`, `onnx@FOLDER`, …
    llm
        A language model to serve as well; `mnemoscope models list` shows how to write one.
    host
        The address to listen on; other machines can connect to 0.0.0.0, which requires --key.
    port
        The port to listen on; 0 takes a free one.
    key
        The name of an environment variable; clients must send its value as their API key.
    allow_host
        A further name by which clients may call this server, such as that of a proxy.
    """
    from mnemoscope.models.embedders import load_embedder
    from mnemoscope.models.model_loader import load_model
    from mnemoscope.models.openai_server import OpenAIServer

    token = read_key(key, "--key")
    check_reach(host, token)
    embedder = load_embedder(model)
    embedder.embed(["loads the model, so that the first request does not wait for it"])
    server = OpenAIServer(
        embedder,
        load_model(llm) if llm else None,
        host=host,
        port=port,
        key=token,
        allow_hosts=allow_host or (),
    )
    also = f" and {llm}" if llm else ""
    say(err, f"serving {embedder.name}{also} at {server.url}; stop it with Ctrl-C")
    serve_until_ended(server.serve_forever, server.close, err)


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
    key: str = "",
) -> None:
    """Serve a memory system over gRPC until Ctrl-C.

    Two services on one port: recall.bench.MemoryBenchService, so that Recall Bench can benchmark
    any system of Mnemoscope, and mnemoscope.v1.Memory, which `--system grpc:HOST:PORT` uses. The
    server listens on this machine only, unless you give another --host, which requires --key. The
    connection is not encrypted.

    For example:

        mnemoscope serve grpc bm25

        mnemoscope serve grpc hybrid --reader openai:gpt-4o-mini --port 50060

        mnemoscope serve grpc my_memory:Mine --reader system --recall-bench-only

        export MEMORY_KEY=$(openssl rand -hex 16)

        mnemoscope serve grpc bm25 --host 0.0.0.0 --key MEMORY_KEY

    Parameters
    ----------
    spec
        The system with its options, or your own as package.module:Name.
    port
        The port to listen on; 0 takes a free one, and the first line of output names it.
    host
        The address to listen on; other machines can connect to 0.0.0.0, which requires --key.
    reader
        What answers Recall Bench's questions from the recalled memories: `extractive`, a model,
        your own reader, or `system`. Default: the system itself if it can answer, else
        `extractive`.
    depth
        How many hits the reader gets.
    recall_bench_only
        Omit mnemoscope.v1.
    key
        The name of an environment variable; clients must send its value as a Bearer token in the
        metadata `authorization`. Our connectors do with key=NAME; Recall Bench cannot.
    """
    from mnemoscope._store.spec import Spec
    from mnemoscope.runner.pipeline import plan_reader
    from mnemoscope.runner.run import DEPTH
    from mnemoscope.serving.sessions import served_hello
    from mnemoscope.serving.with_reader import serve_grpc as start_server
    from mnemoscope.systems.loader import plan

    if not 0 <= port <= _LAST_PORT:
        raise UsageError(f"--port {port}: give a number from 0 to {_LAST_PORT}")
    token = read_key(key, "--key")
    check_reach(host, token)
    depth = DEPTH if depth is None else depth
    if depth < 1:
        raise UsageError(f"--depth {depth}: ask for at least one hit")
    with redirect_stdout(sys.stderr):  # a system may print while it is built
        system = plan(Spec.parse(spec), hosted=False)
        hello = served_hello(system)
        if reader is None:
            reader = _SYSTEM if "answer" in hello.methods else "extractive"
        reads = None if reader == _SYSTEM else plan_reader(Spec.parse(reader), "personas")
        server = start_server(
            system,
            hello,
            host=host,
            port=port,
            reader=reads,
            depth=depth,
            recall_bench_only=recall_bench_only,
            key=token,
        )
    services = "recall.bench" if recall_bench_only else "recall.bench and mnemoscope.v1"
    say(out, f"serving {spec} on {server.address} ({services}); stop it with Ctrl-C")
    sys.stdout.flush()
    serve_until_ended(server.wait, server.close, out)


@app.command(name="http")
def serve_http(
    spec: str = "",
    /,
    *,
    port: int = 8000,
    host: str = "127.0.0.1",
    key: str = "",
    allow_host: list[str] | None = None,
    contract: bool = False,
) -> None:
    """Serve a system over HTTP to any client that uses Mnemoscope's contract.

    For example:

        mnemoscope serve http bm25

        mnemoscope run locomo --system http:http://localhost:8000 --out runs/http

        mnemoscope serve http --contract

        export MEMORY_KEY=$(openssl rand -hex 16)

        mnemoscope serve http bm25 --host 0.0.0.0 --key MEMORY_KEY

    Parameters
    ----------
    spec
        The system with its options, or your own as package.module:Name.
    port
        The port to listen on; 0 takes a free one and prints it.
    host
        The address to listen on; other machines can connect to 0.0.0.0, which requires --key.
    key
        The name of an environment variable; clients must send its value as a Bearer token.
    allow_host
        A further name by which clients may call this server, such as that of a proxy.
    contract
        Only print the contract (OpenAPI 3.1).
    """
    from mnemoscope.connectors.http.http_connector import openapi

    if contract:
        print(openapi(), end="")
        return
    if not spec:
        raise UsageError("name a system to serve: mnemoscope serve http bm25; or give --contract")
    token = read_key(key, "--key")
    check_reach(host, token)

    from mnemoscope._store.spec import Spec
    from mnemoscope.serving.http_server import HttpServer
    from mnemoscope.systems.loader import plan

    serving = HttpServer(
        plan(Spec.parse(spec), hosted=False),
        host=host,
        port=port,
        key=token,
        allow_hosts=allow_host or (),
    )
    say(err, f"serving {spec} at {serving.url}; stop it with Ctrl-C")
    serve_until_ended(serving.serve_forever, serving.close, err)


def serve_until_ended(
    serve: Callable[[], None], close: Callable[[], None], console: Console
) -> None:
    """Serve until Ctrl-C or SIGTERM, then close."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # raises KeyboardInterrupt
    try:
        serve()
    except KeyboardInterrupt:
        # A second signal must not interrupt the closing.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        say(console, "stopped")
    finally:
        close()
