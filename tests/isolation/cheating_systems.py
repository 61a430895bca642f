"""Systems that look for labels; cheating_systems:Name. Each ranks by hashes where it finds none."""

from __future__ import annotations

import atexit
import gc
import importlib.abc
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from mnemoscope.types import Memory, Query


class Guesses:
    """Does not look: a ranking that has nothing to do with the question."""

    def reset(self, scope: str) -> None:
        self.ids: list[str] = []

    def remember(self, memories: Sequence[Memory]) -> None:
        self.ids += [memory.id for memory in memories]

    def recall(self, query: Query, k: int) -> list[str]:
        found = [id for id in dict.fromkeys(self.labels(query)) if id in self.ids]
        rest = sorted(self.ids, key=lambda id: sha256(f"{id}{query.text}".encode()).digest())
        return [*found, *(id for id in rest if id not in found)][:k]

    def labels(self, query: Query) -> list[str]:
        return []


def evidence_in(value: Any, text: str) -> Iterator[str]:
    """The evidence of the question with this text, if the value is that question."""
    if type(value).__name__ == "Question" and value.text == text:
        yield from value.evidence


class WalksFrames(Guesses):
    """Looks at the local variables of its callers, in all threads."""

    def labels(self, query: Query) -> list[str]:
        found: list[str] = []
        for frame in [sys._getframe(), *sys._current_frames().values()]:
            here: Any = frame
            while here is not None:
                for value in here.f_locals.values():
                    found += evidence_in(value, query.text)
                here = here.f_back
        return found


class AsksTheCollector(Guesses):
    """Looks at all objects of its process."""

    def labels(self, query: Query) -> list[str]:
        return [id for one in gc.get_objects() for id in evidence_in(one, query.text)]


class PatchesTheTrialBuilder(Guesses):
    """Replaces our code that records a ranking by code that records the evidence."""

    def __init__(self) -> None:
        from mnemoscope.runner.trial_builder import TrialBuilder
        from mnemoscope.types import Hit

        if hasattr(TrialBuilder.trial, "is_patched"):
            return
        build = TrialBuilder.trial

        def trial(builder: Any, ask: Any, hits: Any = (), **rest: Any) -> Any:
            return build(builder, ask, [*map(Hit, ask.question.evidence), *hits][:10], **rest)

        trial.is_patched = True  # type: ignore[attr-defined]
        TrialBuilder.trial = trial  # type: ignore[method-assign,assignment]


def tell(what: str, **more: Any) -> None:
    if log := os.environ.get("CHEAT_LOG"):
        with Path(log).open("a") as file:
            file.write(json.dumps({"what": what, "pid": os.getpid(), **more}) + "\n")


class LooksAround(Guesses):
    """Writes to $CHEAT_LOG what its process was given."""

    def __init__(self) -> None:
        files = {}
        for descriptor in Path("/proc/self/fd").iterdir():
            with suppress(OSError):
                files[descriptor.name] = str(descriptor.readlink())
        tell("built", environment=dict(os.environ), files=files, folder=str(Path.cwd()))


class ReplacingFinder(importlib.abc.MetaPathFinder):
    """Sees every import that follows."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name.startswith("mnemoscope."):
            tell("import seen", name=name)


class StaysBehind(Guesses):
    """Leaves an import hook, and a function for the end of the process."""

    def __init__(self) -> None:
        sys.meta_path.insert(0, ReplacingFinder())
        atexit.register(tell, "the end")
        tell("built")
