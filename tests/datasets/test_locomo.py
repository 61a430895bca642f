"""LoCoMo: the real file counted as datasets.md counts it, repairs named, bad files refused.

Counts and quirks are those of ../shared/spec/datasets.md §1 and §1a; the repaired and the naive
gold of the malformed questions are the table in retrieval-protocol.md §1.2.
"""

from __future__ import annotations

import gzip
import json
import lzma
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mnemoscope._store.errors import DataError, MissingData
from mnemoscope.datasets.locomo import Locomo
from mnemoscope.types import Memory, Question, Scenario

Shared = Callable[[str], Path]
Row = dict[str, Any]

SESSIONS = {
    "conv-26": 19,
    "conv-30": 19,
    "conv-41": 32,
    "conv-42": 29,
    "conv-43": 29,
    "conv-44": 28,
    "conv-47": 31,
    "conv-48": 30,
    "conv-49": 25,
    "conv-50": 30,
}
QUESTIONS = (199, 105, 193, 260, 242, 158, 190, 239, 196, 204)
TURNS = (419, 369, 663, 629, 680, 675, 689, 681, 509, 568)


@pytest.fixture(scope="module")
def folder(shared_data: Shared) -> Path:
    return shared_data("locomo")


@pytest.fixture(scope="module")
def raw(folder: Path) -> list[Row]:
    samples: list[Row] = json.loads((folder / "locomo10.json").read_text(encoding="utf-8"))
    return samples


@pytest.fixture(scope="module")
def by_session(folder: Path) -> list[Scenario]:
    return list(Locomo(folder).scenarios())


def questions(scenarios: list[Scenario]) -> dict[str, Question]:
    return {question.id: question for one in scenarios for question in one.questions}


def turns(raw: list[Row]) -> Iterator[tuple[str, str, Row]]:
    """(conversation, session, turn) of the whole file, read without our code."""
    for sample in raw:
        for key, value in sample["conversation"].items():
            if isinstance(value, list):
                for turn in value:
                    yield sample["sample_id"], key.replace("session_", "D"), turn


def test_the_file_holds_what_was_counted(folder: Path) -> None:
    dataset = Locomo(folder)
    scenarios = list(dataset.scenarios())
    assert dataset.counts() == {
        "conversations": 10,
        "sessions": 272,
        "turns": 5_882,
        "memories": 272,
        "questions": 1_986,
        "category 1 multi-hop": 282,
        "category 2 temporal": 321,
        "category 3 open-domain": 96,
        "category 4 single-hop": 841,
        "category 5 adversarial": 446,
    }
    assert {one.id: len(one.memories) for one in scenarios} == SESSIONS
    assert [len(one.questions) for one in scenarios] == list(QUESTIONS)


def test_categories_are_keyed_by_the_integer_and_named_officially(folder: Path) -> None:
    dataset = Locomo(folder)
    asked = Counter(q.category for one in dataset.scenarios() for q in one.questions)
    assert asked == {"1": 282, "2": 321, "3": 96, "4": 841, "5": 446}
    assert dataset.category_names == {
        "1": "multi-hop",
        "2": "temporal",
        "3": "open-domain",
        "4": "single-hop",
        "5": "adversarial",
    }


def test_every_repair_and_loss_is_counted_with_its_place(folder: Path) -> None:
    dataset = Locomo(folder)
    list(dataset.scenarios())
    # datasets.md lists 6 malformed entries and 3 dangling ones. The code reports 7 + 2: of the six
    # malformed ones, five hold turns that can be read and one (`D`) holds none and is dropped;
    # and `D30:05` of conv-50#69, a dangling id as it stands, is repaired by reading it as D30:5.
    assert dataset.findings.counts == {
        "malformed evidence, repaired": 6,
        "malformed evidence, dropped": 1,
        "dangling evidence: no such turn": 2,
        "empty evidence": 4,
        "evidence cited twice": 1,
        "question text asked twice": 12,
        "date without a session": 16,
    }
    examples = dataset.findings.examples
    assert examples["malformed evidence, dropped"] == ["conv-42/q88 'D'"]
    assert examples["malformed evidence, repaired"] == [
        "conv-26/q37 'D8:6; D9:17'",
        "conv-43/q18 'D:11:26'",
        "conv-49/q31 'D9:1 D4:4 D4:6'",
        "conv-49/q38 'D22:1 D22:2 D9:10 D9:11'",
        "conv-49/q46 'D21:18 D21:22 D11:15 D11:19'",
        "conv-50/q69 'D30:05'",
    ]
    assert examples["dangling evidence: no such turn"] == [
        "conv-42/q58 D10:19",
        "conv-47/q38 D4:36",
    ]
    assert examples["empty evidence"] == [
        "conv-26/q30",
        "conv-26/q46",
        "conv-50/q39",
        "conv-50/q42",
    ]


