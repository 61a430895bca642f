"""Requests to one server under test: how long to wait for it, and what its failures mean.

No error that is raised here holds a key.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import SplitResult, quote, urlsplit

import msgspec

from mnemoscope._store.errors import BadReply, MnemoscopeError, SystemLost, UsageError
from mnemoscope._store.lenient_json import decoded, encoded
from mnemoscope.connectors.handshake import ServerError as ServerError
from mnemoscope.models.http_client import HttpClient, HttpFailure, HttpReply
from mnemoscope.models.http_errors import retry_after, shortened

T = TypeVar("T")

_CONNECT = 10.0
"""Seconds after which a host that says nothing at all counts as not there."""
_SHORTEST_SECRET = 4
"""Characters; shorter ones are no secrets, and would blot out half of every message."""
UNAVAILABLE = (502, 503, 504)
_ASKS_TO_WAIT = (429, 503)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
_REASONS = ("error", "detail", "message", "reason", "title")

_met: set[str] = set()
"""Addresses where a server has answered; a forked worker knows what its parent knew."""


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
        self._headers = {"Accept-Encoding": "identity", **(headers or {})}
        self._secrets = [secret for secret in secrets if len(secret) >= _SHORTEST_SECRET]
        self._login = login
        """What to do where the server wants another key, or one at all."""
        self._client = HttpClient(self.url, proxies=False, redirects=False, connect=_CONNECT)

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
    ) -> HttpReply:
        """The reply, of a status from 200 to 299 or one that is accepted.

        `repeatable` says that it does no harm if the server gets the request twice.
        """
        sent = {**self._headers, **(headers or {})}
        content = None
        if body is not None:
            content = encoded(body)
            if not any(name.lower() == "content-type" for name in sent):
                sent["Content-Type"] = "application/json"
        waited = 0.0
        while True:
            limit = self.timeout if seconds is None else seconds
            reply = self._exchange(method, path, content, sent, limit, repeatable)
            if reply.status in accept or 200 <= reply.status < 300:
                return reply
            wait = retry_after(reply.headers) if reply.status in _ASKS_TO_WAIT else None
            if wait is None or waited + wait > self.patience:
                raise self._error_of_status(method, path, reply)
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
        """Do the first thing, without waiting for a server that has never been there."""
        try:
            result = self.patiently(call) if self.url in _met else call()
        except SystemLost as lost:
            raise MnemoscopeError(f"no server answers at {self.url}: start it ({lost})") from None
        _met.add(self.url)
        return result

    def reach(self) -> None:
        """See that the server takes connections."""
        try:
            self._client.connect(self.timeout)
        except HttpFailure as failure:
            raise self._error_of_exchange("", "", self.timeout, failure) from None

    def decoded(self, reply: HttpReply, where: str) -> Any:
        """The reply's JSON; nothing where it has no body."""
        if not reply.data.strip():
            return None
        try:
            return decoded(reply.data)
        except ValueError:
            raise BadReply(f"{where}: the reply is no JSON: {self.said(reply)}") from None

    def said(self, reply: HttpReply) -> str:
        """What a reply says, in a line for people."""
        return shortened(self.clean(_reason_in(reply.data)))

    def clean(self, text: str) -> str:
        """The text with no key in it."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, "…").replace(quote(secret, safe=""), "…")
        return text

    def close(self) -> None:
        """Let all connections of this process go."""
        self._client.close()

    def _exchange(
        self,
        method: str,
        path: str,
        content: bytes | None,
        headers: Mapping[str, str],
        seconds: float,
        repeatable: bool,
    ) -> HttpReply:
        until = time.monotonic() + seconds
        while True:
            try:
                left = until - time.monotonic()
                return self._client.exchange(
                    method, self.url + path, content, headers=headers, seconds=left
                )
            except HttpFailure as failure:
                if failure.kind == "stale" and repeatable:
                    continue  # at last a connection is made, and that one is not stale
                raise self._error_of_exchange(method, path, seconds, failure) from None

    def _error_of_exchange(
        self, method: str, path: str, seconds: float, failure: HttpFailure
    ) -> Exception:
        reason, cause = shortened(self.clean(str(failure))), failure.cause
        match failure.kind:
            case "connect" if isinstance(cause, ssl.SSLCertVerificationError):
                return MnemoscopeError(
                    f"{self.url}: its certificate is not trusted ({cause.verify_message}); add the "
                    "one that signed it to this machine, or name it in SSL_CERT_FILE"
                )
            case "connect" | "connect timeout":
                reason = shortened(getattr(cause, "strerror", "") or cause)
                return SystemLost(f"no connection to {self.url} ({reason})")
            case "timeout":
                return TimeoutError(
                    f"{self.url} gave no whole reply to {method} within {seconds:g} s"
                )
            case "protocol":
                return BadReply(f"{self.url} does not reply as HTTP demands: {reason}")
            case "size":
                return BadReply(reason)
        return SystemLost(
            f"{self.url} dropped the connection in the middle of {method} "
            f"{self.clean(self._parts.path + path)} ({reason})"
        )

    def _error_of_status(self, method: str, path: str, reply: HttpReply) -> Exception:
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
