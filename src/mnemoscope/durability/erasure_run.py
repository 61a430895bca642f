"""An erasure test: write memories, let a system forget half of them, and search its files.

The files are searched twice: after `forget` returned, and after the system ended in the usual way.
The memories that it keeps are the control: their texts must be visible to the same search.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import msgspec

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope._store.jsonl import encode_json, write_atomically
from mnemoscope._store.spec import Spec
from mnemoscope.durability.byte_search import search_files
from mnemoscope.durability.erasure_report import blocks
from mnemoscope.durability.erasure_result import ErasureResult, verdict_of
from mnemoscope.durability.planted_memories import planted, present
from mnemoscope.durability.restartable import (
    Restartable,
    restartable,
    why_not_durable,
    with_storage,
)
from mnemoscope.reports.render_markdown import render
from mnemoscope.runner.failures import error_line
from mnemoscope.systems.loader import Driver
from mnemoscope.types import Memory, Selector

FORMAT = 1
_MOST_MEMORIES = 10_000
_LETTERS = ("bcdfghjklmnprstvz", "aeiou")
_SYLLABLES = 7


class ErasureOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How much is written, and what is searched."""

    memories: int = 40
    """Memories that are written; half of them are forgotten."""
    batch: int = 5
    """Memories of one write."""
    also: tuple[Path, ...] = ()
    """Further folders in which the system keeps files."""
    timeout: float = 60.0
    """Seconds that a call may take."""
    start: float = 60.0
    """Seconds in which a server must listen."""
    seed: int = 42

    def check(self) -> None:
        for name, value, least, most in (
            ("memories", self.memories, 2, _MOST_MEMORIES),
            ("batch", self.batch, 1, _MOST_MEMORIES),
        ):
            if not least <= value <= most:
                raise UsageError(f"--{name} {value}: give {least} to {most:,}")
        for folder in self.also:
            if not folder.is_dir():
                raise UsageError(f"--also {folder}: is not a folder")


def run_erasure(
    spec: Spec, out: Path, options: ErasureOptions, *, command: str = ""
) -> ErasureResult:
    """Test a system, and write erasure.json and erasure.md into `out`.

    The storage stays there if forgotten texts were found in it.
    """
    options.check()
    out.mkdir(parents=True, exist_ok=True)
    label = spec.label or str(spec)
    if reason := why_not_durable(spec):
        result = ErasureResult(
            format=FORMAT, system=label, command=command, verdict="no files", reason=reason
        )
    else:
        result = _tested(with_storage(spec), label, command, out, options)
    write_atomically(out / "erasure.json", encode_json(result))
    write_atomically(out / "erasure.md", f"{render(blocks(result))}\n".encode())
    return result


def _tested(
    spec: Spec, label: str, command: str, out: Path, options: ErasureOptions
) -> ErasureResult:
    storage = (out / "storage").resolve()
    shutil.rmtree(storage, ignore_errors=True)  # ours, of an earlier test in this folder
    storage.mkdir(parents=True)
    target = restartable(spec, command, storage, timeout=options.timeout, start=options.start)
    try:
        return _play(target, label, command, storage, options)
    except MnemoscopeError:
        raise
    except Exception as error:
        raise MnemoscopeError(f"the system failed: {error_line(error)}") from error
    finally:
        target.close()


def _play(
    target: Restartable, label: str, command: str, storage: Path, options: ErasureOptions
) -> ErasureResult:
    memories, words = _marked(options)
    system = target.start()
    driver = Driver(lambda: system, system)
    driver.begin("erasure")
    if not driver.can("forget"):
        return ErasureResult(
            format=FORMAT,
            system=label,
            command=command,
            verdict="not forgotten",
            reason="it has no forget(selector), so it cannot be told to forget",
        )
    for first in range(0, len(memories), options.batch):
        driver.remember(memories[first : first + options.batch])
    known = present(driver, memories)
    # Every other one, so that pages and segments contain both kinds.
    forgotten, kept = memories[::2], memories[1::2]
    driver.forget(Selector(tuple(forgotten)))
    still = present(driver, forgotten)
    there = present(driver, kept)
    gone = {memory.id: words[memory.id] for memory in forgotten}
    files = [storage, *options.also]
    opened = search_files(files, gone)
    # Its home is removed with its process, so what is there now would have stayed there.
    at_home = search_files([Path(target.scratch)] if target.scratch else [], gone)
    target.stop()
    closed = search_files(files, words)
    left = [*at_home.found, *(one for one in closed.found if one.text in gone)]
    visible = len(closed.texts - gone.keys())
    unread = sorted({*opened.unread, *at_home.unread, *closed.unread})
    forgot = sum(memory.id in known for memory in forgotten)
    result = ErasureResult(
        format=FORMAT,
        system=label,
        command=command,
        verdict=verdict_of(
            forgotten=forgot,
            still_recalled=len(still),
            kept=len(kept),
            visible=visible,
            while_open=len(opened.found) + len(at_home.found),
            after_close=len(left),
            unread=len(unread),
        ),
        forgotten=forgot,
        still_recalled=sorted(still),
        kept=sum(memory.id in known for memory in kept),
        lost=sorted(one.id for one in kept if one.id in known and one.id not in there),
        visible=visible,
        while_open=[*at_home.found, *opened.found],
        after_close=left,
        files=closed.files,
        bytes=closed.bytes,
        unread=unread,
    )
    if result.verdict in ("erased", "unknown"):
        shutil.rmtree(storage, ignore_errors=True)
    return result


def _marked(options: ErasureOptions) -> tuple[list[Memory], dict[str, tuple[str, ...]]]:
    """Memories with two rare words each: a code, and a name that a summary would keep."""
    rng = random.Random(f"{options.seed}/erasure")
    found: list[Memory] = []
    words: dict[str, tuple[str, ...]] = {}
    for memory in planted("e", options.memories, options.seed):
        name = "".join(rng.choice(kind) for _ in range(_SYLLABLES) for kind in _LETTERS).title()
        code = f"{rng.getrandbits(64):016x}"
        text = memory.text.rpartition(" Its code")[0]
        text = f"{name} and {text} Its code is {code}."
        found.append(msgspec.structs.replace(memory, text=text))
        words[memory.id] = (name, code)
    return found, words
