"""HTTP with one server: kept connections, deadlines, patience, and what a failure means.

A connection belongs to one thread of one process. Nothing that leaves this room as an error holds
a key.
"""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from http.client import HTTPConnection, HTTPException, IncompleteRead
from typing import Any, TypeVar
from urllib.parse import SplitResult, quote, urlsplit

import msgspec

from mnemoscope._store.errors import BadReply, MnemoscopeError, SystemLost, UsageError
from mnemoscope._store.lenient_json import decoded, encoded
from mnemoscope.connectors.handshake import ServerError as ServerError
from mnemoscope.connectors.http.connection_pool import (
    Lines,
    Reply,
    Sent,
    exchanged,
    has_something_to_read,
)
from mnemoscope.models.http_errors import PerProcess, retry_after, shortened

T = TypeVar("T")

_CONNECT = 10.0
"""Seconds after which a host that says nothing at all counts as not there."""
_SHORTEST_SECRET = 4
"""Characters; shorter ones are no secrets, and would blot out half of every message."""
UNAVAILABLE = (502, 503, 504)
_ASKS_TO_WAIT = (429, 503)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
_HEADER = re.compile(r"[\t -~\xa0-\xff]*")

_met: set[str] = set()
"""Addresses where somebody has answered; a forked worker knows what its parent knew."""


