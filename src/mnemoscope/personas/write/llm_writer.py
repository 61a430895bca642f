"""The desk where a model writes: many prompts at once, each paid for once, failures logged.

A prompt that comes to nothing is logged and passed over: whoever gave it decides what is missing.
The last reply that could not be used is kept for people to read. Replies are in the model's cache
before anything is made of them, so that a killed pass that is started again pays for nothing twice.
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
from mnemoscope._store.jsonl import Journal, read_records
from mnemoscope.models.budget import Budget, open_budget
from mnemoscope.models.chat import ModelFailure, Prompt, metered, total
from mnemoscope.personas.write.rejected_replies import RejectedReplies
from mnemoscope.types import Usage

T = TypeVar("T")

TRIES = 3
"""How often a reply that breaks a rule is sent back with the reasons, the first time included."""
_ACCOUNT = "account.jsonl"
_DRAFT = re.compile(r"\..+\.(\d+)\.draft")


class Unusable(ValueError):
    """A reply that breaks a rule; the message says which, to the model as well as to people.

    `advice` is for the model alone: what to reply instead.
    """

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(problem)
        self.for_model = f"{problem}; {advice}" if advice else problem


class Asks(Protocol):
    """A model, or whoever stands in for one."""

    name: str

    def ask(self, prompt: Prompt) -> str: ...


class Task(NamedTuple, Generic[T]):
    """One thing to be written."""

    about: str
    """For people: `day 12, session principal`."""
    prompt: Prompt
    read: Callable[[str], T]
    """Makes something of the reply, or raises Unusable."""


class Written(NamedTuple, Generic[T]):
    task: Task[T]
    result: T | None
    """None where nothing came of it."""
    problem: str = ""
    told: str = ""
    """For people: the problem, how often it was tried, and where the last reply can be read."""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the account: what was written, what it cost."""

    pass_name: str
    about: str
    usage: Usage
    problem: str = ""


class LlmWriter:
    """Asks a model to write. `log` hears of failures, one line each."""

    def __init__(
        self,
        model: Asks,
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
        self._failed = _failed_before(account, pass_name)

    def write(self, task: Task[T]) -> Written[T]:
        """One thing; sent back with the reasons a bounded number of times."""
        # What came to nothing in an earlier pass is in the cache as well: this asks anew.
        tried = TRIES * self._failed[task.about]
        prompt, problem, reply = _numbered(task.prompt, tried + 1), "", ""
        with metered() as usages:
            try:
                for attempt in range(tried + 1, tried + TRIES + 1):
                    reply = self._model.ask(prompt)
                    try:
                        result = task.read(reply)
                        problem = ""
                        self._rejected.drop(task.about)
                        return Written(task, result)
                    except Unusable as error:
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
                            yield self._logged(one.result())
            finally:
                for one in running:
                    one.cancel()
        if stopped is not None:
            raise stopped

    def _logged(self, written: Written[T]) -> Written[T]:
        if written.result is None:
            self._log(f"{self._pass_name}: {written.task.about} skipped: {written.told}")
        return written

    def _record(self, about: str, usage: Usage | None, problem: str) -> None:
        if usage is not None:
            with self._recording:
                self._account.append(Entry(self._pass_name, about, usage, problem))


def _failed_before(account: Journal, pass_name: str) -> Counter[str]:
    """How often each thing came to nothing in the passes so far."""
    entries = read_records(account.path, Entry)
    return Counter(one.about for one in entries if one.pass_name == pass_name and one.problem)


def _numbered(prompt: Prompt, attempt: int) -> Prompt:
    return prompt if attempt == 1 else msgspec.structs.replace(prompt, attempt=attempt)


def _sent_back(prompt: Prompt, reply: str, problem: str, attempt: int) -> Prompt:
    """The prompt with its last reply and what is wrong with it."""
    user = (
        f"{prompt.user}\n\nYou replied before:\n\n<reply>\n{reply.strip()}\n</reply>\n\n"
        f"That cannot be used: {problem}\nReply again, whole, with this mended."
    )
    return msgspec.structs.replace(prompt, user=user, attempt=attempt)


def sweep(home: Path) -> None:
    """Remove what `write_atomically` had not finished when its process was killed."""
    for below in ("", "*/", "*/*/"):
        for draft in home.glob(f"{below}.*.draft"):
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
        pass  # somebody else's, but there
    return True


def account_of(home: Path) -> Journal:
    """Where a persona's folder keeps what its writing cost."""
    try:
        home.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"{home} cannot be a folder: a file is in its place") from None
    return Journal(home / _ACCOUNT)


def paid(home: Path) -> float:
    """What was paid so far, in US dollars."""
    place = home / _ACCOUNT
    return sum(entry.usage.paid for entry in read_records(place, Entry)) if place.exists() else 0.0


@contextmanager
def ceiling(dollars: float | None, home: Path) -> Iterator[None]:
    """While the block runs, no more is paid than that, whatever was paid before included."""
    if dollars is None:
        yield
        return
    open_budget(Budget(dollars, paid(home), 1, home / ".purse.lock"))
    try:
        yield
    finally:
        open_budget(None)
