"""How the systems of a run are kept from the labels: levels, hidden paths, decoys, self-tests."""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from ctypes import c_char, c_uint64
from datetime import datetime
from glob import escape
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import platformdirs

from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import encode_lines, write_atomically
from mnemoscope._store.private_files import is_private_run, make_private_folder
from mnemoscope._store.run_directory import Manifest, RunDirectory
from mnemoscope._store.user_data import user_data_folder
from mnemoscope.datasets.base import Dataset
from mnemoscope.integrations import environments
from mnemoscope.isolation.decoys import (
    DECOYS_FILE,
    Decoy,
    bait_variables,
    draw_decoys,
    secret_for,
    secret_hash,
    write_bait,
)
from mnemoscope.isolation.hidden_paths import all_names, contains, hard_links, raw_disks
from mnemoscope.isolation.left_behind import adopted_orphans, on_left_behind
from mnemoscope.isolation.levels import (
    DECOYS,
    LOCKED,
    NOT_GIVEN,
    WITHIN_REACH,
    lowest,
)
from mnemoscope.isolation.lock import Lock, best_mechanism, lock_children
from mnemoscope.isolation.scratch import scratch_root
from mnemoscope.isolation.trusted_paths import trusted_paths
from mnemoscope.models.cache import default_cache_dir
from mnemoscope.systems.loader import Plan
from mnemoscope.types import Isolation, Scenario

_WHY_REACHABLE = {
    "worker": "its code runs in our own process",
    "server": "it is a server that we did not start",
}


_FILES_OF_RUNS = (
    *("trials.jsonl", "raw_retrievals.jsonl", "questions.jsonl", "failures.jsonl", "decoys.jsonl"),
    *("units", "manifest.json", "metrics.json", "result.json", "longitudinal.json"),
    *("summary.md", "summary.json", "repeats.json", "attempts.jsonl"),
)


_NAMES = 256
"""Bytes for the names of the processes that a system leaves behind, in one worker."""
_NO_NAME = re.compile(r"[^A-Za-z0-9._+-]")


class _LedgerEntry(msgspec.Struct):
    path: str = ""


class WorkerIsolation(msgspec.Struct, frozen=True):
    """What a worker process needs to lock its children and to count their self-tests."""

    lock: Lock | None
    variables: Sequence[dict[str, str]]
    """Of each system: the variables that name its bait."""
    counts: Any
    """Shared memory: the starts and the passed self-tests of each system."""
    left: Any
    """Shared memory: the names of the processes that each system left behind, a line each."""

    def select(self, system: int) -> None:
        """Lock the children that this process starts from now on; they belong to this system."""
        on_left_behind(lambda name: self._note_left(system, name))
        if self.lock is None:
            return
        counting = threading.Lock()

        def count(passed: bool) -> None:
            with counting:
                self.counts[2 * system] += 1
                self.counts[2 * system + 1] += passed

        own = self.variables[system]
        bait = tuple(Path(os.path.realpath(folder)) for folder in own.values())
        kept = (*self.lock.kept, *bait)
        lock_children(msgspec.structs.replace(self.lock, kept=kept, environment=own), count)

    def _note_left(self, system: int, name: str) -> None:
        first = _NAMES * system
        known = self.left[first : first + _NAMES].rstrip(b"\0")
        line = _NO_NAME.sub("?", name).encode() + b"\n"
        if line not in known.splitlines(keepends=True) and len(known) + len(line) <= _NAMES:
            self.left[first + len(known) : first + len(known) + len(line)] = line


class HiddenFiles(NamedTuple):
    """On a node of a cluster, which has no dataset: its name and the files to hide."""

    name: str
    files: tuple[Path, ...]


