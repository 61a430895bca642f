"""What adapters share: Mnemoscope's endpoint, folders, ids, counts of legs.

Adapters store texts as they get them: the dataset alone decides whether a text has its date. This
module does not import the systems' packages: see the package's docstring.
"""

from __future__ import annotations

import array
import base64
import http.client
import json
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import NAMESPACE_OID, uuid5

_BATCH = 256
_folders = count(1)


class Endpoint:
    """Mnemoscope's loopback server with OpenAI's protocol; it accepts any key."""

    key = "none-needed"

    def __init__(self) -> None:
        self.url = os.environ.get("MNEMOSCOPE_ENDPOINT", "")
        self.embedder = os.environ.get("MNEMOSCOPE_EMBEDDER", "")
        self.llm = os.environ.get("MNEMOSCOPE_LLM", "")
        """The name of the language model; empty if none is configured."""
        self._connection: http.client.HTTPConnection | None = None
        self._dimensions = 0

    @property
    def dimensions(self) -> int:
        if not self._dimensions:
            self._dimensions = len(self.embed(["how long is a vector?"])[0])
        return self._dimensions

    def embed(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = []
        for start in range(0, len(texts), _BATCH):
            batch = {"input": texts[start : start + _BATCH], "encoding_format": "base64"}
            for one in self._post("/embeddings", batch)["data"]:
                numbers = array.array("f", base64.b64decode(one["embedding"]))
                if sys.byteorder == "big":
                    numbers.byteswap()
                vectors.append(numbers.tolist())
        return vectors

    def embed_memories(self, memories: Sequence[Any]) -> list[tuple[Any, str, list[float]]]:
        """Each memory with its text and that text's vector."""
        texts = [memory.text for memory in memories]
        return list(zip(memories, texts, self.embed(texts), strict=True))

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        where = urlsplit(self.url)
        if self._connection is None:
            assert where.hostname
            self._connection = http.client.HTTPConnection(where.hostname, where.port, timeout=600)
        self._connection.request(
            "POST", where.path + path, json.dumps(body), {"Content-Type": "application/json"}
        )
        reply = self._connection.getresponse()
        answer = json.loads(reply.read())
        if reply.status != http.client.OK:
            raise RuntimeError(f"embeddings: {answer['error']['message']}")
        return answer


def scratch(name: str = "state") -> Path:
    """A new folder for a system's files; it is deleted when the worker has ended."""
    place = Path(os.environ["MNEMOSCOPE_SCRATCH"]) / f"{name}-{next(_folders)}"
    place.mkdir(parents=True)
    return place


def stored_in(storage: str) -> Path:
    """The folder of a system's files below the user's: what a reset may empty is ours alone."""
    return Path(storage).expanduser() / "mnemoscope"


NO_TIME = "the system takes no time for a memory"


def uuid_of(*words: str) -> str:
    """A UUID that depends on the words alone, for systems whose ids are UUIDs."""
    return str(uuid5(NAMESPACE_OID, "\0".join(words)))


def bytes_in(place: Path) -> int:
    total = 0
    for file in place.rglob("*"):
        with suppress(FileNotFoundError):  # the system may delete files meanwhile
            total += file.stat().st_size if file.is_file() else 0
    return total


class LegCounts:
    """In how many recalls each leg of a system was asked, and in how many it found anything.

    The survey reads the counters `leg_NAME_asked` and `leg_NAME_answered`.
    """

    def __init__(self, *legs: str) -> None:
        names = [f"leg_{leg}_{what}" for leg in legs for what in ("asked", "answered")]
        self.counters = dict.fromkeys(names, 0)

    def add(self, leg: str, *, found: bool) -> None:
        self.counters[f"leg_{leg}_asked"] += 1
        self.counters[f"leg_{leg}_answered"] += found


class MemoryAdapter:
    """The base of most adapters: an endpoint, a folder for the scope, an identity.

    `settings` are the values that affect the results besides the packages' versions. An adapter
    with the option `storage` keeps its files there. When it is started again, it opens what they
    contain, until a reset empties them.
    """

    packages: tuple[str, ...]
    provenance = "own id"
    notes: tuple[str, ...] = (NO_TIME,)
    _folder: Path
    """The system's files; created by `reset`."""

    def __init__(self, storage: str = "", **settings: Any) -> None:
        self._endpoint = Endpoint()
        self._settings = settings
        self._storage = storage

    def _has_files(self) -> bool:
        """Whether an earlier process left files; then they are the scope's."""
        if not self._storage or not stored_in(self._storage).is_dir():
            return False
        self._folder = stored_in(self._storage)
        return True

    def _empty_folder(self) -> Path:
        """A folder for a new scope: below `storage`, or one that is deleted with the worker."""
        if not self._storage:
            return scratch()
        place = stored_in(self._storage)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        return place

    def identity(self) -> dict[str, Any]:
        return {
            "versions": {package: version(package) for package in self.packages},
            **self._settings,
            "provenance": self.provenance,
            "notes": [*self.notes],
        }

    def stats(self) -> dict[str, int]:
        return {"index_bytes": bytes_in(self._folder)}
