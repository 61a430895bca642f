"""A person's review: decisions are kept at once, and count only for what was shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mnemoscope as ms
from mnemoscope._store.errors import UsageError
from mnemoscope.cli import console
from mnemoscope.cli import questions as command
from mnemoscope.cli.app import invoke
from mnemoscope.datasets.strata import Strata
from mnemoscope.datasets.strata_rules import OVERLAP

Lines = Callable[[Path], list[dict[str, Any]]]


@pytest.fixture
def drafted(store: Path) -> Path:
    ms.draft_questions(store, per_stratum=2, strata=["exact", "paraphrase"])
    return store


def confirmed(folder: Path) -> int:
    dataset = Strata(folder)
    assert [len(one.memories) for one in dataset.scenarios()] == [15]
    assert dataset.reviewed is not None
    return dataset.reviewed.confirmed


def test_decisions_are_kept_and_the_review_continues(drafted: Path, questions_of: Lines) -> None:
    session = ms.review_questions(drafted)
    first, second, third, _ = session.waiting()
    session.accept(first.question)
    session.reject(second.question)
    assert session.edit(third.question, "What did Ben do with his offspring?") == []

    again = ms.review_questions(drafted)
    assert len(again.waiting()) == 1
    assert (again.confirmed, again.total) == (2, 3)
    texts = [line["text"] for line in questions_of(drafted)]
    assert second.question.text not in texts
    assert "What did Ben do with his offspring?" in texts
    assert confirmed(drafted) == 2


def test_an_edit_that_breaks_a_rule_changes_nothing(drafted: Path) -> None:
    session = ms.review_questions(drafted)
    item = next(one for one in session.waiting() if one.question.stratum == "paraphrase")
    before = (drafted / "queries.jsonl").read_bytes()
    [broken] = session.edit(item.question, item.gold[0].text)
    assert broken.rule == OVERLAP
    assert (drafted / "queries.jsonl").read_bytes() == before
    assert not (drafted / "review.jsonl").exists()
    with pytest.raises(UsageError, match="cannot be empty"):
        session.edit(item.question, "  ")


def test_a_question_that_changed_after_its_review_is_not_confirmed(drafted: Path) -> None:
    session = ms.review_questions(drafted)
    for item in session.waiting():
        session.accept(item.question)
    assert confirmed(drafted) == 4

    path = drafted / "qrels.jsonl"
    path.write_text(path.read_text().replace('["t2.0"]', '["t1.1"]'))
    assert confirmed(drafted) < 4
    assert ms.review_questions(drafted).waiting()


def test_a_killed_review_loses_at_most_the_decision_being_written(drafted: Path) -> None:
    session = ms.review_questions(drafted)
    first, second, *_ = session.waiting()
    session.accept(first.question)
    with (drafted / "review.jsonl").open("ab") as file:
        file.write(b'{"query_id": "exact_')
    assert confirmed(drafted) == 1
    again = ms.review_questions(drafted)
    assert len(again.waiting()) == 3
    again.accept(second.question)
    assert confirmed(drafted) == 2


def test_a_rejection_that_was_not_carried_out_is_carried_out_later(drafted: Path) -> None:
    before = [(drafted / name).read_bytes() for name in ("queries.jsonl", "qrels.jsonl")]
    session = ms.review_questions(drafted)
    session.reject(session.waiting()[0].question)
    for name, content in zip(("queries.jsonl", "qrels.jsonl"), before, strict=True):
        (drafted / name).write_bytes(content)  # as if killed between log and files
    assert ms.review_questions(drafted).total == 3


def test_a_rejected_question_is_not_drafted_again(drafted: Path, questions_of: Lines) -> None:
    session = ms.review_questions(drafted)
    item = session.waiting()[0]
    session.reject(item.question)
    made = ms.draft_questions(drafted, per_stratum=9, strata=["exact", "paraphrase"])
    assert item.question.text not in [line["text"] for line in questions_of(drafted)]
    assert made.dropped["exact"]["were rejected by a person before"] == 1


def test_confirmed_drafts_survive_drafting_with_another_seed(drafted: Path) -> None:
    session = ms.review_questions(drafted)
    item = session.waiting()[0]
    session.accept(item.question)
    ms.draft_questions(drafted, per_stratum=2, seed=7, strata=["exact", "paraphrase"])
    assert confirmed(drafted) == 1


def test_review_needs_questions_and_a_terminal(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match="questions draft"):
        ms.review_questions(store)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    assert invoke(["questions", "review", str(store)]) == 2
    assert "run it in a terminal" in capsys.readouterr().err


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Answers to the prompts of the command; after the last one, Ctrl-C."""

    def typing(*keys: str) -> None:
        def replies() -> Iterator[str]:
            yield from keys
            raise KeyboardInterrupt

        given = replies()
        monkeypatch.setattr("sys.stdin.isatty", lambda: True)
        monkeypatch.setattr(console.out, "input", lambda _: next(given))
        monkeypatch.setattr(command, "_line_to_edit", lambda _: next(given))

    return typing


def test_the_command_reviews_by_keys_and_continues_after_ctrl_c(
    drafted: Path, typed: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    typed("x", "a", "r")
    assert invoke(["questions", "review", str(drafted)]) == 130
    assert "repeat the command to continue" in capsys.readouterr().err
    assert len((drafted / "review.jsonl").read_text().splitlines()) == 2

    copied = json.loads((drafted / "corpus.jsonl").read_text().splitlines()[1])["content"]
    typed("s", "e", copied, "e", "What did Ben do with his offspring?")
    assert invoke(["questions", "review", str(drafted)]) == 0
    told = capsys.readouterr()
    assert "share too many words" in told.err
    assert "2 of 3 questions confirmed, 1 to review" in told.out


def test_a_draft_that_breaks_a_rule_cannot_be_accepted(
    drafted: Path, typed: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    path = drafted / "queries.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[-1]["text"] = lines[0]["text"] = "We took the kids to the museum"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    typed("a", "q")
    assert invoke(["questions", "review", str(drafted)]) == 0
    assert "edit or reject it" in capsys.readouterr().err
    assert not (drafted / "review.jsonl").exists()
