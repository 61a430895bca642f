"""The second edition: exact by its ledger, and the text of a question does not give it away."""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random

import msgspec
import pytest

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope.datasets.persona_folder import find_personas
from mnemoscope.personas.simulate.frozen_sets import SETS, FrozenSet, digest_folder
from mnemoscope.personas.simulate.grammar import write
from mnemoscope.personas.simulate.history_files import SimulatedHistory, write_history
from mnemoscope.personas.simulate.running_scenes import RunningScenes
from mnemoscope.personas.simulate.scene_book import (
    SCENES,
    Affair,
    find_scenes,
    parse_scenes,
)
from mnemoscope.personas.simulate.scene_logs import later_mentions, with_meaning
from mnemoscope.personas.simulate.simulator import simulate, simulate_persona
from mnemoscope.personas.simulate.story import SHIPPED, shipped_story

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from lives import ReadHistory, check_evidence, classifier_auc

DAYS = 150
_SENTENCE = re.compile(r'(?<=[.!?"]) +|\n+')


@cache
def history(persona: str) -> SimulatedHistory:
    story = shipped_story(persona)
    return simulate(story, DAYS, 3, scenes=find_scenes(persona, story), density=1000)


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> list[ReadHistory]:
    folder = tmp_path_factory.mktemp("lives")
    for persona in ("er-physician", "financial-advisor"):
        write_history(history(persona), folder)
    return [ReadHistory(one) for one in find_personas(folder, "", "")]