def test_1982_questions_have_evidence_and_all_of_it_exists(by_session: list[Scenario]) -> None:
    measured = [q for q in questions(by_session).values() if q.evidence]
    assert len(measured) == 1_982
    for scenario in by_session:
        known = {memory.id for memory in scenario.memories}
        assert all(known.issuperset(question.evidence) for question in scenario.questions)


MALFORMED = {
    "conv-26/q37": ("D8 D9", "D8"),
    "conv-42/q88": ("D1", "D1 D"),
    "conv-43/q18": ("D1 D2 D4 D5 D11 D20 D26", "D1 D2 D4 D5 D D20 D26"),
    "conv-49/q31": ("D9 D4", "D9"),
    "conv-49/q38": ("D22 D9", "D22"),
    "conv-49/q46": ("D21 D11", "D21"),
}


@pytest.mark.parametrize("id", MALFORMED)
def test_malformed_evidence_is_repaired_as_the_protocol_table_says(
    by_session: list[Scenario], id: str
) -> None:
    conversation = id.partition("/")[0]
    expected = [f"{conversation}/{label}" for label in MALFORMED[id][0].split()]
    assert list(questions(by_session)[id].evidence) == expected


def test_naive_evidence_is_what_cutting_at_the_first_colon_gives(
    folder: Path, raw: list[Row], by_session: list[Scenario]
) -> None:
    dataset = Locomo(folder, evidence="naive")
    naive = questions(list(dataset.scenarios()))
    for sample in raw:
        for number, asked in enumerate(sample["qa"]):
            labels = {entry.split(":")[0] for entry in asked["evidence"]}
            expected = {f"{sample['sample_id']}/{label}" for label in labels}
            assert set(naive[f"{sample['sample_id']}/q{number}"].evidence) == expected
    repaired = questions(by_session)
    changed = {id for id in naive if set(naive[id].evidence) != set(repaired[id].evidence)}
    assert changed == set(MALFORMED)
    for id, (_, cut) in MALFORMED.items():
        conversation = id.partition("/")[0]
        assert list(naive[id].evidence) == [f"{conversation}/{label}" for label in cut.split()]
    assert dataset.findings.counts["unresolvable evidence, kept"] == 2


def test_turn_granularity_gives_every_turn_and_its_evidence(folder: Path, raw: list[Row]) -> None:
    dataset = Locomo(folder, granularity="turn")
    scenarios = list(dataset.scenarios())
    assert dataset.counts()["memories"] == 5_882
    assert [len(one.memories) for one in scenarios] == list(TURNS)
    memories = {memory.id: memory for one in scenarios for memory in one.memories}
    for conversation, session, turn in turns(raw):
        memory = memories[f"{conversation}/{turn['dia_id']}"]
        assert memory.text == f"{turn['speaker']}: {turn['text'].strip()}"
        assert memory.speaker == turn["speaker"]
        assert memory.session == f"{conversation}/{session}"
    asked = questions(scenarios)
    assert sum(bool(question.evidence) for question in asked.values()) == 1_982
    assert asked["conv-26/q37"].evidence == ("conv-26/D8:6", "conv-26/D9:17")
    assert asked["conv-50/q69"].evidence == ("conv-50/D30:5",)
    assert asked["conv-47/q38"].evidence == ("conv-47/D18:1", "conv-47/D18:7")
    assert asked["conv-50/q5"].evidence == ("conv-50/D4:5", "conv-50/D5:5")


