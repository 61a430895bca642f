"""The site in a real browser: no request leaves it, search works, and axe finds no violation."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from tests.optional import missing
from tests.site_build import build_site

if TYPE_CHECKING:
    from playwright.sync_api import Browser

AXE = Path(__file__).resolve().parent / "node" / "node_modules" / "axe-core" / "axe.min.js"
SHOWN = ("index.html", "quickstarts/ci-gate.html", "reference/formats.html")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    site = build_site(tmp_path_factory.mktemp("site"))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = shutil.which("chromium")
    if program is None:
        missing("no chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


def test_no_request_leaves_the_site_and_search_finds_a_page(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.set_default_timeout(60_000)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.get_by_role("button", name="Search").first.click()
    page.keyboard.type("isolation level")
    page.get_by_text("what kept the labels from a system").first.wait_for()
    assert any(url.endswith("/search.json") for url in asked)
    assert [url for url in asked if not url.startswith(address)] == []
    page.close()


@pytest.mark.parametrize("name", SHOWN)
def test_a_narrow_page_does_not_scroll_sideways(browser: Browser, address: str, name: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(address + name)
    wide, shown = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= max(shown, 390)
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["quickstarts/ci-gate.html", "reference/metrics.html"])
def test_axe_finds_no_serious_violation(
    browser: Browser, address: str, name: str, scheme: Literal["light", "dark"]
) -> None:
    if not AXE.exists():
        missing("no axe-core: npm ci --prefix tests/node")
    page = browser.new_page(color_scheme=scheme)
    page.goto(address + name)
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run()")["violations"]
    serious = [own["id"] for own in found if own["impact"] in ("serious", "critical")]
    assert serious == []
    page.close()
