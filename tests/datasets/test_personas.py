"""Personas: lives in daily logs as scenarios with checkpoints."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mnemoscope._store.errors import DataError, MissingData, MnemoscopeError, UsageError
from mnemoscope._store.jsonl import encode_lines
from mnemoscope._store.yaml import dump_yaml
from mnemoscope.datasets import open_dataset
from mnemoscope.datasets.base import Dataset
from mnemoscope.datasets.dataset_check import check
from mnemoscope.datasets.persona_folder import find_personas, problems
from mnemoscope.datasets.personas import Personas, longest_row
from mnemoscope.text.fact_ledger import LedgerFact
from mnemoscope.types import CATEGORIES, CORE_CATEGORIES, AnswerKey, Memory, Question, Scenario

Row = dict[str, Any]


def entry(id: str = "ann-q001", **fields: Any) -> Row:
    return {
        "id": id,
        "question": f"What of {id}?",
        "answer": "Tea.",
        "category": "factual-recall",
        "difficulty": "easy",
        "relevant_days": [1],
        "requires_synthesis": False,
        **fields,
    }


def log(day: int) -> str:
    return f"---\ntype: daily\n---\n\n# session: principal\n\n### Topic\nWords of day {day}.\n"


def persona(
    data: Path,
    id: str = "ann",
    suffix: str = "-9d",
    *,
    sheet: Row | None = None,
    arcs: Row | None = None,
    days: int = 9,
    questions: Any = None,
    ledger: list[LedgerFact] | None = None,
) -> Path:
    """Write a persona's folder."""
    folder = data / id
    memories, qa = folder / f"memories{suffix}", folder / f"qa{suffix}"
    memories.mkdir(parents=True)
    qa.mkdir()
    write(folder / "persona.yaml", {"id": id, "name": "Ann"} if sheet is None else sheet)
    write(folder / f"arcs{suffix}.yaml", {"epoch": "2026-03-01"} if arcs is None else arcs)
    write(qa / "questions.yaml", [entry(f"{id}-q001")] if questions is None else questions)
    for day in range(1, days + 1):
        (memories / f"day-{day:04}.md").write_text(log(day), encoding="utf-8")
    if ledger is not None:
        (qa / "ledger.jsonl").write_bytes(encode_lines(ledger))
    return folder


def write(path: Path, content: Any) -> None:
    path.write_text(dump_yaml(content), encoding="utf-8")


def read(dataset: Dataset) -> Scenario:
    [scenario] = dataset.scenarios()
    return scenario


def asked(data: Path, **options: Any) -> list[Question]:
    return list(read(Personas(data, **options)).questions)


def refusal(data: Path, **options: Any) -> str:
    with pytest.raises(MnemoscopeError) as caught:
        list(Personas(data, **options).scenarios())
    return str(caught.value)


# What is read.


def test_a_history_is_a_scenario_of_days(tmp_path: Path) -> None:
    persona(tmp_path)
    scenario = read(Personas(tmp_path))
    assert scenario.id == "ann"
    assert len(scenario.memories) == 9
    assert scenario.memories[6] == Memory(
        id="ann/day-0007",
        text="# session: principal\n\n### Topic\nWords of day 7.",
        at=datetime(2026, 3, 7, tzinfo=UTC),
        metadata={"day": 7},
    )


def test_data_may_be_the_folder_of_one_persona(tmp_path: Path) -> None:
    folder = persona(tmp_path)
    assert read(Personas(folder)) == read(Personas(tmp_path))


def test_it_is_opened_by_name_with_options_as_text(tmp_path: Path) -> None:
    persona(tmp_path)
    dataset = open_dataset("personas", tmp_path, {"groups": "on", "sample": "3", "ranges": "3d"})
    assert dataset.options == {
        "personas": "",
        "arcs": "",
        "ranges": "3d",
        "sample": 3,
        "groups": True,
        "seed": 42,
        "granularity": "day",
    }
    assert [checkpoint.label for checkpoint in read(dataset).checkpoints] == ["3d"]


