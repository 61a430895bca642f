"""The audit without a model: each planted defect is found, a clean history has none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mnemoscope._store.errors import MissingData, UsageError
from mnemoscope._store.yaml import dump_yaml, load_yaml
from mnemoscope.cli.audit_persona import audit
from mnemoscope.personas.audit.audited_history import AuditedHistory
from mnemoscope.personas.audit.findings import DAY_CODES, QUESTION_CODES, AuditFinding, tally
from mnemoscope.personas.audit.static_audit import static_audit
from mnemoscope.personas.simulate.history_files import write_history
from mnemoscope.personas.simulate.simulator import simulate
from mnemoscope.personas.simulate.story import SHIPPED, shipped_story
from mnemoscope.personas.write.persona_files import open_persona_files
from mnemoscope.personas.write.question_rules import names

Change = Callable[[dict[str, Any]], None]


class Planted:
    """A clean history of twelve days to spoil: thing05 weighs 105 crates, and so on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.questions = folder / "qa-12d" / "questions.yaml"
        (folder / "qa-12d" / "ledger.jsonl").unlink()
        self._rewrite(_plain)

    def log(self, day: int) -> Path:
        return self.folder / "memories-12d" / f"day-{day:04}.md"

    def question(self, number: int, **fields: Any) -> str:
        """Change the fields of a question; its id."""

        def change(written: list[dict[str, Any]]) -> None:
            written[number - 1] |= fields

        self._rewrite(change)
        return f"tester-q{number:03}"

    def _rewrite(self, change: Callable[[list[dict[str, Any]]], None]) -> None:
        written = load_yaml(self.questions)
        change(written)
        self.questions.write_text(dump_yaml(written))

    def findings(self) -> list[AuditFinding]:
        return static_audit(AuditedHistory(open_persona_files(self.folder)))

    def the_one(self) -> AuditFinding:
        """The only finding that there is."""
        [found] = self.findings()
        return found


def _plain(written: list[dict[str, Any]]) -> None:
    for number, entry in enumerate(written, 1):
        # Asked once by its id; the ledger is gone, and two questions of a day differ.
        entry["question"] = entry["question"].partition(" ")[2] + (
            " Please." if number % 2 == 0 else ""
        )
        entry["key"] = []
        if entry["category"] == "negative-recall" and not entry["no_evidence"]:
            entry["category"] = "factual-recall"


@pytest.fixture
def planted(write_persona: Callable[..., Path], tmp_path: Path) -> Planted:
    return Planted(write_persona(tmp_path) / "tester")


def test_a_clean_history_has_no_findings(planted: Planted) -> None:
    assert planted.findings() == []


def test_empty_day(planted: Planted) -> None:
    planted.log(3).write_text("---\ntype: daily\n---\n\n# session: principal\n\n### thing03\n\n")
    found = [finding for finding in planted.findings() if finding.code == "empty-day"]
    assert [finding.day for finding in found] == [3]


def test_missing_day_and_the_questions_that_depend_on_it(planted: Planted) -> None:
    planted.log(1).unlink()  # the day on which the arc begins
    found = planted.findings()
    assert [f.day for f in found if f.code == "missing-day"] == [1]
    unknown = [f for f in found if f.code == "unknown-day"]
    assert [f.question for f in unknown] == ["tester-q001", "tester-q002"]
    assert all(f.proposal and f.proposal.drop for f in unknown)
    rows = {
        row.code: row
        for row in tally(found, AuditedHistory(open_persona_files(planted.folder)).entries)
    }
    assert (rows["missing-day"].days, rows["missing-day"].questions) == (1, 2)


def test_a_day_that_is_not_scheduled_is_not_missing(planted: Planted) -> None:
    planted.log(6).unlink()  # Saturday
    assert "missing-day" not in {finding.code for finding in planted.findings()}


def test_missing_session_of_a_directive(planted: Planted) -> None:
    arcs = planted.folder / "arcs-12d.yaml"
    text = arcs.read_text().replace(
        "endDay: 12", "endDay: 12, primarySession: leads, directives: [{day: 4, event: e}]"
    )
    arcs.write_text(text)
    found = planted.the_one()
    assert (found.code, found.day) == ("missing-session", 4)
    assert "leads" in found.why


def test_missing_session_of_the_schedule(planted: Planted) -> None:
    arcs = planted.folder / "arcs-12d.yaml"
    arcs.write_text(arcs.read_text().replace("endDay: 12", "endDay: 12, primarySession: leads"))
    persona = planted.folder / "persona.yaml"
    persona.write_text(
        persona.read_text().replace(
            "sessions: [", "sessions: [{id: leads, kind: group, participants: [P]}, "
        )
    )
    assert planted.findings() == []
    line = {"pass_name": "generate", "about": "day 1", "usage": {}}
    (planted.folder / "account.jsonl").write_text(json.dumps(line) + "\n")
    found = planted.findings()
    assert {finding.code for finding in found} == {"missing-session"}
    assert 1 in {finding.day for finding in found}


