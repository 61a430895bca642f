"""The pages show what the commands print, with every text escaped."""

from __future__ import annotations

import json
import re
import shutil
from html import unescape
from pathlib import Path

import pytest
from tests.viewer.viewed_runs import HOSTILE, LONG, Viewed

import mnemoscope as ms
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.reports.comparison_tables import verdict_cell
from mnemoscope.reports.run_view import RunView
from mnemoscope.text.display import as_html
from mnemoscope.viewer.comparison_pages import BY_ANSWERS, changed_by
from mnemoscope.viewer.html_elements import el, foreign, table, url
from mnemoscope.viewer.interval_marks import DifferenceScale
from mnemoscope.viewer.run_folder import RunFolder
from mnemoscope.viewer.view_server import ViewServer


def plain(html: str) -> str:
    """The text of a page in one line."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


@pytest.fixture(scope="module")
def locomo(viewed: Viewed) -> str:
    """The key of the runs on LoCoMo."""
    return next(one.set for one in RunFolder(viewed.folder).runs() if "locomo" in one.name)


def test_the_list_names_every_run_with_its_figure(viewed: Viewed) -> None:
    text = plain(viewed.get("/").text)
    for name in ("locomo/broken", "locomo/lexical", "locomo/luck", "personas/bm25"):
        assert name in text
    figure = ms.load(viewed.folder / "locomo")["lexical"].metrics["overall"]["recall@10"]
    assert f"recall@10 {figure['mean']:.3f}" in text


def test_the_table_of_systems_has_the_groups_of_the_command(viewed: Viewed, locomo: str) -> None:
    text = plain(viewed.get("/systems", set=locomo).text)
    groups = ms.compare_many([viewed.folder / "locomo"]).groups
    assert repr(ms.compare_many([viewed.folder / "locomo"])) in text
    for one in groups.systems:
        assert f"locomo/{one.system} {one.letters} {one.ranks[0]}" in text


def test_the_forest_plot_has_the_verdicts_of_compare(viewed: Viewed, locomo: str) -> None:
    html = viewed.get("/forest", set=locomo, reference="locomo/luck", band="0.05").text
    text = plain(html)
    found = ms.compare(
        viewed.folder / "locomo" / "luck", viewed.folder / "locomo" / "lexical", band=0.05
    )
    assert found.paired is not None and found.paired.primary is not None
    primary = found.paired.primary
    low, high = primary.shown
    assert (
        f"locomo/lexical {primary.verdict} {primary.delta:+.4f} [{low:+.4f}, {high:+.4f}]" in text
    )
    assert found.answer in text
    assert html.count('class="band"') == html.count('class="zero"') == 2


def test_the_forest_plot_of_a_secondary_metric_says_what_is_not_confirmed(
    viewed: Viewed, locomo: str
) -> None:
    text = plain(viewed.get("/forest", set=locomo, reference="locomo/lexical", metric="f1").text)
    for name in ("luck", "broken"):
        found = ms.compare(*(viewed.folder / "locomo" / one for one in ("lexical", name))).paired
        assert found is not None
        row = found.row("f1")
        cell = verdict_cell(row)
        assert f"locomo/{name} {cell.markdown or cell.text} {row.delta:+.4f}" in text
    assert viewed.get("/forest", set=locomo, metric="no").status == 404


def test_two_runs_side_by_side_list_gained_and_lost_questions(viewed: Viewed) -> None:
    names = ("luck", "lexical")
    base, cand = (viewed.folder / "locomo" / name for name in names)
    found = ms.compare(base, cand, discordant="hit@10").paired
    assert found is not None and found.discordant
    html = viewed.get("/compare", base="locomo/luck", cand="locomo/lexical").text
    for change in ("gained", "lost"):
        count = sum(one.change == change for one in found.discordant)
        assert f"{change.capitalize()}: {count}" in plain(html)
        assert html.count(f'class="change {change}"') == count
    assert ms.compare(base, cand).answer in plain(html)


def test_answers_are_gained_and_lost_too(viewed: Viewed) -> None:
    html = viewed.get("/compare", base="locomo/luck", cand="locomo/lexical", by="answers").text
    rows = [ms.load(viewed.folder / "locomo")[name].question_rows() for name in ("luck", "lexical")]
    wrong = [{row.question for row in own if row.failure == "wrong answer"} for own in rows]
    judged = [{row.question for row in own if row.verdict is not None} for own in rows]
    both = judged[0] & judged[1]
    assert f"Gained: {len((wrong[0] - wrong[1]) & both)}" in plain(html)
    assert f"Lost: {len((wrong[1] - wrong[0]) & both)}" in plain(html)


def test_answers_of_a_withheld_judge_are_neither_gained_nor_lost(viewed: Viewed) -> None:
    view = RunView.of(RunDirectory(viewed.folder / "locomo" / "lexical"))
    assert BY_ANSWERS in changed_by([view, view])
    answers = {**(view.answers or {}), "withheld": "withheld: the judge has sat no exam"}
    withheld = RunView(**{**vars(view), "answers": answers})
    for pair in ([view, withheld], [withheld, view]):
        assert BY_ANSWERS not in changed_by(pair)


def test_a_question_shows_both_systems_hits_with_their_texts(viewed: Viewed) -> None:
    shown = {"base": "locomo/luck", "cand": "locomo/lexical", "id": "conv-1/q1"}
    html = viewed.get("/question", **shown).text
    found = ms.show(
        viewed.folder / "locomo" / "lexical", "conv-1/q1", data=viewed.folder.parent
    ).details
    assert found.text in plain(html) and found.evidence
    for hit in found.hits[:10]:
        assert hit.memory is not None
        assert as_html(hit.id) in html and as_html(hit.memory.text) in html
    fragment = viewed.get("/question", **shown, fragment="1").text
    assert "<html" not in fragment and fragment in html


def test_a_failed_question_shows_its_error(viewed: Viewed) -> None:
    shown = {"base": "locomo/broken", "cand": "locomo/lexical", "id": "conv-1/q3"}
    assert as_html(HOSTILE) in viewed.get("/question", **shown).text


def test_a_checkpoint_shows_its_cells(viewed: Viewed) -> None:
    points = ms.load(viewed.folder / "personas")["bm25"].longitudinal
    assert points is not None
    for at, point in enumerate(points["checkpoints"]):
        text = plain(viewed.get("/checkpoints", run="personas/bm25", at=str(at), fragment="1").text)
        assert f"At {point['label']}" in text
        assert f"All categories {point['overall']['mean']:.2f}" in text
    assert viewed.get("/checkpoints", run="personas/bm25", at="4").status == 404
    assert viewed.get("/checkpoints", run="personas/bm25", at="-1").status == 404
    assert viewed.get("/checkpoints", run="locomo/luck").status == 404


def test_checkpoints_without_a_judge_show_hits(viewed: Viewed) -> None:
    points = ms.load(viewed.folder / "unjudged")["bm25"].longitudinal
    assert points is not None
    found = points["checkpoints"][0]["retrieval"]["hit@10"]["mean"]
    text = plain(viewed.get("/checkpoints", run="unjudged/bm25", at="0").text)
    assert f"hit@10 [95 % interval] Asked All categories {found:.2f}" in text
    assert "hit@10 from 0 to 1" in text and "composite" not in text


def test_every_text_is_escaped_and_long_ones_are_cut(viewed: Viewed, locomo: str) -> None:
    pair = {"base": "locomo/broken", "cand": "locomo/lexical"}
    replies = [
        viewed.get("/"),
        viewed.get("/run", run="locomo/broken"),
        viewed.get("/systems", set=locomo),
        viewed.get("/compare", **pair, by="hit@1"),
        *(viewed.get("/question", **pair, id=f"conv-0/q{number}") for number in range(4)),
        viewed.get("/question", **pair, id=HOSTILE),
        viewed.get("/compare", **pair, by=HOSTILE),
        viewed.get("/forest", set=locomo, band=HOSTILE),
    ]
    for reply in replies:
        assert "<script>window" not in reply.text
        assert "<img" not in reply.text and "<svg onload" not in reply.text
        assert not re.search("[\u202e\u2066\x1b]", reply.text)
        assert 'href="javascript' not in reply.text
        assert len(reply.text) < len(LONG)
        assert " style=" not in reply.text and "onerror='" not in reply.text


def test_a_run_in_progress_has_a_small_json(viewed: Viewed) -> None:
    reply = viewed.get("/live.json", run="locomo/lexical")
    assert json.loads(reply.text)["state"] == "complete"


def test_an_edited_run_has_no_figures_and_no_report(recorded: Path, tmp_path: Path) -> None:
    shutil.copytree(recorded / "locomo" / "luck", tmp_path / "runs" / "edited")
    (tmp_path / "runs" / "edited" / "report.html").write_text("<script>edited</script>")
    server = ViewServer(tmp_path / "runs")
    server.start()
    try:
        served = Viewed(tmp_path / "runs", server.url)
        listed = served.get("/").text
        assert "report.html was changed after the run" in plain(listed)
        assert "recall@10" not in listed
        refused = served.get("/report", run="edited")
        assert refused.status == 422 and "<script>edited" not in refused.text
        assert served.get("/compare", base="edited", cand="edited").status == 422
        assert served.get("/systems", run="edited").status == 422
    finally:
        server.close()


def test_a_run_of_an_older_version_has_a_report_built_in_memory(
    recorded: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "runs" / "old"
    shutil.copytree(recorded / "locomo" / "luck", copy)
    RunDirectory(copy).write_files({"report.html": None})
    server = ViewServer(tmp_path / "runs")
    server.start()
    try:
        reply = Viewed(tmp_path / "runs", server.url).get("/report", run="old")
    finally:
        server.close()
    assert reply.status == 200 and "<h1>old on locomo" in reply.text
    assert not (copy / "report.html").exists()


def test_wrong_choices_are_explained(viewed: Viewed, locomo: str) -> None:
    assert "choose two runs" in viewed.get("/compare", run="locomo/luck").text
    assert viewed.get("/systems", set="no").status == 404
    assert viewed.get("/forest", set=locomo, band="2").status == 422
    other = viewed.get("/compare", base="locomo/luck", cand="personas/bm25")
    assert other.status == 422 and "differ in" in other.text


def test_figures_that_are_not_figures_do_not_break_the_list(recorded: Path, tmp_path: Path) -> None:
    """A run of the first version has no seal, so another program may have written it."""
    folder = tmp_path / "runs" / "odd"
    shutil.copytree(recorded / "locomo" / "luck", folder)
    for name in ("seal.json", "trials.chain.jsonl"):
        (folder / name).unlink(missing_ok=True)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest |= {"schema": 1, "files": {}, "chain": {}, "id": ""}
    manifest["identity"].pop("schema")
    (folder / "manifest.json").write_text(json.dumps(manifest))
    metrics = json.loads((folder / "metrics.json").read_text())
    metrics["overall"]["recall@10"]["mean"] = HOSTILE
    (folder / "metrics.json").write_text(json.dumps(metrics))
    server = ViewServer(tmp_path / "runs")
    server.start()
    try:
        served = Viewed(tmp_path / "runs", server.url)
        listed, own = served.get("/"), served.get("/run", run="odd")
        assert listed.status == 200 and "its figures cannot be read" in listed.text
        assert own.status == 500 and "this cannot be shown" in own.text
        assert "<script>window" not in listed.text + own.text
    finally:
        server.close()


# Elements


def test_elements_escape_texts_and_attributes() -> None:
    made = el("p", "<b>", el("i", "a & b"), title='"><script>', hidden=True, lang=None)
    assert made == ('<p title="&quot;&gt;&lt;script&gt;" hidden>&lt;b&gt;<i>a &amp; b</i></p>')
    assert url("/run", run='a"&b') == "/run?run=a%22%26b"
    assert "<script" not in table([HOSTILE], [el("tr", el("td", HOSTILE))], caption=HOSTILE)
    assert foreign("x" * 9, 4) == '<span class="text" dir="auto">xxxx… (9 characters)</span>'


@pytest.mark.parametrize(
    ("ends", "band", "expected"),
    [
        ([0.0133, -0.0033], None, (-0.005, 0.015)),
        ([0.3, 0.5], 0.05, (-0.2, 0.6)),
        ([0.0], None, (0.0, 0.02)),
    ],
)
def test_the_scale_of_a_forest_plot_has_zero_and_round_ends(
    ends: list[float], band: float | None, expected: tuple[float, float]
) -> None:
    scale = DifferenceScale.of(ends, band)
    assert (scale.low, scale.high) == pytest.approx(expected)
    assert any(abs(tick) < 1e-9 for tick in scale.ticks())
