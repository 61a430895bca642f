"""The Chromium of the system, in which pages are tested, and axe-core, which checks them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.optional import missing

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = Path("/usr/bin/chromium")
AXE = Path(__file__).parent / "node" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for a module.

    Not for the session: while it runs, this thread has a running event loop, and tests of other
    modules may start one.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed")
    if not CHROMIUM.exists():
        missing(f"no browser at {CHROMIUM}")
    with sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


def blank(page: Page) -> None:
    """Make a page that an earlier test used like a new one."""
    page.goto("about:blank")
    page.context.clear_cookies()
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 720})


@cache
def _axe() -> str:
    if not AXE.exists():
        missing(f"axe-core is not installed: no {AXE.name} (npm ci in tests/node)")
    return AXE.read_text(encoding="utf-8")


def violations(page: Page) -> list[str]:
    """The serious and critical problems that axe-core finds, each with its first places."""
    page.evaluate(_axe())
    found: dict[str, Any] = page.evaluate(
        "axe.run(document, {resultTypes: ['violations'], runOnly: "
        "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})"
    )
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes'][:3]]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