@pytest.mark.parametrize(
    ("granularity", "id"), [("session", "principal"), ("section", "principal/1")]
)
def test_pieces_of_a_day_know_the_day_that_evidence_names(
    tmp_path: Path, granularity: Any, id: str
) -> None:
    persona(tmp_path)
    scenario = read(Personas(tmp_path, granularity=granularity))
    assert scenario.memories[6] == Memory(
        id=f"ann/day-0007/{id}",
        text="### Topic\nWords of day 7.",
        at=datetime(2026, 3, 7, tzinfo=UTC),
        session="principal",
        metadata={"day": 7},
        part_of="ann/day-0007",
    )
    assert scenario.questions[0].evidence == ("ann/day-0001",)


def test_finer_pieces_move_no_checkpoint(tmp_path: Path) -> None:
    folder = persona(tmp_path)
    two = "# session: principal\nOne.\n# session: board\nTwo."
    (folder / "memories-9d" / "day-0002.md").write_text(two, encoding="utf-8")
    days = read(Personas(tmp_path, ranges="2d,full")).checkpoints
    sessions = read(Personas(tmp_path, ranges="2d,full", granularity="session")).checkpoints
    assert [checkpoint.memories for checkpoint in days] == [2, 9]
    assert [checkpoint.memories for checkpoint in sessions] == [3, 10]
    assert [c.questions for c in days] == [c.questions for c in sessions]


def test_a_question_is_read_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    questions = [
        entry(
            "ann-q1",
            relevant_days=[9, 8],
            irrelevant_after=20,
            query_session="principal",
            forbidden_sessions=["board"],
            category="information-boundary",
            expected_disclosure="partial",
        )
    ]
    persona(tmp_path, questions=questions)
    assert asked(tmp_path) == [
        Question(
            id="ann-q1",
            text="What of ann-q1?",
            reference="Tea.",
            category="information-boundary",
            evidence=("ann/day-0008", "ann/day-0009"),
            expects="partial",
            session="principal",
            difficulty="easy",
            expires_after=datetime(2026, 3, 20, 23, 59, 59, tzinfo=UTC),
            cluster="ann/week-2",
            relevant_days=(8, 9),
            forbidden=("board",),
        )
    ]


@pytest.mark.parametrize(
    ("fields", "expects"),
    [
        ({}, "answer"),
        ({"category": "negative-recall"}, "abstain"),
        ({"expected_disclosure": "refuse"}, "refuse"),
        ({"expected_disclosure": "partial"}, "partial"),
        ({"expected_disclosure": "answer"}, "answer"),
    ],
)
def test_what_is_expected_follows_the_category_and_the_disclosure(
    tmp_path: Path, fields: Row, expects: str
) -> None:
    persona(tmp_path, questions=[entry(**fields)])
    assert asked(tmp_path)[0].expects == expects


def test_days_that_only_say_when_to_ask_are_no_evidence(tmp_path: Path) -> None:
    negative = {"category": "negative-recall", "relevant_days": [2]}
    questions = [entry("real", **negative), entry("simulated", **negative, no_evidence=True)]
    persona(tmp_path, questions=questions)
    real, simulated = asked(tmp_path)
    assert real.evidence == ("ann/day-0002",)
    assert simulated.evidence == ()
    assert simulated.relevant_days == (2,)


def test_questions_of_one_arc_or_one_week_are_a_cluster(tmp_path: Path) -> None:
    questions = [entry("a", arc="heron"), entry("b", relevant_days=[7]), entry("c", arc="heron")]
    persona(tmp_path, questions=questions)
    assert [one.cluster for one in asked(tmp_path)] == ["ann/heron", "ann/week-1", "ann/heron"]


def test_dates_and_numbers_in_answers_stay_as_written(tmp_path: Path) -> None:
    folder = persona(tmp_path)
    text = "\n".join(
        f"- {{id: q{number}, question: When?, answer: {answer}, category: synthesis, "
        "relevant_days: [1]}"
        for number, answer in enumerate(["2026-04-30", "no", "42", "true"])
    )
    (folder / "qa-9d" / "questions.yaml").write_text(text, encoding="utf-8")
    assert [one.reference for one in asked(tmp_path)] == ["2026-04-30", "no", "42", "true"]


def test_checkpoints_are_planned_for_each_persona(tmp_path: Path) -> None:
    persona(tmp_path, "ann", questions=[entry("a1"), entry("a2", relevant_days=[5])])
    persona(tmp_path, "bob", questions=[entry("b1", relevant_days=[9])])
    ann, bob = Personas(tmp_path, ranges="5d,9d", seed=0).scenarios()
    assert [checkpoint.questions for checkpoint in ann.checkpoints] == [("a1", "a2"), ("a1", "a2")]
    assert [checkpoint.questions for checkpoint in bob.checkpoints] == [(), ("b1",)]


