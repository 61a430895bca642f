"""A model that writes: several prompts at once, each paid for once, failures logged.

A prompt without a usable reply is logged and skipped; the caller lists what is missing. The last
unusable reply is kept as a file. Replies are in the model's cache before they are used, so a killed
pass that is started again does not pay for them twice.
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
"""A JSON object of a reply, not validated."""

TRIES = 3
"""Most requests for one task; each retry includes the last reply and what is wrong with it."""
_ACCOUNT = "account.jsonl"
KEPT_REJECTED = 10
"""How many rejected replies of each pass are kept, the newest ones."""
_LONGEST_NAME = 200
"""Bytes; file systems take 255, including what a draft adds to the name."""
_NOT_IN_NAMES = re.compile(r"[^\w@.-]+")
_AFTER_SEPARATORS = re.compile(r"[^\s,]")
_ARRAY_START = re.compile(r"\[(?=\s*[{\]])")
_DRAFT = re.compile(r"\..+\.(\d+)\.draft")


class UnusableReply(ValueError):
    """A reply that breaks a rule; the message is for the user and the model.

    `advice` is for the model only: what to reply instead.
    """

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(problem)
        self.for_model = f"{problem}; {advice}" if advice else problem


class PromptModel(Protocol):
    """A model, or a stand-in for one."""

    name: str

    def ask(self, prompt: Prompt) -> str: ...


class Task(NamedTuple, Generic[T]):
    """One text to be written."""

    about: str
    """Names it in messages: `day 12, session principal`."""
    prompt: Prompt
    read: Callable[[str], T]
    """Converts the reply, or raises UnusableReply."""


class Written(NamedTuple, Generic[T]):
    task: Task[T]
    result: T | None
    """None if it failed."""
    problem: str = ""
    message: str = ""
    """For the user: the problem, the number of tries and the file of the last reply."""


class AccountEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of account.jsonl: a task and its usage."""

    pass_name: str
    about: str
    usage: Usage
    problem: str = ""


class RejectedReplies:
    """The last reply to each failed task of one pass, as files."""

    def __init__(self, folder: Path, pass_name: str) -> None:
        self._folder = folder / "rejected" / pass_name
        self._writing = threading.Lock()

    def keep(self, about: str, reply: str) -> Path:
        """Write the reply to a file and delete the oldest ones above the limit."""
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
        """Delete the reply of a task that succeeded."""
        with self._writing:
            self._path(about).unlink(missing_ok=True)

    def _path(self, about: str) -> Path:
        name = _NOT_IN_NAMES.sub("-", about).encode()[:_LONGEST_NAME]
        return self._folder / f"{name.decode(errors='ignore')}.txt"


class LlmWriter:
    """Asks a model to write. `log` gets a line for each failure."""

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
            raise UsageError(f"--parallelism {parallelism}: give 1 or more")
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
        """How often each task failed in earlier passes."""

    def write(self, task: Task[T]) -> Written[T]:
        """Write one task; an unusable reply is retried with the reasons, up to TRIES requests."""
        # The replies of a failed earlier pass are in the cache: another attempt number asks anew.
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
                        prompt = _retry_prompt(task.prompt, reply, error.for_model, attempt + 1)
            except ModelFailure as failure:
                problem = str(failure)
                return Written(task, None, problem, problem)
            except BaseException:
                # The pass stops and the task has not failed: a later pass uses the replies so far.
                problem = ""
                raise
            finally:
                self._record(task.about, total(usages), problem)
        kept = self._rejected.keep(task.about, reply)
        message = f"tried {TRIES} times; the last reply, kept in {kept}, cannot be used: {problem}"
        return Written(task, None, problem, message)

    def write_all(self, tasks: Iterable[Task[T]]) -> Iterator[Written[T]]:
        """Write `parallelism` tasks at a time; yields each as soon as it is done.

        An error that stops the pass is raised after the running tasks: they are paid for.
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
                                self._log(f"{about} skipped: {written.message}")
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


def _retry_prompt(prompt: Prompt, reply: str, problem: str, attempt: int) -> Prompt:
    """The prompt with the last reply and what is wrong with it."""
    user = (
        f"{prompt.user}\n\nYou replied before:\n\n<reply>\n{reply.strip()}\n</reply>\n\n"
        f"That cannot be used: {problem}\nReply again, whole, with this mended."
    )
    return msgspec.structs.replace(prompt, user=user, attempt=attempt)


def remove_drafts(folder: Path) -> None:
    """Remove unfinished files that `write_atomically` left when its process was killed."""
    for below in ("", "*/", "*/*/"):
        for draft in folder.glob(f"{below}.*.draft"):
            found = _DRAFT.fullmatch(draft.name)
            if found is not None and not _is_running(int(found[1])):
                with suppress(OSError):  # in a read-only folder
                    draft.unlink()


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # it runs as another user
    return True


def account_of(folder: Path) -> Journal:
    """The journal of a persona folder with the usage of its writing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"{folder} is a file: give a folder") from None
    return Journal(folder / _ACCOUNT)


def paid(folder: Path) -> float:
    """US dollars paid for this folder so far."""
    place = folder / _ACCOUNT
    return (
        sum(entry.usage.paid for entry in read_records(place, AccountEntry))
        if place.exists()
        else 0.0
    )


@contextmanager
def cost_limit(dollars: float | None, folder: Path) -> Iterator[None]:
    """Limit what the folder costs in total, earlier passes included, while the block runs."""
    if dollars is None:
        yield
        return
    open_budget(Budget(dollars, paid(folder), 1, folder / ".purse.lock"))
    try:
        yield
    finally:
        open_budget(None)


class Salvaged(NamedTuple):
    """The readable objects of an array."""

    objects: list[JsonObject]
    whole: bool
    """Whether the array is complete and all of its objects are readable."""


def read_array(reply: str) -> Salvaged:
    """The objects of the first array of objects; UnusableReply if there is none."""
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
    """The objects of a complete array; UnusableReply if it is not complete."""
    found = read_array(reply)
    if not found.whole:
        raise UnusableReply(
            "its JSON array breaks off or holds an object that is no JSON",
            "write a shorter one, whole and valid",
        )
    return found.objects
