"""Fixtures of all tests: the shared data, small datasets, and fast runs of commands."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from itertools import count
from pathlib import Path
from types import FunctionType
from typing import Any, Protocol

# Before numpy: tests run side by side, and threads that spin for each of them slow all down.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Before ranx, a reference implementation: its functions would compile for minutes.
os.environ.setdefault("NUMBA_DISABLE_JIT", "1")

import pytest
from cyclopts import App, ArgumentCollection
from hypothesis import HealthCheck, settings
from tests.browser import browser as browser
from tests.optional import missing
from tests.temporary_files import use_memory

from mnemoscope.models.embedders import WordLlamaEmbedder
from mnemoscope.personas.simulate.simulator import simulate_persona
from mnemoscope.runner import rare_collections
from mnemoscope.types import CORE_CATEGORIES

REPOSITORY = Path(__file__).resolve().parent.parent

# On a fresh clone the first text that hypothesis draws takes seconds, and machines are shared: a
# deadline would fail at random.
settings.register_profile("mnemoscope", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mnemoscope")

# Most objects of a test live until its end: looking for cycles at every 700th costs a tenth.
gc.set_threshold(20_000, 20, 20)

# A shell ignores interrupts for background jobs, and child processes inherit that unless a handler
# is set here.
signal.signal(signal.SIGINT, signal.default_int_handler)


# The files that take longest begin first, so that no process works long after the others, and
# those that mostly wait begin beside those that compute. Of the rest, those that fork come before
# those that fill memory, because a fork takes as long as there is memory to share.
_FIRST = (
    *("golden/test_longmemeval_numbers.py", "golden/test_frozen_outputs.py"),
    *("runner/test_ray_executor.py", "runner/test_hostile_systems.py"),
    *("golden/test_tofu_forgets.py", "analysis/test_repeats.py", "runner/test_lost_systems.py"),
    *("test_quickstarts.py", "runner", "systems", "isolation", "connectors", "test_api.py"),
    *("cli", "plugins", "release/test_walkthrough.py", "analysis"),
)
_LAST = ("golden", "datasets", "metrics", "stats", "reports", "judges", "models")


def pytest_configure(config: pytest.Config) -> None:
    """Have temporary files in memory, and let each process begin to collect at another folder.

    On a fresh clone compiling the tests takes three times as long as collecting them, and a process
    finds what another one has compiled before it.
    """
    if folder := use_memory():
        config.stash[_MEMORY] = folder
    whole = [Path(place).resolve() for place in config.args] == [REPOSITORY / "tests"]
    if whole and (worker := os.environ.get("PYTEST_XDIST_WORKER")):
        places = sorted(str(one) for one in (REPOSITORY / "tests").iterdir() if _has_tests(one))
        count = int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        first = len(places) * int(worker.removeprefix("gw")) // count
        config.args[:] = places[first:] + places[:first]


_MEMORY = pytest.StashKey[Path]()


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Keep the temporary files of tests that failed until the next run."""
    if exitstatus and _MEMORY in session.config.stash:
        del session.config.stash[_MEMORY]


def pytest_unconfigure(config: pytest.Config) -> None:
    if folder := config.stash.get(_MEMORY, None):
        shutil.rmtree(folder, ignore_errors=True)


def _has_tests(place: Path) -> bool:
    return place.match("test_*.py") or (place.is_dir() and any(place.glob("test_*.py")))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the files by what they cost, in all processes alike."""
    ranks = {name: rank for rank, name in enumerate((*_FIRST, "", *_LAST))}

    def order(item: pytest.Item) -> tuple[int, str]:
        file = item.nodeid.partition("::")[0].removeprefix("tests/")
        return ranks.get(file, ranks.get(file.partition("/")[0], ranks[""])), file

    items.sort(key=order)


def pytest_collection_finish() -> None:
    """Leave the collected tests out of garbage collection, here and in forks."""
    _search_tests_last()
    gc.collect()
    gc.freeze()


def _search_tests_last() -> None:
    """Each collected folder stands at the front of the path, most of them several times.

    Every host of a system searches our path for every module: that would double its start.
    """
    folders = (REPOSITORY / "tests", REPOSITORY / "benchmarks")
    tests = [one for one in sys.path if any(map(Path(one).is_relative_to, folders))]
    sys.path[:] = dict.fromkeys([*(one for one in sys.path if one not in tests), *tests])


def _use_huge_pages() -> None:
    """Put this process's memory into pages of 2 MiB: a fork copies an entry for each page.

    The kernel refuses where a stretch is not all in use, or where it is older than 6.1.
    """
    libc = ctypes.CDLL(None)
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, rights, _, _, inode, *name = line.split(maxsplit=5)
        if (rights, inode) != ("rw-p", "0") or name not in ([], ["[heap]"]):
            continue
        begin, end = (int(address, 16) for address in addresses.split("-"))
        for place in range(-(-begin // _HUGE) * _HUGE, end - _HUGE + 1, _HUGE):
            libc.madvise(ctypes.c_void_p(place), ctypes.c_size_t(_HUGE), _MADV_COLLAPSE)


_HUGE = 2 << 20
_MADV_COLLAPSE = 25


def _pages() -> int:
    """How many pages of memory this process holds; 0 where the system does not say."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1])
    return 0