def test_without_ranges_everything_is_asked_once_at_the_end(tmp_path: Path) -> None:
    persona(tmp_path, questions=[entry("a"), entry("b", irrelevant_after=2)])
    scenario = read(Personas(tmp_path, ranges="none"))
    assert scenario.checkpoints == ()
    assert len(scenario.questions) == 2


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    persona(tmp_path)
    dataset = Personas(tmp_path)
    first, counts, findings = read(dataset), dataset.counts(), dataset.findings
    assert read(dataset) == first
    assert dataset.counts() == counts
    assert dataset.findings == findings


# Which folders.


def test_the_arcs_file_pairs_logs_and_questions(tmp_path: Path) -> None:
    persona(tmp_path, suffix="")
    [plain] = find_personas(tmp_path)
    assert plain.memories == tmp_path / "ann" / "memories"
    assert plain.questions == tmp_path / "ann" / "qa" / "questions.yaml"
    assert read(Personas(tmp_path)).id == "ann"


def test_of_several_arcs_the_long_one_is_taken_or_the_one_asked_for(tmp_path: Path) -> None:
    folder = persona(tmp_path, suffix="-1000d")
    write(folder / "arcs-180d.yaml", {})
    assert find_personas(tmp_path)[0].arcs.name == "arcs-1000d.yaml"
    assert find_personas(tmp_path, arcs="arcs-180d.yaml")[0].arcs.name == "arcs-180d.yaml"


def test_of_several_arcs_one_that_has_logs_is_taken_and_that_is_said(tmp_path: Path) -> None:
    """Recall Bench's own repository: arcs for 180, 500 and 1,000 days, logs for some."""
    folder = persona(tmp_path)
    for name in ("arcs-180d.yaml", "arcs-1000d.yaml"):
        write(folder / name, {})
    (folder / "memories-180d").mkdir()
    dataset = Personas(tmp_path)
    assert [one.arcs.name for one in dataset.folders] == ["arcs-9d.yaml"]
    assert problems(tmp_path) == []
    read(dataset)
    kind = "persona with several arcs files, of which one with logs is used"
    [said] = dataset.findings.examples[kind]
    assert said == "ann: arcs-9d.yaml, not arcs-1000d.yaml, arcs-180d.yaml; --arcs selects another"
    with pytest.raises(MissingData, match="questions"):
        Personas(tmp_path, arcs="arcs-180d.yaml")


def test_where_no_arcs_have_logs_they_are_listed(tmp_path: Path) -> None:
    folder = persona(tmp_path)
    write(folder / "arcs-180d.yaml", {})
    (folder / "qa-9d" / "questions.yaml").unlink()
    said = refusal(tmp_path)
    assert str(folder) in said
    assert "arcs-180d.yaml, arcs-9d.yaml" in said
    assert "--arcs" in said


def test_some_personas_can_be_chosen_in_any_order(tmp_path: Path) -> None:
    for id in ("ann", "bob", "cy"):
        persona(tmp_path, id)
    dataset = Personas(tmp_path, personas="cy, ann")
    assert dataset.expected_scenarios == 2
    assert [scenario.id for scenario in dataset.scenarios()] == ["cy", "ann"]


def test_an_unknown_persona_error_lists_the_known_ones(tmp_path: Path) -> None:
    persona(tmp_path, "ann")
    persona(tmp_path, "bob")
    with pytest.raises(UsageError, match=r"unknown persona 'anne'.*ann, bob"):
        Personas(tmp_path, personas="anne")


@pytest.mark.parametrize(
    ("arcs", "sheet", "day_one"),
    [
        ({"epoch": "2026-03-01"}, {"epoch": "2025-01-01"}, "2026-03-01"),
        ({}, {"epoch": "2025-01-01"}, "2025-01-01"),
        ({}, {}, "2024-01-01"),
    ],
)
def test_the_epoch_comes_from_the_arcs_else_the_persona_else_the_default(
    tmp_path: Path, arcs: Row, sheet: Row, day_one: str
) -> None:
    persona(tmp_path, arcs=arcs, sheet={"id": "ann", **sheet})
    at = read(Personas(tmp_path)).memories[0].at
    assert at is not None
    assert at.isoformat() == f"{day_one}T00:00:00+00:00"


