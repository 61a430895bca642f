"""The report, the notes and the history: their sections, formats, and what they refuse."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mnemoscope._store.errors import DataError, MissingData, UsageError
from mnemoscope.analysis.verify import block
from mnemoscope.release.benchmark_report import write_report
from mnemoscope.release.claims import lint
from mnemoscope.release.decide import comparisons
from mnemoscope.release.history import add_entry, read_history
from mnemoscope.release.notes import ProhibitedClaim, render, write_notes
from mnemoscope.release.release_facts import Facts
from mnemoscope.release.state import Release, moment


def _headings(text: str) -> list[str]:
    return re.findall(r"^## (.*)$", text, re.MULTILINE)


def test_the_report_has_the_sections_of_the_template(ready: Callable[..., Release]) -> None:
    text = ready("SHIP").report_path.read_text()
    assert [heading[0] for heading in _headings(text)] == [*"0123456789"]
    for part in ("Conformance", "Run configuration", "strata, overall", "strata, by category"):
        assert f"### {part}" in text
    assert "`claude-memory-strata-1:own-data`" in text
    assert "- the base is not the previous release: the first release under this process" in text
    assert "row “SHIP” of the decision matrix" in text


def test_the_report_names_every_raw_file_with_its_hash(ready: Callable[..., Release]) -> None:
    release = ready("SHIP")
    text = release.report_path.read_text()
    for record in release.records():
        assert record.manifest_sha256 in text
        assert all(sha256 in text for sha256 in record.files.values())


def test_an_overall_row_has_both_means_with_intervals_the_p_and_the_effect(
    ready: Callable[..., Release],
) -> None:
    text = ready("SHIP").report_path.read_text()
    row = next(line for line in text.splitlines() if line.startswith("| recall@10 |"))
    assert re.fullmatch(
        r"\| recall@10 \| 0\.0000 \[0\.0000, 0\.0214\] \| 0\.9000 \[0\.\d{4}, 0\.\d{4}\] "
        r"\| \+90\.00 \[\+\d\d\.\d\d, \+\d\d\.\d\d\] \| <0\.0001 "
        r"\| d_z=\+2\.992 large \| yes \|",
        row,
    )


def test_writing_the_report_again_gives_the_same_bytes(
    ready: Callable[..., Release],
) -> None:
    release = ready("SHIP")
    first = release.report_path.read_bytes()
    write_report(release, moment())
    assert release.report_path.read_bytes() == first


def test_texts_cannot_forge_the_block_of_signatures(ready: Callable[..., Release]) -> None:
    forged = "<!-- signatures -->\n| PI | Pia | today | 0 | valid |\n<!-- /signatures -->"
    text = ready("SHIP", internal=forged).report_path.read_text()
    assert text.count("<!-- signatures -->") == 1


@pytest.mark.parametrize("row", ["SHIP", "SHIP with caveat", "HOLD or SHIP as no-claim", "HOLD"])
def test_report_and_notes_make_no_prohibited_claim(row: str, ready: Callable[..., Release]) -> None:
    release = ready(row)
    found = comparisons(release)
    facts = Facts(release, found)
    for text in (release.report_path.read_text(), render(release, found)):
        assert lint(text, facts) == []
        assert lint(text) == []


def test_the_notes_have_exactly_the_five_sections(complete: Callable[..., Release]) -> None:
    assert _headings(complete("SHIP").notes_path.read_text()) == [
        "Significant Improvements",
        "Marginal / Non-Significant Changes",
        "Regressions",
        "Methodology Changes",
        "Benchmark Integrity",
    ]


def _section(text: str, name: str) -> str:
    return text.split(f"## {name}\n")[1].split("\n## ")[0]


POINTS = r"[+-]\d+\.\d\dpp"
INTERVAL = r"95% CI \[[+-]\d+\.\d\d, [+-]\d+\.\d\d\]"
P = r"p(?:=\d\.\d{4}|<0\.0001)"


def test_improvements_are_listed_with_interval_p_and_effect(
    complete: Callable[..., Release],
) -> None:
    improved = _section(complete("SHIP").notes_path.read_text(), "Significant Improvements")
    lines = re.findall(r"^- (.*)$", improved, re.MULTILINE)
    assert [line.partition(":")[0] for line in lines] == [
        "recall@10",
        "recall@5",
        "ndcg@10",
        "mrr@20",
    ]
    for line in lines:
        assert re.fullmatch(rf"[\w@]+: {POINTS} \({INTERVAL}, {P}, d_z=\+\d\.\d{{3}}\)", line)


def test_changes_within_noise_are_listed_as_ns(complete: Callable[..., Release]) -> None:
    notes = complete("SHIP with caveat").notes_path.read_text()
    marginal = _section(notes, "Marginal / Non-Significant Changes")
    (line,) = re.findall(r"^- (mrr@20.*)$", marginal, re.MULTILINE)
    assert re.fullmatch(rf"mrr@20: {POINTS} \({INTERVAL}, {P} ns\)", line)


def test_regressions_are_listed_overall_and_where_a_category_fell(
    complete: Callable[..., Release],
) -> None:
    notes = complete("HOLD", accept_regression="half the cost").notes_path.read_text()
    lines = re.findall(r"^- (.*)$", _section(notes, "Regressions"), re.MULTILINE)
    assert re.fullmatch(rf"recall@10: -90\.00pp \({INTERVAL}, {P}\)", lines[0])
    assert any(line.endswith("in category b") for line in lines)
    assert _section(notes, "Significant Improvements").strip() == "None."


def test_integrity_names_hashes_environment_wall_clock_and_device(
    complete: Callable[..., Release],
) -> None:
    release = complete("SHIP")
    notes = release.notes_path.read_text()
    integrity = _section(notes, "Benchmark Integrity")
    assert "ab" * 32 in integrity
    for word in ("environment: test, Python 3.11.7", "wall clock: ", "device: ", "2 CPU cores"):
        assert word in integrity
    assert "Measured per claude-memory stratified recall benchmark" in notes
    assert "system.spec: 'mine,version=base' → 'mine,version=cand'" in notes


def test_notes_on_a_blocked_run_are_refused(ready: Callable[..., Release]) -> None:
    release = ready("SHIP")
    block(release.run(release.state.pairs[0].cand), "wrong embedder")
    with pytest.raises(ProhibitedClaim, match="BLOCKED"):
        write_notes(release, comparisons(release))
    assert not release.notes_path.exists()


def test_the_report_of_an_edited_run_is_refused(begin: Callable[..., Release]) -> None:
    release = begin("SHIP")
    file = release.run(release.state.pairs[0].cand).path / "trials.jsonl"
    file.write_bytes(file.read_bytes() + b"\n")
    with pytest.raises(DataError, match=r"trials\.jsonl was edited after the release was started"):
        write_report(release, moment())


def test_the_history_is_newest_first_and_keeps_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "HISTORY.md"
    with pytest.raises(MissingData, match="history add"):
        read_history(file)
    for day, change in ((9, "sessions, not turns"), (10, "dates in the text"), (12, "new seed")):
        add_entry(file, change=change, reason="because", when=moment(f"2026-05-{day:02}"))
    headings = _headings(read_history(file))
    assert headings == [
        "2026-05-12 new seed",
        "2026-05-10 dates in the text",
        "2026-05-09 sessions, not turns",
    ]
    assert read_history(file).count("- reason: because") == 3
    assert read_history(file).startswith("# Methodology history\n\nNewest first.\n\n## 2026-05-12")
    with pytest.raises(UsageError):
        add_entry(file, change=" ", reason="because", when=moment())


def test_an_entry_of_the_history_shows_its_impact(
    tmp_path: Path, begin: Callable[..., Release]
) -> None:
    found = comparisons(begin("SHIP"))
    entry = add_entry(tmp_path / "H.md", change="a", reason="b", when=moment(), impact=found)
    assert "| recall@10 | 0.0000 | 0.9000 | +90.00pp [" in entry
