"""The pages in a real browser, by keyboard: compare, open a question, slide, watch a run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.browser import violations
from tests.viewer.viewed_runs import Viewed
from tests.waiting import eventually

from mnemoscope._store.jsonl import encode_lines
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.watched_run import ExpectedQuestions
from mnemoscope.types import Trial

if TYPE_CHECKING:
    from playwright.sync_api import Page

IDENTITY = {
    "benchmark": {"name": "locomo", "options": {}, "sha256": []},
    "system": {"spec": "mine"},
    "depth": 50,
}
MOST_TABS = 60


def tab_to(page: Page, wanted: str) -> None:
    """Press Tab until the element with the focus matches the selector."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if page.evaluate("wanted => document.activeElement.matches(wanted)", wanted):
            return
    raise AssertionError(f"Tab does not reach {wanted}")


def wait_for_text(page: Page, selector: str, text: str) -> None:
    """Wait with a locator: the policy of our pages forbids what is evaluated later."""
    page.locator(selector, has_text=text).wait_for(state="attached")


def pages(viewed: Viewed) -> list[str]:
    """An address of every page."""
    pair = {"base": "locomo/luck", "cand": "locomo/lexical"}
    two = f"run={viewed.id('locomo/luck')}&run={viewed.id('locomo/lexical')}"
    return [
        "/",
        viewed.place("/run", run="locomo/broken"),
        f"/systems?{two}",
        f"/forest?{two}&band=0.1",
        viewed.place("/compare", **pair),
        viewed.place("/question", **pair, id="conv-0/q0"),
        viewed.place("/checkpoints", run="personas/bm25"),
        viewed.place("/live", run="locomo/luck"),
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation(page: Page, viewed: Viewed, scheme: str) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    for place in pages(viewed):
        page.goto(place)
        if "/compare" in place:
            page.locator("details").first.locator("summary").click()
            page.wait_for_selector("details .sides")
        assert violations(page) == [], place


def test_no_page_scrolls_sideways_on_a_phone(page: Page, viewed: Viewed) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    for place in pages(viewed):
        page.goto(place)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, place


def test_two_runs_are_compared_by_keyboard(page: Page, viewed: Viewed) -> None:
    page.goto("/")
    for name in ("lexical", "luck"):  # in the order of the list
        tab_to(page, f"input[value='{viewed.id(f'locomo/{name}')}']")
        page.keyboard.press("Space")
    for _ in range(MOST_TABS):  # the buttons are before the table
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.matches(\"[formaction='/compare']\")"):
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/compare?**")
    assert "lexical" in page.inner_text("h1")
    tab_to(page, "summary")
    page.keyboard.press("Enter")
    page.wait_for_selector("details[open] .sides table")
    opened = page.locator("details[open]")
    assert opened.locator(".sides section").count() == 2
    assert opened.locator(".kind").count() > 2
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the link to the question's own page
    page.wait_for_url("**/question?**")
    assert page.locator(".sides section").count() == 2


def test_filters_narrow_the_list_and_say_how_many_are_left(page: Page) -> None:
    page.goto("/")
    tab_to(page, "#filter")
    page.keyboard.type("lexical")
    wait_for_text(page, "#filter-count", "1 of 5")
    assert page.locator("tr[data-text]:visible").count() == 1


def test_the_slider_moves_by_keyboard(page: Page, viewed: Viewed) -> None:
    page.goto(viewed.place("/checkpoints", run="personas/bm25"))
    assert "At full" in page.inner_text("#panel h2")
    tab_to(page, "#at")
    page.keyboard.press("Home")
    wait_for_text(page, "#panel h2", "At 3d")
    assert page.get_attribute("#at", "aria-valuetext") == "3d"
    page.keyboard.press("ArrowRight")
    wait_for_text(page, "#panel h2", "At 6d")
    assert page.inner_text(".heat th.here") == "6d"


def test_hostile_texts_run_nothing_and_break_no_layout(page: Page, viewed: Viewed) -> None:
    pair = {"base": "locomo/broken", "cand": "locomo/lexical"}
    places = [viewed.place("/compare", **pair, by="hit@1")]
    places += [viewed.place("/question", **pair, id=f"conv-0/q{n}") for n in range(4)]
    for place in places:
        page.goto(place)
        for one in page.locator("details").all()[:6]:
            one.locator("summary").click()
            one.locator(".sides").wait_for()
        assert page.evaluate("window.ran") is None
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), place


