"""`mnemoscope serve grpc`: any system behind Recall Bench's service and ours."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import out, say
from mnemoscope.cli.serve_until_ended import until_ended

_PORT = 50052
_LAST_PORT = 65_535
SYSTEM = "system"


def serve_grpc(
    spec: str,
    /,
    *,
    port: int = _PORT,
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
    from mnemoscope.serving.with_reader import serve_grpc
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
            reader = SYSTEM if "answer" in hello.methods else "extractive"
        reads = None if reader == SYSTEM else plan_reader(Spec.parse(reader))
        server = serve_grpc(
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
    until_ended(server.wait, server.close, out)