class RunIsolation(AbstractContextManager["RunIsolation"]):
    """The isolation of one call of `run`; the bait exists inside the `with` block."""

    def __init__(
        self,
        dataset: Dataset | HiddenFiles,
        plans: Sequence[Plan],
        out: Path,
        asked: int | None,
        *,
        on_cluster: bool = False,
    ) -> None:
        """Decoys are drawn with the labels, so they are not planted on the nodes of a cluster."""
        self._no_decoys = on_cluster or isinstance(dataset, HiddenFiles)
        self._nodes: dict[tuple[int, int], Isolation] = {}
        self._dataset = dataset.name
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._secrets: list[bytes | None] = [None for _ in plans]
        self._drawn: list[list[Decoy]] = [[] for _ in plans]
        self._counts: dict[int, Any] = {}
        self._left: dict[int, Any] = {}
        self._orphans = ExitStack()
        self._runs_foreign_code = any(plan.hosting != "built-in" for plan in plans)
        self._begun: set[int] = set()
        self._lock: Lock | None = None
        problem = ""
        if any(plan.hosting == "child" for plan in plans) and asked not in (0, 1):
            self._lock, problem = _lock(dataset, plans, out)
        self.records = [self._record(plan, asked, problem) for plan in plans]
        if asked is not None:
            _refuse_lower(plans, self.records, asked)
        if any(record.level == DECOYS for record in self.records):
            self._plant()

    def __enter__(self) -> RunIsolation:
        # If a worker is killed, what its systems left behind comes to this process.
        if self._runs_foreign_code:
            self._orphans.enter_context(adopted_orphans())
        return self

    def __exit__(self, *error: object) -> None:
        self._orphans.close()
        if self._folder is not None:
            self._folder.cleanup()

    def worker(self, place: int) -> WorkerIsolation:
        """Each worker process counts in its own place."""
        variables = [bait_variables(bait) if bait else {} for bait in self._baits]
        counts = self._counts.setdefault(place, RawArray(c_uint64, 2 * len(self.records)))
        left = self._left.setdefault(place, RawArray(c_char, _NAMES * len(self.records)))
        return WorkerIsolation(self._lock, variables, counts, left)

    def begin(self, number: int, manifest: Manifest, begun: datetime) -> None:
        """Record the isolation of a run that begins or continues; the lowest level counts."""
        if manifest.state == "complete":  # nothing is asked
            return
        self._begun.add(number)
        is_new = manifest.started is None or manifest.started >= begun
        record = lowest(manifest.isolation, self.records[number], is_new=is_new)
        manifest.isolation = self.records[number] = record

    def count(self, number: int, manifest: Manifest) -> None:
        """Record how many starts passed their self-test."""
        record = self.records[number]
        if number not in self._begun or record.level is None:
            return
        manifest.isolation = self.counted(number)

    def counted(self, number: int) -> Isolation:
        """The record with the starts so far, those on the nodes of a cluster included."""
        record = self.records[number]
        if record.level is None:
            return record
        starts, passed = (
            sum(int(own[2 * number + part]) for own in self._counts.values()) for part in (0, 1)
        )
        left = dict.fromkeys(record.left_behind)
        for own in self._left.values():
            names = own[_NAMES * number : _NAMES * (number + 1)].rstrip(b"\0")
            left |= dict.fromkeys(names.decode("utf-8", "replace").splitlines())
        level, why, mechanism = record.level, record.why, record.mechanism
        for node in [one for (_, system), one in self._nodes.items() if system == number]:
            starts, passed = starts + node.starts, passed + node.passed
            left |= dict.fromkeys(node.left_behind)
            if node.level is not None and node.level < level:
                level, why, mechanism = node.level, node.why, node.mechanism
        return msgspec.structs.replace(
            record,
            level=level,
            why=why,
            mechanism=mechanism,
            starts=record.starts + starts,
            passed=record.passed + passed,
            left_behind=tuple(left),
        )

    def note_node(self, worker: int, system: int, isolation: Isolation) -> None:
        """Note the isolation of a system by one worker of a cluster; the lowest level counts."""
        self._nodes[worker, system] = isolation

    def plant(self, scenario: Scenario) -> None:
        """Draw the decoys of a scenario and add them to the baits, before it is run."""
        for number, (secret, bait) in enumerate(zip(self._secrets, self._baits, strict=True)):
            if secret is not None and bait is not None:
                drawn = draw_decoys(secret, scenario)
                self._drawn[number] += drawn
                write_bait(bait, self._dataset, scenario, drawn)

    def publish(self, number: int, directory: RunDirectory) -> None:
        """Write the decoys into the finished run, so that `verify` can count them."""
        secret, record = self._secrets[number], self.records[number]
        if secret is None or record.level != DECOYS:
            return
        place = directory.path / DECOYS_FILE
        write_atomically(place, encode_lines([{"secret": secret.hex()}, *self._drawn[number]]))
        directory.vouch(DECOYS_FILE)

    @property
    def _baits(self) -> list[Path | None]:
        """The bait of each system: folders of their own, so that none can change another's."""
        if self._folder is None:
            return [None for _ in self._secrets]
        root = Path(self._folder.name)
        return [root / str(n) if secret else None for n, secret in enumerate(self._secrets)]

    def _record(self, plan: Plan, asked: int | None, problem: str) -> Isolation:
        if plan.hosting == "built-in":
            return Isolation("built-in", None, sees_labels=plan.spec.name == "oracle")
        if plan.hosting in _WHY_REACHABLE:
            return Isolation(plan.hosting, WITHIN_REACH, why=_WHY_REACHABLE[plan.hosting])
        if self._lock is None:
            why = problem or f"--isolation {asked} was asked for"
            return Isolation(plan.hosting, NOT_GIVEN, why=why)
        level = DECOYS if asked is None else asked
        why = "decoys are not planted on the nodes of a cluster" if self._no_decoys else ""
        if is_private_run():  # a killed run would leave them
            why = "decoys repeat the questions, and the run is private"
        if level == DECOYS and why:
            return Isolation(plan.hosting, LOCKED, mechanism=self._lock.name, why=why)
        return Isolation(plan.hosting, level, mechanism=self._lock.name)

    def _plant(self) -> None:
        """Make the folders of the baits; the secret is that of the dataset on this machine."""
        for number, record in enumerate(self.records):
            if record.level != DECOYS:
                continue
            try:
                self._make_folder()
                secret = secret_for(self._dataset)
            except OSError as error:
                why = f"the secret cannot be kept in {user_data_folder()}: {error.strerror}"
                self.records[number] = msgspec.structs.replace(record, level=LOCKED, why=why)
                continue
            self._secrets[number] = secret
            self.records[number] = msgspec.structs.replace(
                record, decoys_sha256=secret_hash(secret)
            )
        for bait in filter(None, self._baits):
            bait.mkdir(exist_ok=True)
            for name in bait_variables(bait).values():
                Path(name).mkdir(parents=True)

    def _make_folder(self) -> None:
        """The folder of all baits is hidden; each system can read its own."""
        if self._folder is None:
            make_private_folder(user_data_folder())
            self._folder = tempfile.TemporaryDirectory(
                prefix="mnemoscope-data-", dir=user_data_folder(), ignore_cleanup_errors=True
            )


