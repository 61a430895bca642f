"""Who may use a server of ours: clients on this machine, others with a key, web pages never.

A web page in the user's browser can send requests to servers on loopback. By DNS rebinding its own
host name may even point there. The Host header then has that name, and Origin names the page.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
import socket
from collections.abc import Collection, Mapping

from mnemoscope._store.errors import UsageError

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_SHORTEST_KEY = 16
"""Characters of a key for a server that other machines can reach: shorter ones can be guessed."""
_SAME_SITE = ("same-origin", "none")


def read_key(variable: str, option: str) -> str:
    """The key in an environment variable; `option` is how the variable was named.

    No error repeats the key, nor a key that was given in place of the name.
    """
    if not variable:
        return ""
    key = os.environ.get(variable, "").strip() if _NAME.fullmatch(variable) else ""
    if not key:
        raise UsageError(
            f"{option} takes the name of the environment variable with the key; this variable does "
            f"not exist, or it is empty; export MEMORY_KEY=… and write {_example(option)}"
        )
    if not (key.isascii() and key.isprintable()):
        raise UsageError(
            f"{option} {variable}: its value has characters that a bearer token cannot have"
        )
    return key


def _example(option: str) -> str:
    return f"{option}MEMORY_KEY" if option.endswith("=") else f"{option} MEMORY_KEY"


def check_reach(host: str, key: str) -> None:
    """Refuse to listen beyond loopback without a key that is hard to guess."""
    if is_loopback(host):
        return
    need = f"give a key of at least {_SHORTEST_KEY} characters in an environment variable, --key"
    if not key:
        raise UsageError(
            f"other machines can reach a server on {host or 'all addresses'}: {need} MEMORY_KEY, "
            "or listen on 127.0.0.1"
        )
    if len(key) < _SHORTEST_KEY:
        raise UsageError(f"the key has {len(key)} characters, and other machines can try: {need}")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens on this host."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        pass
    try:
        found = {str(place[4][0]) for place in socket.getaddrinfo(host or "0.0.0.0", None)}
    except (OSError, UnicodeError):
        return True  # it cannot be bound, and that error is clearer
    return all(ipaddress.ip_address(one.partition("%")[0]).is_loopback for one in found)


def has_key(given: str, key: str) -> bool:
    """Whether an Authorization header has the key; without a key every header does."""
    expected = f"Bearer {key}".encode()
    return not key or hmac.compare_digest(given.encode(errors="replace"), expected)


def check_host(host: str, allowed: Collection[str], local: str) -> str:
    """Why a Host header is refused, or an empty string.

    Allowed are names of loopback, `local`, which is the address that the client connected to, and
    the names in `allowed`, in lower case.
    """
    name = _name_of(host)
    if name == "localhost" or name.endswith(".localhost") or name in (local, *allowed):
        return ""
    try:
        if ipaddress.ip_address(name).is_loopback:
            return ""
    except ValueError:
        pass
    return f"the Host header {host!r:.100} is not a name of this server"


def check_origin(headers: Mapping[str, str]) -> str:
    """Why a request from a web page is refused, or an empty string; header names in lower case."""
    site = headers.get("sec-fetch-site", "none").strip().lower()
    origin = headers.get("origin")
    host = headers.get("host", "").strip().lower()
    is_own = origin is None or origin.strip().lower() in (f"http://{host}", f"https://{host}")
    if site in _SAME_SITE and is_own:
        return ""
    return "web pages of other sites cannot use this server (Origin, Sec-Fetch-Site)"


def _name_of(host: str) -> str:
    """The name in a Host header, without its port and the brackets of IPv6."""
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]@/\s]+))(?::\d{1,5})?", host.strip())
    return (found[1] or found[2]).lower().rstrip(".") if found else ""
