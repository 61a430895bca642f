"""Each rule of a persona and its arcs, broken one by one."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from mnemoscope.models.prompts import load_prompt
from mnemoscope.personas.write.persona_files import Arcs, Persona
from mnemoscope.personas.write.persona_rules import broken_arcs, broken_persona, least_quiet, scaled

Change = Callable[[Any], object]


def typical(name: str) -> Any:
    holes = frozenset(
        "brief days persona first_date last_date fewest most minima at_once quiet_least "
        "quiet_most directed".split()
    )
    return json.loads(load_prompt(name, holes).content.typical)


def persona_with(change: Change) -> list[str]:
    content = copy.deepcopy(typical("write-persona"))
    change(content)
    return broken_persona(msgspec.convert(content, Persona))


def arcs_with(change: Change, days: int = 60) -> list[str]:
    content = copy.deepcopy(typical("write-arcs"))
    change(content["arcs"])
    people = msgspec.convert(typical("write-persona"), Persona)
    return broken_arcs(msgspec.convert(content, Arcs), people, days)


def test_the_typical_replies_keep_every_rule() -> None:
    assert persona_with(lambda persona: None) == []
    assert arcs_with(lambda arcs: None) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: p.update(profile=" "), "`profile` is empty"),
        (lambda p: p.pop("principal"), "`principal` is missing"),
        (lambda p: p["sessions"].append(p["sessions"][1]), "session id 'quay-crew'"),
        (lambda p: p["cast"].append(p["cast"][0]), "name in the cast"),
        (lambda p: p["projects"].append(p["projects"][0]), "project id"),
        (lambda p: p["sessions"][1].update(kind="1to1"), "exactly one session"),
        (lambda p: p["sessions"][0].update(kind="group"), "here none has it"),
        (lambda p: p["sessions"][1].update(kind="crowd"), "1to1 or group"),
        (lambda p: p["sessions"][1].update(participants=[]), "list its participants"),
        (lambda p: p["sessions"][1].update(participants=["Nobody"]), "'Nobody' is neither"),
        (lambda p: p["sessions"][0].update(isolated=True), "cannot be isolated"),
        (lambda p: p["sessions"][3].update(shared=True), "both isolated and shared"),
        (lambda p: p["sessions"][3].pop("sensitive_topics"), "list in sensitive_topics"),
        (lambda p: p["sessions"][1].update(firstDay=9, lastDay=3), "is after lastDay"),
        (lambda p: p["cast"][7].update(name="tide"), "begin the name with @"),
    ],
)
def test_a_broken_rule_of_a_persona_is_reported(change: Change, says: str) -> None:
    assert any(says in reason for reason in persona_with(change))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda a: a[1].update(id="crane-rails"), "arc id 'crane-rails'"),
        (lambda a: a[1].update(title=""), "give it a title"),
        (lambda a: a[5].update(endDay=61), "day 60 at the latest"),
        (lambda a: a[1].update(startDay=16), "goes from day 16 to day 15"),
        (lambda a: a[1].update(primarySession="attic"), "no session 'attic'"),
        (lambda a: a[0].update(referencedSessions=["attic"]), "no session 'attic'"),
        (lambda a: a[1].update(participants=["Nobody"]), "'Nobody' is neither"),
        (lambda a: a[0].update(primarySession="counsel-room"), "may surface nowhere else"),
        (lambda a: a[0].update(referencedSessions=["quay-crew"]), "do not reference it"),
        (lambda a: a[0].update(forbiddenSessions=["principal"]), "do not reference it"),
        (lambda a: a[0]["directives"][0].update(day=41), "directive on day 41"),
        (lambda a: a[5].pop("wrongDay"), "give both wrongDay and correctedDay"),
        (lambda a: a[5].update(wrongDay=54), "wrongDay 54 comes before"),
        (lambda a: a[5].update(correctedDay=57), "wrongDay 42 comes before correctedDay 57"),
        (lambda a: a[5].update(wrongBelief=""), "give a wrongBelief"),
        (lambda a: a[5].update(wrongBelief=a[5]["correctedBelief"]), "give a wrongBelief"),
        (lambda a: a[0].update(description="The Collision Settlement."), "keeps to itself"),
        (lambda a: a.pop(1), "0 arcs of type incident: at least 1"),
        (lambda a: a[0].pop("directives"), "0 arcs have directives"),
        (lambda a: a[5].update(endDay=60), "no 2 days in a row"),
        (lambda a: [one.update(startDay=22, endDay=40) for one in a], "more than 4 arcs"),
        (lambda a: a.extend({**a[1], "id": f"more-{n}"} for n in range(17)), "make it 1 to 22"),
    ],
)
def test_a_broken_rule_of_the_arcs_is_reported(change: Change, says: str) -> None:
    assert any(says in reason for reason in arcs_with(change)), arcs_with(change)


def test_minima_grow_with_the_history() -> None:
    assert [scaled(5, days) for days in (59, 60, 180, 499, 500, 1000)] == [0, 1, 2, 5, 5, 5]
    assert [least_quiet(days) for days in (60, 180, 500, 1000)] == [2, 3, 6, 10]


def test_long_histories_need_more_arcs_and_no_long_quiet_period() -> None:
    reasons = arcs_with(lambda arcs: None, days=600)
    assert any("1 arcs of type project: at least 5" in reason for reason in reasons)
    assert any("make it 15 to 22" in reason for reason in reasons)
    assert any("days 57 to 600 are without any arc" in reason for reason in reasons)


def test_short_histories_need_one_arc() -> None:
    assert arcs_with(lambda arcs: arcs.__delitem__(slice(1, None)), days=45) == []


def test_two_long_quiet_periods_are_enough() -> None:
    def change(arcs: Any) -> None:
        for number, one in enumerate(arcs[:5]):
            one.update(startDay=20 * number + 1, endDay=20 * number + 8, directives=[])
        arcs.pop()

    assert any("4 quiet periods of 10 days or more" in reason for reason in arcs_with(change, 88))
