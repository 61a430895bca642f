"""From a spec to a system that the runner can drive: a class, object, function or connector.

A system without `reset` is built again for each scenario. A function `(query, k) -> ids` needs no
`remember`. A class, object or connector without `remember` is refused: it would score 0, and no
report would show why.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout, suppress
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from mnemoscope._store.errors import BadReply, MnemoscopeError, SystemLost, UsageError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.jsonl import printable
from mnemoscope._store.registry import bind_arguments, describe_options
from mnemoscope._store.spec import Spec
from mnemoscope._store.suggest import nearest
from mnemoscope.systems import BUILT_IN, CONNECTORS, SYSTEMS
from mnemoscope.systems.async_methods import finished
from mnemoscope.systems.builtin.baselines import Oracle
from mnemoscope.systems.code_hash import code_sha256
from mnemoscope.types import Hit, Memory, Query, Question, Receipt, Scalar, Selector

Hosting = Literal["built-in", "worker", "child", "server"]
"""Where a system's code runs: our own code, a third party's code in the worker process, a child
process that we start, or a server that we did not start."""


class Plan(msgspec.Struct, frozen=True):
    """How to build a system, and everything that decides its results."""

    spec: Spec
    build: Callable[[], Any]
    identity: dict[str, Any]
    recalls: bool = True
    answers: bool = False
    """Whether the system has an answer method."""
    is_described: bool = True
    """Whether the fields above are final. If not, the built system completes them."""
    hosting: Hosting = "worker"

    @property
    def notes(self) -> list[str]:
        """The system's own caveats for readers of its figures."""
        own = self.identity.get("hello", {}).get("identity", self.identity)
        return list(own.get("notes", []))


def plan(spec: Spec, target: Any = None, *, hosted: bool = True) -> Plan:
    """Resolve a spec without building the system, and without importing a third party's module.

    `target` is the class, object or function itself, if it was given from Python. Without `hosted`
    the process that asks imports the module: a server, which has no labels.
    """
    connector_name, _, address = spec.name.partition(":")
    if connector_name in CONNECTORS.builtin and target is None:
        connector = CONNECTORS.get(connector_name)
        given = bind_arguments(connector, spec, "address")
        build = partial(connector, address, **given)
        is_server = connector_name not in ("stdio", "mcp") or address.startswith("http")
        hosting: Hosting = "server" if is_server else "child"
        return Plan(spec, build, {"arguments": given}, is_described=False, hosting=hosting)
    from mnemoscope.systems.hosted import Hosted, importable  # a host imports this module, too

    place = SYSTEMS.locate(spec.name) if target is None else importable(target)
    if place in _BUILT_IN_PLACES:
        return msgspec.structs.replace(plan_here(spec, target), hosting="built-in")
    if place and spec.name not in SYSTEMS.builtin and hosted:
        return Plan(spec, partial(Hosted, place, spec), {}, is_described=False, hosting="child")
    return plan_here(spec, target)


def plan_here(spec: Spec, target: Any = None) -> Plan:
    """The plan of a system that is imported and built in the process that asks for it.

    Wrong names and options fail here.
    """
    if target is None:
        with redirect_stdout(sys.stderr):  # a module may print when it is imported
            target = SYSTEMS.get(spec.name)
    if _is_recall_function(target):
        if spec.args:
            raise UsageError(f"{spec.name} is a plain function and takes no options")
        return Plan(spec, lambda: target, source_of(target))
    if not callable(target):
        if spec.args:
            raise UsageError(f"{spec.name} is an object and takes no options")
        recalls, remembers, answers = abilities(target)
        if not hasattr(target, "reset") or not recalls:
            raise UsageError(
                f"{spec.name} is an object, which all scenarios would share: it needs "
                "reset(scope) and recall(query, k); or give its class instead"
            )
        if not remembers:
            raise UsageError(_lacks(spec.name, target, "remember(memories)"))
        return Plan(spec, lambda: target, source_of(type(target)), answers=answers)
    arguments = bind_arguments(target, spec)
    # The hash of the source file covers a default that is not a scalar.
    known = {key: value for key, value in arguments.items() if isinstance(value, Scalar | None)}
    identity = {"arguments": known, **source_of(target)}
    hosting = _hosting(spec.name)
    return Plan(spec, partial(target, **arguments), identity, is_described=False, hosting=hosting)


