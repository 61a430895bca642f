"""A folder of runs with hostile texts, a server over it, and a browser; all are made once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.browser import blank
from tests.viewer.viewed_runs import HOSTILE, LONG, SECRET, Breaks, Viewed

import mnemoscope as ms
from mnemoscope.viewer.view_server import ViewServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="session")
def recorded(
    _own_cache: None,
    tmp_path_factory: pytest.TempPathFactory,
    write_locomo: Callable[..., Path],
    write_persona: Callable[..., Path],
) -> Path:
    """Runs of two benchmarks: judged answers, failures, hostile texts, checkpoints."""
    place = tmp_path_factory.mktemp("viewed")
    data = write_locomo(place / "locomo10.json", conversations=5, sessions=12, questions=8)
    samples = json.loads(data.read_text())
    first = samples[0]
    first["qa"][0]["question"] += HOSTILE
    first["qa"][1]["question"] += LONG
    first["qa"][2]["answer"] = HOSTILE
    for number in range(1, 13):
        first["conversation"][f"session_{number}"][0]["text"] += HOSTILE
    data.write_text(json.dumps(samples))
    folder = place / "runs"
    ms.run(
        "locomo",
        systems={"lexical": "bm25", "luck": "random", "broken": Breaks},
        data=data,
        out=folder / "locomo",
        baselines=False,
        reader="extractive",
        judge="f1",
        granularity="turn",
        progress=False,
    )
    history = write_persona(place / "history")
    ms.run(
        "personas",
        systems=["bm25"],
        data=history,
        out=folder / "personas",
        baselines=False,
        ranges="3d,6d,9d,full",
        heatmap_png=False,
        progress=False,
    )
    ms.run(
        "personas",
        systems=["bm25"],
        data=history,
        out=folder / "unjudged",
        baselines=False,
        reader="none",
        ranges="6d,full",
        progress=False,
    )
    return folder


@pytest.fixture(scope="session")
def viewed(recorded: Path) -> Iterator[Viewed]:
    """The recorded runs, served; beside them is what a request must not reach."""
    outside = recorded.parent
    (outside / "secret.txt").write_text(SECRET)
    shutil.copytree(recorded / "locomo" / "luck", outside / "outside")
    manifest = outside / "outside" / "manifest.json"
    manifest.write_text(manifest.read_text().replace("random", SECRET))
    (recorded / "linked").symlink_to(outside / "outside", target_is_directory=True)
    server = ViewServer(recorded, data=outside / "locomo10.json")
    server.start()
    yield Viewed(recorded, server.url)
    server.close()


@pytest.fixture(scope="module")
def tab(browser: Browser, viewed: Viewed) -> Iterator[tuple[Page, list[str]]]:
    """One page for a module, because a new one is a process; with what went wrong on it."""
    context = browser.new_context(base_url=viewed.url, reduced_motion="reduce")
    opened = context.new_page()
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    yield opened, problems
    context.close()


@pytest.fixture
def page(tab: tuple[Page, list[str]]) -> Iterator[Page]:
    """A page that fails its test if a script error or a blocked resource is reported."""
    opened, problems = tab
    blank(opened)
    problems.clear()
    yield opened
    opened.goto("about:blank")  # what the page still reports belongs to this test
    assert not problems


@pytest.fixture
def open_viewer(browser: Browser) -> Iterator[Callable[[Path], Page]]:
    """Serve a folder and open its list of runs."""
    with ExitStack() as opened:

        def start(folder: Path) -> Page:
            server = ViewServer(folder)
            opened.callback(server.close)
            server.start()
            context = browser.new_context(base_url=server.url)
            opened.callback(context.close)
            page = context.new_page()
            page.goto("/")
            return page

        yield start
