"""Serve a Python object to the stdio connector: the adapter's side of the protocol.

    from mnemoscope.connectors.serve_stdio import serve
    serve(Mine, name="mine", version="1.0")

or, without a script, `python -m mnemoscope.connectors.serve_stdio my_memory:Mine key=value`.
This file uses only the standard library of Python 3.9, so that it can be copied into, or run by its
path in, an environment without Mnemoscope: the requirements of large systems conflict.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import functools
import hashlib
import importlib
import inspect
import itertools
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from numbers import Integral, Real
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # it takes longer to import than the rest of this file, and few adapters need it
    import asyncio

_CLOSE = "close"
_LONGEST_ERROR = 10_000
_FAILED, _NO_METHOD, _BAD_PARAMS, _NO_JSON = -32000, -32601, -32602, -32700


# The shapes of mnemoscope.types, which cannot be imported where there is no Mnemoscope.


@dataclasses.dataclass(frozen=True)
class Memory:
    """One unit to be stored."""

    id: str
    text: str
    at: datetime | None = None
    session: str = ""
    speaker: str = ""
    metadata: dict[str, Any] = dataclasses.field(default_factory=dict)
    part_of: str = ""


@dataclasses.dataclass(frozen=True)
class Query:
    """A question, its time, and its session."""

    text: str
    now: datetime | None = None
    session: str = ""


@dataclasses.dataclass(frozen=True)
class Selector:
    """The memories to forget."""

    memories: tuple[Memory, ...]

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(memory.id for memory in self.memories)


class Streams(NamedTuple):
    """The two streams of the protocol."""

    orders: IO[bytes]
    replies: IO[bytes]


def take_streams() -> Streams:
    """Take stdin and stdout for the protocol; everything printed from now on goes to stderr.

    The file descriptors are changed, so this also covers C libraries and child processes.
    """
    sys.stdout.flush()
    streams = Streams(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return streams


def serve(
    system: Any,
    *,
    name: str = "",
    version: str = "",
    identity: Mapping[str, Any] | None = None,
    streams: Streams | None = None,
) -> None:
    """Answer calls until stdin ends.

    `system` is an object, or a class or function that builds one. A built object without `reset`
    is built again for each scope. `identity` is what determines its results, besides its source.
    """
    streams = streams or take_streams()
    process = os.getpid()
    try:
        adapter = _Adapter(system, name, version, dict(identity or {}))
    except _CannotServe as problem:
        sys.exit(f"cannot be served: {problem}")
    # Output that was printed before may lack its end of line.
    streams.replies.write(b"\n")
    _end_a_copy_of(process)
    for line in streams.orders:
        if line.strip():
            reply = adapter.reply(line)
            _end_a_copy_of(process)
            streams.replies.write(reply + b"\n")
            streams.replies.flush()
        if adapter.closed:
            break
    adapter.close()


def _end_a_copy_of(process: int) -> None:
    """End this process if the system has made it by a fork: it would reply to the same calls."""
    if os.getpid() != process:
        os._exit(1)


class _CannotServe(Exception):
    """A mistake that the adapter's author has to correct; it is shown without a traceback."""


def _suggestion(name: str, place: Any) -> str:
    """Suggest an attribute with a similar name, as the end of a message."""
    near = difflib.get_close_matches(name, [one for one in dir(place) if one[0] != "_"], n=1)
    return f"; did you mean its {near[0]!r}?" if near else ""


class _Adapter:
    """The object behind the protocol."""

    def __init__(self, system: Any, name: str, version: str, identity: dict[str, Any]) -> None:
        makes = inspect.isclass(system) or inspect.isroutine(system)
        makes = makes or isinstance(system, functools.partial)
        self._build: Callable[[], Any] | None = system if makes else None
        self._system = system() if self._build else system
        kind = type(self._system)
        if not hasattr(self._system, "remember"):
            near = _suggestion("remember", kind)
            raise _CannotServe(f"{kind.__name__} has no remember(memories){near}")
        self._about = {"name": name or kind.__name__, "version": version}
        self._identity = {**_source_of(kind), **identity}
        self._verbs: dict[str, Callable[..., Any]] = {
            "reset": self._reset,
            "remember": self._remember,
            "ready": lambda: self._do("ready"),
            "recall": lambda query, k: _listed(
                self._do("recall", _query(query), k), max(k, self._given) + 1
            ),
            "answer": lambda query: self._do("answer", _query(query)),
            "forget": lambda memories: self._do("forget", Selector(tuple(_memories(memories)))),
            "stats": lambda: self._do("stats"),
        }
        self._given = 0
        """How many memories the object was given in this scope."""
        self.closed = False

    def reply(self, line: bytes) -> bytes:
        try:
            order = json.loads(line)
            number, method, params = order["id"], order["method"], order.get("params", {})
        except (ValueError, KeyError, TypeError, AttributeError):
            return _failure(None, _NO_JSON, f"not a request: {line[:80]!r}")
        verb = self._verb(method)
        if verb is None:
            return _failure(number, _NO_METHOD, f"{self._about['name']} has no {method}")
        try:
            inspect.signature(verb).bind(**params)
        except TypeError as error:
            return _failure(number, _BAD_PARAMS, f"{method}: {error}")
        try:
            return _encoded({"jsonrpc": "2.0", "id": number, "result": verb(**params)})
        except BaseException as error:  # a system may raise any, and must still reply
            return _failure(number, _FAILED, _told(error))

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            if hasattr(self._system, _CLOSE):
                self._do(_CLOSE)

    def _verb(self, method: str) -> Callable[..., Any] | None:
        if method == "hello":
            return self._hello
        if method == _CLOSE:
            return self.close
        return self._verbs.get(method) if method in self._methods else None

    @property
    def _methods(self) -> list[str]:
        has = [verb for verb in self._verbs if hasattr(self._system, verb)]
        made_up = ["reset"] if self._build and "reset" not in has else []
        return [*made_up, *has, _CLOSE]

    def _hello(self, protocol: int = 1) -> dict[str, Any]:
        about = dict(self._do("identity")) if hasattr(self._system, "identity") else {}
        return {**self._about, "methods": self._methods, "identity": {**self._identity, **about}}

    def _remember(self, memories: list[dict[str, Any]]) -> Any:
        self._given += len(memories)
        return self._do("remember", _memories(memories))

    def _reset(self, scope: str) -> None:
        self._given = 0
        if hasattr(self._system, "reset"):
            self._do("reset", scope)
        elif self._build:
            if hasattr(self._system, _CLOSE):
                self._do(_CLOSE)
            self._system = self._build()

    def _do(self, verb: str, *given: Any) -> Any:
        """Call the object's method, sync or async."""
        value = getattr(self._system, verb)(*given)
        if not inspect.isawaitable(value):
            return value
        import asyncio

        return asyncio.run_coroutine_threadsafe(_awaited(value), _event_loop()).result()