def test_missing_session_of_a_ledger_fact(
    write_persona: Callable[..., Path], tmp_path: Path
) -> None:
    folder = write_persona(tmp_path) / "tester"
    log = folder / "memories-12d" / "day-0005.md"
    log.write_text(log.read_text().replace("session: principal", "session: other"))
    found = [f for f in static_audit(AuditedHistory(open_persona_files(folder))) if f.day]
    assert [(f.code, f.day) for f in found] == [("missing-session", 5)]


@pytest.mark.parametrize("answer", ["thing05 weighs 106 crates.", "It weighs 105 tonnes of $12k."])
def test_value_absent(planted: Planted, answer: str) -> None:
    id = planted.question(9, answer=answer)
    found = planted.the_one()
    assert (found.code, found.question) == ("value-absent", id)


def test_value_absent_proposes_the_day_that_holds_the_value(planted: Planted) -> None:
    planted.question(9, answer="thing07 weighs 107 crates.", question="What weighs so much?")
    proposal = planted.the_one().proposal
    assert proposal is not None
    assert proposal.relevant_days == (7,)


def test_value_absent_that_the_ledger_requires(
    write_persona: Callable[..., Path], tmp_path: Path
) -> None:
    folder = write_persona(tmp_path) / "tester"
    log = folder / "memories-12d" / "day-0005.md"
    log.write_text(log.read_text().replace("105 crates", "a lot"))
    found = static_audit(AuditedHistory(open_persona_files(folder)))
    assert {(f.code, f.question) for f in found if f.code == "value-absent"} == {
        ("value-absent", "tester-q009"),
        ("value-absent", "tester-q010"),
    }


def test_entity_missing(planted: Planted) -> None:
    id = planted.question(9, question="What does the thing05 of Marguerite Vandal weigh?")
    found = planted.the_one()
    assert (found.code, found.question) == ("entity-missing", id)
    assert "Marguerite Vandal" in found.why


def test_no_overlap(planted: Planted) -> None:
    id = planted.question(9, question="Whose elephant sings?", answer="Grandmother's.")
    found = planted.the_one()
    assert (found.code, found.question) == ("no-overlap", id)
    assert found.proposal and found.proposal.drop


def test_day_number_and_its_date(planted: Planted) -> None:
    id = planted.question(9, question="What did thing05 weigh on days 4–5?")
    found = planted.the_one()
    assert (found.code, found.question) == ("day-number", id)
    assert found.proposal is not None
    assert found.proposal.question == "What did thing05 weigh on 2026-01-08 to 2026-01-09?"


def test_a_day_number_that_the_log_contains_is_no_finding(planted: Planted) -> None:
    planted.question(9, question="What did thing05 weigh on day 2 of the fair?")
    planted.log(5).write_text(planted.log(5).read_text() + "\nThis was day 2 of the fair.\n")
    assert planted.findings() == []


def test_whole_window_proposes_the_day_that_is_enough(planted: Planted) -> None:
    id = planted.question(9, relevant_days=[1, 2, 3, 4, 5, 6, 7])
    found = planted.the_one()
    assert (found.code, found.question) == ("whole-window", id)
    assert found.proposal is not None
    assert found.proposal.relevant_days == (5,)


def test_six_days_are_not_a_whole_window(planted: Planted) -> None:
    planted.question(9, relevant_days=[1, 2, 3, 4, 5, 7])
    assert planted.findings() == []


@pytest.mark.parametrize(
    ("written", "day"), [("2026-01-08", "before"), ("10 January 2026", "after")]
)
def test_date_drift(planted: Planted, written: str, day: str) -> None:
    planted.log(5).write_text(planted.log(5).read_text() + f"\nWritten on {written}.\n")
    found = planted.the_one()
    assert (found.code, found.day) == ("date-drift", 5)
    assert f"the day {day} only" in found.why


def test_unknown_day_proposes_the_days_that_are_there(planted: Planted) -> None:
    id = planted.question(9, relevant_days=[5, 99])
    found = planted.the_one()
    assert (found.code, found.question) == ("unknown-day", id)
    assert found.proposal is not None
    assert found.proposal.relevant_days == (5,)


def test_duplicate_question(planted: Planted) -> None:
    id = planted.question(10, question="what does THING05 weigh")
    found = planted.the_one()
    assert (found.code, found.question) == ("duplicate-question", id)
    assert "tester-q009" in found.why


def test_the_same_question_after_the_first_has_expired_is_not_a_duplicate(planted: Planted) -> None:
    planted.question(9, irrelevant_after=5)
    log = planted.log(8)
    log.write_text(log.read_text() + "\nNow thing05 weighs 300 crates.\n")
    planted.question(
        15, question="What does thing05 weigh?", answer="300 crates.", relevant_days=[8]
    )
    assert planted.findings() == []


def test_evidence_after_checkpoint(planted: Planted) -> None:
    id = planted.question(9, relevant_days=[5, 7], irrelevant_after=6)
    found = planted.the_one()
    assert (found.code, found.question) == ("evidence-after-checkpoint", id)


