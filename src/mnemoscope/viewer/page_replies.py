"""What a request to the viewer says, and replies: pages, parts of pages and files with a policy.

Our own pages run our script and nothing else. A report has its script and style inside, so it gets
an origin of its own and no network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files

from mnemoscope._store.json_server import JsonReply, JsonRequest

SHARED_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_OWN_PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_REPORT = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_HTML = "text/html"
_ASSETS = {"view.css": "text/css", "view.js": "text/javascript"}


Query = Mapping[str, list[str]]
"""The fields of an address."""


class PageError(Exception):
    """What a page shows instead of its content, with its HTTP status."""

    def __init__(self, status: int, title: str, text: str) -> None:
        super().__init__(text)
        self.status, self.title = status, title


def first(query: Query, key: str) -> str:
    """The first value of a field; empty if the address does not have it."""
    return query.get(key, [""])[0]


def band_of(given: str) -> float | None:
    """The equivalence band of a request; None if it gives none."""
    if not given:
        return None
    try:
        band = float(given)
    except ValueError:
        band = -1.0
    if not 0 <= band <= 1:
        raise PageError(422, "Not possible", "the equivalence band is a number from 0 to 1")
    return band or None


def not_found() -> PageError:
    return PageError(404, "Not found", "no such run below this folder")


def html_reply(body: bytes, status: int = 200) -> JsonReply:
    """A page of ours, or a part of one."""
    return _reply(body, _HTML, status, _OWN_PAGE)


def report_reply(body: bytes) -> JsonReply:
    """The report page of a run."""
    return _reply(body, _HTML, 200, _REPORT)


def asset_routes() -> dict[str, Callable[[JsonRequest], JsonReply]]:
    """The style sheet and the script of our pages."""
    return {f"GET /{name}": _asset(name, kind) for name, kind in _ASSETS.items()}


def _asset(name: str, kind: str) -> Callable[[JsonRequest], JsonReply]:
    @cache
    def content() -> bytes:
        return files("mnemoscope.viewer").joinpath("assets", name).read_bytes()

    return lambda request: _reply(content(), kind, 200, _OWN_PAGE)


def _reply(body: bytes, kind: str, status: int, policy: str) -> JsonReply:
    headers = {"Content-Type": f"{kind}; charset=utf-8", "Content-Security-Policy": policy}
    return JsonReply(body, status, {**headers, **SHARED_HEADERS})
