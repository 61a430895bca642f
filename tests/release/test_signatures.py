"""Signatures cover the report, wait for the 48 hours, and know their quorum."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mnemoscope._store.errors import UsageError
from mnemoscope.release.benchmark_report import digest, write_report
from mnemoscope.release.decide import comparisons
from mnemoscope.release.signatures import (
    circulate,
    lacking_notice,
    lacking_signatures,
    sign,
    standings,
)
from mnemoscope.release.state import Moment, Release, Role, moment


def at(time: str) -> Moment:
    return moment(f"2025-11-{time}")


def _sign(release: Release, role: Role, name: str, exception: str = "") -> None:
    accepts = release.state.declarations if role == "pi" else []
    sign(release, comparisons(release), role, name, at("17T12:00"), exception, accepts=accepts)


def _circulate(release: Release, time: str, evidence: str = "mail") -> None:
    circulate(release, comparisons(release), at(time), evidence)


def test_a_signature_covers_the_report_and_is_shown_in_it(ready: Callable[..., Release]) -> None:
    release = ready("SHIP")
    _sign(release, "pi", "Pia")
    text = release.report_path.read_text()
    assert release.state.signatures[0].sha256 == digest(text)
    assert "| PI (Principal Investigator) | Pia | 2025-11-17 12:00 UTC (as given; recorded" in text
    assert standings(release)["pi"] == "valid"
    assert standings(Release.load(release.folder))["pi"] == "valid"


def test_signing_does_not_void_the_signatures_before(complete: Callable[..., Release]) -> None:
    assert set(standings(complete("SHIP")).values()) == {"valid"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("one seed", "five seeds"),  # in the body
        ("| Pia |", "| Mia |"),  # in the block of signatures
        ("# Benchmark report", "# The Benchmark report"),
    ],
)
def test_any_later_change_of_the_report_voids_every_signature(
    old: str, new: str, complete: Callable[..., Release]
) -> None:
    release = complete("SHIP")
    text = release.report_path.read_text()
    assert old in text
    release.report_path.write_text(text.replace(old, new, 1))
    assert set(standings(release).values()) == {"void"}


def test_a_report_written_again_with_other_words_shows_void_signatures(
    complete: Callable[..., Release],
) -> None:
    release = complete("SHIP")
    write_report(release, at("17T13:00"))
    assert set(standings(release).values()) == {"valid"}, "the same report keeps them"
    release.state.words.notes = "we met again"
    write_report(release, at("17T13:00"))
    assert set(standings(release).values()) == {"void"}
    assert release.report_path.read_text().count("void: the report changed") == 4
    release.state.tag_date = at("20T12:00").at
    _circulate(release, "17T13:30")
    sign(release, comparisons(release), "pi", "Pia", at("17T14:00"), accepts=["base"])
    assert standings(release)["pi"] == "valid", "a void signature can be given again"


def test_an_edited_report_cannot_be_signed(ready: Callable[..., Release]) -> None:
    release = ready("SHIP")
    text = release.report_path.read_text()
    release.report_path.write_text(text.replace("+", "+1", 1))
    with pytest.raises(UsageError, match=r"report\.md differs from the runs"):
        _sign(release, "pi", "Pia")


def test_the_report_cannot_be_signed_before_it_is_circulated(ready: Callable[..., Release]) -> None:
    with pytest.raises(UsageError, match="not circulated"):
        _sign(ready("SHIP", without="circulate"), "pi", "Pia")


@pytest.mark.parametrize(("tag", "allowed"), [("18T08:59", False), ("18T09:00", True)])
def test_the_tag_date_is_at_least_48_hours_after_circulation(
    tag: str, allowed: bool, ready: Callable[..., Release]
) -> None:
    release = ready("SHIP")
    release.state.tag_date = at(tag).at
    if allowed:
        _sign(release, "pi", "Pia")
    else:
        with pytest.raises(UsageError, match="the earliest is 2025-11-18 09:00 UTC"):
            _sign(release, "pi", "Pia")


def test_a_draft_is_circulated_once_and_not_before_it_was_written(
    begin: Callable[..., Release],
) -> None:
    release = begin("SHIP")
    with pytest.raises(UsageError, match="no draft"):
        _circulate(release, "16T09:00")
    write_report(release, at("16T08:30"))
    with pytest.raises(UsageError, match="it was not shared before that"):
        _circulate(release, "16T08:00")
    _circulate(release, "16T09:00")
    with pytest.raises(UsageError, match="that time counts"):
        _circulate(release, "16T10:00")


def test_a_time_in_the_past_counts_only_with_evidence(begin: Callable[..., Release]) -> None:
    release = begin("SHIP")
    write_report(release, at("16T08:30"))
    _circulate(release, "16T09:00", "")
    assert "less than 48 hours" in lacking_notice(release)
    assert "without evidence the time of recording counts" in release.report_path.read_text()
    release.state.circulated = None
    write_report(release, at("16T08:30"))
    _circulate(release, "16T09:00", "pull request 12")
    assert lacking_notice(release) == ""
    assert "evidence: pull request 12." in release.report_path.read_text()


def test_the_clocks_own_time_is_shown_as_recorded(begin: Callable[..., Release]) -> None:
    release = begin("SHIP")
    found = write_report(release, at("16T08:30"))
    assert "recorded by the clock" in str(circulate(release, found, moment()))


def test_only_the_report_as_generated_is_circulated(begin: Callable[..., Release]) -> None:
    release = begin("SHIP")
    write_report(release, at("16T08:30"))
    release.report_path.write_text(release.report_path.read_text() + "P.S.\n")
    with pytest.raises(UsageError, match=r"report\.md differs from the runs"):
        _circulate(release, "16T09:00")


def test_a_report_that_changed_starts_the_48_hours_again(ready: Callable[..., Release]) -> None:
    release = ready("SHIP")
    assert lacking_notice(release) == ""
    release.state.words.notes = "we met"
    write_report(release, at("17T13:00"))
    assert "start again" in lacking_notice(release)
    with pytest.raises(UsageError, match="start again"):
        _sign(release, "pi", "Pia")
    _circulate(release, "17T14:00")
    assert "the earliest is 2025-11-19 14:00 UTC" in lacking_notice(release)


def test_the_person_who_repeated_the_statistics_signs_as_statistician(
    ready: Callable[..., Release],
) -> None:
    release = ready("SHIP")
    with pytest.raises(UsageError, match="repeated by Stan"):
        _sign(release, "statistician", "Sue")
    _sign(release, "statistician", "stan.")


def test_a_time_that_was_given_is_recorded_as_given(begin: Callable[..., Release]) -> None:
    release = begin("SHIP")
    write_report(release, at("16T08:30"))
    _circulate(release, "16T09:00")
    circulated = Release.load(release.folder).state.circulated
    assert circulated is not None
    assert circulated.when.recorded is not None
    assert "as given; recorded" in str(circulated)
    assert moment().recorded is None


def _three(release: Release, exception: str) -> None:
    _sign(release, "architect", "Ada")
    _sign(release, "statistician", "Stan")
    _sign(release, "pi", "Pia", exception)


def test_three_of_four_are_enough_with_the_pis_exception(ready: Callable[..., Release]) -> None:
    release = ready("SHIP")
    _three(release, "")
    assert lacking_signatures(release) == ["research-supervisor (missing)"]
    _sign(release, "pi", "Pia", "Rae is on leave")
    assert lacking_signatures(release) == []
    assert "Quorum exception, 3 of 4, by Pia: Rae is on leave" in release.report_path.read_text()


def test_two_of_four_are_not_enough_even_with_an_exception(ready: Callable[..., Release]) -> None:
    release = ready("SHIP")
    _sign(release, "architect", "Ada")
    _sign(release, "pi", "Pia", "everybody is on leave")
    assert len(lacking_signatures(release)) == 2


def test_only_the_pi_grants_the_exception(ready: Callable[..., Release]) -> None:
    with pytest.raises(UsageError, match="only the PI"):
        _sign(ready("SHIP"), "architect", "Ada", "Rae is on leave")


def test_a_conditional_ship_has_no_exception(ready: Callable[..., Release]) -> None:
    release = ready("CONDITIONAL SHIP", theory="a reranker")
    with pytest.raises(UsageError, match="needs all four"):
        _sign(release, "pi", "Pia", "Rae is on leave")


def test_an_exception_granted_before_the_decision_became_conditional_does_not_count(
    ready: Callable[..., Release],
) -> None:
    release = ready("CONDITIONAL SHIP", without="decide", theory="a reranker")
    _three(release, "Rae is on leave")
    assert lacking_signatures(release) == []
    from mnemoscope.release.decide import decide

    release.state.decision = decide(release, comparisons(release), at("17T12:30"))
    assert lacking_signatures(release) == ["research-supervisor (missing)"]


def test_the_four_are_different_people_and_sign_once(ready: Callable[..., Release]) -> None:
    release = ready("SHIP")
    _sign(release, "pi", "Pia")
    with pytest.raises(UsageError, match="different people"):
        _sign(release, "architect", "pia.")
    with pytest.raises(UsageError, match="already"):
        _sign(release, "pi", "Pia")
    with pytest.raises(UsageError, match="not a valid name"):
        _sign(release, "architect", " ")
