"""A memory that dies where its fate says so, three ways in: a stdio adapter, a class, a TCP server.

    python mortal_memory.py               speaks the stdio protocol
    python mortal_memory.py PORT          serves it on a TCP port, and is started anew when it dies
    mortal_memory:Mortal, mortal_memory:Remote

Every call is told to $MORTAL_LOG when it begins, and when it is served. $MORTAL_FATE is a list of
{"verb", "match", "times", "how"}: the calls of the verb whose first word has `match` in it, so
many times over all processes. How: dies before it replies, dies after it, hangs, talks nonsense,
or waits until the file $MORTAL_LOG.go is there. A call takes $MORTAL_PACE seconds, for those who
want to meet it in the middle.

It imports little, and not pathlib: the tests start it well over a hundred times.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence
    from typing import Any

    from mnemoscope.types import Memory, Query, Selector

VERBS = ["reset", "remember", "ready", "recall", "answer", "forget", "stats"]
FOREVER = 3600.0


def tell(*words: object) -> None:
    with open(os.environ["MORTAL_LOG"], "a") as file:  # noqa: PTH123
        file.write(" ".join(map(str, words)) + "\n")


def fate_of(verb: str, about: str, *hows: str) -> str:
    """What happens in this call, if it has not happened often enough."""
    for number, fate in enumerate(json.loads(os.environ.get("MORTAL_FATE", "[]"))):
        if fate["verb"] == verb and fate["match"] in about and fate["how"] in hows:
            for time_over in range(fate["times"]):
                mark = f"{os.environ['MORTAL_LOG']}.fate-{number}-{time_over}"
                try:
                    open(mark, "x").close()  # noqa: PTH123
                except FileExistsError:
                    continue
                return str(fate["how"])
    return ""


def first_word(verb: str, params: dict[str, Any]) -> str:
    if "query" in params:
        return str(params["query"]["text"].split()[0])
    return str(params.get("scope") or (params.get("memories") or [{"id": verb}])[0]["id"])


class Ids:
    """The stored ids; each recall depends on all of them."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def do(self, verb: str, params: dict[str, Any]) -> Any:
        if verb == "reset":
            self.ids = []
        elif verb == "remember":
            self.ids += [memory["id"] for memory in params["memories"]]
        elif verb == "forget":
            gone = {memory["id"] for memory in params["memories"]}
            self.ids = [id for id in self.ids if id not in gone]
        elif verb == "recall":
            start = len(params["query"]["text"]) % (len(self.ids) or 1)
            return [*self.ids[start:], *self.ids[:start]][: params["k"]]
        elif verb == "answer":
            return f"{len(self.ids)} things, {params['query']['text']}"
        elif verb == "stats":
            return {"held": len(self.ids)}
        return None


def serve(lines: Any, out: int, door: socket.socket | None = None) -> None:
    """Read orders and write replies until the fate of a call."""

    def die() -> None:
        # The kernel may close the client's connection before the listening socket: the client
        # would connect again to a server that is already dead.
        if door:
            door.close()
        os.kill(os.getpid(), signal.SIGKILL)

    ids = Ids()
    for line in lines:
        order = json.loads(line)
        verb, params, number = order["method"], order["params"], order["id"]
        reply = {"jsonrpc": "2.0", "id": number}
        if verb == "hello":
            said = {**reply, "result": {"name": "mortal", "methods": VERBS}}
            os.write(out, json.dumps(said).encode() + b"\n")
            continue
        about = first_word(verb, params)
        tell(verb, about, os.getpid())
        time.sleep(float(os.environ.get("MORTAL_PACE", "0")))
        match fate_of(verb, about, "dies", "hangs", "babbles", "waits"):
            case "dies":
                die()
            case "hangs":
                time.sleep(FOREVER)
            case "babbles":
                reply["id"] = number + 7
            case "waits":
                while not os.path.exists(os.environ["MORTAL_LOG"] + ".go"):  # noqa: PTH110
                    time.sleep(0.01)
        said = {**reply, "result": ids.do(verb, params)}
        tell("served", verb, about)
        os.write(out, json.dumps(said).encode() + b"\n")
        if fate_of(verb, about, "dies after"):
            die()


