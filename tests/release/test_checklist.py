"""No tag while anything is missing; every item of Appendix A is computed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable

import pytest

from mnemoscope.analysis.verify import block
from mnemoscope.release.benchmark_report import write_report
from mnemoscope.release.checklist import Checklist, check
from mnemoscope.release.decide import comparisons
from mnemoscope.release.state import Moment, Release, moment

ITEMS = [
    "All mandatory benchmarks run on final code",
    "metrics.json files produced with pinned dataset SHA256",
    "Significance test run: current vs. previous",
    "Draft report written using the template",
    "Draft shared with WG ≥48h before tag",
    "StatAnalyst independent re-derivation complete",
    "All 4 WG signatures collected (or documented quorum exception)",
    "Decision matrix applied, ship/hold documented",
    "Public release notes follow §6 structure",
    "No prohibited claims (§5.2) in any public-facing text",
    "Git tag cut only after all above",
]
(
    BENCHMARKS,
    RUNS,
    SIGNIFICANCE,
    REPORT,
    NOTICE,
    REDERIVED,
    SIGNED,
    DECIDED,
    NOTES,
    CLAIMS,
    TAG,
) = ITEMS


def after() -> Moment:
    return moment("2025-11-18T13:00")


def _missing(found: Checklist) -> dict[str, list[str]]:
    return {item.name: item.missing for item in found.items if not item.ok}


@pytest.mark.parametrize("row", ["SHIP", "SHIP with caveat"])
def test_a_complete_release_may_be_tagged(row: str, complete: Callable[..., Release]) -> None:
    found = check(complete(row), after())
    assert [item.name for item in found.items] == ITEMS
    assert _missing(found) == {}
    assert found.tag_allowed


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("CONDITIONAL SHIP", {"theory": "a reranker moves what was found already"}),
        ("HOLD or SHIP as no-claim", {"no_claim": "simpler code"}),
        ("HOLD", {"accept_regression": "half the cost"}),
    ],
)
def test_rows_that_need_a_text_may_be_tagged_with_the_text(
    row: str, words: dict[str, str], complete: Callable[..., Release]
) -> None:
    assert _missing(check(complete(row, **words), after())) == {}


@pytest.mark.parametrize("row", ["CONDITIONAL SHIP", "HOLD or SHIP as no-claim", "HOLD"])
def test_rows_that_need_a_text_may_not_be_tagged_without_it(
    row: str, complete: Callable[..., Release]
) -> None:
    found = check(complete(row), after())
    assert set(_missing(found)) == {DECIDED, TAG}


def test_a_started_release_misses_nearly_all_items(
    begin: Callable[..., Release],
) -> None:
    missing = _missing(check(begin("SHIP"), after()))
    assert set(missing) == set(ITEMS) - {BENCHMARKS, RUNS}


def _no_circulation(release: Release) -> None:
    release.state.circulated = None


def _no_rederivation(release: Release) -> None:
    release.state.rederived = None


def _no_decision(release: Release) -> None:
    release.state.decision = None


def _no_signature(release: Release) -> None:
    release.state.signatures = release.state.signatures[:-1]


def _no_notes(release: Release) -> None:
    release.notes_path.unlink()


def _no_comparison(release: Release) -> None:
    (release.folder / "comparison-strata.json").unlink()


def _edited_notes(release: Release) -> None:
    text = release.notes_path.read_text()
    release.notes_path.write_text(text.replace("## Regressions", "## Details"))


def _edited_report(release: Release) -> None:
    release.report_path.write_text(release.report_path.read_text() + "\nP.S. all is well.\n")


def _no_threats(release: Release) -> None:
    release.state.words.internal = " "


def _blocked(release: Release) -> None:
    block(release.run(release.state.pairs[0].cand), "wrong embedder")


def _boastful_readme(release: Release) -> None:
    (release.folder / "README.md").write_text("mrr@20 rose by a third.\n")
    release.state.public = ["README.md"]


@pytest.mark.parametrize(
    ("spoil", "item"),
    [
        (_no_circulation, NOTICE),
        (_no_rederivation, REDERIVED),
        (_no_decision, DECIDED),
        (_no_signature, SIGNED),
        (_no_notes, NOTES),
        (_no_comparison, SIGNIFICANCE),
        (_edited_notes, NOTES),
        (_edited_report, REPORT),
        (_edited_report, SIGNED),
        (_no_threats, REPORT),
        (_blocked, RUNS),
        (_boastful_readme, CLAIMS),
    ],
)
def test_the_tag_is_refused_while_anything_is_missing(
    spoil: Callable[[Release], None], item: str, complete: Callable[..., Release]
) -> None:
    release = complete("SHIP")
    spoil(release)
    found = check(release, after())
    assert item in _missing(found)
    assert TAG in _missing(found)
    assert not found.tag_allowed


@pytest.mark.parametrize("field", ["no_claim", "rationale", "notes"])
def test_words_in_the_report_are_linted_too(field: str, complete: Callable[..., Release]) -> None:
    words = {"no_claim": "simpler code", field: "recall@10 improved by 40 pp"}
    missing = _missing(check(complete("HOLD or SHIP as no-claim", **words), after()))
    assert set(missing) == {CLAIMS, TAG}
    assert missing[CLAIMS][0].startswith("report.md, line ")


def test_a_check_as_if_in_the_future_is_a_preview(complete: Callable[..., Release]) -> None:
    found = check(complete("SHIP"), moment("2999-01-01"))
    assert found.complete
    assert not found.tag_allowed


def test_the_checklist_shows_the_circulation_and_its_evidence(
    complete: Callable[..., Release],
) -> None:
    remark = next(i.remark for i in check(complete("SHIP"), after()).items if i.name == NOTICE)
    assert "as given; recorded" in remark
    assert "evidence: mail to the working group" in remark


def test_a_report_that_changed_must_be_circulated_again(
    complete: Callable[..., Release],
) -> None:
    release = complete("SHIP")
    release.state.words.notes = "we met"
    write_report(release, after())
    assert "start again" in _missing(check(release, after()))[NOTICE][0]


def test_a_statistician_who_did_not_repeat_the_statistics_is_reported(
    complete: Callable[..., Release],
) -> None:
    release = complete("SHIP")
    assert release.state.rederived is not None
    from msgspec.structs import replace

    release.state.rederived = replace(release.state.rederived, by="Sue")
    assert "Stan signed as statistician" in _missing(check(release, after()))[REDERIVED][0]


def test_a_tag_date_without_a_zone_is_utc(begin: Callable[..., Release]) -> None:
    release = begin("SHIP")
    file = release.folder / "release.yaml"
    date = release.state.tag_date
    text = file.read_text()
    assert "2025-11-18T12:00:00Z" in text
    file.write_text(text.replace("2025-11-18T12:00:00Z", "2025-11-18T12:00"))
    assert Release.load(release.folder).state.tag_date == date


def test_the_tag_waits_for_its_date(complete: Callable[..., Release]) -> None:
    missing = _missing(check(complete("SHIP"), moment("2025-11-18T11:59")))
    assert set(missing) == {TAG}
    assert "is not reached" in missing[TAG][0]


@pytest.mark.parametrize("name", ["manifest.json", "trials.jsonl", "metrics.json"])
def test_a_run_that_was_edited_is_noticed(name: str, complete: Callable[..., Release]) -> None:
    release = complete("SHIP")
    file = release.run(release.state.pairs[0].base).path / name
    file.write_bytes(file.read_bytes().replace(b"2", b"3", 1))
    found = check(release, after())
    assert not found.tag_allowed
    assert any(f"{name} was edited" in why for why in _missing(found)[RUNS])


def test_a_run_that_is_gone_is_noticed(complete: Callable[..., Release]) -> None:
    release = complete("SHIP")
    shutil.rmtree(release.run(release.state.pairs[0].base).path)
    assert "is missing" in _missing(check(release, after()))[RUNS][0]


def test_a_decision_about_other_words_is_out_of_date(complete: Callable[..., Release]) -> None:
    release = complete("HOLD", accept_regression="half the cost")
    release.state.words.accept_regression = ""
    assert DECIDED in _missing(check(release, after()))


def test_a_rederivation_of_other_figures_does_not_count(complete: Callable[..., Release]) -> None:
    release = complete("SHIP")
    done = release.state.rederived
    assert done is not None
    from msgspec.structs import replace

    release.state.rederived = replace(done, basis="0" * 64)
    assert "other figures" in _missing(check(release, after()))[REDERIVED][0]


def test_a_benchmark_of_the_protocol_is_run_or_waived_with_a_reason(
    complete: Callable[..., Release],
) -> None:
    release = complete("SHIP")
    # The same release, had its protocol a second benchmark.
    variant = release.protocol.protocol.variants[release.protocol.variant]
    variant.benchmarks["other"] = variant.benchmarks["strata"]
    try:
        assert "other was not run" in _missing(check(release, after()))[BENCHMARKS][0]
        release.state.waived = {"other": "nothing changed there"}
        write_report(release, after())
        found = check(release, after())
        assert BENCHMARKS not in _missing(found)
        assert "other waived: nothing changed there" in found.items[0].remark
    finally:
        del variant.benchmarks["other"]


def test_a_tag_that_was_cut_too_early_is_noticed(complete: Callable[..., Release]) -> None:
    release = complete("SHIP")
    git = ["git", "-C", str(release.folder), "-c", "user.name=t", "-c", "user.email=t@t"]
    for command in (
        ["init", "-q"],
        ["commit", "-q", "--allow-empty", "-m", "x"],
        ["tag", "v0.2.0"],
    ):
        subprocess.run([*git, *command], check=True)
    assert check(release, after()).tag_allowed
    _no_notes(release)
    assert "the tag v0.2.0 exists already" in _missing(check(release, after()))[TAG]


def test_the_release_reads_back_as_it_was_written(complete: Callable[..., Release]) -> None:
    release = complete("SHIP")
    again = Release.load(release.folder)
    assert again.state == release.state
    assert comparisons(again) == comparisons(release)
