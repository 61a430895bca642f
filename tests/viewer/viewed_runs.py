"""Hostile texts, a system that fails with one, and a client of the viewer."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import mnemoscope as ms
from mnemoscope.viewer.run_folder import RunFolder

SECRET = "a text that is outside of the folder"
HOSTILE = (
    "<script>window.ran=1</script><img src=x onerror='window.ran=2'>"
    '"><svg onload="window.ran=3"></svg> javascript:window.ran=4 \u202e\x1b[2Jturned\u2066 {{7*7}}'
)
LONG = "long " * 4_000 + "x" * 100_000


class Breaks:
    """Fails on some questions with a hostile message, and recalls the newest memories else."""

    def remember(self, memories: Sequence[ms.Memory]) -> None:
        self.ids = [memory.id for memory in memories]

    def recall(self, query: ms.Query, k: int) -> list[str]:
        if "/q3" in query.text:
            raise RuntimeError(HOSTILE)
        return self.ids[::-1][:k]


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    """Names in lower case."""
    text: str


class Viewed(NamedTuple):
    """A served folder of runs."""

    folder: Path
    url: str

    def id(self, name: str) -> str:
        """The id of the run at a path below the folder."""
        return next(one.id for one in RunFolder(self.folder).runs() if one.name == name)

    def place(self, path: str, **names: str) -> str:
        """An address; values that are names of runs become their ids."""
        known = {one.name: one.id for one in RunFolder(self.folder).runs()}
        query = {key: known.get(value, value) for key, value in names.items()}
        return f"{path}?{urlencode(query)}" if query else path

    def get(self, path: str, **names: str) -> Reply:
        return self.ask("GET", self.place(path, **names))

    def ask(self, method: str, path: str, **headers: str) -> Reply:
        """Send a request as it is written, valid or not."""
        where = urlsplit(self.url)
        sent = {"Host": where.netloc, "Connection": "close", **headers}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {own}" for name, own in sent.items())]
        with socket.create_connection((where.hostname or "", where.port or 0), 20) as connection:
            connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
            with connection.makefile("rb") as stream:
                content = stream.read()
        head, _, body = content.partition(b"\r\n\r\n")
        status, *own = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in own)
        found = {name.lower(): value.strip() for name, _, value in pairs}
        return Reply(int(status.split()[1]), found, body.decode())
