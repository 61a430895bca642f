"""What a child says beside the protocol: passed on to our stderr, and kept for when it dies."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

_LAST_WORDS = 5
"""Lines that an error repeats."""
_SHOWN = 300
"""Characters of anything that an error repeats."""
_MOST_KNOWN = 1000
"""Lines of a command that are known again."""
_TRACE = re.compile(
    rb'\s+at |\s+File "|Traceback \(most recent call last\)|node:internal/|Node\.js v\d'
    rb"|[\s^~]+$|[\s{}\[\],]+$"
)
"""Lines of a traceback, of Python, Node and Java, that do not say what happened."""

_known: dict[tuple[str, ...], set[bytes]] = {}
"""What each command has said; a forked worker knows what its parent knew."""


class Talk:
    """One start of a command.

    What an earlier start has said is not passed on again: a server that is started for every scope
    greets as often.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._name = name_of(words)
        self._said = _known.setdefault(tuple(words), set())
        self._said_before = frozenset(self._said)
        self._last: deque[str] = deque(maxlen=_LAST_WORDS)
        self._in_trace = False

    def hear(self, line: bytes) -> None:
        """A line of its stderr."""
        if line.strip():
            if not self._is_of_trace(line):
                self._last.append(shown(line))
            self.log(line)

    def log(self, line: bytes) -> None:
        """Pass a line on, in one write."""
        if line in self._said_before:
            return
        if len(self._said) < _MOST_KNOWN:
            self._said.add(line)
        said = f"[{self._name}] {shown(line, 2000)}\n".encode("utf-8", "backslashreplace")
        with suppress(OSError):
            os.write(2, said)

    @property
    def last_words(self) -> str:
        """The end of what it wrote to stderr, frames left out, to be hung on a sentence."""
        said = " | ".join(self._last)
        return f"; its last words: {said[-_SHOWN:]}" if said else ""

    def _is_of_trace(self, line: bytes) -> bool:
        """Whether a line only says where something happened.

        After a frame come lines of source, or the fields of Node's errors; `[cause]` is one of
        them, and often the only one that says what happened.
        """
        is_indented = line[:1].isspace()
        if _TRACE.match(line):
            self._in_trace = is_indented or line.startswith(b"Traceback")
            return True
        self._in_trace = self._in_trace and is_indented
        return self._in_trace and b"[cause]" not in line


def name_of(words: Sequence[str]) -> str:
    """What to call a command in a sentence: paths by their last part."""
    short = (word if word.endswith("/") else word.rpartition("/")[2] for word in words)
    return shown(" ".join(short).encode("utf-8", "backslashreplace"), 80)


def shown(line: bytes, most: int = _SHOWN) -> str:
    text = line.decode("utf-8", "backslashreplace").strip()
    return text if len(text) <= most else text[: most - 1] + "…"