def listen(port: int) -> None:
    """Serve one client after the other, in one process until the server dies."""
    import socket

    while True:
        life = os.fork()
        if life == 0:
            with socket.create_server(("127.0.0.1", port)) as door:
                while True:
                    client, _ = door.accept()
                    with client, client.makefile("r") as lines:
                        serve(lines, client.fileno(), door)
        os.waitpid(life, 0)
        if os.path.exists(os.environ["MORTAL_LOG"] + ".stays-down"):  # noqa: PTH110
            return


class Mortal:
    """In process: the fate `raises` is a SystemLost, `is late` a TimeoutError."""

    def __init__(self) -> None:
        self._ids = Ids()

    def _do(self, verb: str, **params: Any) -> Any:
        about = first_word(verb, params)
        tell(verb, about)
        match fate_of(verb, about, "raises", "is late"):
            case "raises":
                from mnemoscope._store.errors import SystemLost

                self._ids.ids = ["lost"]
                raise SystemLost(f"gone in {verb}")
            case "is late":
                raise TimeoutError("took too long")
        done = self._ids.do(verb, params)
        tell("served", verb, about)
        return done

    def reset(self, scope: str) -> None:
        self._do("reset", scope=scope)

    def remember(self, memories: Sequence[Memory]) -> None:
        self._do("remember", memories=_plain(memories))

    def ready(self) -> None:
        self._do("ready")

    def recall(self, query: Query, k: int) -> Any:
        return self._do("recall", query={"text": query.text}, k=k)

    def answer(self, query: Query) -> Any:
        return self._do("answer", query={"text": query.text})

    def forget(self, selector: Selector) -> None:
        self._do("forget", memories=_plain(selector.memories))

    def stats(self) -> Any:
        return self._do("stats")


class Copied(Mortal):
    """Can be copied."""

    def fork(self) -> Copied:
        self._do("fork")
        twin = Copied()
        twin._ids.ids = list(self._ids.ids)
        return twin


class Remote:
    """The client of the TCP server on $MORTAL_PORT, written as a connector would be."""

    def __init__(self) -> None:
        self._server: Any = None

    def reset(self, scope: str) -> None:
        import socket

        from mnemoscope._store.errors import MnemoscopeError

        until = time.monotonic() + float(os.environ.get("MORTAL_PATIENCE", "20"))
        while True:
            try:
                self._server = socket.create_connection(("127.0.0.1", _port())).makefile("rw")
                break
            except ConnectionError:
                if time.monotonic() > until:
                    raise MnemoscopeError("the server is down: start it") from None
                time.sleep(0.02)
        self._call("reset", scope=scope)

    def remember(self, memories: Sequence[Memory]) -> None:
        self._call("remember", memories=_plain(memories))

    def recall(self, query: Query, k: int) -> Any:
        return self._call("recall", query={"text": query.text}, k=k)

    def _call(self, method: str, **params: Any) -> Any:
        from mnemoscope._store.errors import SystemLost

        try:
            self._server.write(json.dumps({"id": 1, "method": method, "params": params}) + "\n")
            self._server.flush()
            reply = self._server.readline()
        except ConnectionError as error:
            raise SystemLost(f"{method}: {error}") from error
        if not reply:
            raise SystemLost(f"{method}: the connection was closed")
        return json.loads(reply)["result"]


def _port() -> int:
    return int(os.environ["MORTAL_PORT"])


def _plain(memories: Sequence[Memory]) -> list[dict[str, str]]:
    return [{"id": memory.id} for memory in memories]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        listen(int(sys.argv[1]))
    else:
        serve(sys.stdin, 1)
