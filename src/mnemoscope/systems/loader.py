"""From a spec to a system that the runner can drive: a class, object, function or connector.

A system without `reset` is built again for each scenario. A function `(query, k) -> ids` needs no
`remember`. A class, object or connector without `remember` is refused: it would score 0, and no
report would show why.
"""

from __future__ import annotations

import inspect
import math
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from mnemoscope._store.errors import MnemoscopeError, SystemLost, UsageError, error_text
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.registry import bind_arguments, describe_options
from mnemoscope._store.spec import Spec
from mnemoscope._store.suggest import nearest
from mnemoscope.systems import BUILT_IN, CONNECTORS, SYSTEMS, connector_of
from mnemoscope.systems.async_methods import finished
from mnemoscope.systems.builtin.baselines import Oracle
from mnemoscope.systems.code_hash import code_sha256
from mnemoscope.systems.plain_hits import PlainHits
from mnemoscope.systems.system_replies import (
    Counted,
    read_answer,
    read_counters,
    read_hits,
    read_receipt,
)
from mnemoscope.types import Hit, Memory, Query, Question, Receipt, Repeat, Scalar, Selector

LEG = "leg_"
"""How the counters of a leg begin: `leg_NAME_asked` and `leg_NAME_answered`, in recalls."""
_OF_COMMANDS = ("stdio", "mcp", "recall-bench-js")
"""Connectors that start a process themselves."""
_LIVE = ("live", "read_only", "scope")
"""Options of connectors that are part of an identity only if they are used."""

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
    repeat: Repeat | None = None
    """Which of the declared repeats it is."""
    target: str = ""
    """The import path of a class that was given from Python, if another process can import it."""

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
    connector_name, address = connector_of(spec.name)
    if connector_name in CONNECTORS.builtin and target is None:
        connector = CONNECTORS.get(connector_name)
        options = bind_arguments(connector, spec, "address")
        build = partial(connector, address, **options)
        if options.get("live"):
            _warn_of_live_store(spec)
        options = {name: value for name, value in options.items() if value or name not in _LIVE}
        is_server = connector_name not in _OF_COMMANDS or address.startswith("http")
        hosting: Hosting = "server" if is_server else "child"
        return Plan(spec, build, {"arguments": options}, is_described=False, hosting=hosting)
    from mnemoscope.systems.hosted import Hosted, importable  # a host imports this module, too

    place = SYSTEMS.locate(spec.name) if target is None else importable(target)
    given = place if target is not None else ""
    if place in _BUILT_IN_PLACES:
        here = plan_here(spec, target)
        return msgspec.structs.replace(here, hosting="built-in", target=given)
    if place and spec.name not in SYSTEMS.builtin and hosted:
        build = partial(Hosted, place, spec)
        return Plan(spec, build, {}, is_described=False, hosting="child", target=given)
    return plan_here(spec, target)


def _warn_of_live_store(spec: Spec) -> None:
    import logging  # a host imports this module, too

    from mnemoscope.connectors.live_store import LIVE_WARNING

    logging.getLogger(__name__).warning("note: %s: %s", spec, LIVE_WARNING)


def plan_here(spec: Spec, target: Any = None) -> Plan:
    """The plan of a system that is imported and built in the process that asks for it.

    Wrong names and options fail here.
    """
    # A class from Python may have the name of a built-in system.
    hosting: Hosting = "worker" if target is not None else _hosting(spec.name)
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
    return Plan(spec, partial(target, **arguments), identity, is_described=False, hosting=hosting)


def takes_seed(spec: Spec, target: Any = None) -> bool:
    """Whether the system has an option `seed`; a third party's is imported in a host."""
    if "seed" in spec.args:
        return True
    if target is None and spec.name.partition(":")[0] in CONNECTORS.builtin:
        return False
    if target is not None:
        if not callable(target) or _is_recall_function(target):
            return False
        parameters = inspect.signature(target).parameters
        return "seed" in parameters
    with suppress(MnemoscopeError):  # a wrong name is reported where the system is built
        return "seed" in options_of(spec.name)
    return False


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


_LONGEST_IDENTITY = 1 << 20
_LONGEST_ERROR = 1000