@pytest.mark.parametrize("persona", SHIPPED)
def test_working_days_have_the_words_asked_for_and_no_empty_slot(persona: str) -> None:
    logs = history(persona).daily_logs
    sizes = [len(text.split()) for text in logs]

    assert sorted(sizes)[DAYS // 2] > 800
    assert max(sizes) < 1500
    assert not any(re.search(r"[{}\[\]|]|### [^\n]*\n\n###", text) for text in logs)
    working = [text for text, size in zip(logs, sizes, strict=True) if size > 700]
    assert sum("\n> " in text for text in working) > 0.9 * len(working)


@pytest.mark.parametrize("persona", SHIPPED)
def test_neighbouring_days_hardly_share_a_sentence(persona: str) -> None:
    days = [
        {one for one in _SENTENCE.split(text) if one.count(" ") > 3 and one[0] != "#"}
        for text in history(persona).daily_logs
    ]
    shared = sum(len(one & other) for one, other in pairwise(days))

    assert shared < 0.03 * sum(map(len, days))


def test_evidence_alone_gives_every_answer_and_the_other_days_do_not(
    read: list[ReadHistory],
) -> None:
    failed = check_evidence(read, 80)

    assert len(failed["checked"]) > 60
    assert failed["not enough"] == failed["not needed"] == []


def test_the_check_of_evidence_finds_a_value_that_another_day_repeats(
    read: list[ReadHistory],
) -> None:
    one = read[0]
    question = next(q for q in one.questions if q.key and q.category == "factual-recall")
    stating = [text for day in question.relevant_days for text in one.sections[day]]
    other = next(day for day in one.days if day not in question.relevant_days)
    one.sections[other] += stating
    try:
        others = [day for day in one.days if day not in question.relevant_days]
        assert one.answers(question, others)
    finally:
        del one.sections[other][-len(stating) :]


def test_a_classifier_of_the_text_cannot_tell_what_has_no_answer() -> None:
    core = [
        one
        for persona in SHIPPED
        for one in history(persona).questions
        if one.category != "information-boundary"
    ]
    texts, labels = [one.question for one in core], [one.no_evidence for one in core]
    auc, low, _ = classifier_auc(texts, labels)

    assert sum(labels) > 25
    assert low <= 0.60, auc


def test_the_classifier_would_find_a_give_away() -> None:
    """A cheat: unanswerable questions that begin with a word of their own."""
    random = Random(1)
    labels = [random.random() < 0.2 for _ in range(300)]
    texts = [f"{'Surely, w' if one else 'W'}hat is thing {n % 40}?" for n, one in enumerate(labels)]

    assert classifier_auc(texts, labels)[0] > 0.9


def test_the_same_words_are_answered_inside_covered_in_one_room_and_refused_in_another() -> None:
    replies: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for persona in SHIPPED:
        for one in history(persona).questions:
            if one.category == "information-boundary":
                replies[persona, one.question][one.expected_disclosure] += 1

    assert len(replies) > 10
    assert all(found == {"answer": 1, "partial": 1, "refuse": 1} for found in replies.values())


def test_every_phenomenon_is_in_the_ledger() -> None:
    for persona in SHIPPED:
        facts = history(persona).facts
        kinds = Counter(fact.attribute for fact in facts)
        assert kinds["name.also"] and kinds["name.meaning"] and kinds["person.team"]
        assert any(kind.startswith("team.") for kind in kinds)
        assert any(kind.startswith("person.") and kind != "person.team" for kind in kinds)
        assert sum(bool(fact.superseded_by) for fact in facts) > 5
    assert any(f.attribute == "event.what" for p in SHIPPED for f in history(p).facts)


def test_density_and_seed_decide_the_text() -> None:
    story = shipped_story("backend-eng-saas")
    scenes = find_scenes("backend-eng-saas", story)
    short, same, long = (
        simulate(story, 12, 3, scenes=scenes, density=words) for words in (1000, 1000, 3000)
    )

    assert short.daily_logs == same.daily_logs
    assert short.facts == long.facts
    assert len(long.daily_logs[2].split()) > 2 * len(short.daily_logs[2].split())
    with pytest.raises(UsageError, match="--density 9000"):
        simulate(story, 12, 3, scenes=scenes, density=9000)
    with pytest.raises(UsageError, match="--edition 2"):
        simulate_persona(story, Path("unused"), density=2000)


def test_a_frozen_set_refuses_files_that_were_changed(tmp_path: Path) -> None:
    folder = simulate_persona(
        "er-physician", tmp_path, edition=2, days=5, seed=1, density=400
    ).folder
    small = FrozenSet("small", 2, 5, 1, 400, {"er-physician": digest_folder(folder, 5)})

    assert [written.folder for written in small.write(tmp_path)] == [folder]
    log = folder / "memories-5d" / "day-0003.md"
    log.write_text(log.read_text() + "One more line.\n")
    with pytest.raises(DataError, match="not those of small"):
        small.check(folder)


def test_the_published_set_names_all_personas_and_hashes() -> None:
    lives = SETS["mnemoscope-lives-1"]

    assert set(lives.sha256) == set(SHIPPED)
    assert all(re.fullmatch("[0-9a-f]{64}", one) for one in lives.sha256.values())


def test_a_scene_book_with_mistakes_is_refused_with_all_of_them() -> None:
    story = shipped_story("er-physician")
    text = "aliases: {Nothing: x}\nuses: {project: {nope: [a]}}\nevents: [one]\n" + "".join(
        f"{field}: []\n" for field in ("places_of_events", "teams", "people", "places", "matters")
    )

    with pytest.raises(DataError, match=r"no subject is called 'Nothing'.*needs 2 parts"):
        parse_scenes(text, Path("book.yaml"), story)


@pytest.mark.parametrize("persona", SHIPPED)
def test_every_subject_has_a_description_in_other_words_than_its_name(persona: str) -> None:
    story = shipped_story(persona)
    book = find_scenes(persona, story)
    subjects = [
        subject
        for type, arc in story.arcs.items()
        if type != "decision"
        for subject in arc.subjects
    ]

    assert {subject.name for subject in subjects} == set(book.descriptions)
    for subject in subjects:
        words = set(re.findall(r"[a-z]{5,}", subject.name.lower()))
        assert not words & set(re.findall(r"[a-z]{5,}", book.descriptions[subject.name].lower()))
    for type, arc in story.arcs.items():
        assert {kind.id for kind in arc.facts} == set(book.clauses.get(type, {}))


def test_questions_name_subjects_in_several_ways() -> None:
    story = shipped_story("er-physician")
    descriptions = find_scenes("er-physician", story).descriptions
    asked = [one for one in history("er-physician").questions if one.category != "negative-recall"]
    described = [one for one in asked for text in descriptions.values() if text in one.question]

    assert 0.1 < len(described) / len(asked) < 0.5
    assert any(len(one.relevant_days) > 1 for one in described)


def test_opinions_and_delays_are_not_about_people() -> None:
    for persona in SHIPPED:
        told = history(persona).facts
        about = {fact.arc for fact in told if fact.attribute in ("group.claim", "thread.cause")}
        assert not any(arc.startswith("relationship") for arc in about)


def test_an_affair_varies_and_later_speaks_of_the_particular_it_named() -> None:
    affair = Affair("principal", "a call", ("From {who}.", "Again {who}."), {"who": ("a bank",)})
    book = msgspec.structs.replace(
        find_scenes("er-physician", shipped_story("er-physician")), affairs=(affair,), matters=()
    )
    scenes = RunningScenes(book, {"principal": ["Ann Ash", "Bo Birch"]}, [], Random(1))
    scene = scenes.next(1, [])
    assert scene is not None

    told = [write(scenes.tell(scene, day)[0], Random(1), scene.slots) for day in (1, 3)]
    assert told == ["From a bank.", "Again the bank."]


def test_a_meaning_stands_in_brackets_after_the_name_in_prose() -> None:
    text = 'Heron\'s page is open.\n\n> Ann Ash: "Heron!"\n\nWe spoke of Heron.'

    assert with_meaning(text, "Heron", "the move").endswith("We spoke of Heron (the move).")
    assert with_meaning('> Ann Ash: "Heron!"', "Heron", "the move") == ""


@pytest.mark.parametrize("persona", SHIPPED)
def test_every_kind_of_fact_is_told_in_scenes_of_the_persona(persona: str) -> None:
    story = shipped_story(persona)
    book = find_scenes(persona, story)
    for type, arc in story.arcs.items():
        for kind in arc.facts:
            telling = book.tellings[type][kind.id]
            assert len(telling.said) > 1
            assert telling.near
            assert telling.revised or not kind.changes
    assert set(book.frames) > {*SCENES.frames, *SCENES.preferences, "joins", "moves"}


def test_no_two_personas_share_a_sentence_of_their_scenes() -> None:
    told: dict[str, str] = {}
    for persona in SHIPPED:
        book = find_scenes(persona, shipped_story(persona))
        scenes = [one for kinds in book.tellings.values() for one in kinds.values()]
        texts = [text for one in scenes for text in (*one.said, *one.revised, *one.near)]
        groups = (*book.opens.values(), *book.goings.values(), *book.frames.values())
        texts += [text for group in groups for text in group]
        for sentence in {one for text in texts for one in _SENTENCE.split(text)}:
            if sentence.count(" ") > 6:
                assert told.setdefault(sentence, persona) == persona


def test_a_telling_needs_the_subject_and_the_value() -> None:
    story = shipped_story("er-physician")
    text = 'tellings: {project: {lead: {said: ["{name} has a lead. It is {value}."], near: [x]}}}\n'
    text += "frames: {claim: [nobody said it]}\n"
    text += "aliases: {}\nuses: {}\n" + "".join(
        f"{field}: []\n"
        for field in ("events", "places_of_events", "teams", "people", "places", "matters")
    )

    with pytest.raises(DataError, match=r"needs \{name\} and \{value\} together.*\{speaker\}"):
        parse_scenes(text, Path("book.yaml"), story)


def test_people_have_their_full_name_once_in_a_section() -> None:
    text = 'Ann Ash came. Ann Ash left.\n\n> Ann Ash: "So did Ann Ash."'

    assert later_mentions(text, "Ann Ash", "Ann") == (
        'Ann Ash came. Ann left.\n\n> Ann Ash: "So did Ann."'
    )


def test_an_article_fits_the_particular_that_follows() -> None:
    told = {
        write("{P} sent a {form}.", Random(1), {"P": "Ann", "form": form})
        for form in ("effort report", "union letter", "one-page note", "space survey")
    }

    assert told == {
        "Ann sent an effort report.",
        "Ann sent a union letter.",
        "Ann sent a one-page note.",
        "Ann sent a space survey.",
    }


def test_choices_may_contain_choices_and_sentences_begin_with_capitals() -> None:
    texts = {
        write("[{a} came|it [rained|snowed]]. then {a} left.", Random(n), {"a": "eBPF"})
        for n in range(40)
    }

    assert texts == {
        "eBPF came. Then eBPF left.",
        "It rained. Then eBPF left.",
        "It snowed. Then eBPF left.",
    }