def test_naive_turn_evidence_keeps_all_nine_bad_entries(folder: Path) -> None:
    dataset = Locomo(folder, granularity="turn", evidence="naive")
    list(dataset.scenarios())
    assert dataset.findings.counts["unresolvable evidence, kept"] == 9


def test_session_texts_are_the_turns_with_their_speakers(
    by_session: list[Scenario], raw: list[Row]
) -> None:
    memories = {memory.id: memory for one in by_session for memory in one.memories}
    lines: dict[str, list[str]] = {}
    for conversation, session, turn in turns(raw):
        said = f"{turn['speaker']}: {turn['text'].strip()}"
        lines.setdefault(f"{conversation}/{session}", []).append(said)
    assert {id: memory.text for id, memory in memories.items()} == {
        id: "\n".join(own) for id, own in lines.items()
    }


def test_times_are_read_and_never_run_backwards(by_session: list[Scenario]) -> None:
    first = by_session[0].memories[0]
    assert first.at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    for scenario in by_session:
        times = [memory.at for memory in scenario.memories if memory.at is not None]
        assert len(times) == len(scenario.memories)
        assert times == sorted(times)
        assert all(question.now == times[-1] for question in scenario.questions)


@pytest.mark.parametrize("granularity", ["session", "turn"])
def test_dates_stand_in_a_line_above_the_text(folder: Path, granularity: Any) -> None:
    plain = Locomo(folder, granularity=granularity).scenarios()
    dated = Locomo(folder, granularity=granularity, dates=True).scenarios()
    pairs = list(zip(plain, dated, strict=True))
    assert pairs[0][1].memories[0].text.startswith("[1:56 pm on 8 May, 2023]\n")
    for without, with_dates in pairs:
        for before, after in zip(without.memories, with_dates.memories, strict=True):
            head, _, text = after.text.partition("\n")
            assert re.fullmatch(r"\[\d+:\d\d [ap]m on \d+ \w+, \d{4}\]", head)
            assert text == before.text


def test_captions_are_in_the_text_only_when_asked_for(folder: Path, raw: list[Row]) -> None:
    plain = {m.id: m.text for m in all_memories(Locomo(folder, granularity="turn"))}
    shown = {m.id: m.text for m in all_memories(Locomo(folder, granularity="turn", captions=True))}
    captioned = 0
    for conversation, _, turn in turns(raw):
        id, caption = f"{conversation}/{turn['dia_id']}", turn.get("blip_caption", "")
        assert shown[id] == plain[id] + (f" [shares {caption}]" if caption else "")
        captioned += bool(caption)
    assert captioned == 1_226


def test_dataset_scope_pools_all_conversations(folder: Path, by_session: list[Scenario]) -> None:
    dataset = Locomo(folder, scope="dataset")
    [pooled] = dataset.scenarios()
    assert pooled.memories == tuple(m for one in by_session for m in one.memories)
    assert pooled.questions == tuple(q for one in by_session for q in one.questions)
    assert len(pooled.memories) == 272
    assert dataset.expected_scenarios == 1


def test_intervals_cluster_by_conversation_even_when_pooled(folder: Path) -> None:
    [pooled] = Locomo(folder, scope="dataset").scenarios()
    assert {question.cluster for question in pooled.questions} == set(SESSIONS)


def test_without_the_adversarial_there_are_1540_questions(folder: Path) -> None:
    dataset = Locomo(folder, adversarial=False)
    asked = questions(list(dataset.scenarios()))
    assert len(asked) == dataset.counts()["questions"] == 1_540
    assert "5" not in {question.category for question in asked.values()}


def test_only_the_adversarial_expect_abstention(by_session: list[Scenario]) -> None:
    for question in questions(by_session).values():
        assert (question.expects == "abstain") == (question.category == "5")


def test_answers_that_are_numbers_become_text_and_missing_ones_are_empty(
    by_session: list[Scenario], raw: list[Row]
) -> None:
    asked = questions(by_session)
    kinds: Counter[str] = Counter()
    for sample in raw:
        for number, row in enumerate(sample["qa"]):
            kinds[type(row.get("answer")).__name__] += 1
            expected = str(row.get("answer", ""))
            assert asked[f"{sample['sample_id']}/q{number}"].reference == expected
    assert kinds["int"] == 6
    assert kinds["NoneType"] == 444


