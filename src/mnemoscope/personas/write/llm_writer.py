"""A model that writes: many prompts at once, each paid for once, failures logged.

A prompt that comes to nothing is logged and passed over: the caller decides what is missing. The
last reply that could not be used is kept for people to read. Replies are in the model's cache
before they are used, so that a killed pass that is started again pays for nothing twice.
"""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import Journal, printable, read_records, write_atomically
from mnemoscope.models.budget import Budget, open_budget
from mnemoscope.models.chat import ModelFailure, Prompt, metered, total
from mnemoscope.models.replies import closing, parse_json, without_thoughts
from mnemoscope.types import Usage

T = TypeVar("T")
JsonObject = dict[str, object]
"""An object of a reply, unchecked."""

TRIES = 3
"""How often a reply that breaks a rule is sent back with the reasons, the first time included."""
_ACCOUNT = "account.jsonl"
KEPT_REJECTED = 10
"""So many rejected replies of each pass are kept, the newest ones: enough to see what is wrong."""
_LONGEST_NAME = 200
"""Bytes; file systems take 255 with what is put around it while it is written."""
_NOT_IN_NAMES = re.compile(r"[^\w@.-]+")
_AFTER_SEPARATORS = re.compile(r"[^\s,]")
_ARRAY_START = re.compile(r"\[(?=\s*[{\]])")
_DRAFT = re.compile(r"\..+\.(\d+)\.draft")


class UnusableReply(ValueError):
    """A reply that breaks a rule; the message says which, to the model as well as to people.

    `advice` is for the model alone: what to reply instead.
    """

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(problem)
        self.for_model = f"{problem}; {advice}" if advice else problem


class PromptModel(Protocol):
    """A model, or what stands in for one."""

    name: str

    def ask(self, prompt: Prompt) -> str: ...


class Task(NamedTuple, Generic[T]):
    """One thing to be written."""

    about: str
    """For people: `day 12, session principal`."""
    prompt: Prompt
    read: Callable[[str], T]
    """Makes something of the reply, or raises UnusableReply."""


class Written(NamedTuple, Generic[T]):
    task: Task[T]
    result: T | None
    """None where nothing came of it."""
    problem: str = ""
    told: str = ""
    """For people: the problem, how often it was tried, and where the last reply can be read."""


class AccountEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the account: what was written, what it cost."""

    pass_name: str
    about: str
    usage: Usage
    problem: str = ""


class RejectedReplies:
    """What one pass keeps: of each thing that came to nothing the last reply."""

    def __init__(self, folder: Path, pass_name: str) -> None:
        self._folder = folder / "rejected" / pass_name
        self._writing = threading.Lock()

    def keep(self, about: str, reply: str) -> Path:
        """Where the reply is now; the oldest goes where there are too many."""
        path = self._path(about)
        with self._writing:
            write_atomically(path, printable(reply).encode())
            others = sorted(
                (one for one in self._folder.glob("*.txt") if one != path),
                key=lambda one: one.stat().st_mtime_ns,
            )
            for oldest in others[: max(0, len(others) + 1 - KEPT_REJECTED)]:
                oldest.unlink()
        return path

    def drop(self, about: str) -> None:
        """The thing was written after all."""
        with self._writing:
            self._path(about).unlink(missing_ok=True)

    def _path(self, about: str) -> Path:
        name = _NOT_IN_NAMES.sub("-", about).encode()[:_LONGEST_NAME]
        return self._folder / f"{name.decode(errors='ignore')}.txt"


class LlmWriter:
    """Asks a model to write. `log` hears of failures, one line each."""

    def __init__(
        self,
        model: PromptModel,
        account: Journal,
        pass_name: str,
        *,
        parallelism: int = 1,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        if parallelism < 1:
            raise UsageError(f"--parallelism {parallelism}: at least one")
        self._model = model
        self._account = account
        self._pass_name = pass_name
        self._parallelism = parallelism
        self._log = log
        self._recording = threading.Lock()
        self._rejected = RejectedReplies(account.path.parent, pass_name)
        entries = read_records(account.path, AccountEntry)
        failed = (one.about for one in entries if one.pass_name == pass_name and one.problem)
        self._failed = Counter(failed)
        """How often each thing came to nothing in the passes so far."""

    def write(self, task: Task[T]) -> Written[T]:
        """One thing; sent back with the reasons a bounded number of times."""
        # What came to nothing in an earlier pass is in the cache as well: this asks anew.
        tried = TRIES * self._failed[task.about]
        prompt, problem, reply = task.prompt, "", ""
        if tried:
            prompt = msgspec.structs.replace(prompt, attempt=tried + 1)
        with metered() as usages:
            try:
                for attempt in range(tried + 1, tried + TRIES + 1):
                    reply = self._model.ask(prompt)
                    try:
                        result = task.read(reply)
                        problem = ""
                        self._rejected.drop(task.about)
                        return Written(task, result)
                    except UnusableReply as error:
                        problem = str(error)
                        prompt = _sent_back(task.prompt, reply, error.for_model, attempt + 1)
            except ModelFailure as failure:
                problem = str(failure)
                return Written(task, None, problem, problem)
            except BaseException:
                # The pass stops, and this has not failed: the replies so far are taken up later.
                problem = ""
                raise
            finally:
                self._record(task.about, total(usages), problem)
        kept = self._rejected.keep(task.about, reply)
        told = f"tried {TRIES} times; the last reply, kept in {kept}, cannot be used: {problem}"
        return Written(task, None, problem, told)

    def write_all(self, tasks: Iterable[Task[T]]) -> Iterator[Written[T]]:
        """Each as soon as it is there, so many at a time; `tasks` is read as places become free.

        An error that stops the pass waits for those that are on their way: they are paid for.
        """
        waiting = iter(tasks)
        running: set[Future[Written[T]]] = set()
        stopped: BaseException | None = None
        with ThreadPoolExecutor(self._parallelism) as threads:
            try:
                while True:
                    while (
                        stopped is None
                        and len(running) < self._parallelism
                        and (task := next(waiting, None)) is not None
                    ):
                        running.add(threads.submit(self.write, task))
                    if not running:
                        break
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for one in done:
                        if error := one.exception():
                            stopped = stopped or error
                        else:
                            written = one.result()
                            if written.result is None:
                                about = f"{self._pass_name}: {written.task.about}"
                                self._log(f"{about} skipped: {written.told}")
                            yield written
            finally:
                for one in running:
                    one.cancel()
        if stopped is not None:
            raise stopped

    def _record(self, about: str, usage: Usage | None, problem: str) -> None:
        if usage is not None:
            with self._recording:
                self._account.append(AccountEntry(self._pass_name, about, usage, problem))


def _sent_back(prompt: Prompt, reply: str, problem: str, attempt: int) -> Prompt:
    """The prompt with its last reply and what is wrong with it."""
    user = (
        f"{prompt.user}\n\nYou replied before:\n\n<reply>\n{reply.strip()}\n</reply>\n\n"
        f"That cannot be used: {problem}\nReply again, whole, with this mended."
    )
    return msgspec.structs.replace(prompt, user=user, attempt=attempt)


def remove_drafts(folder: Path) -> None:
    """Remove what `write_atomically` had not finished when its process was killed."""
    for below in ("", "*/", "*/*/"):
        for draft in folder.glob(f"{below}.*.draft"):
            found = _DRAFT.fullmatch(draft.name)
            if found is not None and not _is_running(int(found[1])):
                with suppress(OSError):  # in a folder that is only read
                    draft.unlink()


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # another user's, but there
    return True


def account_of(folder: Path) -> Journal:
    """Where a persona's folder keeps what its writing cost."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"{folder} cannot be a folder: a file is in its place") from None
    return Journal(folder / _ACCOUNT)


def paid(folder: Path) -> float:
    """What was paid so far, in US dollars."""
    place = folder / _ACCOUNT
    return (
        sum(entry.usage.paid for entry in read_records(place, AccountEntry))
        if place.exists()
        else 0.0
    )


@contextmanager
def cost_limit(dollars: float | None, folder: Path) -> Iterator[None]:
    """While the block runs, no more is paid than that, whatever was paid before included."""
    if dollars is None:
        yield
        return
    open_budget(Budget(dollars, paid(folder), 1, folder / ".purse.lock"))
    try:
        yield
    finally:
        open_budget(None)


class Salvaged(NamedTuple):
    """What could be read of an array."""

    objects: list[JsonObject]
    whole: bool
    """Whether the array ends, and nothing in it was unreadable."""


def read_array(reply: str) -> Salvaged:
    """The objects of the first array of objects; UnusableReply where there is no array."""
    text = without_thoughts(reply)
    start = _ARRAY_START.search(text)
    if start is None:
        raise UnusableReply(
            "there is no JSON array of objects in it", "reply with one and nothing else"
        )
    objects: list[JsonObject] = []
    whole, place = True, start.end()
    while found := _AFTER_SEPARATORS.search(text, place):
        place = found.start()
        if text[place] == "]":
            return Salvaged(objects, whole)
        end = closing(text, place)
        if text[place] != "{" or end is None:
            break
        try:
            objects.append(parse_json(text[place:end]))
        except ValueError:
            whole = False
        place = end
    return Salvaged(objects, False)


def read_whole_array(reply: str) -> list[JsonObject]:
    """The same, where a part is of no use."""
    found = read_array(reply)
    if not found.whole:
        raise UnusableReply(
            "its JSON array breaks off or holds an object that is no JSON",
            "write a shorter one, whole and valid",
        )
    return found.objects