@pytest.fixture(scope="module", autouse=True)
def _memory_is_returned() -> Iterator[None]:
    """After a file that took much memory, return what is free: a fork would copy its pages."""
    before = _pages()
    yield
    if _pages() > before + _MUCH:
        gc.collect()
        with suppress(OSError, AttributeError):  # not the C library of Linux
            ctypes.CDLL(None).malloc_trim(0)


_MUCH = (16 << 20) // resource.getpagesize()


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Find ../shared/data/NAME; MNEMOSCOPE_SHARED names another root than ../shared.

    Missing data skips the test; with MNEMOSCOPE_REQUIRE_ALL=1 it fails the test.
    """
    root = Path(os.environ.get("MNEMOSCOPE_SHARED") or REPOSITORY.parent / "shared")

    def find(name: str) -> Path:
        path = root / "data" / name
        if not path.exists():
            missing(f"no shared data at {path}")
        return path

    return find


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests do not read or write the user's cache and data folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MNEMOSCOPE_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("MNEMOSCOPE_DATA_HOME", str(tmp_path_factory.mktemp("data-home")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_fsync() -> Iterator[None]:
    """fsync takes most of the time of a small run; a killed process loses nothing without it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _frozen_is_known() -> Iterator[None]:
    """Each run asks whether objects are frozen: counting those of all tests takes it 30 ms."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rare_collections, "is_frozen", lambda: True)
        yield


@pytest.fixture(scope="session", autouse=True)
def _options_are_read_once() -> Iterator[None]:
    """Each command reads its options from annotations: 12 ms, and a copy of them takes 4."""
    known: dict[tuple[object, ...], ArgumentCollection] = {}
    read = App.assemble_argument_collection

    def of_app(self: App, **more: Any) -> ArgumentCollection:
        key = (self.default_command, *sorted(more.items()))
        if any(more.values()) or not isinstance(self.default_command, FunctionType):
            return read(self, **more)
        if key not in known:
            known[key] = read(self, **more)
        return deepcopy(known[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(App, "assemble_argument_collection", of_app)
        yield


_LEDGERS = count()


@pytest.fixture(autouse=True)
def _own_ledger(
    _own_cache: None, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each test has its own ledger of attempts, in a folder that is made on the first use."""
    place = tmp_path_factory.getbasetemp() / "data-homes" / str(next(_LEDGERS))
    monkeypatch.setenv("MNEMOSCOPE_DATA_HOME", str(place))


@pytest.fixture(scope="session", autouse=True)
def _embedder_is_loaded() -> None:
    """The workers of a run are forks of this process, and share what it has loaded."""
    WordLlamaEmbedder().embed(["a text"])
    with suppress(OSError, AttributeError):  # not Linux
        _use_huge_pages()


WORDS = (
    "garden piano harbour lantern violin market bridge winter ticket recipe castle doctor "
    "summer bicycle island letter museum orchard pottery railway sailing teacher village weather"
).split()


@pytest.fixture(scope="session")
def write_locomo() -> Callable[..., Path]:
    """Write a small file in LoCoMo's format; a question's text begins with its id."""

    def write(
        path: Path, conversations: int = 6, sessions: int = 12, questions: int = 20, seed: int = 1
    ) -> Path:
        draw = random.Random(seed)

        def talk(conversation: int) -> dict[str, object]:
            sessions_of: dict[str, object] = {"speaker_a": "Ann", "speaker_b": "Bob"}
            for number in range(1, sessions + 1):
                sessions_of[f"session_{number}_date_time"] = f"1:56 pm on {number} May, 2023"
                sessions_of[f"session_{number}"] = [
                    {
                        "speaker": ("Ann", "Bob")[turn % 2],
                        "dia_id": f"D{number}:{turn}",
                        "text": " ".join(draw.choices(WORDS, k=8)),
                    }
                    for turn in range(1, 4)
                ]
            return sessions_of

        def ask(conversation: int, number: int) -> dict[str, object]:
            one, other = draw.sample(WORDS, 2)
            return {
                "question": f"conv-{conversation}/q{number} What of the {one} and the {other}?",
                "answer": one,
                "category": number % 5 + 1,
                "evidence": [f"D{draw.randint(1, sessions)}:1", f"D{draw.randint(1, sessions)}:2"],
            }

        samples = [
            {
                "sample_id": f"conv-{conversation}",
                "conversation": talk(conversation),
                "qa": [ask(conversation, number) for number in range(questions)],
            }
            for conversation in range(conversations)
        ]
        path.write_text(json.dumps(samples))
        return path

    return write