def test_category_doubt(planted: Planted) -> None:
    id = planted.question(9, category="negative-recall")
    found = planted.the_one()
    assert (found.code, found.question) == ("category-doubt", id)


@pytest.mark.parametrize(
    "fields", [{"relevant_days": []}, {"category": "trivia"}, {"answer": None}], ids=str
)
def test_unreadable(planted: Planted, fields: dict[str, Any]) -> None:
    id = planted.question(9, **fields)
    found = planted.the_one()
    assert (found.code, found.question) == ("unreadable", id)


def test_negative_questions_and_refusals_need_no_evidence(planted: Planted) -> None:
    planted.question(9, category="negative-recall", answer="Nothing is known of 999 zebras.")
    planted.question(
        11, category="information-boundary", expected_disclosure="refuse", answer="Ask Zeno Quix."
    )
    assert planted.findings() == []


def test_names_are_capitalised_words_that_do_not_begin_a_sentence() -> None:
    asked = "Did Ana Lee’s team meet Bob? Who of Acme went on Monday in March? The Q3 plan?"
    assert names(asked) == ["Ana Lee", "Bob", "Acme", "Q3"]


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    folder = tmp_path_factory.mktemp("personas")
    yield [write_history(simulate(shipped_story(id), 120, 7), folder) for id in SHIPPED]


def test_simulated_histories_only_have_findings_about_names(
    histories: list[Path],
) -> None:
    """Some are asked for by a description whose abbreviations, CT or BP, that day has not."""
    for folder in histories:
        history = AuditedHistory(open_persona_files(folder))
        found = static_audit(history)
        assert {finding.code for finding in found} <= {"entity-missing"}
        assert len(found) <= 0.05 * len(history.entries)
        assert all(name.isupper() for f in found for name in f.why.split(" is ")[0].split(", "))


def test_every_code_has_a_test() -> None:
    here = Path(__file__).read_text()
    for code in (*DAY_CODES, *QUESTION_CODES):
        assert f'"{code}"' in here


# The command.


def test_the_command_writes_trail_and_proposals_and_edits_nothing(
    planted: Planted, capsys: pytest.CaptureFixture[str]
) -> None:
    planted.question(9, relevant_days=[1, 2, 3, 4, 5, 6, 7])
    before = planted.questions.read_bytes()
    assert audit(persona=planted.folder) == 0
    assert "whole-window" in capsys.readouterr().out
    assert planted.questions.read_bytes() == before
    [line] = (planted.folder / "qa-12d" / "static-audit.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "code": "whole-window",
        "why": "days 1–7, all of them",
        "question": "tester-q009",
        "proposal": {"relevant_days": [5]},
    }
    [proposed] = load_yaml(planted.folder / "qa-12d" / "proposals.yaml")
    assert proposed["id"] == "tester-q009"
    assert proposed["proposals"][0]["relevant_days"] == [5]


def test_json_counts_each_code(planted: Planted, capsys: pytest.CaptureFixture[str]) -> None:
    planted.question(9, relevant_days=[1, 2, 3, 4, 5, 6, 7], irrelevant_after=6)
    audit(persona=planted.folder, json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["codes"] == {
        "whole-window": {"days": 0, "questions": 1},
        "evidence-after-checkpoint": {"days": 0, "questions": 1},
    }
    assert (told["days"], told["questions"]) == (12, 24)


def test_strict_fails_if_there_are_findings(planted: Planted) -> None:
    assert audit(persona=planted.folder, strict=True) == 0
    planted.question(9, category="negative-recall")
    assert audit(persona=planted.folder, strict=True) == 1


def test_what_cannot_be_read_is_an_error(planted: Planted) -> None:
    with pytest.raises(UsageError, match="--model"):
        audit(persona=planted.folder, estimate=True)
    planted.questions.unlink()
    with pytest.raises(MissingData):
        audit(persona=planted.folder)


def test_the_real_180_days(shared_data: Callable[[str], Path]) -> None:
    """Pinned: spec §2.9 counts 159 whole windows, 21 day numbers and 108 drifted days of summer.

    The 109th is day 13, which never names itself, only an appointment of the day after. q023 and
    q071 are called negative and deny nothing, as the spec says of q023; q116 gives two dates that
    its one day has not, q301 asks for Q1 on a day without it.
    """
    history = AuditedHistory(
        open_persona_files(shared_data("recall-bench") / "executive-assistant")
    )
    found = static_audit(history)
    assert len(history.entries) == 316
    assert {row.code: (row.days, row.questions) for row in tally(found, history.entries)} == {
        "date-drift": (109, 209),
        "value-absent": (0, 1),
        "entity-missing": (0, 1),
        "day-number": (0, 21),
        "whole-window": (0, 159),
        "duplicate-question": (0, 3),
        "category-doubt": (0, 2),
    }
    smaller = [f for f in found if f.code == "whole-window" and f.proposal is not None]
    assert all(f.proposal and 0 < len(f.proposal.relevant_days) < 7 for f in smaller)
    assert len(smaller) == 79
