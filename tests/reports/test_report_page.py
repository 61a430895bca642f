"""report.html in a real browser: filters, one question, links, keyboard, hostile texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from msgspec.structs import replace
from tests.browser import violations

import mnemoscope as ms
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.question_details import (
    AnswerDetails,
    AskedFrom,
    EvidenceMemory,
    JudgeMark,
    RecalledHit,
    RunQuestions,
    SourceMemory,
    VerdictDetails,
)
from mnemoscope.analysis.read_questions import question_details
from mnemoscope.reports.report_page import report_page
from mnemoscope.reports.run_report import report
from mnemoscope.reports.run_view import RunView

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOSTILE = (
    "<script>window.ran=1</script><img src=x onerror='window.ran=2'></script><!--<script>"
    '"><svg onload="window.ran=3"></svg>[a](javascript:window.ran=4) '
    "\u202eturned\u2066 \u2028 \x1b[2J"
)
LONG = "x" * 1_000_000
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


class Evil:
    """Returns hostile texts, and fails with one."""

    def remember(self, memories: Sequence[ms.Memory]) -> None:
        self.ids = [memory.id for memory in memories]

    def recall(self, query: ms.Query, k: int) -> list[ms.Hit]:
        if "q1 " in query.text:
            raise RuntimeError(HOSTILE)
        texts = [HOSTILE, LONG, ""]
        return [ms.Hit(id, text=text) for id, text in zip(self.ids, texts, strict=False)]


class Runs(NamedTuple):
    judged: Path
    withheld: Path
    checkpoints: Path
    evil: Path


@pytest.fixture(scope="module")
def runs(
    tmp_path_factory: pytest.TempPathFactory,
    write_locomo: Callable[..., Path],
    write_persona: Callable[..., Path],
) -> Runs:
    folder = tmp_path_factory.mktemp("pages")
    plain = write_locomo(folder / "plain.json", conversations=3, sessions=12, questions=8)
    samples = json.loads(plain.read_text())
    for sample in samples:
        sample["qa"][2]["question"] += HOSTILE
        sample["qa"][3]["answer"] = HOSTILE + LONG
        sample["conversation"]["session_1"][0]["text"] += HOSTILE
    hostile = folder / "hostile.json"
    hostile.write_text(json.dumps(samples))
    write_persona(folder / "personas", 143)
    common: dict[str, Any] = {"baselines": False, "heatmap_png": False}
    answered = {"reader": "extractive", "judge": "f1", **common}
    judged = ms.run(
        "locomo", systems="bm25", data=plain, out=folder / "judged", granularity="turn", **answered
    )
    withheld = ms.judge(judged.runs[0].path, judge="contains", out=folder / "withheld", data=plain)
    evil = ms.run(
        "locomo",
        systems={"evil": Evil},
        data=hostile,
        out=folder / "evil",
        accept_leaks=True,
        **answered,
    )
    points = ms.run(
        "personas",
        systems="bm25",
        data=folder / "personas",
        out=folder / "points",
        ranges="1-143/1",
        sample=2,
        **common,
    )
    return Runs(*(found.runs[0].path for found in (judged, withheld, points, evil)))


class Visit(NamedTuple):
    """A page that was opened, with what went wrong on it."""

    page: Page
    problems: list[str]

    def go(self, file: Path, where: str = "") -> Page:
        self.page.goto(f"file://{file}{where}")
        self.page.wait_for_selector("html[data-ready]")
        return self.page

    def rows(self) -> list[str]:
        return self.page.locator(".row .text").all_inner_texts()

    def focused(self) -> str:
        found: str = self.page.evaluate("document.activeElement.id")
        return found


def visiting(browser: Browser, **options: Any) -> Iterator[Visit]:
    """One page for the module, because a new one is a process."""
    context = browser.new_context(**options)
    problems: list[str] = []
    page = context.new_page()
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.on("request", lambda request: problems.extend(_elsewhere(request.url)))
    yield Visit(page, problems)
    context.close()


def _elsewhere(url: str) -> list[str]:
    """The address, if it is not that of a file."""
    return [] if url.startswith("file:") else [url]


@pytest.fixture(scope="module")
def wide(browser: Browser) -> Iterator[Visit]:
    yield from visiting(browser, viewport=WIDE, reduced_motion="reduce")


@pytest.fixture(scope="module")
def narrow(browser: Browser) -> Iterator[Visit]:
    yield from visiting(browser, viewport=PHONE, color_scheme="dark", reduced_motion="reduce")


def blank(visited: Visit) -> Visit:
    """The page without what an earlier test did on it."""
    visited.page.goto("about:blank")
    visited.problems.clear()
    return visited


@pytest.fixture
def visit(wide: Visit) -> Visit:
    return blank(wide)


@pytest.fixture
def phone(narrow: Visit) -> Visit:
    return blank(narrow)


def test_filters_and_search_narrow_the_list_and_stand_in_the_address(
    runs: Runs, visit: Visit
) -> None:
    found = question_details(RunDirectory(runs.judged)).questions
    page = visit.go(runs.judged / "report.html")
    assert page.locator("#count").inner_text() == f"{len(found)} of {len(found)} questions"

    page.select_option("#f-result", "missed")
    missed = [one for one in found if one.found == "missed"]
    assert missed
    _shows(page, f"{len(missed)} of {len(found)} questions")
    page.select_option("#f-category", missed[0].category)
    page.fill("#f-search", f"{missed[0].id} what")
    _shows(page, f"1 of {len(found)} questions")
    assert missed[0].text in visit.rows()[0]

    address = page.url.partition("#")[2]
    assert "result=missed" in address
    page.click("#clear")
    _shows(page, f"{len(found)} of {len(found)} questions")
    visit.go(runs.judged / "report.html", f"?again#{address}")
    assert len(visit.rows()) == 1
    assert not visit.problems


def test_no_filter_counts_the_verdicts_of_a_judge_that_passed_no_exam(
    runs: Runs, visit: Visit, tmp_path: Path
) -> None:
    questions = question_details(RunDirectory(runs.withheld))
    found = questions.questions
    assert found[0].failure
    page = visit.page
    for number, where in enumerate(("answer=rejected", f"failure={found[0].failure}")):
        visit.go(runs.withheld / "report.html", f"?{number}#{where}")
        told = page.locator("#count").inner_text()
        assert told.startswith(f"Some of {len(found)} questions. How many is withheld: the judge")
        assert page.locator(".row").first.get_attribute("aria-setsize") == "-1"
        assert "answer rejected" in page.locator(".row .meta").first.inner_text()
    page.click("#clear")
    _shows(page, f"{len(found)} of {len(found)} questions")
    raw = RunView.of(RunDirectory(runs.withheld), raw=True)
    _write(tmp_path / "raw.html", raw, questions)
    page = visit.go(tmp_path / "raw.html", "#answer=wrong")
    wrong = sum(bool(one.failure) for one in found)
    assert page.locator("#count").inner_text() == f"{wrong} of {len(found)} questions"
    assert not visit.problems


def test_a_link_opens_a_question_with_all_that_is_known_of_it(runs: Runs, visit: Visit) -> None:
    found = question_details(RunDirectory(runs.judged)).questions
    one = next(q for q in found if q.evidence and q.evidence[0].rank and q.answer and q.answer.text)
    page = visit.go(runs.judged / "report.html", f"#q={one.id}")
    shown = page.locator("#detail").inner_text()
    assert page.locator("#detail-title").inner_text() == one.text
    assert one.answer is not None
    assert one.verdict is not None and one.verdict.final is not None
    for text in (one.answer.text, one.reference, one.status, f"rank {one.evidence[0].rank}"):
        assert text in shown
    assert (
        f"{'right' if one.verdict.final.passed else 'wrong'}, {one.verdict.final.value:.3f}"
        in shown
    )
    for name, value in one.metrics.items():
        assert f"{name} {value:.3f}" in shown
    page.get_by_role("button", name="Show all").click()
    hits = page.locator("ol.hits > li")
    assert hits.count() == one.returned
    words = {"right": "evidence", "wrong": "not evidence"}
    assert hits.locator(".badge").all_inner_texts() == [words[hit.kind] for hit in one.hits]
    assert not visit.problems


def test_a_link_to_a_question_that_is_not_there_says_so(runs: Runs, visit: Visit) -> None:
    page = visit.go(runs.judged / "report.html", "#q=nobody")
    assert page.locator("#count").inner_text() == "There is no question nobody in this run."
    assert page.locator("#detail").is_hidden()


def test_everything_can_be_done_with_the_keyboard(runs: Runs, visit: Visit) -> None:
    page = visit.go(runs.judged / "report.html")
    page.keyboard.press("/")
    assert visit.focused() == "f-search"
    page.keyboard.type("conv-1/")
    _shows(page, "8 of 24 questions")
    for _ in range(12):
        if visit.focused() == "list":
            break
        page.keyboard.press("Tab")
    assert visit.focused() == "list"
    page.keyboard.press("End")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    assert visit.focused() == "detail-title"
    assert "q=conv-1%2Fq6" in page.url
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('#detail') !== null")
    page.keyboard.press("Escape")
    assert visit.focused() == "list"
    assert page.locator("#detail").is_hidden()
    assert "search=conv-1" in page.url
    assert "q=conv" not in page.url


def test_the_heatmap_tells_number_and_interval_and_leads_to_the_questions(
    runs: Runs, visit: Visit
) -> None:
    figures = json.loads((runs.checkpoints / "longitudinal.json").read_text())
    page = visit.go(runs.checkpoints / "report.html")
    assert page.locator("table.heat tbody tr").first.locator("td").count() == 143
    page.locator("table.heat td[tabindex='0']").focus()
    for _ in range(9):
        page.keyboard.press("ArrowRight")
    cell = figures["checkpoints"][9]["categories"][figures["categories"][0]]
    told = page.locator("#readout").inner_text()
    assert f"{figures['categories'][0]}, 10d: {cell['mean']:.1f}" in told
    assert f"n {cell['n']}" in told
    assert f"[{cell['ci95'][0]:.2f}, {cell['ci95'][1]:.2f}]" in told
    page.get_by_role("button", name="Show these questions").click()
    assert page.locator("#count").inner_text().startswith(f"{cell['asked']} of ")
    assert visit.focused() == "list"
    assert not visit.problems


def test_axe_finds_no_serious_violation_in_light_and_dark(
    runs: Runs, visit: Visit, phone: Visit
) -> None:
    looked = [(visit, runs.judged), (visit, runs.checkpoints), (phone, runs.judged)]
    for one, run in looked:
        page = one.go(run / "report.html")
        page.locator("#list").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#detail:not([hidden])")
        assert violations(page) == []


def test_hostile_texts_of_a_run_act_on_nothing(runs: Runs, visit: Visit, phone: Visit) -> None:
    for one in (visit, phone):
        for where in ("", "#q=conv-0/q2", "#q=conv-0/q1", "#q=conv-0/q3"):
            page = one.go(runs.evil / "report.html", f"?{len(where)}{where}")
            assert page.evaluate("window.ran") is None
            assert _fits(page)
        assert one.problems == []
    shown = visit.go(runs.evil / "report.html", "?last#q=conv-0/q1").locator("#detail")
    assert "<script>window.ran=1</script>" in shown.inner_text()
    assert "\\u202e" in shown.inner_text()


def test_a_hostile_text_in_every_field_acts_on_nothing(
    runs: Runs, visit: Visit, phone: Visit, tmp_path: Path
) -> None:
    view, questions = _of(runs.judged)
    mark = JudgeMark(1.0, True, {}, HOSTILE + LONG, {HOSTILE: 0.5})
    memory = SourceMemory(
        HOSTILE + LONG[:3000], 9_999_999, datetime(2026, 1, 2, tzinfo=UTC), HOSTILE, HOSTILE
    )
    names = ("id", "scenario", "checkpoint", "category", "difficulty", "text", "reference")
    worst = replace(
        questions.questions[0],
        **dict.fromkeys((*names, "status", "error", "failure"), HOSTILE),
        expects="abstain",
        asked=AskedFrom(None, HOSTILE),
        evidence=(EvidenceMemory(HOSTILE, None, memory),),
        hits=(
            RecalledHit(HOSTILE, 1, "carried", 0.5, HOSTILE + LONG, memory, (HOSTILE,)),
            RecalledHit(
                HOSTILE, 2, "claimed", None, None, memory, (), (HOSTILE,), (HOSTILE,), 3, True
            ),
        ),
        returned=2,
        answer=AnswerDetails("answered", LONG + HOSTILE, (HOSTILE,)),
        verdict=VerdictDetails(mark, mark),
    )
    worst = replace(worst, error=HOSTILE + LONG)
    file = tmp_path / "report.html"
    titled = replace(view.manifest, notes=[HOSTILE, LONG], category_names={HOSTILE: HOSTILE})
    hostile = RunView(**{**vars(view), "label": f"{HOSTILE} {LONG[:300]}", "manifest": titled})
    _write(file, hostile, replace(questions, questions=(worst,)))
    for one in (visit, phone):
        page = one.go(file)
        assert _fits(page)
        page.locator("#list").focus()
        page.keyboard.press("Enter")
        more = page.get_by_role("button", name="Show all")
        while more.count():
            more.first.click()
        assert page.evaluate("window.ran") is None
        assert _fits(page)
        assert one.problems == []
    assert file.stat().st_size < 500_000


def test_twenty_thousand_questions_are_a_short_list_of_elements(
    runs: Runs, visit: Visit, tmp_path: Path
) -> None:
    view, questions = _of(runs.judged)
    first = questions.questions[0]
    many = tuple(replace(first, id=f"q{number}") for number in range(20_000))
    _write(tmp_path / "report.html", view, replace(questions, questions=many))
    page = visit.go(tmp_path / "report.html")
    for key in ("End", "PageUp", "Home", "PageDown", "End"):
        page.locator("#list").press(key)
        page.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        assert page.locator(".row").count() < 60
    assert page.locator(".row.active").get_attribute("aria-posinset") == "20000"
    page.locator("#list").press("Enter")
    assert page.locator("#detail .id").first.inner_text() == "q19999"


def test_a_browser_that_cannot_unpack_the_questions_says_so(runs: Runs, browser: Browser) -> None:
    with browser.new_page() as page:  # its own: the script stays with the page
        page.add_init_script("delete window.DecompressionStream")
        page.goto(f"file://{runs.judged / 'report.html'}")
        said = page.locator("#loading").inner_text()
    assert "too old" in said
    assert "questions.jsonl" in said


def test_a_longmemeval_run_has_its_questions_and_texts(
    shared_data: Callable[[str], Path], visit: Visit, tmp_path: Path
) -> None:
    data = shared_data("longmemeval")
    run = ms.run(
        "longmemeval",
        systems="bm25",
        data=data,
        out=tmp_path / "runs",
        variant="oracle",
        scenarios=12,
        baselines=False,
    ).runs[0]
    page = visit.go(run.path / "report.html")
    assert page.locator("#count").inner_text().startswith(f"{len(run.question_rows())} of ")
    page.locator("#list").press("Enter")
    assert "characters more in the dataset" in page.locator("#detail").inner_text()
    assert violations(page) == []
    assert not visit.problems


def _shows(page: Page, count: str) -> None:
    """Wait until the list has so many questions: a search begins when typing ends."""
    from playwright.sync_api import expect

    expect(page.locator("#count")).to_have_text(count)


def _fits(page: Page) -> bool:
    """Whether the page does not scroll sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def _of(path: Path) -> tuple[RunView, RunQuestions]:
    run = RunDirectory(path)
    return RunView.of(run), question_details(run)


def _write(file: Path, view: RunView, questions: RunQuestions) -> None:
    file.write_bytes(report_page(view, report(view, is_wide=True), questions, []))
