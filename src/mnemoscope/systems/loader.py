"""From a spec to a system that the runner can drive: any class, object, function or connector.

Without `reset` a system is built anew for each scenario; a bare function `(query, k) -> ids` has
nothing to remember. A class, an object or an adapter that cannot remember is refused, as it would
score nothing in silence.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mnemoscope._store.errors import BadReply, MnemoscopeError, SystemLost, UsageError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.jsonl import printable
from mnemoscope._store.registry import bind_arguments
from mnemoscope._store.spec import Spec
from mnemoscope._store.suggest import nearest
from mnemoscope.systems import CONNECTORS, SYSTEMS
from mnemoscope.systems.builtin.baselines import Oracle
from mnemoscope.systems.code_hash import code_sha256
from mnemoscope.types import Hit, Memory, Query, Question, Receipt, Scalar, Selector


class Plan(msgspec.Struct, frozen=True):
    """How to build a system, and everything that decides what it will return."""

    spec: Spec
    build: Callable[[], Any]
    identity: dict[str, Any]
    recalls: bool = True
    answers: bool = False
    """Whether it answers by itself."""
    is_described: bool = True
    """Whether the fields above are final, or lack what only the built system can say."""

    @property
    def notes(self) -> list[str]:
        """What the system says that a reader of its figures must know."""
        own = self.identity.get("hello", {}).get("identity", self.identity)
        return list(own.get("notes", []))


def plan(spec: Spec, target: Any = None) -> Plan:
    """Resolve a spec without building the system; wrong names and options fail here.

    `target` is the class, object or function itself, where it was given from Python.
    """
    connector_name, _, address = spec.name.partition(":")
    if connector_name in CONNECTORS.builtin and target is None:
        connector = CONNECTORS.get(connector_name)
        given = bind_arguments(connector, spec, "address")
        build = partial(connector, address, **given)
        return Plan(spec, build, {"arguments": given}, is_described=False)
    target = SYSTEMS.get(spec.name) if target is None else target
    if _is_recall_function(target):
        if spec.args:
            raise UsageError(f"{spec.name} is a plain function and takes no options")
        return Plan(spec, lambda: target, source_of(target))
    if not callable(target):
        if spec.args:
            raise UsageError(f"{spec.name} is an object and takes no options")
        if not hasattr(target, "reset") or not can_recall(target):
            raise UsageError(
                f"{spec.name} is an object, which all scenarios would share: it needs "
                "reset(scope) and recall(query, k); or give its class instead"
            )
        if not can_remember(target):
            raise UsageError(_lacks(spec.name, target, "remember(memories)"))
        answers = hasattr(target, "answer")
        return Plan(spec, lambda: target, source_of(type(target)), answers=answers)
    arguments = bind_arguments(target, spec)
    # A default that is no scalar is known by the hash of the source it stands in.
    known = {key: value for key, value in arguments.items() if isinstance(value, Scalar | None)}
    identity = {"arguments": known, **source_of(target)}
    return Plan(spec, partial(target, **arguments), identity, is_described=False)


class Described(NamedTuple):
    """A system that was built, and its plan with what the system says of itself."""

    plan: Plan
    system: Any


def describe(plan: Plan) -> Described:
    """Build a system, and complete its plan; refuse one that cannot be built, told or asked."""
    if plan.is_described:
        return Described(plan, plan.build())
    system: Any = None
    try:
        system = plan.build()
        recalls, answers = can_recall(system), hasattr(system, "answer")
        remembers = can_remember(system)
        about = dict(system.identity()) if hasattr(system, "identity") else {}
        about = msgspec.json.decode(msgspec.json.encode(about))
        if not recalls and not answers:
            raise UsageError(_lacks(plan.spec.name, system, "recall(query, k)"))
        if not remembers:
            raise UsageError(_lacks(plan.spec.name, system, "remember(memories)"))
    except (Exception, SystemExit) as error:
        with suppress(Exception, SystemExit):
            if hasattr(system, "close"):
                _done(system.close())
        if isinstance(error, MnemoscopeError):
            raise
        raise UsageError(f"cannot build {plan.spec}: {type(error).__name__}: {error}") from error
    return Described(
        Plan(plan.spec, plan.build, {**plan.identity, **about}, recalls, answers), system
    )


def can_recall(system: Any) -> bool:
    return hasattr(system, "recall") or hasattr(system, "retrieve") or _is_recall_function(system)


def can_remember(system: Any) -> bool:
    """Whether it can be told anything; a bare function need not."""
    return (
        hasattr(system, "remember") or hasattr(system, "build_index") or _is_recall_function(system)
    )


def _lacks(name: str, system: Any, method: str) -> str:
    """That a system lacks a method, and which of its own was probably meant."""
    kind = type(system)
    own = [one for one in dir(kind) if one[0] != "_" and callable(getattr(kind, one, None))]
    near = nearest(method.partition("(")[0], own)
    hint = f"; did you mean its method {near!r}?" if near else ""
    return f"{name}: {kind.__name__} has no {method} method{hint}"


class Counted(NamedTuple):
    """What a system says it holds and has done."""

    index_bytes: int | None
    counters: dict[str, int]


class Driver:
    """One system in one process, through one scenario after another."""

    def __init__(self, build: Callable[[], Any], system: Any = None) -> None:
        """`system` is one that was built already and has begun no scenario yet."""
        self._build = build
        self._ask: Callable[[Question, int], Any]
        self._system: Any = None
        self._is_unused = system is not None
        self._reported: dict[str, int] = {}
        if self._is_unused:
            self._use(system)

    def begin(self, scope: str) -> None:
        """A fresh, isolated space."""
        is_empty = self._is_unused or hasattr(self._system, "reset")
        if self._system is None or not is_empty:
            self.close()
            self._use(self._build())
        self._is_unused = False
        if hasattr(self._system, "reset"):
            _done(self._system.reset(scope))

    def can(self, verb: str) -> bool:
        return hasattr(self._system, verb)

    def fork(self) -> Driver:
        """A driver of a copy of the system as it is now."""
        twin = Driver(self._build)
        twin._use(_done(self._system.fork()))
        return twin

    def _use(self, system: Any) -> None:
        """Drive this system from now on, and see how it is asked, with how much of a question."""
        self._system = system
        if type(system) is Oracle:  # a subclass is somebody else's system
            self._ask = system.recall
        elif hasattr(system, "recall"):
            self._ask = lambda question, k: system.recall(_query(question), k)
        elif hasattr(system, "retrieve"):
            self._ask = lambda question, k: system.retrieve(question.text, k)
        else:
            self._ask = lambda question, k: system(_query(question), k)

    def remember(self, memories: Sequence[Memory]) -> Receipt:
        """Hand over the memories and wait until they are searchable."""
        take = getattr(self._system, "remember", None) or getattr(self._system, "build_index", None)
        receipt = _done(take(memories)) if take else None
        self._settle()
        return _readable(receipt) if isinstance(receipt, Receipt | dict) else Receipt()

    def forget(self, selector: Selector) -> None:
        """Let the system forget, and wait until it has."""
        _done(self._system.forget(selector))
        self._settle()

    def _settle(self) -> None:
        if hasattr(self._system, "ready"):
            _done(self._system.ready())

    def recall(self, question: Question, k: int) -> list[Hit]:
        """Ask. What the system sees of the question was decided when it was built."""
        return read_hits(_done(self._ask(question, k)))

    def answer(self, question: Question) -> str:
        """Let the system answer by itself."""
        reply = _done(self._system.answer(_query(question)))
        if not isinstance(reply, str):
            raise BadReply(f"answer returned {_short(reply)}; expected a text")
        return printable(reply)

    def counted(self) -> Counted:
        """What the system reports of itself: index size, and its counters since last asked."""
        report: dict[str, int] = {}
        try:
            if hasattr(self._system, "stats"):
                report = {str(key): int(n) for key, n in _done(self._system.stats()).items()}
            elif hasattr(self._system, "index_size_bytes"):
                report = {"index_bytes": int(_done(self._system.index_size_bytes()))}
        except SystemLost:
            raise
        except (Exception, SystemExit):  # a report must not be able to spoil a run
            return Counted(None, {})
        size = report.pop("index_bytes", None)
        grown = {key: value - self._reported.get(key, 0) for key, value in report.items()}
        self._reported = report
        return Counted(size, {key: n for key, n in grown.items() if n})

    def lost(self) -> None:
        """What the system has counted is lost with it."""
        self._reported = {}

    def close(self) -> None:
        """Let the system go. How it takes that must not touch the scenario that comes next."""
        with suppress(Exception, SystemExit):
            if hasattr(self._system, "close"):
                _done(self._system.close())
        self._system = None
        self._reported = {}


def _query(question: Question) -> Query:
    """All that a system may know of a question."""
    return Query(question.text, question.now, question.session)


def read_hits(reply: object) -> list[Hit]:
    """Hits from whatever shape people return: Hits, ids, (id, score) pairs or dicts."""
    if isinstance(reply, str | bytes | dict) or not isinstance(reply, Iterable):
        raise BadReply(f"recall returned {_short(reply)}; expected a list of hits or ids")
    entries = list(reply)
    if set(map(type, entries)) <= {Hit}:
        kinds = {(type(h.id), type(h.score), type(h.text), bool(h.sources)) for h in entries}
        if kinds <= _PLAIN_KINDS:
            return entries
    return [_read_hit(entry) for entry in entries]


_PLAIN_KINDS = {(str, float, str, False), (str, type(None), str, False)}
"""Nothing enforces the types of a Hit; one of other types would make the journal unreadable."""


def _read_hit(entry: object) -> Hit:
    match entry:
        case bool():
            pass
        case str() | Integral():
            return Hit(str(entry))
        case (str() | Integral() as id, Real() | None as score):
            return Hit(str(id), None if score is None else float(score))
        case Hit():
            return _read_fields(msgspec.structs.asdict(entry))
        case {"id": id, **rest}:
            return _read_fields({**rest, "id": id})
    lacks = f"; it has {', '.join(map(str, entry))[:80]}" if isinstance(entry, dict) else ""
    raise BadReply(
        f"recall returned {_short(entry)} as a hit; expected an id, a pair (id, score), or a dict "
        f"or Hit with id, and perhaps score, text and sources{lacks}"
    )


def _read_fields(fields: dict[Any, Any]) -> Hit:
    """A hit from fields as people fill them, with ids and scores of numpy's types."""
    if isinstance(fields["id"], Integral | str):
        fields["id"] = str(fields["id"])
    if isinstance(fields.get("score"), Real):
        fields["score"] = float(fields["score"])
    try:
        return msgspec.convert(fields, Hit)
    except msgspec.ValidationError as error:
        raise BadReply(f"recall returned a hit that cannot be read: {error}") from None


