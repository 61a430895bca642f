"""Measure report.html: its size, the time to write it, and how it behaves in Chromium.

    python benchmarks/report_page.py ../shared/data

Runs BM25 on LoCoMo and on LongMemEval-S, and makes a page of 20,000 trials. For each page it prints
the size, the CPU time of writing it beside that of the whole run, the time until the questions can
be used, and the longest frame while the whole list is scrolled. Frames depend on what else the
machine does.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from msgspec.structs import replace
from playwright.sync_api import Browser, sync_playwright

import mnemoscope as ms
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.read_questions import question_details
from mnemoscope.api.page_texts import found_page_texts
from mnemoscope.reports.report_page import report_page
from mnemoscope.reports.run_report import report, write_report
from mnemoscope.reports.run_view import RunView

MANY = 20_000
_READY = "html[data-ready]"
_SCROLL = """async () => {
  const list = document.getElementById("list"), steps = 240;
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  let longest = 0, last = await frame();
  for (let step = 0; step <= steps; step++) {
    list.scrollTop = (list.scrollHeight - list.clientHeight) * step / steps;
    const now = await frame();
    longest = Math.max(longest, now - last);
    last = now;
  }
  return longest;
}"""
_MANY_FRAMES = """async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  let longest = 0, last = await frame();
  for (let step = 0; step <= 240; step++) {
    const now = await frame();
    longest = Math.max(longest, now - last);
    last = now;
  }
  return longest;
}"""


class Measured(NamedTuple):
    """What a page costs and how it behaves."""

    name: str
    megabytes: float
    written_s: float | None
    run_s: float | None
    ready_s: float
    longest_ms: float
    idle_ms: float
    """The longest frame of the same page at rest, for comparison."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="the folder that has locomo and longmemeval")
    data: Path = parser.parse_args().data
    with TemporaryDirectory() as folder, sync_playwright() as driver:
        os.environ["MNEMOSCOPE_DATA_HOME"] = str(Path(folder) / "home")
        browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        found = [
            measured(browser, "LoCoMo, sessions", "locomo", data / "locomo", Path(folder) / "l"),
            measured(
                browser,
                "LoCoMo, turns",
                "locomo",
                data / "locomo",
                Path(folder) / "t",
                granularity="turn",
            ),
            measured(
                browser, "LongMemEval-S", "longmemeval", data / "longmemeval", Path(folder) / "s"
            ),
            many(browser, Path(folder) / "l" / "bm25"),
        ]
        browser.close()
    print("page               MB   written s   run s   ready s   longest frame ms   at rest ms")
    for one in found:
        written = "" if one.written_s is None else f"{one.written_s:.2f}"
        run = "" if one.run_s is None else f"{one.run_s:.1f}"
        print(
            f"{one.name:17}{one.megabytes:5.1f}{written:>12}{run:>8}{one.ready_s:10.2f}"
            f"{one.longest_ms:19.0f}{one.idle_ms:13.0f}"
        )


def measured(
    browser: Browser, name: str, benchmark: str, data: Path, out: Path, **options: Any
) -> Measured:
    before = _cpu()
    run = ms.run(benchmark, systems="bm25", data=data, out=out, baselines=False, **options).runs[0]
    took = _cpu() - before
    [texts] = found_page_texts([run.directory], data)
    before = _cpu()
    write_report(run.directory, texts=texts)
    both = _cpu() - before
    return in_browser(browser, name, run.path / "report.html", both, took)


def many(browser: Browser, run: Path) -> Measured:
    """A page whose list has 20,000 trials: the questions of a run, again and again."""
    directory = RunDirectory(run)
    view, found = RunView.of(directory), question_details(directory)
    own = found.questions
    repeated = tuple(
        replace(own[number % len(own)], id=f"q{number}", checkpoint=f"{number // len(own)}d")
        for number in range(MANY)
    )
    place = run.parent / "many.html"
    questions = replace(found, questions=repeated)
    place.write_bytes(report_page(view, report(view, is_wide=True), questions, []))
    return in_browser(browser, f"{MANY:,} trials", place, None, None)


def in_browser(
    browser: Browser, name: str, file: Path, written: float | None, run: float | None
) -> Measured:
    page = browser.new_page()
    began = time.monotonic()
    page.goto(f"file://{file}")
    page.wait_for_selector(_READY)
    ready = time.monotonic() - began
    idle = page.evaluate(_MANY_FRAMES)
    longest = page.evaluate(_SCROLL)
    page.close()
    return Measured(name, file.stat().st_size / 1e6, written, run, ready, longest, idle)


def _cpu() -> float:
    """Seconds of CPU of this process and the workers that ended."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    main()