def test_the_audit_overlay_changes_keys_and_counts_each_kind(folder: Path) -> None:
    dataset = Locomo(folder, audit=True, granularity="turn")
    asked = questions(list(dataset.scenarios()))
    assert {
        kind.removeprefix("answer key corrected by the audit: "): n
        for kind, n in dataset.findings.counts.items()
        if kind.startswith("answer key corrected by the audit: ")
    } == {
        "WRONG_CITATION": 57,
        "HALLUCINATION": 33,
        "TEMPORAL_ERROR": 26,
        "ATTRIBUTION_ERROR": 24,
        "AMBIGUOUS": 13,
        "INCOMPLETE": 3,
    }
    # The audit's first entry: "the citation should be D1:14, not D1:12".
    assert asked["conv-26/q1"].evidence == ("conv-26/D1:14",)
    assert [file.matches_pin for file in dataset.files()] == [True, True]


def test_without_the_audit_file_the_overlay_says_what_is_missing(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "locomo10.json").symlink_to(folder / "locomo10.json")
    with pytest.raises(MissingData, match=r"audit_errors\.json"):
        list(Locomo(tmp_path, audit=True).scenarios())


def all_memories(dataset: Locomo) -> Iterator[Memory]:
    for scenario in dataset.scenarios():
        yield from scenario.memories


VIEWS: list[dict[str, Any]] = [
    dict(zip(("granularity", "dates", "captions", "scope"), choice, strict=True))
    for choice in product(
        ("session", "turn"), (False, True), (False, True), ("conversation", "dataset")
    )
]


@pytest.mark.parametrize("options", VIEWS, ids=str)
def test_the_image_search_phrases_reach_no_memory(
    folder: Path, raw: list[Row], options: dict[str, Any]
) -> None:
    seen = {m.id: msgspec.json.encode(m).decode() for m in all_memories(Locomo(folder, **options))}
    fields = ("speaker", "text", "blip_caption") if options["captions"] else ("speaker", "text")
    phrases: dict[str, list[str]] = {}
    legitimate: dict[str, str] = {}
    for conversation, session, turn in turns(raw):
        label = turn["dia_id"] if options["granularity"] == "turn" else session
        id = f"{conversation}/{label}"
        said = "\n".join(turn.get(field, "") for field in fields)
        legitimate[id] = legitimate.get(id, "") + "\n" + said
        if "query" in turn:
            phrases.setdefault(id, []).append(turn["query"])
    sought = 0
    for id, own in phrases.items():
        for phrase in own:
            if phrase not in legitimate[id]:
                assert phrase not in seen[id]
                sought += 1
    assert sought > 800  # of 888; the others are also said aloud