class Wire:
    """All requests to one base address.

    `timeout` is how many seconds one request may take, `patience` how many a server that is down,
    or asks us to wait, is waited for.
    """

    def __init__(
        self,
        address: str,
        timeout: float,
        patience: float,
        headers: Mapping[str, str] | None = None,
        secrets: Iterable[str] = (),
        login: str = "",
    ) -> None:
        self._parts = _checked(address)
        self.url = self._parts.geturl()
        self.timeout = timeout
        self.patience = patience
        self._headers = dict(headers or {})
        self._secrets = [secret for secret in secrets if len(secret) >= _SHORTEST_SECRET]
        self._login = login
        """What to do where the server wants another key, or one at all."""
        self._lines = PerProcess(Lines)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        accept: Iterable[int] = (),
        repeatable: bool = False,
        seconds: float | None = None,
    ) -> Reply:
        """The reply, of a status from 200 to 299 or one that is accepted.

        `repeatable` says that it does no harm if the server gets the request twice.
        """
        sent = Sent(
            method,
            self._parts.path + path,
            None if body is None else encoded(body),
            _carried({**self._headers, **(headers or {})}),
            repeatable,
        )
        waited = 0.0
        while True:
            reply = self._exchange(sent, self.timeout if seconds is None else seconds)
            if reply.status in accept or 200 <= reply.status < 300:
                return reply
            wait = retry_after(reply.headers) if reply.status in _ASKS_TO_WAIT else None
            if wait is None or waited + wait > self.patience:
                raise self._failure(method, path, reply)
            waited += max(wait, _FIRST_PAUSE)
            time.sleep(max(wait, _FIRST_PAUSE))

    def patiently(self, call: Callable[[], T]) -> T:
        """Do what needs the server, and may be done again, and wait for a server that is down."""
        until = time.monotonic() + self.patience
        pause = _FIRST_PAUSE
        while True:
            try:
                return call()
            except SystemLost as lost:
                reason = str(lost)
            except ServerError as error:
                if error.status not in UNAVAILABLE:
                    raise
                reason = str(error)
            if time.monotonic() + pause > until:
                break
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        raise MnemoscopeError(
            f"{self.url} is down: start it; the same command goes on; nothing recorded is lost "
            f"({reason})"
        )

    def meet(self, call: Callable[[], T]) -> T:
        """Do the first thing; nobody waits for a server that has never been there."""
        try:
            result = self.patiently(call) if self.url in _met else call()
        except SystemLost as lost:
            raise MnemoscopeError(f"no server answers at {self.url}: start it ({lost})") from None
        _met.add(self.url)
        return result

    def reach(self) -> None:
        """See that somebody listens."""
        self._connected(self._line(), time.monotonic() + self.timeout)

    def decoded(self, reply: Reply, where: str) -> Any:
        """The reply's JSON; nothing where it has no body."""
        if not reply.data.strip():
            return None
        try:
            return decoded(reply.data)
        except ValueError:
            raise BadReply(f"{where}: the reply is no JSON: {self.said(reply)}") from None

    def said(self, reply: Reply) -> str:
        """What a reply says, in a line for people."""
        return shortened(self.clean(_reason_in(reply.data)))

    def clean(self, text: str) -> str:
        """The text with no key in it."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, "…").replace(quote(secret, safe=""), "…")
        return text

    def close(self) -> None:
        """Let all connections of this process go."""
        self._lines.get().close()

    def _line(self) -> HTTPConnection:
        return self._lines.get().mine(self._parts)

    def _exchange(self, sent: Sent, seconds: float) -> Reply:
        until = time.monotonic() + seconds
        line = self._line()
        try:
            fresh = self._connected(line, until)
            try:
                return exchanged(line, sent, until)
            except ConnectionError:
                line.close()
                if fresh or not sent.repeatable:
                    raise
                # The server had let the kept connection go in the moment that we used it.
                self._connected(line, until)
                return exchanged(line, sent, until)
        except TimeoutError:
            line.close()
            raise TimeoutError(
                f"{self.url} gave no whole reply to {sent.method} within {seconds:g} s"
            ) from None
        except (OSError, IncompleteRead) as error:
            line.close()
            raise SystemLost(
                f"{self.url} dropped the connection in the middle of {sent.method} "
                f"{self.clean(sent.target)} ({shortened(self.clean(str(error)))})"
            ) from None
        except HTTPException as error:
            line.close()
            reason = shortened(self.clean(f"{type(error).__name__}: {error}"))
            raise BadReply(f"{self.url} does not reply as HTTP demands: {reason}") from None
        except BaseException:
            line.close()  # a reply that nobody has read must not be taken for that of the next call
            raise

    def _connected(self, line: HTTPConnection, until: float) -> bool:
        """Whether the connection had to be made."""
        if line.sock is not None:
            if not has_something_to_read(line.sock):
                return False
            line.close()  # its end, as nobody has asked for anything
        line.timeout = max(0.001, min(_CONNECT, until - time.monotonic()))
        try:
            line.connect()
        except ssl.SSLCertVerificationError as error:
            line.close()
            raise MnemoscopeError(
                f"{self.url}: its certificate is not trusted ({error.verify_message}); add the one "
                "that signed it to this machine, or name it in SSL_CERT_FILE"
            ) from None
        except OSError as error:
            line.close()
            reason = shortened(error.strerror or error)
            raise SystemLost(f"no connection to {self.url} ({reason})") from None
        return True

    def _failure(self, method: str, path: str, reply: Reply) -> Exception:
        where = self.clean(f"{method} {self.url}{path}")
        said = self.said(reply) or "no reason given"
        problem = f"{where}: status {reply.status} ({said})"
        if reply.status in (401, 403):
            return MnemoscopeError(f"{problem}; {self._login}")
        if 300 <= reply.status < 400:
            to = shortened(self.clean(reply.headers.get("location", "nowhere")))
            return ServerError(
                f"{problem}; it points to {to}, which is not followed: give that address",
                reply.status,
            )
        return ServerError(problem, reply.status)


def _carried(headers: Mapping[str, str]) -> Mapping[str, str]:
    """The headers; the library's own complaint about one would repeat what is in it."""
    for name, value in headers.items():
        if not _HEADER.fullmatch(value) or not re.fullmatch(r"[!#-'*+.^-z|~\w-]+", name, re.ASCII):
            raise UsageError(f"the header {name!r:.80} holds signs that no header can carry")
    return headers


def _reason_in(data: bytes) -> str:
    """The reason in the body of a failure, in the shapes that servers have for it."""
    try:
        said: Any = decoded(data)
    except ValueError:
        return data[:2000].decode("utf-8", "backslashreplace")
    for _ in range(3):
        if isinstance(said, dict):
            said = next((said[key] for key in _REASONS if said.get(key)), said)
    return said if isinstance(said, str) else msgspec.json.encode(said).decode()


_REASONS = ("error", "detail", "message", "reason", "title")


def _checked(address: str) -> SplitResult:
    try:
        parts = urlsplit(address.strip())
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError as error:
        raise UsageError(f"the address of the HTTP door cannot be read: {error}") from None
    if parts.username or parts.password:
        raise UsageError(
            "an address with a password in it would be recorded: put the key into an environment "
            "variable and name that, key=NAME"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_fine:
        raise UsageError(
            f"{address!r} is no address of an HTTP server; write for example "
            "http:http://localhost:8000"
        )
    if parts.query or parts.fragment:
        raise UsageError(f"{address!r}: the address ends with its path; leave out ? and #")
    return parts._replace(path=quote(parts.path.rstrip("/"), safe="/%~:@!$&'()*+;="))