def test_a_report_opens_in_its_sandbox(page: Page, viewed: Viewed) -> None:
    page.goto(viewed.place("/run", run="locomo/lexical"))
    page.get_by_role("link", name="Report page").press("Enter")
    page.wait_for_url("**/report?**")
    page.wait_for_selector("#rows .row")
    assert page.evaluate("window.origin") == "null"
    assert page.evaluate("window.ran") is None
    page.go_back()
    page.get_by_role("link", name="Report page").wait_for()


def test_a_running_run_is_watched_by_keyboard(
    tmp_path: Path, open_viewer: Callable[[Path], Page]
) -> None:
    run = RunDirectory(tmp_path / "runs" / "mine")
    manifest = run.open(IDENTITY)
    run.note_expected(ExpectedQuestions(40))
    units = run.path / "units"
    units.mkdir()
    spool = units / "000000.trials.jsonl"
    spool.write_bytes(encode_lines([Trial("c", f"q{n}", "answered") for n in range(10)]))
    page = open_viewer(tmp_path / "runs")
    tab_to(page, "a[href^='/live']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/live?**")
    assert "10 of 40 questions done" in page.inner_text("#progress-text")
    with spool.open("ab") as file:
        file.write(encode_lines([Trial("c", f"q{n}", "timeout") for n in range(10, 15)]) + b'{"ph')
    wait_for_text(page, "#progress-text", "15 of 40 questions done")
    assert page.evaluate("document.getElementById('bar').value") == 15
    assert page.inner_text("#live tbody").split() == ["answered", "10", "timeout", "5"]
    manifest.state = "interrupted"
    run.save(manifest)
    run.release()
    wait_for_text(page, "#state .state", "interrupted")
    tab_to(page, "#run-link")
    page.keyboard.press("Enter")
    page.wait_for_url("**/run?**")
    assert "interrupted" in page.inner_text("dl")


WAITS = """
import os, time
from pathlib import Path

class Waits:
    def __init__(self):
        self.ids, self.asked = [], 0

    def remember(self, memories):
        self.ids += [one.id for one in memories]

    def recall(self, query, k):
        self.asked += 1
        while self.asked > 4 and not Path(os.environ["GO_ON"]).exists():
            time.sleep(0.01)
        return self.ids[:k]
"""


def test_a_real_run_is_watched_by_keyboard_to_its_end(
    tmp_path: Path, write_locomo: Callable[..., Path], open_viewer: Callable[[Path], Page]
) -> None:
    (tmp_path / "waiting.py").write_text(WAITS)
    (tmp_path / "runs").mkdir()
    data = write_locomo(tmp_path / "locomo.json", conversations=1, questions=10)
    go_on = tmp_path / "go-on"
    command = [sys.executable, "-m", "mnemoscope", "run", "locomo", "--data", str(data)]
    command += ["--system", "waiting:Waits", "--isolation", "1", "--no-baselines"]
    process = subprocess.Popen(
        [*command, "--workers", "1", "--out", str(tmp_path / "runs")],
        cwd=tmp_path,
        env={**os.environ, "GO_ON": str(go_on)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert eventually(lambda: any((tmp_path / "runs").glob("*/units/*.trials.jsonl")))
        page = open_viewer(tmp_path / "runs")
        tab_to(page, "a[href^='/live']")
        page.keyboard.press("Enter")
        page.wait_for_url("**/live?**")
        wait_for_text(page, "#progress-text", "12 memories ingested")
        wait_for_text(page, "#live tbody", "answered")
        assert "running" in page.inner_text("#state")
        go_on.touch()
        wait_for_text(page, "#state .state", "complete")
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.wait()