def test_no_other_field_of_the_file_reaches_a_memory(raw: list[Row], tmp_path: Path) -> None:
    """Every string but those that may be seen is replaced by a marker, which must not turn up."""
    seen_fields = {"speaker", "dia_id", "text", "blip_caption", "sample_id"}

    def mark(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {k: mark(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [mark(v, key) for v in value]
        keep = key in seen_fields or key.endswith("_date_time") or not isinstance(value, str)
        return value if keep else "LEAKED"

    path = tmp_path / "locomo10.json"
    path.write_text(json.dumps(mark(raw)), encoding="utf-8")
    for options in VIEWS:
        for memory in all_memories(Locomo(path, **options)):
            assert b"LEAKED" not in msgspec.json.encode(memory)


@pytest.mark.parametrize("options", VIEWS, ids=str)
def test_memory_ids_are_unique_in_the_whole_dataset(folder: Path, options: dict[str, Any]) -> None:
    ids = Counter(memory.id for memory in all_memories(Locomo(folder, **options)))
    assert len(ids) == (272 if options["granularity"] == "session" else 5_882)
    assert max(ids.values()) == 1


def test_question_ids_are_unique(by_session: list[Scenario]) -> None:
    assert len(questions(by_session)) == 1_986


def test_reading_twice_gives_the_same_and_counts_nothing_twice(folder: Path) -> None:
    dataset = Locomo(folder)
    first, found = list(dataset.scenarios()), dict(dataset.findings.counts)
    assert list(dataset.scenarios()) == first
    assert dataset.findings.counts == found
    assert dataset.counts()["questions"] == 1_986


def test_the_hash_is_the_pinned_one_also_inside_an_archive(folder: Path, tmp_path: Path) -> None:
    content = (folder / "locomo10.json").read_bytes()
    (tmp_path / "locomo10.json.gz").write_bytes(gzip.compress(content, 1))
    for dataset in (Locomo(folder), Locomo(tmp_path)):
        [file] = dataset.files()
        assert file.matches_pin is True
    assert list(Locomo(tmp_path).scenarios()) == list(Locomo(folder).scenarios())


# From here on, small files of our own.


def turn(number: int = 1, session: int = 1, text: str = "hello") -> Row:
    return {"speaker": "Ann", "dia_id": f"D{session}:{number}", "text": text}


def sample(id: str = "conv-1", **changes: Any) -> Row:
    row: Row = {
        "sample_id": id,
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Bob",
            "session_1_date_time": "12:05 am on 8 May, 2023",
            "session_1": [turn(1), turn(2)],
        },
        "qa": [{"question": "who?", "answer": "Ann", "category": 1, "evidence": ["D1:1"]}],
    }
    row.update(changes)
    return row


def talk(**changes: Any) -> Row:
    conversation: Row = sample()["conversation"]
    conversation.update(changes)
    return conversation


def asked(**changes: Any) -> list[Row]:
    row: Row = sample()["qa"][0]
    row.update(changes)
    return [{key: value for key, value in row.items() if value is not ...}]


def written(folder: Path, content: Any, name: str = "locomo10.json") -> Path:
    path = folder / name
    text = content if isinstance(content, bytes) else json.dumps(content, indent=1).encode()
    path.write_bytes(text)
    return path


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        list(Locomo(path, **options).scenarios())
    assert str(path) in str(caught.value)
    return str(caught.value).replace(str(path), "FILE")


def test_a_small_file_of_the_format_is_read(tmp_path: Path) -> None:
    [scenario] = Locomo(written(tmp_path, [sample()])).scenarios()
    assert [memory.text for memory in scenario.memories] == ["Ann: hello\nAnn: hello"]
    assert scenario.memories[0].at == datetime(2023, 5, 8, 0, 5, tzinfo=UTC)
    assert scenario.questions[0].evidence == ("conv-1/D1",)


def test_malformed_json_is_one_error_with_file_and_line(tmp_path: Path) -> None:
    text = json.dumps([sample(), sample("conv-2")], indent=1).replace('"category": 1', '"category"')
    line = text[: text.index('"category"')].count("\n") + 1
    # Python's reader notices at the character after the field's name, which is on the next line.
    problem = refusal(written(tmp_path, text.encode()))
    assert re.fullmatch(
        rf"FILE, line ({line}|{line + 1}): malformed JSON: .*':' delimiter", problem
    )


def test_a_file_cut_in_the_middle_is_named_with_its_last_line(tmp_path: Path) -> None:
    text = json.dumps([sample(), sample("conv-2")], indent=1)
    cut = text[: text.index('"conv-2"') + 20].encode()
    lines = len(cut.splitlines())
    problem = refusal(written(tmp_path, cut))
    assert problem.startswith(f"FILE, line {lines}: malformed JSON")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sample_id": 7}, r"Expected `str`, got `int` - at `\$\.sample_id`"),
        ({"qa": {}}, r"Expected `array`, got `object` - at `\$\.qa`"),
        ({"qa": asked(question=None)}, r"at `\$\.qa\[0\]\.question`"),
        ({"qa": asked(evidence="D1:1")}, r"Expected `array`, got `str`"),
        ({"qa": asked(evidence=[11])}, r"at `\$\.qa\[0\]\.evidence\[0\]`"),
        ({"qa": asked(category="1")}, r"Expected `int`, got `str`"),
        ({"qa": asked(category=...)}, r"missing required field `category`"),
        ({"qa": asked(evidence=...)}, r"missing required field `evidence`"),
        ({"conversation": []}, r"Expected `object`, got `array` - at `\$\.conversation`"),
        ({"conversation": talk(session_1="hi")}, r"Expected `array`, got `str`"),
        ({"conversation": talk(session_1=[{"text": "x"}])}, r"missing required field `speaker`"),
        ({"conversation": talk(session_1=[turn(text=3)])}, r"Expected `str`, got `int`"),  # type: ignore[arg-type]
    ],
)
def test_wrong_types_and_missing_fields_name_the_field_and_the_sample(
    tmp_path: Path, changes: Row, said: str
) -> None:
    text = json.dumps([sample(), sample("conv-2", **changes)], indent=1)
    start = [match.start() for match in re.finditer(r"^ \{", text, re.MULTILINE)][1]
    line = text[:start].count("\n") + 1
    problem = refusal(written(tmp_path, text.encode()))
    assert problem.startswith(f"FILE, line {line}: in the sample that starts here: ")
    assert re.search(said, problem)


