"""Drafted questions obey the rules of their stratum, are repeatable, and respect a person's own."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.importers.scanned_files import files_with

import mnemoscope as ms
from mnemoscope._store.errors import DataError, MissingData, UsageError
from mnemoscope.datasets.imported_folder import ImportRecord
from mnemoscope.datasets.strata import STRATA, Strata
from mnemoscope.drafting.noun_phrases import phrases
from mnemoscope.drafting.synonyms import synonyms
from mnemoscope.drafting.word_neighbours import WordNeighbours
from mnemoscope.models.chat import Prompt

Lines = Callable[[Path], list[dict[str, Any]]]


class Parrot:
    """A model that repeats the memory, which no paraphrase may do."""

    def complete(self, prompt: Prompt) -> str:
        memories = prompt.user.partition("<memories>")[2].partition("</memories>")[0]
        return json.dumps({"question": memories.strip(), "answer": "it"})


class Inventor:
    """A model whose question is good and whose answer is not in the memory."""

    def complete(self, prompt: Prompt) -> str:
        return json.dumps(
            {"question": "Where did Ben exercise his four-legged friend?", "answer": "the moon"}
        )


class Writer:
    """A model that words one question well and answers nothing else."""

    def complete(self, prompt: Prompt) -> str:
        if "walked the dog" not in prompt.user:
            return "I would rather not."
        return '{"question": "Where did Ben exercise his four-legged friend?", "answer": "a beach"}'


class Known(Writer):
    """A model whose replies are cached, since it has an identity."""

    def identity(self) -> dict[str, str]:
        return {"name": "known"}


def test_every_stratum_is_drafted_and_obeys_its_rules(store: Path, questions_of: Lines) -> None:
    made = ms.draft_questions(store, per_stratum=3)

    assert all(made.drafted[stratum] for stratum in STRATA)
    assert made.short == {"multihop": 2, "update": 1}
    assert Counter(line["stratum"] for line in questions_of(store)) == made.drafted
    assert {line["drafted_by"] for line in questions_of(store)} == {"templates"}
    dataset = Strata(store)
    [scenario] = dataset.scenarios()
    assert not dataset.broken
    assert not dataset.findings.counts["relevant_ids differ from qrels"]
    absent = [one for one in scenario.questions if one.category == "absent"]
    assert {(one.expects, one.evidence) for one in absent} == {("abstain", ())}
    assert dataset.reviewed is not None
    assert (dataset.reviewed.drafted, dataset.reviewed.confirmed) == (len(scenario.questions), 0)


def test_the_same_seed_drafts_the_same_and_another_seed_does_not(store: Path) -> None:
    def drafted(seed: int) -> bytes:
        ms.draft_questions(store, per_stratum=2, seed=seed)
        return (store / "queries.jsonl").read_bytes()

    first = drafted(1)
    assert drafted(2) != first
    assert drafted(1) == first


def test_a_paraphrase_shares_only_the_name_of_the_speaker(store: Path, questions_of: Lines) -> None:
    ms.draft_questions(store, strata=["paraphrase"])
    texts = [line["text"] for line in questions_of(store)]
    assert "What did Ben say about the children and the gallery?" in texts


def test_near_duplicates_of_the_answer_are_relevant_too(store: Path, questions_of: Lines) -> None:
    lines = (store / "corpus.jsonl").read_text().splitlines(keepends=True)
    twin = json.loads(next(line for line in lines if "lighthouse" in line)) | {"id": "twin"}
    (store / "corpus.jsonl").write_text("".join([*lines, json.dumps(twin) + "\n"]))
    ms.draft_questions(store, strata=["exact"])
    [asked] = [line for line in questions_of(store) if "lighthouse" in line["text"]]
    assert sorted(asked["relevant_ids"]) == ["t2.0", "twin"]


def test_questions_of_a_person_stay_and_undecided_drafts_are_replaced(
    store: Path, questions_of: Lines
) -> None:
    own = {"query_id": "mine", "text": "Who sang in the chapel?", "stratum": "exact"}
    (store / "queries.jsonl").write_text(json.dumps(own) + "\n")
    (store / "qrels.jsonl").write_text('{"query_id": "mine", "relevant_ids": ["t1.0"]}\n')
    ms.draft_questions(store, per_stratum=2, seed=1)
    made = ms.draft_questions(store, per_stratum=2, seed=2)

    found = questions_of(store)
    assert made.kept == {"exact": 1}
    assert [line["text"] for line in found if line["query_id"] == "mine"] == [own["text"]]
    assert sum(line["stratum"] == "exact" for line in found) == 2


def test_a_killed_draft_is_refused_and_drafting_again_repairs_it(store: Path) -> None:
    ms.draft_questions(store, per_stratum=2, seed=1)
    old = (store / "queries.jsonl").read_bytes()
    ms.draft_questions(store, per_stratum=2, seed=2)
    (store / "queries.jsonl").write_bytes(old)  # as if killed between the two files
    with pytest.raises(DataError, match=r"no line in qrels\.jsonl"):
        list(Strata(store).scenarios())
    ms.draft_questions(store, per_stratum=2, seed=2)
    assert len(list(Strata(store).scenarios())) == 1


def test_plain_notes_have_no_speakers_and_without_times_no_updates(
    store: Path, questions_of: Lines
) -> None:
    path = store / "corpus.jsonl"
    notes = [json.loads(line) for line in path.read_text().splitlines()]
    plain = ({"id": one["id"], "content": one["content"].partition(": ")[2]} for one in notes)
    path.write_text("".join(json.dumps(one) + "\n" for one in plain))
    made = ms.draft_questions(store)
    assert made.drafted["update"] == 0
    assert all(made.drafted[name] for name in ("exact", "paraphrase", "absent"))
    texts = [line["text"] for line in questions_of(store)]
    assert "What do the memories say about the lighthouse keeper?" in texts
    assert any(text.startswith("Which memory mentions both") for text in texts)
    dataset = Strata(store)
    assert len(list(dataset.scenarios())) == 1
    assert not dataset.broken


def test_a_stratum_can_be_drafted_alone(store: Path, questions_of: Lines) -> None:
    ms.draft_questions(store, per_stratum=1, strata=["exact"])
    ms.draft_questions(store, per_stratum=1, strata=["absent"])
    assert [line["stratum"] for line in questions_of(store)] == ["exact", "absent"]


def test_a_model_that_copies_the_memory_is_not_believed(store: Path, questions_of: Lines) -> None:
    ms.draft_questions(store, strata=["paraphrase"], model=f"{__name__}:Parrot")
    assert {line["drafted_by"] for line in questions_of(store)} == {"templates"}


def test_a_model_words_what_obeys_the_rules(store: Path, questions_of: Lines) -> None:
    ms.draft_questions(store, strata=["paraphrase"], model=f"{__name__}:Writer")
    worded = [line for line in questions_of(store) if line["drafted_by"] != "templates"]
    [line] = worded
    assert line["drafted_by"] == f"{__name__}:Writer"
    assert (line["relevant_ids"], line["answer"]) == (["s2.2"], "a beach")


@pytest.mark.parametrize("private", [True, False])
def test_replies_about_private_memories_are_not_cached_outside_their_folder(
    store: Path, private: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(cache))
    record = ImportRecord(kind="notes", memories=15, private=private)
    (store / "import.json").write_bytes(msgspec.json.encode(record))
    ms.draft_questions(store, strata=["paraphrase"], model=f"{__name__}:Known")
    assert "four-legged friend" in (store / "queries.jsonl").read_text()
    assert bool(files_with(cache, ["four-legged friend"])) is not private


def test_an_answer_that_the_memory_does_not_give_is_left_out(
    store: Path, questions_of: Lines
) -> None:
    ms.draft_questions(store, strata=["paraphrase"], model=f"{__name__}:Inventor")
    worded = [line for line in questions_of(store) if line["drafted_by"] != "templates"]
    assert worded
    assert not any(line.get("answer") for line in worded)


def test_what_cannot_be_drafted_is_an_error(tmp_path: Path, store: Path) -> None:
    with pytest.raises(MissingData, match="mnemoscope import"):
        ms.draft_questions(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="unknown stratum 'easy'"):
        ms.draft_questions(store, strata=["easy"])
    with pytest.raises(UsageError, match="--per-stratum 0"):
        ms.draft_questions(store, per_stratum=0)
    (store / "corpus.jsonl").write_text('{"id": 1, "content": "短い"}\n')
    with pytest.raises(DataError, match="no question could be drafted"):
        ms.draft_questions(store)
    assert not (store / "queries.jsonl").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I love the old tram depot.", ["tram depot"]),
        ("It felt like a slice of paradise, and it was a long day.", []),
        ("The document captures some of the processes.", []),
        ("We met Lena Brandt near the Icefields Parkway.", ["Lena Brandt", "Icefields Parkway"]),
        ("Have you seen the blue whale?", []),
        ("| the table | of the versions |", []),
        ("We read Lord of the Rings in a food drive.", []),
        (
            "After two years of waiting for it, we met Lena\n  Brandt near the old tram depot.",
            ["Lena Brandt", "tram depot"],
        ),
        ("- Set `core.pager` before you start the prefetch task.", ["prefetch task"]),
        ("The lemon\ntree house", ["lemon"]),
    ],
)
def test_only_whole_noun_phrases_are_found(text: str, expected: list[str]) -> None:
    assert [one.text for one in phrases(text)] == expected


def test_synonyms_are_listed_or_close_neighbours() -> None:
    neighbours = WordNeighbours(["movie", "film", "garage", "garlic"])
    assert synonyms("children") == []
    assert synonyms("kids") == ["children", "youngsters"]
    assert synonyms("bugs", neighbours)[0] == "defects"  # the list comes first
    assert neighbours.close("movie") == ["film"]
    assert neighbours.close("garage") == []  # spelt like garlic, which means nothing


def test_locomo_separates_the_strata(
    tmp_path: Path, shared_data: Callable[[str], Path], questions_of: Lines
) -> None:
    from tools.locomo_store import write_store

    folder = tmp_path / "locomo"
    assert write_store(shared_data("locomo"), folder) == 5_882
    made = ms.draft_questions(folder, per_stratum=10, seed=23)
    assert {name for name, n in made.drafted.items() if n == 10} == set(STRATA) - {"update"}
    assert made.drafted["update"] >= 5
    dataset = Strata(folder)
    results = ms.run(dataset, systems="bm25", baselines=False, out=tmp_path / "runs", workers=1)
    figures = results["bm25"].metrics["by_category"]
    assert figures["exact"]["recall@10"]["mean"] == 1.0
    assert figures["paraphrase"]["recall@10"]["mean"] <= 0.1