def _refuse_lower(plans: Sequence[Plan], records: Sequence[Isolation], asked: int) -> None:
    for plan, record in zip(plans, records, strict=True):
        if record.level is not None and record.level < asked:
            raise UsageError(
                f"--isolation {asked} is not possible for {plan.spec}: {record.why}, which is "
                f"level {record.level}. Omit --isolation to run it at that level"
            )


def _lock(
    dataset: Dataset | HiddenFiles, plans: Sequence[Plan], out: Path
) -> tuple[Lock | None, str]:
    """The lock of the run's children, or why there is none."""
    mechanism = best_mechanism()
    if mechanism is None:
        return None, "this machine has no Landlock, bubblewrap or sandbox-exec"
    data = list(_data_files(dataset))
    if linked := hard_links(data):
        return None, f"{linked[0]} has a second name (a hard link) that no lock covers; copy it"
    runs = list(_run_folders(plans, out))
    on_node = isinstance(dataset, HiddenFiles)
    if mechanism != "Landlock" and not on_node:  # the others hide only what exists
        for plan in plans:
            (out / plan.spec.slug).mkdir(parents=True, exist_ok=True)
    caches = [default_cache_dir(), Path(platformdirs.user_cache_dir("mnemoscope"))]
    if root := os.environ.get("MNEMOSCOPE_DATA"):
        caches += [] if _is_needed(Path(root), plans) else [Path(root)]
    ours = [*caches, user_data_folder(), scratch_root()]
    hidden = all_names([*data, *ours, *runs, *raw_disks()])
    if mechanism != "Landlock" and on_node:
        hidden = tuple(path for path in hidden if path.exists())
    # Their contents are no labels, and our next process runs or loads them.
    readable = [default_cache_dir() / "models", environments.root()]
    trusted = trusted_paths(hidden, [*readable, Path(sys.prefix), Path(sys.base_prefix)])
    return Lock(mechanism, hidden, (), *trusted, guarded=(os.getpid(),)), ""


def data_paths(dataset: Dataset | HiddenFiles) -> list[Path]:
    """The files that a dataset is read from."""
    if isinstance(dataset, HiddenFiles):
        return list(dataset.files)
    paths = getattr(dataset, "paths", None)
    return [file.path for file in dataset.files()] if paths is None else list(paths.values())


def _data_files(dataset: Dataset | HiddenFiles) -> Iterator[Path]:
    """The files of the dataset, packed and unpacked; a folder with all that it contains."""
    for path in data_paths(dataset):
        stem = path.name.removesuffix(".xz").removesuffix(".gz")
        yield path
        yield from path.parent.glob(f"{escape(stem)}*")


def _run_folders(plans: Sequence[Plan], out: Path) -> Iterator[Path]:
    """The out folder, the run folders beside it, and those that the ledger of attempts lists.

    A folder that contains the system's own files stays open; the files of runs in it do not.
    """
    beside = out.resolve().parent
    found = [*out.glob("manifest.json"), *out.glob("*/manifest.json")]
    found += [*beside.glob("*/manifest.json"), *beside.glob("*/*/manifest.json")]
    earlier = dict.fromkeys([*(file.parent for file in found), *_known_runs()])
    for folder in (out, *(out / plan.spec.slug for plan in plans), *earlier):
        if not _is_needed(folder, plans):
            yield folder
        else:
            yield from (folder / name for name in _FILES_OF_RUNS)


def _known_runs() -> Iterator[Path]:
    """The earlier run folders that the ledger of attempts lists."""
    for ledger in user_data_folder().glob("*.jsonl"):
        with suppress(OSError):
            for line in ledger.read_bytes().splitlines():
                with suppress(msgspec.DecodeError, ValueError):
                    folder = Path(msgspec.json.decode(line, type=_LedgerEntry).path)
                    if folder.is_absolute() and folder.is_dir():
                        yield folder


def _is_needed(folder: Path, plans: Sequence[Plan]) -> bool:
    """Whether the folder contains the current folder or a file that a system's command names."""
    words = [os.curdir]
    for plan in plans:
        if plan.hosting == "child":
            address = plan.spec.name.partition(":")[2]
            words.append(address)
            with suppress(ValueError):
                words += shlex.split(address)
    real = Path(os.path.realpath(folder))
    return any(contains([real], Path(word)) for word in words if Path(word).exists())