def _readable(receipt: Receipt | dict[str, Any]) -> Receipt:
    try:
        return msgspec.convert(msgspec.to_builtins(receipt), Receipt)
    except (msgspec.ValidationError, TypeError) as error:
        raise BadReply(f"remember returned a receipt that cannot be read: {error}") from None


def _short(value: object) -> str:
    return f"{type(value).__name__} {value!r:.80}"


def _is_recall_function(target: object) -> bool:
    if not inspect.isfunction(target):
        return False
    parameters = inspect.signature(target).parameters.values()
    required = [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    return len(required) == 2 or [p.name for p in required] == ["query"]


def source_of(target: Any) -> dict[str, str]:
    """The hash of a third party's source file, so that an edited system is another system."""
    target = target.func if isinstance(target, partial) else target
    if getattr(target, "__module__", "").startswith("mnemoscope."):
        return {}
    try:
        file = inspect.getsourcefile(target)
    except (TypeError, OSError):  # OSError: of a class in a notebook, which has no file
        file = None
    if file and Path(file).exists():
        return {"source_sha256": sha256_file(Path(file))}
    return {"code_sha256": code} if (code := code_sha256(target)) else {}


def _done(value: Any) -> Any:
    """The value itself, or what an async method comes to."""
    if isinstance(value, list) or not inspect.isawaitable(value):
        return value
    return asyncio.run_coroutine_threadsafe(_awaited(value), _event_loop()).result()


async def _awaited(value: Awaitable[Any]) -> Any:
    try:
        return await value
    except SystemExit as error:  # it would end the loop, and nobody would ever hear of it
        raise RuntimeError(f"SystemExit: {error}") from error


def _event_loop() -> asyncio.AbstractEventLoop:
    """This process's one loop, in a thread of its own, so that several threads can await in it."""
    global _loop, _loop_owner
    with _starting:
        if _loop is None or _loop_owner != os.getpid():  # a fork inherits the loop, not its thread
            _loop, _loop_owner = asyncio.new_event_loop(), os.getpid()
            threading.Thread(target=_loop.run_forever, daemon=True).start()
        return _loop


_starting = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_loop_owner = 0
