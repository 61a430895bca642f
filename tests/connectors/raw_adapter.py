"""An adapter that implements the protocol without serve_stdio, and fails on request.

    python raw_adapter.py TROUBLE [PLACE]

It remembers ids and recalls the first ones; a question with the word "trouble" in it gets TROUBLE.
It writes its process id into PLACE, a folder, if one is given.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TROUBLE = sys.argv[1]
METHODS = ["reset", "remember", "recall", "answer", "stats", "fork"]
METHODS += ["close"] if TROUBLE == "closes" else []
FOREVER = 3600
MEBIBYTE = 1 << 20
ids: list[str] = []


def write(text: str) -> None:
    os.write(1, text.encode("utf-8", "surrogatepass"))


def say(number: Any, **reply: Any) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": number, **reply}) + "\n"
    written = 0
    while written < len(line):
        written += os.write(1, line[written:].encode())


def trouble(number: int) -> None:
    match TROUBLE:
        case "exit":
            sys.stderr.write("the index is\nnot what it was\n")
            sys.exit(7)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            sleeper = subprocess.Popen(["sleep", str(FOREVER)])
            leave_word(sleeper.pid)
            time.sleep(FOREVER)
        case "wrong-id" | "closes":
            say(number + 1, result=ids)
        case "no-id":
            say(None, result=ids)
        case "true-id":
            say(True, result=ids)
        case "twice":
            say(number, result=ids)
            say(number, result=ids)
        case "nothing":
            say(number)
        case "half-and-exit":
            write('{"jsonrpc": "2.0", "id"')
            sys.exit(0)
        case "half-and-hang":
            write('{"jsonrpc": "2.0", "id"')
            time.sleep(FOREVER)
        case "broken":
            write(f'{{"jsonrpc": "2.0", "id": {number}, "result": [}}\n')
        case "deep":
            write(f'{{"jsonrpc": "2.0", "id": {number}, "result": {"[" * 50_000}\n')
        case "endless":
            for _ in range(80):
                write("x" * MEBIBYTE)
            time.sleep(FOREVER)
        case "babble":
            write("la la\n" * 5000)
            time.sleep(FOREVER)
        case "chatter":
            write('loading…\n\n42\n{"loss": 0.5}\n{"jsonrpc": "2.0", "method": "note"}\n50% ')
            say(number, result=ids)
        case "object":
            say(number, result={"ids": ids})
        case "words":
            say(number, result="m0")
        case "nan":
            say(number, result=[[ids[0], float("nan")], [ids[1], float("inf")]])
        case "half-character":
            say(number, result=[{"id": ids[0], "text": "half \ud800"}])
        case "refuse":
            say(number, error={"code": -32000, "message": "no idea"})
        case "refuse-strangely":
            say(number, error="no idea")
        case "stdout":
            os.close(1)
            time.sleep(FOREVER)


def leave_word(word: object) -> None:
    if len(sys.argv) > 2:
        (Path(sys.argv[2]) / str(word)).touch()


def hello() -> Any:
    if TROUBLE == "no-hello":
        return ["recall"]
    return {"name": "raw", "methods": METHODS, "identity": {"trouble": TROUBLE}}


def main() -> None:
    leave_word(os.getpid())
    if TROUBLE == "dead":
        sys.exit("no model here")
    if TROUBLE == "writes-first":
        for _ in range(500):
            write("x" * 10_000 + "\n")
    for line in sys.stdin:
        order = json.loads(line)
        number, method, params = order["id"], order["method"], order["params"]
        asked = params["query"]["text"] if "query" in params else ""
        if method == "hello":
            say(number, result=hello())
        elif method == "remember":
            ids.extend(memory["id"] for memory in params["memories"])
            say(number, result=ids if TROUBLE == "odd-receipt" else None)
        elif "trouble" in asked:
            trouble(number)
        elif method == "recall":
            say(number, result=ids[: params["k"]])
        elif method == "answer":
            say(number, result=asked)
        else:
            if method == "reset":
                ids.clear()
            elif method == "close":
                leave_word("closed")
            say(number, result=None)


main()