async def _awaited(value: Any) -> Any:
    try:
        return await value
    except (SystemExit, KeyboardInterrupt) as error:
        # It would end the event loop without a message.
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


def _event_loop() -> asyncio.AbstractEventLoop:
    """One event loop for all calls, so that tasks can go on between two calls."""
    import asyncio

    global _loop
    if _loop is None:
        _loop = asyncio.new_event_loop()
        threading.Thread(target=_loop.run_forever, daemon=True).start()
    return _loop


_loop: asyncio.AbstractEventLoop | None = None


def _encoded(reply: dict[str, Any]) -> bytes:
    return json.dumps(reply, default=_plain).encode()


def _told(error: BaseException) -> str:
    """Print a traceback, and return the error in words; a system's exception may refuse both."""
    with contextlib.suppress(BaseException):
        traceback.print_exc()
    try:
        return f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]
    except BaseException:
        return f"{type(error).__name__}: its message cannot be read"


def _failure(number: Any, code: int, message: str) -> bytes:
    return _encoded({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}})


def _memories(given: list[dict[str, Any]]) -> list[Memory]:
    return [Memory(**{**_known(one, Memory), "at": _moment(one.get("at"))}) for one in given]


def _query(given: dict[str, Any]) -> Query:
    return Query(**{**_known(given, Query), "now": _moment(given.get("now"))})


def _known(given: dict[str, Any], kind: Any) -> dict[str, Any]:
    """The fields that this version knows; a later version may send more."""
    return {
        field.name: given[field.name] for field in dataclasses.fields(kind) if field.name in given
    }


def _moment(text: str | None) -> datetime | None:
    # Before Python 3.11 a Z could not be read.
    return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None


def _listed(hits: Any, most: int) -> Any:
    """Hits as a list of limited length; a generator may never end."""
    if isinstance(hits, (str, bytes, dict)) or not isinstance(hits, Iterable):
        return hits
    return list(itertools.islice(hits, most))


def _plain(value: Any) -> Any:
    """Convert what JSON cannot express: our Hits and Receipts, numbers and arrays of numpy."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if hasattr(value, "__struct_fields__"):
        return {field: getattr(value, field) for field in value.__struct_fields__}
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"{type(value).__name__} cannot be sent as JSON")


def _source_of(kind: type) -> dict[str, str]:
    """Hash the adapter's source, so that an edited adapter counts as another system."""
    try:
        file = inspect.getsourcefile(kind)
    except (TypeError, OSError):
        file = None
    if not file or not Path(file).is_file():
        return {}
    return {"source_sha256": hashlib.sha256(Path(file).read_bytes()).hexdigest()}


def _scalar(text: str) -> Any:
    """Read an option: a number, true or false, else the text itself."""
    try:
        return json.loads(text.lower() if text.lower() in ("true", "false") else text)
    except ValueError:
        return text


def main(words: list[str]) -> None:
    """`module:Name key=value …`"""
    if not words or ":" not in words[0]:
        sys.exit("say what to serve: serve_stdio my_memory:Mine, and its options as key=value")
    streams = take_streams()
    # A connector starts us in a scratch folder, and names the user's.
    sys.path.insert(0, os.environ.get("MNEMOSCOPE_FOLDER") or str(Path.cwd()))
    options = {key: _scalar(value) for key, _, value in (word.partition("=") for word in words[1:])}
    try:
        target = _found(words[0])
        _check_options(target, options)
    except _CannotServe as problem:
        sys.exit(f"{words[0]} cannot be served: {problem}")
    serve(functools.partial(target, **options) if options else target, streams=streams)


def _found(name: str) -> Any:
    """Import `module:Name`. An error inside the module is shown with its traceback."""
    module_name, _, attribute = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise _CannotServe(f"there is no module {error.name!r} here or on sys.path") from None
    if not hasattr(module, attribute):
        raise _CannotServe(f"{module_name} has no {attribute!r}{_suggestion(attribute, module)}")
    return getattr(module, attribute)


def _check_options(target: Any, options: dict[str, Any]) -> None:
    if not inspect.isclass(target) and not inspect.isroutine(target):
        if options:
            raise _CannotServe("it is an object and does not take options")
        return
    try:
        signature = inspect.signature(target)
    except ValueError:  # some classes written in C have no signature
        return
    try:
        signature.bind(**options)
    except TypeError as error:
        raise _CannotServe(f"its options do not fit: {error}; it takes {signature}") from None


if __name__ == "__main__":
    main(sys.argv[1:])