class Described(NamedTuple):
    """A built system, and its plan with the system's identity."""

    plan: Plan
    system: Any


def describe(plan: Plan, on_call: Callable[[str], None] = lambda call: None) -> Described:
    """Build a system and complete its plan; refuse one that cannot be built, remember or recall.

    `on_call` is told which call of the system's code begins, as in a `Driver`.
    """
    if plan.is_described:
        return Described(plan, plan.build())
    system: Any = None
    try:
        on_call("constructor")
        system = plan.build()
        on_call("identity")
        recalls, remembers, answers = abilities(system)
        about = dict(finished(system.identity())) if hasattr(system, "identity") else {}
        written = msgspec.json.encode(about)
        if len(written) > _LONGEST_IDENTITY:
            raise UsageError(f"{plan.spec}: identity() returned more than 1 MiB")
        about = msgspec.json.decode(written)
        if not recalls and not answers:
            raise UsageError(_lacks(plan.spec.name, system, "recall(query, k)"))
        if not remembers:
            raise UsageError(_lacks(plan.spec.name, system, "remember(memories)"))
    except BaseException as error:
        with suppress(BaseException):
            on_call("close")
            if hasattr(system, "close"):
                finished(system.close())
        if isinstance(error, MnemoscopeError):
            raise
        from mnemoscope.text.display import one_line  # a host imports this module, too

        raise UsageError(
            f"cannot build {plan.spec}: {one_line(error_text(error), _LONGEST_ERROR)}"
        ) from error
    finally:
        on_call("")
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


class CallLimits(NamedTuple):
    """Seconds that a call may take; a connector ends a call that takes longer."""

    recall: float = math.inf
    others: float = math.inf