def options_of(name: str) -> dict[str, str]:
    """The options of a system, with their values; a third party's is imported in a host."""
    if name in SYSTEMS.builtin:
        return describe_options(SYSTEMS.get(name))
    from mnemoscope.systems.hosted import Hosted

    return Hosted(SYSTEMS.locate(name), Spec(name)).options()


_BUILT_IN_PLACES = frozenset(entry.target for entry in BUILT_IN.values())


def _hosting(name: str) -> Hosting:
    if name in BUILT_IN:
        return "built-in"
    return "child" if name in SYSTEMS.builtin else "worker"


class Described(NamedTuple):
    """A built system, and its plan with the system's identity."""

    plan: Plan
    system: Any


def describe(plan: Plan) -> Described:
    """Build a system and complete its plan; refuse one that cannot be built, remember or recall."""
    if plan.is_described:
        return Described(plan, plan.build())
    system: Any = None
    try:
        system = plan.build()
        recalls, remembers, answers = abilities(system)
        about = dict(system.identity()) if hasattr(system, "identity") else {}
        about = msgspec.json.decode(msgspec.json.encode(about))
        if not recalls and not answers:
            raise UsageError(_lacks(plan.spec.name, system, "recall(query, k)"))
        if not remembers:
            raise UsageError(_lacks(plan.spec.name, system, "remember(memories)"))
    except (Exception, SystemExit) as error:
        with suppress(Exception, SystemExit):
            if hasattr(system, "close"):
                finished(system.close())
        if isinstance(error, MnemoscopeError):
            raise
        raise UsageError(f"cannot build {plan.spec}: {type(error).__name__}: {error}") from error
    known = Plan(
        plan.spec,
        plan.build,
        {**plan.identity, **about},
        recalls,
        answers,
        hosting=plan.hosting,
    )
    return Described(known, system)


class Abilities(NamedTuple):
    """What a system can do."""

    recalls: bool
    remembers: bool
    """True for a bare function, too: it needs no `remember`."""
    answers: bool


def abilities(system: Any) -> Abilities:
    is_function = _is_recall_function(system) or getattr(system, "is_bare_function", False) is True
    return Abilities(
        hasattr(system, "recall") or hasattr(system, "retrieve") or is_function,
        hasattr(system, "remember") or hasattr(system, "build_index") or is_function,
        hasattr(system, "answer"),
    )


def _lacks(name: str, system: Any, method: str) -> str:
    """The error text for a missing method, with the most similar method that the system has."""
    kind = type(system)
    own = [one for one in dir(kind) if one[0] != "_" and callable(getattr(kind, one, None))]
    near = nearest(method.partition("(")[0], own)
    hint = f"; did you mean its method {near!r}?" if near else ""
    return f"{name}: {kind.__name__} has no {method} method{hint}"


class Counted(NamedTuple):
    """A system's report of its index size and its counters."""

    index_bytes: int | None
    counters: dict[str, int]