# The ledger.

FACTS = [
    LedgerFact("f1", "Heron", "project.budget", "$240k", 1, ("$240,000",), "f2", 4),
    LedgerFact("f2", "Heron", "project.budget", "$300k", 4),
    LedgerFact("f3", "Condor", "project.budget", "$90k", 2),
]


def test_a_ledger_gives_every_question_its_key(tmp_path: Path) -> None:
    questions = [
        entry("now", key=["f2.value"], relevant_days=[4]),
        entry("never", category="negative-recall", no_evidence=True),
        entry("when", key=["f3.date"], secret=["f1"]),
    ]
    persona(tmp_path, questions=questions, ledger=FACTS)
    dataset = Personas(tmp_path)
    now, never, when = read(dataset).questions
    assert dataset.has_ledger
    assert now.key == AnswerKey((("$300k",),), outdated=("$240k",), others=("$90k",))
    assert never.key == AnswerKey()
    assert when.key is not None
    assert "2 March 2026" in when.key.required[0]
    assert when.key.secret == ("$240k", "$240,000")


def test_one_persona_without_a_ledger_is_enough_to_have_none(tmp_path: Path) -> None:
    persona(tmp_path, "ann", ledger=FACTS)
    persona(tmp_path, "bob")
    dataset = Personas(tmp_path)
    ann, bob = dataset.scenarios()
    assert not dataset.has_ledger
    assert ann.questions[0].key is not None
    assert bob.questions[0].key is None


@pytest.mark.parametrize("key", ["f9.value", "f1.colour", "f1"])
def test_an_unknown_ledger_reference_names_its_question(tmp_path: Path, key: str) -> None:
    persona(tmp_path, questions=[entry("ann-q7", key=[key])], ledger=FACTS)
    said = refusal(tmp_path)
    assert "questions.yaml" in said
    assert "ann-q7" in said


# What is wrong.


@pytest.mark.parametrize(
    ("questions", "words"),
    [
        ({"a": 1}, ["is not a list of questions"]),
        ([], ["contains no questions"]),
        ("", ["is not a list of questions"]),
        (["text"], ["entry 1", "object"]),
        (
            [entry("a"), entry("b"), {k: v for k, v in entry("c").items() if k != "question"}],
            ["entry 3 (id c)", "`question`"],
        ),
        ([entry("a", question="")], ["entry 1 (id a)", "question"]),
        ([entry("a", question=None)], ["entry 1 (id a)", "question"]),
        ([entry("a", relevant_days=[1, 0])], ["(id a)", "relevant_days"]),
        ([entry("a", relevant_days=[1.5])], ["(id a)", "relevant_days"]),
        ([entry("a", relevant_days=[])], ["(id a)", "relevant_days"]),
        ([entry("a", relevant_days="1-7")], ["(id a)", "relevant_days"]),
        ([entry("a", irrelevant_after=0)], ["(id a)", "irrelevant_after"]),
        ([entry("a", irrelevant_after=10**12)], ["(id a)", "irrelevant_after"]),
        ([entry("a", category="trivia")], ["(id a)", "category", "'trivia'", *CATEGORIES]),
        (
            [entry("a", expected_disclosure="shrug")],
            ["(id a)", "expected_disclosure", "refuse, partial, answer"],
        ),
        ([entry("a"), entry("a")], ["entry 2 (id a)", "`id`", "entry 1"]),
        ([entry("a", forbidden_sessions="board")], ["(id a)", "forbidden_sessions"]),
    ],
)
def test_a_wrong_question_is_named_with_its_field(
    tmp_path: Path, questions: Any, words: list[str]
) -> None:
    persona(tmp_path, questions=questions)
    said = refusal(tmp_path)
    for word in [str(tmp_path / "ann" / "qa-9d" / "questions.yaml"), *words]:
        assert word in said
    assert [str(problem) for problem in problems(tmp_path)] == [said]


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("persona.yaml", {"name": "Ann"}, ["`id`"]),
        ("persona.yaml", {"id": "a/b"}, ["id"]),
        ("persona.yaml", {"id": "ann", "sessions": [{"kind": "group"}]}, ["`id`", "sessions"]),
        ("persona.yaml", ["ann"], ["object"]),
        ("arcs-9d.yaml", {"epoch": "yesterday"}, ["`epoch`", "'yesterday'"]),
        ("arcs-9d.yaml", {"epoch": 2026}, ["epoch"]),
    ],
)
def test_a_wrong_persona_or_story_is_named_with_its_field(
    tmp_path: Path, file: str, content: Any, words: list[str]
) -> None:
    folder = persona(tmp_path)
    write(folder / file, content)
    said = refusal(tmp_path)
    for word in [str(folder / file), *words]:
        assert word in said
    assert said in [str(problem) for problem in problems(tmp_path)]


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ("persona.yaml", "persona.yaml is missing"),
        ("arcs-9d.yaml", "has no arcs file"),
        ("qa-9d/questions.yaml", "questions.yaml is missing"),
        ("memories-9d", "memories-9d is missing"),
    ],
)
def test_what_is_missing_is_named_before_anything_runs(
    tmp_path: Path, missing: str, named: str
) -> None:
    folder = persona(tmp_path)
    (folder / missing).rename(tmp_path / "elsewhere")
    with pytest.raises(MissingData, match=named):
        Personas(tmp_path)
    assert any(named in str(problem) for problem in problems(tmp_path))