class Driver:
    """Runs one system in one process through one scenario after another.

    Every call of the system's code goes through here. `on_call` is told which call begins, and gets
    an empty text when it ends; a recall or an answer is not told, for several may run at a time.
    """

    def __init__(self, build: Callable[[], Any], system: Any = None) -> None:
        """`system` is one that was built already and has not begun a scenario."""
        self._build = build
        self._system = system
        self._is_unused = system is not None
        self._reported: dict[str, int] = {}
        self._given = 0
        """How many memories the system was given in this scenario."""
        self.limits = CallLimits()
        self.on_call: Callable[[str], None] = lambda call: None

    def begin(self, scope: str) -> None:
        """Begin a scenario with an empty, isolated system."""
        if self._system is None or self.must_rebuild:
            self.close()
            with self._calling("constructor"):
                self._system = self._build()
        self._is_unused, self._given = False, 0
        if hasattr(type(self._system), "limit_calls"):
            self._system.limit_calls(*self.limits)
        if hasattr(self._system, "reset"):
            self._do("reset", scope)

    @property
    def must_rebuild(self) -> bool:
        """Whether the next scenario needs another system: this one cannot be emptied."""
        is_empty = self._is_unused or hasattr(self._system, "reset")
        return self._system is not None and not is_empty

    def can(self, verb: str) -> bool:
        return hasattr(self._system, verb)

    def drives(self, system: Any) -> bool:
        """Whether this is the object that it drives."""
        return self._system is system

    def fork(self) -> Driver:
        """A driver of a copy of the system in its current state."""
        twin = Driver(self._build)
        twin.on_call, twin._given = self.on_call, self._given
        twin._system = self._do("fork")
        return twin

    def remember(self, memories: Sequence[Memory]) -> Receipt:
        """Ingest the memories, and wait until they are searchable."""
        receipt = None
        self._given += len(memories)
        for verb in ("remember", "build_index"):
            if hasattr(self._system, verb):
                receipt = self._do(verb, memories)
                break
        if hasattr(self._system, "ready"):
            self._do("ready")
        with self._calling("remember"):
            return read_receipt(receipt)

    def forget(self, selector: Selector) -> None:
        """Let the system forget the memories, and wait until it has."""
        self._do("forget", selector)
        if hasattr(self._system, "ready"):
            self._do("ready")

    def recall(self, question: Question, k: int) -> list[Hit]:
        """Ask the system for k hits; only the oracle sees the labels of the question."""
        return list(self.hits(question, k))

    def hits(self, question: Question, k: int) -> Sequence[Hit]:
        """The same hits; those of most of our own systems have no object each."""
        if type(self._system) is Oracle:  # not a subclass, which may be a system under test
            return read_hits(self._system.recall(question, k), max(k, self._given) + 1)
        query = Query(question.text, question.now, question.session)
        if _is_scored(type(self._system)):
            hits: PlainHits | None = self._system.plain_recall(query, k)
            if hits is not None:
                return hits
        return self.ask(query, k)

    def ask(self, query: Query, k: int) -> Sequence[Hit]:
        """The system's hits for a query.

        Of more than k hits, as many are read as the system was given memories, and one more.
        """
        system = self._system
        with _Call():
            # Looked up once: a connector asks its process what it has.
            if (recall := getattr(system, "recall", None)) is not None:
                found = recall(query, k)
            elif hasattr(system, "retrieve"):
                found = system.retrieve(query.text, k)
            else:
                found = system(query, k)
            most = max(k, self._given) + 1
            return read_hits(finished(found), most, decoded=_is_hosted(type(system)))

    def answer(self, question: Question) -> str:
        """The system's own answer."""
        query = Query(question.text, question.now, question.session)
        with _Call():
            return read_answer(finished(self._system.answer(query)))

    def report(self) -> Any:
        """What the system reports of itself, as it came: its index size and its counters."""
        if hasattr(self._system, "stats"):
            with self._calling("stats"):
                return finished(self._system.stats())
        if hasattr(self._system, "index_size_bytes"):
            with self._calling("index_size_bytes"):
                return {"index_bytes": finished(self._system.index_size_bytes())}
        return {}

    def counted(self) -> Counted:
        """The system's index size, and its counters since the last call."""
        reported = Counted(None, {})
        try:
            reported = read_counters(self.report())
        except SystemLost:
            raise
        except BaseException:  # a failing report must not fail the run
            return reported
        before, self._reported = self._reported, reported.counters
        grown = {key: value - before.get(key, 0) for key, value in reported.counters.items()}
        return Counted(reported.index_bytes, {key: n for key, n in grown.items() if n})

    @property
    def counts_legs(self) -> bool:
        """Whether the last report of the system had counters of its legs."""
        return any(key.startswith(LEG) for key in self._reported)

    def lost(self) -> None:
        """Forget the counters of a system that is gone."""
        self._reported = {}

    def close(self) -> None:
        """Close the system; an error in its `close` must not affect the next scenario."""
        system, self._system, self._reported = self._system, None, {}
        with suppress(BaseException):
            if hasattr(system, "close"):
                with self._calling("close"):
                    finished(system.close())

    def _do(self, verb: str, *given: Any) -> Any:
        with self._calling(verb):
            return finished(getattr(self._system, verb)(*given))

    def _calling(self, call: str) -> _Call:
        return _Call(partial(self.on_call, call), partial(self.on_call, ""))


def _is_scored(kind: type) -> bool:
    """Whether this is one of our own systems, not a subclass of one, whose hits are memories."""
    if kind not in _scored:
        is_ours = kind.__module__.startswith("mnemoscope.systems.builtin.")
        _scored[kind] = is_ours and hasattr(kind, "plain_recall")
    return _scored[kind]


_scored: dict[type, bool] = {}


def _is_hosted(kind: type) -> bool:
    """Whether this is our client of a host process, not a subclass of it."""
    hosted = sys.modules.get("mnemoscope.systems.hosted")  # a host itself does not import it
    return hosted is not None and kind in (hosted.Hosted, hosted.HostedCopy)


class _Call:
    """A call of the system's code.

    It ends a copy of this process that the system has made: the copy would be a second worker.
    """

    def __init__(
        self, begin: Callable[[], None] = lambda: None, end: Callable[[], None] = lambda: None
    ) -> None:
        self._begin, self._end = begin, end

    def __enter__(self) -> None:
        self._process = os.getpid()
        self._begin()

    def __exit__(self, *exc: object) -> None:
        if os.getpid() != self._process:
            os._exit(1)
        self._end()


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