class Driver:
    """Runs one system in one process through one scenario after another."""

    def __init__(self, build: Callable[[], Any], system: Any = None) -> None:
        """`system` is one that was built already and has not begun a scenario."""
        self._build = build
        self._system = system
        self._is_unused = system is not None
        self._reported: dict[str, int] = {}

    def begin(self, scope: str) -> None:
        """Begin a scenario with an empty, isolated system."""
        is_empty = self._is_unused or hasattr(self._system, "reset")
        if self._system is None or not is_empty:
            self.close()
            self._system = self._build()
        self._is_unused = False
        if hasattr(self._system, "reset"):
            finished(self._system.reset(scope))

    def can(self, verb: str) -> bool:
        return hasattr(self._system, verb)

    def drives(self, system: Any) -> bool:
        """Whether this is the object that it drives."""
        return self._system is system

    def fork(self) -> Driver:
        """A driver of a copy of the system in its current state."""
        twin = Driver(self._build)
        twin._system = finished(self._system.fork())
        return twin

    def remember(self, memories: Sequence[Memory]) -> Receipt:
        """Ingest the memories, and wait until they are searchable."""
        take = getattr(self._system, "remember", None) or getattr(self._system, "build_index", None)
        receipt = finished(take(memories)) if take else None
        if hasattr(self._system, "ready"):
            finished(self._system.ready())
        if not isinstance(receipt, Receipt | dict):
            return Receipt()
        try:
            return msgspec.convert(msgspec.to_builtins(receipt), Receipt)
        except (msgspec.ValidationError, TypeError) as error:
            raise BadReply(f"remember returned a receipt that cannot be read: {error}") from None

    def forget(self, selector: Selector) -> None:
        """Let the system forget the memories, and wait until it has."""
        finished(self._system.forget(selector))
        if hasattr(self._system, "ready"):
            finished(self._system.ready())

    def recall(self, question: Question, k: int) -> list[Hit]:
        """Ask the system for k hits; only the oracle sees the labels of the question."""
        system = self._system
        if type(system) is Oracle:  # not a subclass, which may be a system under test
            return read_hits(finished(system.recall(question, k)))
        query = Query(question.text, question.now, question.session)
        if hasattr(system, "recall"):
            return read_hits(finished(system.recall(query, k)))
        if hasattr(system, "retrieve"):
            return read_hits(finished(system.retrieve(question.text, k)))
        return read_hits(finished(system(query, k)))

    def answer(self, question: Question) -> str:
        """The system's own answer."""
        query = Query(question.text, question.now, question.session)
        reply = finished(self._system.answer(query))
        if not isinstance(reply, str):
            raise BadReply(f"answer returned {_short(reply)}; expected a string")
        return printable(reply)

    def report(self) -> dict[str, int]:
        """What the system reports of itself: its index size and its counters."""
        if hasattr(self._system, "stats"):
            return {str(key): int(n) for key, n in finished(self._system.stats()).items()}
        if hasattr(self._system, "index_size_bytes"):
            return {"index_bytes": int(finished(self._system.index_size_bytes()))}
        return {}

    def counted(self) -> Counted:
        """The system's index size, and its counters since the last call."""
        try:
            report = self.report()
        except SystemLost:
            raise
        except (Exception, SystemExit):  # a failing report must not fail the run
            return Counted(None, {})
        size = report.pop("index_bytes", None)
        grown = {key: value - self._reported.get(key, 0) for key, value in report.items()}
        self._reported = report
        return Counted(size, {key: n for key, n in grown.items() if n})

    def lost(self) -> None:
        """Forget the counters of a system that is gone."""
        self._reported = {}

    def close(self) -> None:
        """Close the system; an error in its `close` must not affect the next scenario."""
        with suppress(Exception, SystemExit):
            if hasattr(self._system, "close"):
                finished(self._system.close())
        self._system = None
        self._reported = {}


def read_hits(reply: object) -> list[Hit]:
    """Hits from what a system returns: Hits, ids, (id, score) pairs or dicts."""
    if isinstance(reply, str | bytes | dict) or not isinstance(reply, Iterable):
        raise BadReply(f"recall returned {_short(reply)}; expected a list of hits or ids")
    entries = list(reply)
    if set(map(type, entries)) <= {Hit}:
        kinds = {(type(h.id), type(h.score), type(h.text), bool(h.sources)) for h in entries}
        if kinds <= _PLAIN_KINDS:
            return entries
    return [_read_hit(entry) for entry in entries]


_PLAIN_KINDS = {(str, float, str, False), (str, type(None), str, False)}
"""Field types of a hit that the journal can store; a Hit does not check them."""


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
        f"or Hit with id and optional score, text and sources{lacks}"
    )


def _read_fields(fields: dict[Any, Any]) -> Hit:
    """A hit from its fields; ids may be integers, and scores of numpy's types."""
    if isinstance(fields["id"], Integral | str):
        fields["id"] = str(fields["id"])
    if isinstance(fields.get("score"), Real):
        fields["score"] = float(fields["score"])
    try:
        return msgspec.convert(fields, Hit)
    except msgspec.ValidationError as error:
        raise BadReply(f"recall returned a hit that cannot be read: {error}") from None


def _short(value: object) -> str:
    return f"{type(value).__name__} {value!r:.80}"


def _is_recall_function(target: object) -> bool:
    if not inspect.isfunction(target):
        return False
    parameters = inspect.signature(target).parameters.values()
    required = [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    return len(required) == 2 or [p.name for p in required] == ["query"]


def source_of(target: Any) -> dict[str, str]:
    """The hash of a third party's source file: an edited system is a different system."""
    target = target.func if isinstance(target, partial) else target
    if getattr(target, "__module__", "").startswith("mnemoscope."):
        return {}
    try:
        file = inspect.getsourcefile(target)
    except (TypeError, OSError):  # OSError: a class in a notebook has no file
        file = None
    if file and Path(file).exists():
        return {"source_sha256": sha256_file(Path(file))}
    return {"code_sha256": code} if (code := code_sha256(target)) else {}
