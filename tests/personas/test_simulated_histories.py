"""Every simulated history is consistent: ledger, logs and questions state the same facts."""

from __future__ import annotations

import re
from collections import Counter
from datetime import date, timedelta
from functools import cache, cached_property
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.personas.simulate.history_files import SimulatedHistory
from mnemoscope.personas.simulate.simulator import simulate
from mnemoscope.personas.simulate.story import SHIPPED, shipped_story
from mnemoscope.text.fact_ledger import Ledger, LedgerFact
from mnemoscope.types import CORE_CATEGORIES, GROUP_CATEGORIES

_SENTENCE_END = re.compile(r'(?<=[.!?"]) +(?=[A-Z0-9])')


class Reading:
    """A history as a reader sees it: its logs, its ledger and its questions."""

    def __init__(self, history: SimulatedHistory) -> None:
        self.history = history
        self.ledger = Ledger(history.facts, history.epoch)
        self.pages = [dict(_pages(text)) for text in history.daily_logs]
        self.arcs = {arc.id: arc for arc in history.arcs}
        self.questions = _as_written(history)

    def date(self, day: int) -> date:
        return self.history.epoch + timedelta(days=day - 1)

    def keyed(self, question: dict[str, Any]) -> list[LedgerFact]:
        return [self.ledger.facts[key.partition(".")[0]] for key in question["key"]]

    @cached_property
    def sentences(self) -> dict[str, list[tuple[int, str, str]]]:
        """Subject to every sentence that names it, with its day and session."""
        names = {arc.name: _whole(arc.name, r"(?! \d)") for arc in self.history.arcs}
        found: dict[str, list[tuple[int, str, str]]] = {name: [] for name in names}
        for day, pages in enumerate(self.pages, 1):
            for session, page in pages.items():
                lower = page.lower()
                for name, pattern in names.items():
                    if name.lower() not in lower:
                        continue
                    for line in page.splitlines():
                        for sentence in _SENTENCE_END.split(line):
                            if pattern.search(sentence):
                                found[name].append((day, session, sentence))
        return found


def _as_written(history: SimulatedHistory) -> list[dict[str, Any]]:
    """The questions as they stand in questions.yaml."""
    return [msgspec.to_builtins(question) for question in history.questions]


def _pages(text: str) -> list[tuple[str, str]]:
    parts = re.split(r"^# session: (.+)$", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


@cache
def _whole(text: str, after: str = "") -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(text)}(?!\w){after}", re.IGNORECASE)


def _says(text: str, value: str) -> bool:
    return _whole(value).search(text) is not None


def check_log(reading: Reading) -> None:
    history = reading.history
    assert len(history.daily_logs) == history.days
    for day, (text, pages) in enumerate(zip(history.daily_logs, reading.pages, strict=True), 1):
        when = reading.date(day)
        assert text.startswith("---\ntype: daily\n---\n\n# session: principal\n")
        assert list(pages) == [s.id for s in history.story.persona.sessions if s.id in pages]
        header = f"{when:%A}, {when.day} {when:%B} {when.year}"
        assert all(page.strip().splitlines()[0] == header for page in pages.values())
        assert "{" not in text
        assert not re.search(r"(^|[.!?] )[a-z](?=[a-z ]+\b)(?!\w*[A-Z])", _prose(text), re.M)


def _prose(text: str) -> str:
    """The lines of a day that hold sentences, without marks."""
    lines = text.split("---\n", 2)[2].splitlines()
    return "\n".join(line.removeprefix("- ") for line in lines if not line.startswith(("#", ">")))


def check_weekends(reading: Reading) -> None:
    for day, pages in enumerate(reading.pages, 1):
        if reading.date(day).weekday() < 5:
            continue
        running = [p for p in reading.history.arcs if p.start <= day <= p.end]
        if any(arc.type == "incident" for arc in running):
            continue
        assert list(pages) == ["principal"]
        assert len(pages["principal"].split()) < 130
        assert not any(fact.day == day for fact in reading.history.facts)


def check_arcs(reading: Reading) -> None:
    arcs = reading.history.arcs
    for day in range(1, reading.history.days + 1):
        assert sum(arc.start <= day <= arc.end for arc in arcs) <= 4
    assert len({arc.name for arc in arcs}) == len({arc.id for arc in arcs}) == len(arcs)
    assert all(1 <= arc.start <= arc.end <= reading.history.days for arc in arcs)