@pytest.fixture(scope="session")
def write_persona() -> Callable[..., Path]:
    """Write a persona in Recall Bench's format, a fact a day, with its ledger.

    Two questions are asked of each day; the second one of every fourth is about something that
    never happened. A question's text begins with its id.
    """

    def write(folder: Path, days: int = 12, id: str = "tester") -> Path:
        place = folder / id
        memories, qa = place / f"memories-{days}d", place / f"qa-{days}d"
        memories.mkdir(parents=True)
        qa.mkdir()
        (place / "persona.yaml").write_text(
            f"id: {id}\nname: T\nrole: tester\ndomain: tests\nprofile: p\n"
            "communication_style: c\nprincipal: {name: P, role: boss}\ncast: []\n"
            "sessions: [{id: principal, kind: 1to1, participants: [P]}]\n"
        )
        (place / f"arcs-{days}d.yaml").write_text(
            f'epoch: "2026-01-05"\narcs: [{{id: a, type: project, title: t, description: d, '
            f"startDay: 1, endDay: {days}}}]\n"
        )
        questions, ledger = [], []
        for day in range(1, days + 1):
            thing, value = f"thing{day:02}", f"{100 + day} crates"
            (memories / f"day-{day:04}.md").write_text(
                f"---\ntype: daily\n---\n\n# session: principal\n\n### {thing}\n\n"
                f"We agreed that {thing} weighs {value}. The {WORDS[day % len(WORDS)]} can wait.\n"
            )
            fact = {"id": f"f{day}", "entity": thing, "attribute": "a.b", "value": value}
            ledger.append(json.dumps({**fact, "day": day}))
            for number in (2 * day - 1, 2 * day):
                never = number % 8 == 0
                asked = f"nothing{day}" if never else thing
                questions.append(
                    {
                        "id": f"{id}-q{number:03}",
                        "question": f"{id}-q{number:03} What does {asked} weigh?",
                        "answer": "No evidence found." if never else f"{thing} weighs {value}.",
                        "category": CORE_CATEGORIES[(number - 1) % 8],
                        "difficulty": "easy",
                        "relevant_days": [day],
                        "requires_synthesis": False,
                        "key": [] if never else [f"f{day}.value"],
                        "no_evidence": never,
                    }
                )
        (qa / "questions.yaml").write_text(json.dumps(questions))
        (qa / "ledger.jsonl").write_text("\n".join(ledger) + "\n")
        return folder

    return write


@pytest.fixture(scope="session")
def neighbours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The simulated histories of three personas, one of them with four closed rooms."""
    folder = tmp_path_factory.mktemp("neighbours")
    for persona in ("er-physician", "executive-assistant", "financial-advisor"):
        simulate_persona(persona, folder, days=90)
    return folder


class CommandProcess:
    """One run of the command line, in its own process group."""

    def __init__(self, server: subprocess.Popen[str], output: Path) -> None:
        assert server.stdout is not None
        self._answers = server.stdout
        self._code: int | None = None
        self._output = output
        self.pid = int(self._answers.readline())

    @property
    def gone(self) -> bool:
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, 0)
                return False
        return True

    def wait(self) -> int:
        """The exit code; the negative number of the signal if a signal ended it."""
        if self._code is None:
            self._code = int(self._answers.readline())
        return self._code

    def kill(self, *, with_workers: bool) -> int:
        if self._code is None:
            with suppress(ProcessLookupError):
                (os.killpg if with_workers else os.kill)(self.pid, signal.SIGKILL)
        return self.wait()

    @property
    def output(self) -> str:
        return self._output.read_text()


class StartCommand(Protocol):
    def __call__(
        self, arguments: Sequence[object], *, file_bytes: int = 0, **environment: object
    ) -> CommandProcess: ...


@pytest.fixture(scope="session")
def start_command(
    _own_cache: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StartCommand]:
    """Start `mnemoscope` with these arguments in 50 ms; one at a time."""
    folder = tmp_path_factory.mktemp("commands")
    here = REPOSITORY / "tests" / "runner"
    path = os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")])
    server = subprocess.Popen(
        [sys.executable, here / "command_server.py"],
        env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    orders = server.stdin
    assert orders is not None
    started: list[CommandProcess] = []

    def end_last() -> None:
        if started:
            started[-1].kill(with_workers=True)

    def start(
        arguments: Sequence[object], *, file_bytes: int = 0, **environment: object
    ) -> CommandProcess:
        end_last()
        output = folder / f"{len(started)}.txt"
        order = {
            "arguments": [str(argument) for argument in arguments],
            "environment": {
                "MNEMOSCOPE_DATA_HOME": os.environ["MNEMOSCOPE_DATA_HOME"],
                **{key: str(value) for key, value in environment.items()},
            },
            "output": str(output),
            "file_bytes": file_bytes,
        }
        orders.write(json.dumps(order) + "\n")
        orders.flush()
        started.append(CommandProcess(server, output))
        return started[-1]

    with server:
        yield start
        end_last()
        orders.close()
