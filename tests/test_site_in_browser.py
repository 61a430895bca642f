"""The site in a real browser: no request leaves it, search works, and axe finds no violation."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from tests.browser import blank
from tests.optional import missing
from tests.site_build import build_site

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

AXE = Path(__file__).resolve().parent / "node" / "node_modules" / "axe-core" / "axe.min.js"
SHOWN = ("index.html", "quickstarts/ci-gate.html", "reference/formats.html")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """One page for the module, because a new one is a process; each test opens its address anew."""
    opened = browser.new_page()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    site = build_site(tmp_path_factory)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_no_request_leaves_the_site_and_search_finds_a_page(page: Page, address: str) -> None:
    page.set_default_timeout(60_000)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.get_by_role("button", name="Search").first.click()
    page.keyboard.type("isolation level")
    page.get_by_text("what kept the labels from a system").first.wait_for()
    assert any(url.endswith("/search.json") for url in asked)
    assert [url for url in asked if not url.startswith(address)] == []


@pytest.mark.parametrize("name", SHOWN)
def test_a_narrow_page_does_not_scroll_sideways(page: Page, address: str, name: str) -> None:
    blank(page)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(address + name)
    wide, shown = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= max(shown, 390)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["quickstarts/ci-gate.html", "reference/metrics.html"])
def test_axe_finds_no_serious_violation(
    page: Page, address: str, name: str, scheme: Literal["light", "dark"]
) -> None:
    if not AXE.exists():
        missing("no axe-core: npm ci --prefix tests/node")
    blank(page)
    page.emulate_media(color_scheme=scheme)
    page.goto(address + name)
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    serious = [own["id"] for own in found if own["impact"] in ("serious", "critical")]
    assert serious == []