def test_a_folder_without_personas_or_with_missing_arcs_is_refused(tmp_path: Path) -> None:
    assert "contains no personas" in refusal(tmp_path)
    persona(tmp_path)
    assert "contains no personas" in refusal(tmp_path / "ann" / "persona.yaml")
    assert "it has arcs-9d.yaml" in refusal(tmp_path, arcs="arcs-180d.yaml")
    assert "is not an arcs file" in refusal(tmp_path, arcs="story.yaml")
    assert "sample=-1" in refusal(tmp_path, sample=-1)


def test_preflight_finds_every_problem_at_once_and_nothing_where_there_is_none(
    tmp_path: Path,
) -> None:
    persona(tmp_path, "ann")
    assert problems(tmp_path) == []
    bad = [entry("q1", category="trivia"), entry("q2"), entry("q3", relevant_days=[-1])]
    folder = persona(tmp_path, "bob", arcs={"epoch": "soon"}, questions=bad)
    (folder / "memories-9d").rename(tmp_path / "elsewhere")
    said = [str(problem) for problem in problems(tmp_path)]
    assert len(said) == 4
    for word, one in zip(("epoch", "memories-9d", "(id q1)", "(id q3)"), said, strict=True):
        assert word in one
    assert problems(tmp_path, personas="ann") == []


def test_two_folders_of_one_persona_are_refused(tmp_path: Path) -> None:
    persona(tmp_path, "ann")
    persona(tmp_path, "bob", sheet={"id": "ann"})
    with pytest.raises(DataError, match=r"bob/persona\.yaml: field `id`"):
        Personas(tmp_path)


# What is odd.


def found(data: Path, **options: Any) -> dict[str, int]:
    dataset = Personas(data, **options)
    list(dataset.scenarios())
    return {
        kind: count
        for kind, count in dataset.findings.counts.items()
        if kind != "category without a question"
    }


def test_a_regular_history_has_no_findings(tmp_path: Path) -> None:
    persona(tmp_path)
    assert found(tmp_path) == {}


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"relevant_days": [1, 99]}, "relevant day without a log"),
        ({"relevant_days": [3, 4, 5, 6, 7, 8, 9]}, "evidence is a whole week of consecutive days"),
        ({"relevant_days": list(range(1, 10))}, "evidence is more than a week of consecutive days"),
        ({"question": "What of days 8–14?"}, "question names day numbers"),
        ({"question": "What on Day 8?"}, "question names day numbers"),
        (
            {"relevant_days": [5], "irrelevant_after": 4},
            "question expires before its last relevant day",
        ),
        ({"query_session": "attic"}, "session not declared in persona.yaml"),
    ],
)
def test_an_irregular_question_is_a_finding(tmp_path: Path, fields: Row, kind: str) -> None:
    persona(tmp_path, questions=[entry(**fields), entry("ann-q2", question="In 30 days?")])
    assert found(tmp_path) == {kind: 1}


def test_a_day_without_a_file_is_no_evidence(tmp_path: Path) -> None:
    persona(tmp_path, questions=[entry(relevant_days=[2, 99])])
    [question] = asked(tmp_path)
    assert question.evidence == ("ann/day-0002",)
    assert question.relevant_days == (2, 99)