def check_ledger(reading: Reading) -> None:
    facts = reading.ledger.facts
    order = [fact.day for fact in facts.values()]
    assert order == sorted(order)
    assert len(facts) == len(reading.history.facts)
    followers = Counter(fact.superseded_by for fact in facts.values() if fact.superseded_by)
    assert set(followers.values()) <= {1}
    for fact in facts.values():
        arc = reading.arcs[fact.arc]
        assert arc.start <= fact.day <= arc.end
        assert reading.date(fact.day).weekday() < 5
        if fact.superseded_by:
            later = facts[fact.superseded_by]
            assert (later.entity, later.attribute) == (fact.entity, fact.attribute)
            assert fact.superseded_on == later.day > fact.day
            assert later.value != fact.value
            assert later.value not in {old.value for old in reading.ledger.predecessors(later)}
        else:
            assert fact.superseded_on is None


def check_each_fact_is_said_once(reading: Reading) -> None:
    """In its session on its day, and on no other day but where a revision names the old value."""
    choices = {
        fact.entity: fact.value
        for fact in reading.history.facts
        if fact.attribute == "decision.proposal"
    }
    for fact in reading.history.facts:
        page = reading.pages[fact.day - 1][fact.session]
        assert _says(page, fact.value), fact
        assert not fact.speaker or fact.speaker in page
        if fact.attribute == "decision.proposal" or choices.get(fact.entity) == fact.value:
            continue
        kind = fact.attribute.partition(".")[2]
        kinds = {kind.id: kind for kind in reading.arcs[fact.arc].template.facts}
        if kind in kinds and kinds[kind].values.person:
            continue  # people are named for other reasons too
        days = {day for day, _, text in reading.sentences[fact.entity] if _says(text, fact.value)}
        same = {
            other.day
            for other in reading.history.facts
            if other.entity == fact.entity and fact.value in (other.value, *other.aliases)
        }
        assert days - same - {fact.superseded_on} == set(), fact


def check_secrets_stay_in_their_room(reading: Reading) -> None:
    for arc in reading.history.arcs:
        if arc.session.isolated:
            sessions = {session for _, session, _ in reading.sentences[arc.name]}
            assert sessions <= {arc.session.id}, arc.name


def check_questions(reading: Reading) -> None:
    questions = reading.questions
    assert len({question["question"] for question in questions}) == len(questions)
    assert len({question["id"] for question in questions}) == len(questions)
    order = [max(question["relevant_days"]) for question in questions]
    assert order == sorted(order)
    for question in questions:
        days = question["relevant_days"]
        assert list(days) == sorted(set(days)) and days[0] >= 1 and days[-1] <= reading.history.days
        assert question["category"] in (*CORE_CATEGORIES, *GROUP_CATEGORIES)
        assert question["requires_synthesis"] == (len(days) > 1)
        if question["category"] == "negative-recall":
            assert question["answer"].startswith("No evidence found: ")
            assert list(question["key"]) == [] and question["no_evidence"] is True
        elif question.get("expected_disclosure") == "refuse":
            assert list(question["key"]) == [] and question["secret"]
        else:
            assert question["key"] and "no_evidence" not in question


def check_answers_come_from_the_ledger(reading: Reading) -> None:
    """An answer names all that its key requires and nothing that would be wrong."""
    for question in reading.questions:
        key = reading.ledger.key(question["key"], question.get("secret", ()))
        answer = question["answer"]
        for wordings in key.required:
            assert any(_says(answer, wording) for wording in wordings), question
        for wrong in (*key.outdated, *key.others, *key.secret):
            covered = any(_says(right, wrong) for right in sum(key.required, ()))
            assert covered or not _says(answer, wrong), (wrong, question)


def check_evidence_suffices(reading: Reading) -> None:
    """The relevant days are those of the key, hold it, and tell what the question is about."""
    for question in reading.questions:
        facts = reading.keyed(question)
        if not facts:
            continue
        assert list(question["relevant_days"]) == sorted({fact.day for fact in facts})
        for fact in facts:
            text = "\n".join(reading.pages[fact.day - 1].values())
            assert _whole(fact.entity).search(text) and _says(text, fact.value), question
        arcs = {fact.arc: reading.arcs[fact.arc] for fact in facts}
        if not any(_says(question["question"], arc.name) for arc in arcs.values()):
            text = "\n".join(
                reading.history.daily_logs[day - 1] for day in question["relevant_days"]
            )
            subject = reading.arcs[question["arc"]].subject
            asked = question["question"]
            if question["category"] == "cross-reference":
                assert _says(text, facts[0].value) and _says(asked, facts[0].value), question
                continue
            assert _says(text, subject.about), question
            reworded = subject.also and _says(asked, subject.also)
            assert reworded or _says(asked, subject.about), question


