"""Disclosure: one text in several rooms, by rules that the policy states."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from mnemoscope._store.errors import DataError, MissingData, UsageError
from mnemoscope.datasets.disclosure import CLOSED, WITHHELD, DisclosureRooms
from mnemoscope.datasets.disclosure_policy import Room, policy_text, told_in
from mnemoscope.datasets.disclosure_questions import rooms_to_ask
from mnemoscope.datasets.leakage import leaks
from mnemoscope.types import TOLD_IN, Question, Scenario

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from disclosure_checks import auc, examples, guessed

ANN = Room("ann", "principal", frozenset({"Ann"}))
DEALS = Room("ann", "deals", frozenset({"Ann", "Bob"}), is_closed=True)
TEAM = Room("ann", "team", frozenset({"Ann", "Bob", "Cid"}))
NOBODY = Room("ann", "list")
PAY = Room("ann", "pay", frozenset({"Ann", "Cid"}), is_closed=True)
DAN = Room("dan", "principal", frozenset({"Dan"}))
DESK = Room("dan", "desk", frozenset({"Ann", "Dan"}))


@pytest.fixture(scope="module")
def rooms(neighbours: Path) -> DisclosureRooms:
    return DisclosureRooms(neighbours)


@pytest.fixture(scope="module")
def store(rooms: DisclosureRooms) -> Scenario:
    [only] = rooms.scenarios()
    return only


def by_text(store: Scenario) -> dict[str, list[Question]]:
    found: dict[str, list[Question]] = {}
    for question in store.questions:
        found.setdefault(question.text, []).append(question)
    return found


@pytest.mark.parametrize(
    ("origin", "told"),
    [
        (ANN, {ANN, DEALS, TEAM, NOBODY, PAY}),
        (TEAM, {ANN, DEALS, TEAM, NOBODY, PAY}),
        (DEALS, {DEALS, ANN}),
        (PAY, {PAY, ANN}),
        (DAN, {DAN, DESK}),
    ],
)
def test_a_closed_room_is_told_where_all_were_present_and_an_open_one_to_its_user(
    origin: Room, told: set[Room]
) -> None:
    everyone = [ANN, DEALS, TEAM, NOBODY, PAY, DAN, DESK]
    assert set(told_in(everyone)[origin]) == told


def test_the_policy_says_in_words_what_the_rules_say() -> None:
    lines = policy_text(told_in([ANN, DEALS, DAN])).splitlines()
    assert lines[2:] == [
        "- ann/principal (Ann): may be told in every room of ann.",
        "- ann/deals (Ann, Bob): may be told in ann/principal, ann/deals.",
        "- dan/principal (Dan): may be told in every room of dan.",
    ]


def test_a_principal_asks_outside_exactly_if_one_asks_inside() -> None:
    own, others = [ANN, DEALS, TEAM, NOBODY, PAY], [DAN, DESK]
    closed = rooms_to_ask("f", DEALS, own, others, "principal")
    assert closed is not None
    assert set(closed.inside) == {DEALS, ANN}
    assert DAN in closed.outside and len(closed.outside) == 2
    assert not any(DEALS.may_be_told_in(room) for room in closed.outside)
    assert rooms_to_ask("f", TEAM, [TEAM, ANN], [], "principal") is None


def test_the_counts_of_three_neighbours(rooms: DisclosureRooms, store: Scenario) -> None:
    assert store.policy
    assert rooms.counts() == {
        "stores": 1,
        "users": 3,
        "rooms": 16,
        "memories": 491,
        "questions": 134,
        "asked": 536,
        "asked inside": 268,
        "asked outside": 268,
        "closed-room": 60,
        "open-room": 476,
    }


def test_each_text_is_asked_as_often_inside_as_outside(store: Scenario) -> None:
    for asks in by_text(store).values():
        sides = Counter(ask.expects for ask in asks)
        assert sides["answer"] == sides["refuse"] >= 1
        assert len({ask.session for ask in asks}) == len(asks)
        assert len({(ask.now, ask.category, ask.cluster) for ask in asks}) == 1


def test_neither_the_words_nor_a_principal_tell_the_right_reply(store: Scenario) -> None:
    asks = examples(store.questions)
    assert auc(asks, guessed(asks)) == (0.5, 0.5, 0.5)
    principals = Counter(
        ask.expects for ask in store.questions if ask.session.endswith("/principal")
    )
    assert principals["answer"] == principals["refuse"] > 0


def test_the_classifier_finds_what_there_is_to_find() -> None:
    cheap = [
        Question(
            str(n), f"{'Among ourselves: w' if n % 2 else 'W'}hat of {n}?", cluster=f"u{n % 3}/a"
        )
        for n in range(60)
    ]
    marked = [
        Question(one.id, one.text, cluster=one.cluster, expects="answer" if n % 2 else "refuse")
        for n, one in enumerate(cheap)
    ]
    asks = examples(marked)
    assert auc(asks, guessed(asks)).value == 1.0


def test_what_a_room_may_not_be_told_is_forbidden_there(store: Scenario) -> None:
    owner = {memory.id: memory for memory in store.memories}
    for asks in by_text(store).values():
        inside = [ask for ask in asks if ask.expects == "answer"]
        [evidence] = {ask.evidence for ask in inside}
        origins = {owner[id].session for id in evidence}
        for ask in asks:
            told = all(
                ask.session in str(owner[id].metadata[TOLD_IN]).split(",") for id in evidence
            )
            assert told is (ask.expects == "answer")
            assert origins.isdisjoint(ask.forbidden) is told
            if not told:
                assert (ask.evidence, ask.reference) == ((), WITHHELD)


def test_no_secret_can_be_learnt_in_a_room_that_may_be_told(store: Scenario) -> None:
    said: dict[str, str] = {}
    for memory in store.memories:
        said[memory.session] = said.get(memory.session, "") + memory.text.casefold()
    outside = [ask for ask in store.questions if ask.expects == "refuse"]
    for ask in outside:
        assert ask.key is not None and ask.key.secret
        for secret in ask.key.secret:
            knows = [room for room, text in said.items() if secret.casefold() in text]
            assert set(knows) <= set(ask.forbidden)
            assert secret.casefold() not in ask.text.casefold()


def test_inside_values_of_neighbours_are_near_misses(store: Scenario) -> None:
    inside = [ask for ask in store.questions if ask.expects == "answer"]
    users = {ask.cluster.partition("/")[0] for ask in inside}
    assert len(users) == 3
    shared = [ask for ask in inside if ask.key and ask.key.others]
    assert len(shared) > len(inside) / 2
    for ask in inside:
        assert ask.key is not None
        assert ask.reference not in ask.key.others


def test_writers_are_interleaved_and_each_is_in_time_order(store: Scenario) -> None:
    users = [memory.id.partition("/")[0] for memory in store.memories]
    changes = sum(one != other for one, other in pairwise(users))
    assert changes > len(users) / 3
    for user in set(users):
        times = [m.at for m, owner in zip(store.memories, users, strict=True) if owner == user]
        assert times == sorted(times, key=lambda at: at.timestamp() if at else 0)


def test_nothing_that_systems_see_names_a_label(store: Scenario) -> None:
    assert list(leaks(store)) == []


def test_the_order_of_rooms_says_nothing(store: Scenario) -> None:
    first = Counter(asks[0].expects for asks in by_text(store).values())
    assert min(first["answer"], first["refuse"]) > 0.3 * first.total()


def test_two_readings_are_equal(rooms: DisclosureRooms, store: Scenario) -> None:
    assert list(rooms.scenarios()) == [store]


def test_most_limits_the_questions_of_each_user_and_kind(neighbours: Path) -> None:
    rooms = DisclosureRooms(neighbours, most=2, granularity="section")
    [small] = rooms.scenarios()
    texts = {(ask.cluster.partition("/")[0], ask.category, ask.text) for ask in small.questions}
    assert max(Counter((user, kind) for user, kind, _ in texts).values()) == 2
    assert len(small.memories) > 491


def test_users_of_a_store_are_as_many_as_asked_for(neighbours: Path) -> None:
    [alone] = DisclosureRooms(neighbours, personas="executive-assistant", users=1).scenarios()
    # Without a neighbour only what was said in a closed room may be withheld.
    assert {ask.category for ask in alone.questions} == {CLOSED}
    numbers = [DisclosureRooms(neighbours, users=users).expected_scenarios for users in (1, 2, 4)]
    assert numbers == [3, 1, 1]


@pytest.mark.parametrize("option", [{"users": 0}, {"most": 0}])
def test_impossible_numbers_are_refused(neighbours: Path, option: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="must"):
        DisclosureRooms(neighbours, **option)  # type: ignore[arg-type]


def test_a_history_without_a_ledger_or_boundary_is_refused(
    tmp_path: Path, neighbours: Path, write_persona: Callable[..., Path]
) -> None:
    copy = tmp_path / "no-ledger"
    shutil.copytree(neighbours, copy)
    (copy / "er-physician" / "qa-90d" / "ledger.jsonl").unlink()
    with pytest.raises(MissingData, match="the ledger of er-physician"):
        DisclosureRooms(copy)
    alone = write_persona(tmp_path / "alone", days=4)
    with pytest.raises(DataError, match="simulate more days, or several personas"):
        list(DisclosureRooms(alone).scenarios())


def test_a_room_name_with_a_comma_is_refused(
    tmp_path: Path, write_persona: Callable[..., Path]
) -> None:
    folder = write_persona(tmp_path, days=4)
    sheet = folder / "tester" / "persona.yaml"
    sheet.write_text(sheet.read_text().replace("id: principal", "id: 'a,b'"))
    with pytest.raises(DataError, match="has a comma in its id"):
        list(DisclosureRooms(folder).scenarios())
