"""The site builds without a warning, has no dead link, and loads nothing from a network."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from tests.site_build import DOCS, ROOT, build_site

LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}
LOADED_LINKS = {"stylesheet", "icon", "preload", "prefetch", "modulepreload", "manifest"}


class Parts(NamedTuple):
    """What a page refers to."""

    ids: set[str]
    links: set[str]
    loaded: set[str]
    """Files that a browser loads by itself."""


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts = Parts(set(), set(), set())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = {name: value or "" for name, value in attrs}
        self.parts.ids.update(own[name] for name in ("id", "name") if name in own)
        if tag == "a" and "href" in own:
            self.parts.links.add(own["href"])
        if LOADING.get(tag, "") in own:
            self.parts.loaded.add(own[LOADING[tag]])
        if tag == "link" and LOADED_LINKS & set(own.get("rel", "").split()):
            self.parts.loaded.add(own["href"])
        self.parts.loaded.update(re.findall(r"url\(['\"]?([^'\")]+)", own.get("style", "")))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(tmp_path_factory)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Parts]:
    found = {}
    for path in sorted(site.rglob("*.html")):
        reader = _Page()
        reader.feed(path.read_text(encoding="utf-8"))
        found[path] = reader.parts
    assert len(found) > 40
    return found


def is_external(address: str) -> bool:
    return bool(urlsplit(address).scheme or address.startswith("//"))


def target(page: Path, address: str) -> Path:
    path = unquote(urlsplit(address).path)
    found = (page.parent / path).resolve() if path else page
    return found / "index.html" if found.is_dir() else found


def test_every_link_leads_to_a_page_and_an_anchor(pages: dict[Path, Parts]) -> None:
    dead = []
    for page, parts in pages.items():
        if page.name == "404.html":  # its links are for the root of a server
            continue
        for address in parts.links:
            if is_external(address):
                continue
            goal, anchor = target(page, address), unquote(urldefrag(address).fragment)
            is_there = goal in pages if goal.suffix == ".html" else goal.is_file()
            if not is_there or (anchor and anchor not in pages[goal].ids):
                dead.append(f"{page.name}: {address}")
    assert dead == []


def test_pages_load_only_files_of_the_site(site: Path, pages: dict[Path, Parts]) -> None:
    for page, parts in pages.items():
        for address in parts.loaded - {""}:
            if address.startswith("data:") or page.name == "404.html":
                continue
            assert not is_external(address), f"{page.name} loads {address}"
            assert target(page, address).is_file(), f"{page.name} lacks {address}"
    for path in site.rglob("*.css"):
        for address in re.findall(r"(?:url\(|@import\s)['\"]?([^'\")]+)", path.read_text("utf-8")):
            assert not is_external(address) or address.startswith("data:"), (
                f"{path.name}: {address}"
            )


def test_no_page_has_what_the_theme_fetches_from_a_network(pages: dict[Path, Parts]) -> None:
    """Its script would load a library for diagrams from elsewhere."""
    assert not [page for page in pages if 'class="mermaid"' in page.read_text(encoding="utf-8")]


def test_every_page_is_in_the_navigation_once() -> None:
    settings = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    listed = list(_entries(settings["project"]["nav"]))
    assert len(listed) == len(set(listed))
    assert set(listed) == {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}


def _entries(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for own in nav.values() if isinstance(nav, dict) else nav:
            yield from _entries(own)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "examples/strata/README.md"])
def test_links_of_the_pages_outside_lead_somewhere(name: str) -> None:
    page = ROOT / name
    text = page.read_text(encoding="utf-8")
    for address in re.findall(r"\]\(([^)\s]+)\)", text):
        if is_external(address):
            continue
        goal = target(page, address)
        is_folder = goal.name == "index.html" and goal.parent.is_dir()
        assert goal.exists() or is_folder, address
        if anchor := urldefrag(address).fragment:
            assert anchor in _anchors(goal), address


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
