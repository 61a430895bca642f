"""A chat server on a real socket that does what a test says, well or badly, and counts.

It speaks OpenAI's chat completions (`/v1/chat/completions`) and Anthropic's messages
(`/v1/messages`). In a thread: `with ScriptedServer() as server`. In a process of its own:
`python tests/scripted_server.py --port 0` prints the port; `GET /counts` shows what it counted.
Instant mode replies with bytes made beforehand, for measuring what the client can do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

Shape = Literal["openai", "anthropic"]

_ROUNDS = 20
"""Of the loop: twice as many as it takes to accept a connection, to read it and to see its end."""


@dataclass(frozen=True)
class Request:
    """One request, read. `number` counts from 1 in the order of arrival."""

    number: int
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def shape(self) -> Shape:
        return "anthropic" if self.path.partition("?")[0].endswith("/messages") else "openai"

    @property
    def text(self) -> str:
        """What the user said last."""
        said = [m for m in self.body.get("messages", []) if m.get("role") == "user"]
        return _plain(said[-1]["content"]) if said else ""

    @property
    def system(self) -> str:
        said = [m["content"] for m in self.body.get("messages", []) if m.get("role") == "system"]
        return _plain(said[0] if said else self.body.get("system", ""))


@dataclass(frozen=True)
class Fault:
    """How one reply goes wrong; made by the functions below."""

    kind: Literal["status", "drop", "tear", "slow", "truncate", "say", "body"]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    seconds: float = 0.0
    finish: str = "stop"


def rate_limited(
    retry_after: float | str | None = 1, *, code: str = "rate_limit_exceeded"
) -> Fault:
    """429; `retry_after` may be a number of seconds, an HTTP date, or None for no header."""
    headers = {} if retry_after is None else {"Retry-After": f"{retry_after}"}
    return Fault("status", 429, headers, _error("slow down", code))


def failing(status: int = 500, message: str = "in trouble", **more: str) -> Fault:
    """Any status with an error body; `code` and `param` go into the body."""
    return Fault("status", status, {}, _error(message, **more))


def dropped() -> Fault:
    """The connection closes before a byte of the reply."""
    return Fault("drop")


def torn() -> Fault:
    """The connection closes in the middle of the reply."""
    return Fault("tear")


def slow(seconds_a_byte: float = 0.05) -> Fault:
    """The right reply, one byte at a time: never silent, never done."""
    return Fault("slow", seconds=seconds_a_byte)


def truncated() -> Fault:
    """A whole response of status 200 whose body is the first half of the JSON."""
    return Fault("truncate")


def says(text: str | None, finish: str = "stop") -> Fault:
    """A well-formed completion with this text; None and "" are empty replies."""
    return Fault("say", body=text, finish=finish)


def empty() -> Fault:
    return says("")


def replies_json(body: Any) -> Fault:
    """Status 200 and JSON that is no completion."""
    return Fault("body", body=body)


Reply = Callable[[Request], str]
Predicate = Callable[[Request], bool]


def _numbered(number: int) -> Predicate:
    return lambda request: request.number == number


class ScriptedServer:
    """All counts may be read from any thread at any time."""

    def __init__(
        self,
        reply: Reply | None = None,
        *,
        tokens: Callable[[str], int] | None = lambda text: len(text) // 4,
        instant: str | None = None,
        instant_when: Mapping[str, str] | None = None,
        port: int = 0,
    ) -> None:
        """`instant` is the one reply of instant mode; in a request that holds a key of
        `instant_when`, its value instead. With `tokens=None` no usage is reported."""
        self._reply = reply or (lambda request: f"echo: {request.text}")
        self._tokens = tokens
        self._wanted_port = port
        self._rules: list[tuple[Predicate, Fault, list[int | None]]] = []
        self._changed = threading.Condition()
        self._held = False
        self._gate: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._requests = self._delivered = self._running = self._most = 0
        self._asked: Counter[str] = Counter()
        self._answered: Counter[str] = Counter()
        self._seen: list[Request] = []
        self._connections = 0
        self.port = 0
        self.instant: list[tuple[bytes, bytes]] | None = None
        if instant is not None:
            pairs = [*(instant_when or {}).items(), ("", instant)]
            self.instant = [(needle.encode(), _instant_reply(text)) for needle, text in pairs]

    # What a test reads.

    @property
    def url(self) -> str:
        """The base address as OpenAI's clients want it."""
        return f"{self.root}/v1"

    @property
    def root(self) -> str:
        """The base address as Anthropic's clients want it."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def requests(self) -> int:
        """Whole requests received."""
        with self._changed:
            return self._requests

    @property
    def delivered(self) -> int:
        """Replies of status 200 that were handed whole to a connection still open."""
        with self._changed:
            return self._delivered

    @property
    def most_at_once(self) -> int:
        with self._changed:
            return self._most

    @property
    def held(self) -> bool:
        """Whether replies are kept back, and none is on its way any more."""
        return self._held and self._gate is not None and not self._gate.is_set()

    @property
    def running(self) -> int:
        """Requests that wait for their reply on a connection still open."""
        with self._changed:
            return self._running

    @property
    def connections(self) -> int:
        with self._changed:
            return self._connections

    @property
    def asked(self) -> Counter[str]:
        """Requests received, by what the user said."""
        with self._changed:
            return self._asked.copy()

    @property
    def answered(self) -> Counter[str]:
        """Replies delivered whole and not blank, by what the user said."""
        with self._changed:
            return +self._answered

    @property
    def seen(self) -> list[Request]:
        with self._changed:
            return list(self._seen)

    def counts(self) -> dict[str, Any]:
        with self._changed:
            return {
                "requests": self._requests,
                "delivered": self._delivered,
                "asked": dict(self._asked),
                "answered": dict(+self._answered),
            }

    def wait_for(self, ready: Callable[[ScriptedServer], bool], seconds: float = 120) -> bool:
        """Wait until `ready(server)`, looked at after each change; False where it never was."""
        with self._changed:
            return self._changed.wait_for(lambda: ready(self), seconds)

    def everybody_left(self) -> bool:
        """Wait until all that was sent so far is read, and nobody waits for a reply.

        For after a kill: a request that nobody had read would be replied to later, and be counted,
        though whoever sent it is gone.
        """
        assert self._loop is not None
        for _ in range(_ROUNDS):
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self._loop).result()
        return self.wait_for(lambda server: server.running == 0)

    def reset(self) -> None:
        """Forget all counts and faults; the next request is number 1."""
        with self._changed:
            self._requests = self._delivered = self._most = self._connections = 0
            self._asked.clear()
            self._answered.clear()
            self._seen.clear()
            self._rules.clear()

    # What a test says.

    def reply(self, function: Reply) -> Reply:
        """From now on reply with what this function makes of a request."""
        self._reply = function
        return function

    def at(self, number: int, *faults: Fault) -> None:
        """Spoil request `number` with the first fault, the following ones with the others."""
        for step, fault in enumerate(faults):
            self.when(_numbered(number + step), fault)

    def when(self, predicate: Predicate, fault: Fault, times: int | None = None) -> None:
        """Spoil the requests that fit, all of them or the first `times`; earlier rules first."""
        with self._changed:
            self._rules.append((predicate, fault, [times]))

    def hold(self) -> None:
        """Keep all replies back until `release`; requests are still read and counted."""
        self._held = True
        if self._loop is not None and self._gate is not None:
            self._loop.call_soon_threadsafe(self._close_gate)

    def release(self) -> None:
        self._held = False
        if self._loop is not None and self._gate is not None:
            self._loop.call_soon_threadsafe(self._gate.set)

    # How it runs.

    def start(self) -> ScriptedServer:
        started = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(started)), name="scripted server", daemon=True
        )
        self._thread.start()
        if not started.wait(30) or not self.port:
            raise RuntimeError("the scripted server did not start")
        return self

    def stop(self) -> None:
        if self._loop is not None and self._thread is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._over.set)
            self._thread.join(30)

    def __enter__(self) -> ScriptedServer:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def serve_forever(self) -> None:
        """In this thread; prints the port once it is known."""
        started = threading.Event()
        with suppress(KeyboardInterrupt):
            asyncio.run(self._serve(started, announce=True))

    async def _serve(self, started: threading.Event, announce: bool = False) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._gate = asyncio.Event()
        if not self._held:
            self._gate.set()
        open_now: set[_Connection] = set()
        kind = _Instant if self.instant is not None else _Connection
        try:
            server = await loop.create_server(
                lambda: kind(self, open_now), "127.0.0.1", self._wanted_port, backlog=1024
            )
        except OSError:
            started.set()
            raise
        self.port = server.sockets[0].getsockname()[1]
        if announce:
            sys.stdout.write(f"{self.port}\n")
            sys.stdout.flush()
        started.set()
        await self._over.wait()
        server.close()
        for connection in list(open_now):
            connection.end()
        # Transports close in the loop's next rounds; else sockets are left to the collector.
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    def connected(self) -> None:
        with self._changed:
            self._connections += 1

    def receive(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Request:
        with self._changed:
            self._requests += 1
            self._running += 1
            self._most = max(self._most, self._running)
            request = Request(self._requests, path, headers, body)
            self._asked[request.text] += 1
            self._seen.append(request)
            self._changed.notify_all()
        return request

    @property
    def counting(self) -> AbstractContextManager[object]:
        """Held while a reply is sent and counted: whoever has the reply finds it counted."""
        return self._changed

    def finished(self, request: Request, *, whole: bool, useful: bool) -> None:
        with self._changed:
            self._running -= 1
            self._delivered += whole
            self._answered[request.text] += useful
            self._changed.notify_all()

    def count_instant(self) -> None:
        # Before it is sent. One thread writes, and reading an int is whole: no lock in the way.
        self._requests += 1
        self._delivered += 1

    def fault_for(self, request: Request) -> Fault | None:
        with self._changed:
            for predicate, fault, left in self._rules:
                if left[0] != 0 and predicate(request):
                    if left[0] is not None:
                        left[0] -= 1
                    return fault
        return None

    def _close_gate(self) -> None:
        assert self._gate is not None
        with self._changed:
            if self._held:  # else it was released before this had its turn
                self._gate.clear()
            self._changed.notify_all()

    async def passage(self) -> None:
        """Wait while replies are held."""
        assert self._gate is not None
        await self._gate.wait()

    def completion(self, request: Request, text: str | None, finish: str) -> dict[str, Any]:
        make = _anthropic_body if request.shape == "anthropic" else _openai_body
        asked = f"{request.system}\n{request.text}"
        usage = None if self._tokens is None else (self._tokens(asked), self._tokens(text or ""))
        return make(request.body, text, finish, usage)

    def text_for(self, request: Request) -> str:
        return self._reply(request)


class _Connection(asyncio.Protocol):
    """Keep-alive HTTP/1.1, one request at a time."""

    def __init__(self, server: ScriptedServer, open_now: set[_Connection]) -> None:
        self._server = server
        self._open_now = open_now
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._open_now.add(self)
        self._server.connected()

    def connection_lost(self, exc: Exception | None) -> None:
        self._open_now.discard(self)
        if self._task is not None:
            self._task.cancel()

    def end(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._task is None:
            self._next()

    def _next(self) -> None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        length = _content_length(self._buffer, end)
        if len(self._buffer) < end + 4 + length:
            return
        head = bytes(self._buffer[:end])
        body = bytes(self._buffer[end + 4 : end + 4 + length])
        del self._buffer[: end + 4 + length]
        self._task = asyncio.get_running_loop().create_task(self._respond(head, body))
        self._task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled():
            task.result()
            self._next()

    async def _respond(self, head: bytes, raw: bytes) -> None:
        transport = self._transport
        assert transport is not None
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {key.strip().lower(): value.strip() for key, _, value in _parted(lines)}
        if method == "GET":
            transport.write(_response(200, {}, json.dumps(self._server.counts()).encode()))
            return
        if not path.partition("?")[0].endswith(("/chat/completions", "/messages")):
            transport.write(_response(404, {}, json.dumps(_error("no such path")).encode()))
            return
        request = self._server.receive(path, headers, json.loads(raw))
        fault = self._server.fault_for(request)
        try:
            # Waiting before the text is made lets a test change the reply while it is held.
            await self._server.passage()
            reply, whole = self._reply_to(request, fault)
            if fault is not None and fault.kind == "slow":
                reply = await self._dribble(transport, reply, fault.seconds)
            blank = fault is not None and fault.kind == "say" and not (fault.body or "").strip()
        except BaseException:
            self._server.finished(request, whole=False, useful=False)
            raise
        with self._server.counting:
            if reply:
                transport.write(reply)
            whole = whole and not transport.is_closing()
            self._server.finished(request, whole=whole, useful=whole and not blank)
        if fault is not None and fault.kind == "drop":
            transport.abort()
        if fault is not None and fault.kind == "tear":
            transport.close()

    def _reply_to(self, request: Request, fault: Fault | None) -> tuple[bytes, bool]:
        """The bytes to send, and whether they are a whole reply of status 200."""
        if fault is not None and fault.kind == "drop":
            return b"", False
        if fault is not None and fault.kind in ("status", "body"):
            return _response(fault.status, fault.headers, json.dumps(fault.body).encode()), False
        if fault is not None and fault.kind == "say":
            content = self._server.completion(request, fault.body, fault.finish)
        else:
            content = self._server.completion(request, self._server.text_for(request), "stop")
        body = json.dumps(content).encode()
        if fault is not None and fault.kind == "truncate":
            return _response(200, {}, body[: len(body) // 2]), False
        reply = _response(200, {}, body)
        if fault is not None and fault.kind == "tear":
            return reply[: -len(body) // 2], False
        return reply, True

    async def _dribble(self, transport: asyncio.Transport, reply: bytes, seconds: float) -> bytes:
        """Send all but the last byte, one at a time; what is left to send."""
        for byte in reply[:-1]:
            if transport.is_closing():
                break
            transport.write(bytes([byte]))
            await asyncio.sleep(seconds)
        return reply[-1:]


class _Instant(_Connection):
    """The reply made beforehand as soon as the request is whole; nothing is decoded."""

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        transport, replies = self._transport, self._server.instant
        assert transport is not None and replies is not None
        while (end := buffer.find(b"\r\n\r\n")) >= 0:
            if buffer.startswith(b"GET"):
                del buffer[: end + 4]
                transport.write(_response(200, {}, json.dumps(self._server.counts()).encode()))
                continue
            size = end + 4 + _content_length(buffer, end)
            if len(buffer) < size:
                return
            self._server.count_instant()
            transport.write(
                next(reply for needle, reply in replies if buffer.find(needle, end, size) >= 0)
            )
            del buffer[:size]


def _content_length(buffer: bytearray, end: int) -> int:
    head = bytes(buffer[:end]).lower()
    start = head.find(b"content-length:")
    if start < 0:
        return 0
    stop = head.find(b"\r\n", start)
    return int(head[start + 15 : stop if stop >= 0 else end])


def _parted(lines: list[str]) -> list[tuple[str, str, str]]:
    return [line.partition(":") for line in lines]


def _response(status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json"]
    lines += [f"{key}: {value}" for key, value in headers.items()]
    lines += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def _error(message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    return {
        "type": "error",
        "error": {"message": message, "type": code or "error", "code": code, "param": param},
    }


def _plain(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _openai_body(
    asked: dict[str, Any], text: str | None, finish: str, usage: tuple[int, int] | None
) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    body: dict[str, Any] = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 1,
        "model": asked.get("model", ""),
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    if usage is not None:
        body["usage"] = {
            "prompt_tokens": usage[0],
            "completion_tokens": usage[1],
            "total_tokens": sum(usage),
        }
    return body


def _anthropic_body(
    asked: dict[str, Any], text: str | None, finish: str, usage: tuple[int, int] | None
) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    if text and asked.get("tool_choice", {}).get("type") == "tool":
        with suppress(ValueError):
            name = asked["tool_choice"]["name"]
            used = {"type": "tool_use", "id": "t1", "name": name, "input": json.loads(text)}
            content = [used]
    counted = usage or (0, 0)
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": asked.get("model", ""),
        "content": content,
        "stop_reason": {"stop": "end_turn", "length": "max_tokens"}.get(finish, finish),
        "stop_sequence": None,
        "usage": {"input_tokens": counted[0], "output_tokens": counted[1]},
    }


def _instant_reply(text: str) -> bytes:
    body = _openai_body({}, text, "stop", (100, max(1, len(text) // 4)))
    return _response(200, {}, json.dumps(body).encode())


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="an OpenAI-compatible server that makes things up")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--text", default=None, help="reply with this; without it the echo")
    parser.add_argument("--instant", action="store_true", help="reply at once, unread")
    parser.add_argument(
        "--when",
        nargs=2,
        action="append",
        default=[],
        metavar=("NEEDLE", "TEXT"),
        help="to requests that hold NEEDLE reply TEXT",
    )
    given = parser.parse_args(arguments)
    special = dict(given.when)
    text: str | None = given.text

    def reply(request: Request) -> str:
        whole = json.dumps(request.body, ensure_ascii=False)
        found = [answer for needle, answer in special.items() if needle in whole]
        return found[0] if found else text if text is not None else f"echo: {request.text}"

    if given.instant:
        server = ScriptedServer(instant=text or "yes", instant_when=special, port=given.port)
    else:
        server = ScriptedServer(reply, port=given.port)
    server.serve_forever()


if __name__ == "__main__":
    main()
