"""Send requests to one server under test: deadlines, waiting, and errors by their cause.

Keys are removed from every error that is raised here.
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
from mnemoscope.connectors.handshake import server_down, servers_are_expected
from mnemoscope.models.http_client import HttpClient, HttpFailure, HttpReply
from mnemoscope.models.http_errors import retry_after, shortened

T = TypeVar("T")

_CONNECT = 10.0
"""Seconds that a connection may take."""
_SHORTEST_SECRET = 4
"""Characters; removing a shorter text would make messages unreadable."""
UNAVAILABLE = (502, 503, 504)
_ASKS_TO_WAIT = (429, 503)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
_REASONS = ("error", "detail", "message", "reason", "title")

_reached: set[str] = set()
"""Addresses where a server has answered this process."""


class HttpConnection:
    """All requests to one base address.

    `timeout` is how many seconds one request may take. `patience` is how many seconds we wait for a
    server that is down or asks us to wait.
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
        """What to do if the server refuses the key, or requires one."""
        self._client = HttpClient(self.url, proxies=False, redirects=False, connect=_CONNECT)

    def request(
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
        """Return the reply, which has a status from 200 to 299 or one in `accept`.

        A `repeatable` request has the same effect if the server gets it twice.
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

    def retry_while_down(self, call: Callable[[], T]) -> T:
        """Repeat a call while the server is down, for `patience` seconds."""
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
        raise server_down(self.url, reason)

    def first_call(self, call: Callable[[], T]) -> T:
        """Make the first call; wait only for a server that has answered before."""
        is_known = self.url in _reached or servers_are_expected()
        try:
            result = self.retry_while_down(call) if is_known else call()
        except SystemLost as lost:
            raise MnemoscopeError(f"no server answers at {self.url}: start it ({lost})") from None
        _reached.add(self.url)
        return result

    def wait_until_ready(self, pause: Callable[[], float | None]) -> None:
        """Call `pause` until it returns None; otherwise it returns the seconds to wait."""
        until = time.monotonic() + self.timeout
        while (seconds := pause()) is not None:
            if time.monotonic() + seconds > until:
                raise TimeoutError(f"{self.url} was not ready within {self.timeout:g} s")
            time.sleep(seconds)

    def check_connection(self) -> None:
        """Check that the server accepts connections."""
        try:
            self._client.connect(self.timeout)
        except HttpFailure as failure:
            raise self._error_of_exchange("", "", self.timeout, failure) from None

    def decoded(self, reply: HttpReply, where: str) -> Any:
        """The reply's JSON; None if it has no body."""
        if not reply.data.strip():
            return None
        try:
            return decoded(reply.data)
        except ValueError:
            raise BadReply(f"{where}: the reply is not JSON: {self.message(reply)}") from None

    def message(self, reply: HttpReply) -> str:
        """The message in a reply, as one line without keys."""
        return shortened(self.without_secrets(_reason_in(reply.data)))

    def without_secrets(self, text: str) -> str:
        """The text with each key replaced by an ellipsis."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, "…").replace(quote(secret, safe=""), "…")
        return text

    def close(self) -> None:
        """Close all connections of this process."""
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
                    continue  # finally a new connection is made, which cannot be stale
                raise self._error_of_exchange(method, path, seconds, failure) from None

    def _error_of_exchange(
        self, method: str, path: str, seconds: float, failure: HttpFailure
    ) -> Exception:
        reason, cause = shortened(self.without_secrets(str(failure))), failure.cause
        match failure.kind:
            case "connect" if isinstance(cause, ssl.SSLCertVerificationError):
                return MnemoscopeError(
                    f"{self.url}: its certificate is not trusted ({cause.verify_message}); add the "
                    "signing certificate to this machine, or name it in SSL_CERT_FILE"
                )
            case "connect" | "connect timeout":
                reason = shortened(getattr(cause, "strerror", "") or cause)
                return SystemLost(f"no connection to {self.url} ({reason})")
            case "timeout":
                return TimeoutError(
                    f"{self.url} gave no complete reply to {method} within {seconds:g} s"
                )
            case "protocol":
                return BadReply(f"{self.url} does not reply with valid HTTP: {reason}")
            case "size":
                return BadReply(reason)
        return SystemLost(
            f"{self.url} dropped the connection in the middle of {method} "
            f"{self.without_secrets(self._parts.path + path)} ({reason})"
        )

    def _error_of_status(self, method: str, path: str, reply: HttpReply) -> Exception:
        where = self.without_secrets(f"{method} {self.url}{path}")
        problem = f"{where}: status {reply.status} ({self.message(reply) or 'no reason given'})"
        if reply.status in (401, 403):
            return MnemoscopeError(f"{problem}; {self._login}")
        if 300 <= reply.status < 400:
            to = shortened(self.without_secrets(reply.headers.get("location", "nowhere")))
            return ServerError(
                f"{problem}; redirections are not followed: give the address {to}",
                reply.status,
            )
        return ServerError(problem, reply.status)


def _reason_in(data: bytes) -> str:
    """Find the reason in the body of a failure; servers use different fields for it."""
    try:
        reason: Any = decoded(data)
    except ValueError:
        return data[:2000].decode("utf-8", "backslashreplace")
    for _ in range(3):
        if isinstance(reason, dict):
            reason = next((reason[key] for key in _REASONS if reason.get(key)), reason)
    if isinstance(reason, str):
        return reason
    try:
        return msgspec.json.encode(reason).decode()
    except (RecursionError, UnicodeEncodeError):
        return data[:2000].decode("utf-8", "backslashreplace")


def _checked(address: str) -> SplitResult:
    try:
        parts = urlsplit(address.strip())
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError as error:
        raise UsageError(f"the address of the HTTP server cannot be read: {error}") from None
    if parts.username or parts.password:
        raise UsageError(
            "the address contains a password, and addresses are recorded: put the key into an "
            "environment variable and give its name, key=NAME"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_fine:
        raise UsageError(
            f"{address!r} is not the address of an HTTP server; write for example "
            "http:http://localhost:8000"
        )
    if parts.query or parts.fragment:
        raise UsageError(f"{address!r}: the address must end with its path; omit ? and #")
    return parts._replace(path=quote(parts.path.rstrip("/"), safe="/%~:@!$&'()*+;="))