@pytest.mark.parametrize("missing", ["sample_id", "conversation", "qa"])
def test_a_sample_without_a_required_field_is_refused(tmp_path: Path, missing: str) -> None:
    row = sample()
    del row[missing]
    assert f"missing required field `{missing}`" in refusal(written(tmp_path, [row]))


def test_an_unknown_category_is_refused_with_the_question(tmp_path: Path) -> None:
    path = written(tmp_path, [sample(qa=asked(category=6))])
    assert refusal(path) == "FILE: conv-1/q0: unknown category 6"


@pytest.mark.parametrize("stamp", ["13:05 pm on 8 May, 2023", "8 May 2023", "", None, 5])
def test_an_unreadable_date_is_refused_with_an_example(tmp_path: Path, stamp: Any) -> None:
    path = written(tmp_path, [sample(conversation=talk(session_1_date_time=stamp))])
    problem = refusal(path)
    assert "conv-1 session_1_date_time: cannot read" in problem
    assert "expected a date such as '1:56 pm on 8 May, 2023'" in problem


def test_a_session_without_a_date_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, [sample(conversation=talk(session_2=[turn(1, 2)]))])
    assert "conv-1 session_2_date_time: cannot read None" in refusal(path)


def test_a_sample_id_given_twice_is_refused_at_the_second(tmp_path: Path) -> None:
    text = json.dumps([sample(), sample()])
    path = written(tmp_path, text.replace(', {"sample_id"', ',\n\n{"sample_id"').encode())
    assert refusal(path) == "FILE, line 3: duplicate sample_id 'conv-1'"


@pytest.mark.parametrize("granularity", ["session", "turn"])
def test_a_turn_id_given_twice_is_refused(tmp_path: Path, granularity: str) -> None:
    path = written(tmp_path, [sample(conversation=talk(session_1=[turn(1), turn(1)]))])
    assert refusal(path, granularity=granularity) == "FILE: conv-1: duplicate dia_id 'D1:1'"


def test_the_same_turn_id_in_two_conversations_is_no_repetition(tmp_path: Path) -> None:
    dataset = Locomo(written(tmp_path, [sample(), sample("conv-2")]), granularity="turn")
    assert [memory.id for memory in all_memories(dataset)] == [
        "conv-1/D1:1",
        "conv-1/D1:2",
        "conv-2/D1:1",
        "conv-2/D1:2",
    ]


