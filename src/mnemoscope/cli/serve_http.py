"""`mnemoscope serve http`: any system behind Mnemoscope's HTTP contract."""

from __future__ import annotations

import os

from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import err, say
from mnemoscope.cli.serve_until_ended import until_ended


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
    until_ended(serving.serve_forever, serving.close, err)