def test_logs_dated_a_day_early_or_late_are_findings(tmp_path: Path) -> None:
    folder = persona(tmp_path) / "memories-9d"
    (folder / "day-0002.md").write_text("Log of 2026-03-01.", encoding="utf-8")
    (folder / "day-0003.md").write_text("Log of 4 March 2026.", encoding="utf-8")
    (folder / "day-0004.md").write_text("4 March 2026, after 2026-03-03.", encoding="utf-8")
    assert found(tmp_path) == {
        "date in the text is a day early": 1,
        "date in the text is a day late": 1,
    }


def test_an_empty_log_is_a_finding(tmp_path: Path) -> None:
    folder = persona(tmp_path) / "memories-9d"
    (folder / "day-0002.md").write_text("---\ntype: daily\n---\n", encoding="utf-8")
    assert found(tmp_path) == {"empty memory text": 1}
    assert found(tmp_path, granularity="section") == {"empty memory text": 1}


@pytest.mark.parametrize(
    ("sessions", "missing"),
    [
        ([], len(CORE_CATEGORIES)),
        ([{"id": "principal", "kind": "1to1"}], len(CORE_CATEGORIES)),
        ([{"id": "board", "kind": "group"}], len(CORE_CATEGORIES) + 1),
        ([{"id": "deal", "kind": "group", "isolated": True}], len(CORE_CATEGORIES) + 2),
    ],
)
def test_categories_that_such_a_persona_should_have_and_has_not_are_findings(
    tmp_path: Path, sessions: list[Row], missing: int
) -> None:
    persona(tmp_path, sheet={"id": "ann", "sessions": sessions})
    dataset = Personas(tmp_path)
    list(dataset.scenarios())
    assert dataset.findings.counts["category without a question"] == missing - 1


def test_everything_is_counted(tmp_path: Path) -> None:
    questions = [
        entry("a", irrelevant_after=3),
        entry("b", category="synthesis", difficulty="hard", relevant_days=[1, 2]),
    ]
    persona(tmp_path, "ann", questions=questions)
    persona(tmp_path, "bob", days=3)
    dataset = Personas(tmp_path, ranges="3d,9d")
    list(dataset.scenarios())
    assert dataset.counts() == {
        "personas": 2,
        "days": 12,
        "memories": 12,
        "questions": 3,
        "evidence": 4,
        "questions that expire": 1,
        "checkpoints": 4,
        "asked at checkpoints": 5,
        "factual-recall": 2,
        "synthesis": 1,
        "easy": 2,
        "hard": 1,
    }


@pytest.mark.parametrize(
    ("days", "row"), [((5,), 1), ((1, 2, 3, 9), 3), ((9, 1, 3, 2), 3), ((4, 4, 5), 2)]
)
def test_days_in_a_row_are_counted_in_any_order(days: tuple[int, ...], row: int) -> None:
    assert longest_row(days) == row


# Identity.


def test_each_part_of_each_persona_has_one_hash(tmp_path: Path) -> None:
    persona(tmp_path, "ann", ledger=FACTS)
    persona(tmp_path, "bob")
    names = [(file.path.parent.name, file.path.name) for file in Personas(tmp_path).files()]
    assert names == [
        ("ann", "persona.yaml"),
        ("ann", "arcs-9d.yaml"),
        ("qa-9d", "questions.yaml"),
        ("qa-9d", "ledger.jsonl"),
        ("ann", "memories-9d"),
        ("bob", "persona.yaml"),
        ("bob", "arcs-9d.yaml"),
        ("qa-9d", "questions.yaml"),
        ("bob", "memories-9d"),
    ]


@pytest.mark.parametrize("file", ["memories-9d/day-0005.md", "qa-9d/questions.yaml"])
def test_a_changed_file_changes_the_identity(tmp_path: Path, file: str) -> None:
    folder = persona(tmp_path)
    before = [one.sha256 for one in Personas(tmp_path).files()]
    with (folder / file).open("a", encoding="utf-8") as changed:
        changed.write("\n")
    after = [one.sha256 for one in Personas(tmp_path).files()]
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 1


def test_a_check_finds_no_leak_in_a_history(tmp_path: Path) -> None:
    questions = [entry(f"q{day}", relevant_days=[day]) for day in range(1, 9)]
    persona(tmp_path, questions=questions)
    checked = check(Personas(tmp_path))
    assert checked.problems == []
    assert checked.counts["questions with evidence"] == 8