def check_validity(reading: Reading) -> None:
    """A question on a state that ends says when; all others hold to the end."""
    for question in reading.questions:
        facts = reading.keyed(question)
        states = question["category"] not in ("synthesis", "temporal-reasoning")
        ends = [f.superseded_on for f in facts if f.superseded_on is not None and states]
        assert question.get("irrelevant_after") == (min(ends) - 1 if ends else None), question
        if ends:
            assert question["irrelevant_after"] >= max(question["relevant_days"])


def check_recency(reading: Reading) -> None:
    """What was long ago is not spoken of again."""
    for question in reading.questions:
        if question["category"] == "recency-bias-resistance":
            arc = reading.arcs[question["arc"]]
            assert arc.end <= 0.4 * reading.history.days
            assert max(day for day, _, _ in reading.sentences[arc.name]) <= arc.end


def check_threads(reading: Reading) -> None:
    pairs: dict[str, set[str]] = {}
    for fact in reading.history.facts:
        if fact.attribute == "thread.cause":
            pairs.setdefault(fact.value, set()).add(fact.entity)
    assert all(len(entities) == 2 for entities in pairs.values())


CHECKS = (
    check_log,
    check_weekends,
    check_arcs,
    check_ledger,
    check_each_fact_is_said_once,
    check_secrets_stay_in_their_room,
    check_questions,
    check_answers_come_from_the_ledger,
    check_evidence_suffices,
    check_validity,
    check_recency,
    check_threads,
)


@cache
def long_history(persona: str) -> Reading:
    return Reading(simulate(shipped_story(persona), 1000, 42))


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("persona", SHIPPED)
def test_a_thousand_days_are_consistent(persona: str, check: Any) -> None:
    check(long_history(persona))


@pytest.mark.parametrize("persona", SHIPPED)
def test_a_thousand_days_have_enough_questions_of_every_core_category(persona: str) -> None:
    history = long_history(persona).history
    counts = Counter(question.category for question in history.questions)
    core = sum(counts[category] for category in CORE_CATEGORIES)
    assert core >= 450
    assert min(counts[category] / core for category in CORE_CATEGORIES) >= 0.06
    assert counts["group-session-attribution"] >= 20
    assert len(history.arcs) >= 70


def test_the_executive_assistant_has_boundary_questions_of_every_sort() -> None:
    questions = long_history("executive-assistant").history.questions
    sorts = Counter(question.expected_disclosure for question in questions)
    assert min(sorts["refuse"], sorts["partial"], sorts["answer"]) >= 10


def test_half_a_year_has_every_core_category() -> None:
    history = simulate(shipped_story("executive-assistant"), 180, 42)
    counts = Counter(question.category for question in history.questions)
    assert 100 <= len(history.questions) <= 160
    assert all(counts[category] >= 5 for category in CORE_CATEGORIES)


def test_no_filler_sentence_repeats_within_a_month() -> None:
    history = long_history("backend-eng-saas").history
    abouts = [arc.subject.about for arc in history.arcs]
    last: dict[str, int] = {}
    for day, text in enumerate(history.daily_logs, 1):
        for line in re.findall(r"^- (.+)$", text, re.MULTILINE):
            if not any(about in line for about in abouts):
                assert day - last.get(line, -31) > 30, line
                last[line] = day


@settings(max_examples=15)
@given(
    persona=st.sampled_from(SHIPPED),
    days=st.integers(20, 120),
    seed=st.integers(0, 10**9),
)
def test_any_history_is_consistent(persona: str, days: int, seed: int) -> None:
    reading = Reading(simulate(shipped_story(persona), days, seed))
    for check in CHECKS:
        check(reading)


@pytest.mark.parametrize("days", [1, 2, 7])
def test_a_history_may_be_very_short(days: int) -> None:
    reading = Reading(simulate(shipped_story("executive-assistant"), days, 42))
    for check in CHECKS:
        check(reading)


def test_another_seed_gives_another_history() -> None:
    story = shipped_story("backend-eng-saas")
    assert simulate(story, 30, 1).daily_logs != simulate(story, 30, 2).daily_logs