@pytest.mark.parametrize("content", [b"", b"  \n\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes) -> None:
    problem = refusal(written(tmp_path, content))
    assert problem.endswith("malformed JSON: expected '[', found the end of the file")


@pytest.mark.parametrize("content", [b"{}", b'"locomo"', b"null"])
def test_a_file_that_is_no_array_is_refused(tmp_path: Path, content: bytes) -> None:
    assert "line 1: malformed JSON: expected '['" in refusal(written(tmp_path, content))


def test_a_byte_order_mark_is_read_over(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xef\xbb\xbf" + json.dumps([sample()]).encode())
    assert len(list(Locomo(path).scenarios())) == 1


def test_bytes_that_are_no_utf8_are_refused_with_their_line(tmp_path: Path) -> None:
    content = json.dumps([sample(), sample("conv-2")], indent=1).encode().replace(b"hello", b"\xff")
    assert "not UTF-8" in refusal(written(tmp_path, content))


def test_half_an_escaped_character_is_refused(tmp_path: Path) -> None:
    """JSON can write half an emoji; no file, cache or process boundary could carry it on."""
    path = written(tmp_path, [sample(), sample("conv-2", qa=asked(question="who? \ud83d"))])
    assert r"\ud83d is half a character" in refusal(path)
    whole = written(tmp_path, [sample(qa=asked(question="who? \U0001f600"))])
    assert b"\\ud83d\\ude00" in whole.read_bytes()
    [scenario] = Locomo(whole).scenarios()
    assert scenario.questions[0].text == "who? \U0001f600"


@pytest.mark.parametrize("kind", ["xz", "gz"])
def test_a_truncated_archive_is_one_error(tmp_path: Path, kind: str) -> None:
    text = json.dumps([sample(f"conv-{n}") for n in range(200)]).encode()
    packed = lzma.compress(text) if kind == "xz" else gzip.compress(text)
    path = written(tmp_path, packed[: len(packed) * 2 // 3], f"locomo10.json.{kind}")
    assert "cannot unpack" in refusal(path)


@pytest.mark.parametrize("kind", ["xz", "gz"])
def test_an_archive_that_is_none_is_one_error(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, json.dumps([sample()]).encode(), f"locomo10.json.{kind}")
    assert "cannot unpack" in refusal(path)


@pytest.mark.parametrize("depth", [20_000, 1_000_000])
def test_deep_nesting_is_refused(tmp_path: Path, depth: int) -> None:
    path = written(tmp_path, b"[\n" + b"[" * depth + b"]" * depth + b"]")
    assert refusal(path) == "FILE, line 2: malformed JSON: nested too deeply"


@pytest.mark.parametrize(
    ("cited", "evidence", "found"),
    [
        (["D1:1"], ["D1:1"], {}),
        (["D:1:1"], ["D1:1"], {"malformed evidence, repaired": 1}),
        (["D01:02"], ["D1:2"], {"malformed evidence, repaired": 1}),
        (["D1:1; D1:2"], ["D1:1", "D1:2"], {"malformed evidence, repaired": 1}),
        (["D1:1", "D1:1"], ["D1:1"], {"evidence cited twice": 1}),
        (["D1:1", "D1:9"], ["D1:1"], {"dangling evidence: no such turn": 1}),
        (
            ["D7:1"],
            [],
            {"dangling evidence: no such turn": 1, "no evidence entry could be resolved": 1},
        ),
        (["D"], [], {"malformed evidence, dropped": 1, "no evidence entry could be resolved": 1}),
        ([], [], {"empty evidence": 1}),
    ],
)
def test_evidence_is_repaired_dropped_or_missing_but_never_silently(
    tmp_path: Path, cited: list[str], evidence: list[str], found: dict[str, int]
) -> None:
    dataset = Locomo(written(tmp_path, [sample(qa=asked(evidence=cited))]), granularity="turn")
    [scenario] = dataset.scenarios()
    assert list(scenario.questions[0].evidence) == [f"conv-1/{label}" for label in evidence]
    assert dataset.findings.counts == found


def test_sessions_out_of_date_order_are_a_finding(tmp_path: Path) -> None:
    conversation = talk(session_2=[turn(1, 2)], session_2_date_time="1:00 pm on 1 May, 2023")
    dataset = Locomo(written(tmp_path, [sample(conversation=conversation)]))
    list(dataset.scenarios())
    assert dataset.findings.examples["unsorted dates"] == ["conv-1 D2"]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            {"question_id": "q1", "error_type": "X", "correct_evidence": []},
            "does not look like locomo_0_",
        ),
        ({"question_id": "locomo_0_qa0"}, "missing required field `error_type`"),
    ],
)
def test_a_bad_audit_entry_is_named_with_its_line(tmp_path: Path, entry: Row, said: str) -> None:
    path = written(tmp_path, [sample()])
    audit = written(tmp_path, b"[\n" + json.dumps(entry).encode() + b"]", "audit_errors.json")
    with pytest.raises(DataError, match=re.escape(said)) as caught:
        list(Locomo(path, audit=True).scenarios())
    assert str(caught.value).startswith(f"{audit}, line 2: ")


def test_a_folder_without_the_file_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match=r"locomo10\.json"):
        Locomo(tmp_path)
