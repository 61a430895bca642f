"""Questions: grounded in their window, checked one by one, each window asked once."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import StartCommand
from tests.personas.small_persona import (
    days_in,
    fail_a_fifth,
    kill_and_resume,
    pair,
    reply,
    write_small_persona,
)
from tests.scripted_server import Request, ScriptedServer, says

from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import Journal
from mnemoscope._store.yaml import dump_yaml, load_yaml
from mnemoscope.cli.write_questions import qa
from mnemoscope.cli.writing import Writing
from mnemoscope.datasets.persona_folder import QuestionEntry, read_questions
from mnemoscope.models.chat import Prompt
from mnemoscope.personas.audit.audited_history import AuditedHistory
from mnemoscope.personas.audit.static_audit import check_questions
from mnemoscope.personas.authored_question import AuthoredQuestion
from mnemoscope.personas.write.llm_writer import Task, Written
from mnemoscope.personas.write.persona_files import PersonaFiles
from mnemoscope.personas.write.question_rules import WindowReply
from mnemoscope.personas.write.question_store import QuestionStore, WindowRecord
from mnemoscope.personas.write.question_windows import open_windows, wanted


def easy_question(question: str, answer: str, day: int) -> AuthoredQuestion:
    return AuthoredQuestion(
        question=question,
        answer=answer,
        category="factual-recall",
        difficulty="easy",
        relevant_days=(day,),
        requires_synthesis=False,
    )


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(reply) as running:
        yield running


def ask(persona: PersonaFiles, server: ScriptedServer, **more: Any) -> int:
    options = Writing(persona=persona.folder, model=f"toy@{server.url}", **more.pop("writing", {}))
    return qa(writing=options, **more)


def written(persona: PersonaFiles) -> list[QuestionEntry]:
    return read_questions(persona.beside("qa") / "questions.yaml")


def replies(server: ScriptedServer, *pairs: dict[str, Any]) -> None:
    server.reply(lambda request: json.dumps(pairs))


def test_pairs_of_all_windows_are_in_the_known_format(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=17)

    assert ask(persona, server) == 0

    assert server.requests == 3
    entries = written(persona)
    assert [entry.id for entry in entries] == [f"tester-q{n:03}" for n in range(1, 18)]
    assert sorted(entry.relevant_days for entry in entries) == [(day,) for day in range(1, 18)]
    first = load_yaml(persona.beside("qa") / "questions.yaml")[0]
    assert list(first) == [
        "id",
        "question",
        "answer",
        "category",
        "difficulty",
        "relevant_days",
        "requires_synthesis",
    ]


def test_what_was_written_passes_the_audit(server: ScriptedServer, tmp_path: Path) -> None:
    persona = write_small_persona(tmp_path, days=14)
    assert ask(persona, server) == 0

    assert list(check_questions(AuditedHistory(persona))) == []


def test_a_prompt_contains_its_window_nothing_later_and_nothing_isolated(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=30)

    ask(persona, server)

    checkpoints = []
    for request in server.seen:
        whole = request.system + request.text
        last = max(days_in(whole))
        checkpoints.append(last)
        for day in range(1, 31):
            assert (f"principalword{day:02}" in whole) == (day in days_in(whole))
            assert f"foreseen{day:02}" not in whole, "arcs tell what is to come"
        assert not re.search("vaultword|vaulttitle", whole)
        assert ("newscales" in whole) == (9 <= last <= 14)
    assert sorted(checkpoints) == [7, 14, 21, 28, 30]


def test_a_corrected_belief_is_shown_with_the_wrong_one(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=14)

    ask(persona, server)

    shown = sorted(days_in(request.text) for request in server.seen)
    assert shown == [[1, 2, 3, 4, 5, 6, 7], [2, *range(8, 15)]]
    second = next(request for request in server.seen if 14 in days_in(request.text))
    assert "contradiction-resolution: " in second.text.partition("Write 12 pairs")[2]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"answer": ""}, "unreadable"),
        ({"relevant_days": "2"}, "unreadable"),
        ({"relevant_days": []}, "unreadable"),
        ({"category": "gossip"}, "category"),
        ({"category": "information-boundary"}, "category"),
        ({"difficulty": "impossible"}, "difficulty"),
        ({"question": "What did thing02 weigh on day 2?"}, "day-number"),
        ({"question": "What did thing02 weigh in days 1–3?"}, "day-number"),
        ({"relevant_days": [8]}, "unknown-day"),
        ({"relevant_days": [2, 99]}, "unknown-day"),
        ({"answer": "thing02 weighs 777 crates."}, "value-absent"),
        ({"answer": "On 3 March 2027 thing02 weighed 102 crates."}, "value-absent"),
        ({"answer": "It was Zelda Fitz who weighed thing02."}, "value-absent"),
        ({"answer": "Zelda"}, "value-absent"),
        ({"question": "What did Zelda say that thing02 weighs?"}, "entity-missing"),
        (
            {"question": "Where do penguins sleep?", "answer": "Under umbrellas near lighthouses."},
            "no-overlap",
        ),
        ({"category": "negative-recall"}, "answered"),
    ],
)
def test_a_pair_that_breaks_a_rule_is_dropped_and_counted(
    server: ScriptedServer, tmp_path: Path, changed: dict[str, Any], reason: str
) -> None:
    persona = write_small_persona(tmp_path, days=7)
    replies(server, pair(2, **changed), pair(3))

    assert ask(persona, server) == 0

    assert [entry.relevant_days for entry in written(persona)] == [(3,)]
    assert QuestionStore(persona).dropped() == {reason: 1}


@pytest.mark.parametrize(
    ("changed", "days"),
    [
        ({"answer": "It was agreed on 6 January 2026."}, (2,)),
        ({"answer": "2026-01-06"}, (2,)),
        ({"answer": 102}, (2,)),
        ({"answer": "14 days later, 102 crates.", "category": "temporal-reasoning"}, (2,)),
        ({"question": "What does Pat Doe know of thing02?"}, (2,)),
        ({"relevant_days": [2, 5], "answer": "thing02 102, thing05 105 crates."}, (2, 5)),
    ],
)
def test_pairs_that_keep_the_rules_are_kept(
    server: ScriptedServer, tmp_path: Path, changed: dict[str, Any], days: tuple[int, ...]
) -> None:
    persona = write_small_persona(tmp_path, days=7)
    replies(server, pair(2, **changed))

    assert ask(persona, server) == 0

    [entry] = written(persona)
    assert entry.relevant_days == days
    assert isinstance(entry.answer, str)


def test_days_that_share_no_word_with_the_pair_are_left_out(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=7)
    replies(
        server, pair(3, question="Which was 303?", answer="teamword03", relevant_days=[2, 3, 4])
    )

    assert ask(persona, server) == 0

    assert [entry.relevant_days for entry in written(persona)] == [(3,)]


def test_negative_recall_has_no_evidence_and_is_asked_from_the_checkpoint_on(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=7)
    never = pair(1, question="Who repaired the organ?", answer="There is no evidence of an organ.")
    replies(server, {**never, "category": "negative-recall", "relevant_days": []})

    assert ask(persona, server) == 0

    [entry] = written(persona)
    assert entry.no_evidence and entry.relevant_days == (7,)


def test_a_whole_window_as_evidence_is_retried_once_with_a_request_for_fewer_days(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=7)
    wide = [pair(2, relevant_days=list(range(1, 8))), pair(3)]
    server.at(1, says(json.dumps(wide)))
    server.at(2, says(json.dumps([pair(2), pair(3)])))

    assert ask(persona, server) == 0

    assert server.requests == 2
    assert "name only the days without which" in server.seen[1].text
    assert [entry.relevant_days for entry in written(persona)] == [(2,), (3,)]


def test_a_pair_that_names_the_whole_window_again_is_dropped(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=7)
    replies(server, pair(2, relevant_days=list(range(1, 8))), pair(3))

    assert ask(persona, server) == 0

    assert server.requests == 2
    assert [entry.relevant_days for entry in written(persona)] == [(3,)]
    assert QuestionStore(persona).dropped() == {"whole-window": 1}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text[:-30],
        lambda text: f"```json\n{text[:-1]}",
        lambda text: text.replace('"thing03 weighs 103 crates."', "thing03 weighs"),
        lambda text: f'{{"pairs": {text[:-1]}, {{"question": "cut of',
    ],
    ids=["cut in the third", "fence and no end", "the third is no JSON", "in an object, cut"],
)
def test_truncated_arrays_are_salvaged_object_by_object(
    server: ScriptedServer, tmp_path: Path, spoil: Callable[[str], str]
) -> None:
    persona = write_small_persona(tmp_path, days=7)
    good = json.dumps([pair(1), pair(2), pair(3)])
    server.reply(lambda request: spoil(good))

    assert ask(persona, server) == 0

    assert server.requests == 1
    assert [entry.relevant_days for entry in written(persona)][:2] == [(1,), (2,)]


def test_an_unusable_reply_leaves_the_window_for_the_next_run(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    persona = write_small_persona(tmp_path, days=14)
    server.when(lambda request: "principalword03" in request.text, says("What a week!"))

    assert ask(persona, server) == 1

    assert "window standard 1-7" in capsys.readouterr().err
    assert {entry.relevant_days for entry in written(persona)} == {
        (day,) for day in range(8, 15)
    } | {(2,)}
    server.reset()
    assert ask(persona, server) == 0
    assert server.requests == 1
    assert len(written(persona)) == 14


def test_the_same_is_not_asked_twice_and_never_more_than_was_wanted(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=7)
    again = pair(1, question="what does THING01 weigh")
    replies(server, pair(1), again, pair(2), pair(3))

    assert ask(persona, server, pairs=3) == 0

    assert [entry.relevant_days for entry in written(persona)] == [(1,), (2,)]
    assert QuestionStore(persona).dropped() == {"duplicate": 1}


def test_ids_continue_and_existing_entries_are_not_changed(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=7)
    mine = {**pair(1), "id": "tester-q041", "note": "checked by hand"}
    persona.beside("qa").mkdir()
    (persona.beside("qa") / "questions.yaml").write_text(dump_yaml([mine]))

    assert ask(persona, server) == 0

    entries = load_yaml(persona.beside("qa") / "questions.yaml")
    assert entries[0] == mine
    assert [entry["id"] for entry in entries[1:]] == [f"tester-q{n:03}" for n in range(42, 48)]


def test_dates_are_quoted_so_that_every_loader_reads_texts(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=7)
    replies(server, pair(2, answer="2026-01-06"))

    ask(persona, server)

    assert "answer: '2026-01-06'" in (persona.beside("qa") / "questions.yaml").read_text()


def test_later_groups_of_windows_know_the_counts_of_earlier_ones(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=35)

    ask(persona, server)

    needs = {max(days_in(one.text)): one.text.partition("so many:")[2] for one in server.seen}
    assert "factual-recall: 2 (0 so far)" in needs[7]
    assert "factual-recall: 2 (0 so far)" in needs[28], "the first four go side by side"
    assert "factual-recall" not in needs[35], "there are 28 of them, and none of any other"
    assert "synthesis: 2 (0 so far)" in needs[35]


def test_what_is_wanted_brings_the_categories_nearest_to_equal() -> None:
    want = wanted(Counter(a=5, b=1), ["a", "b", "c"], 6)

    assert want == {"b": 2, "c": 4} or want == {"b": 3, "c": 3}
    assert wanted(Counter(), ["a", "b"], 5) == {"a": 3, "b": 2}


def test_windows_end_every_interval_and_on_the_last_day(tmp_path: Path) -> None:
    persona = write_small_persona(tmp_path, days=17, skip=[4])

    def ends(days: range, interval: int = 7) -> list[int]:
        return [window.stop - 1 for window in open_windows(persona, days, interval)]

    assert ends(range(1, 18)) == [7, 14, 17]
    assert ends(range(1, 17)) == [7, 14, 16]
    assert ends(range(8, 18)) == [14, 17]
    assert ends(range(1, 18), 30) == [17]
    with pytest.raises(UsageError, match="--interval 0"):
        ends(range(1, 18), 0)


def test_a_window_whose_end_is_not_written_is_skipped(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    persona = write_small_persona(tmp_path, days=21, skip=range(10, 22))

    assert ask(persona, server) == 0

    assert [max(days_in(request.text)) for request in server.seen] == [7]
    assert "after day 9" in capsys.readouterr().err


def test_the_journal_records_done_windows_even_if_pairs_were_deleted(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=14)
    ask(persona, server)
    file = persona.beside("qa") / "questions.yaml"
    file.write_text(dump_yaml(load_yaml(file)[1:3]))
    server.reset()

    assert ask(persona, server) == 0

    assert server.requests == 0
    assert len(written(persona)) == 2


def test_pairs_of_the_journal_are_written_without_a_request(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=7)
    known = easy_question("What does thing01 weigh?", "101 crates", 1)
    with Journal(persona.beside("qa") / "windows.jsonl") as journal:
        journal.append(WindowRecord("standard 1-7", ("tester-q001",), (known,)))
        journal.append_bytes(b'{"key": "torn')

    assert ask(persona, server) == 0

    assert server.requests == 0
    assert [entry.id for entry in written(persona)] == ["tester-q001"]
    assert len(QuestionStore(persona)) == 1


def test_a_fifth_failing_leaves_windows_that_the_next_run_fills(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=60)
    fail_a_fifth(server)

    assert ask(persona, server, interval=2) == 1

    first = server.answered
    assert 0 < len(first) < 30
    server.reset()
    assert ask(persona, server, interval=2) == 0
    days = [entry.relevant_days for entry in written(persona)]
    assert sorted(days) == [(day,) for day in range(1, 61)]
    assert max((first + server.answered).values()) == 1


def test_after_a_kill_it_continues_and_asks_for_no_reply_twice(
    server: ScriptedServer, tmp_path: Path, start_command: StartCommand
) -> None:
    persona = write_small_persona(tmp_path, days=24)
    command = ["personas", "qa", "--persona", str(persona.folder), "--interval", "2"]
    journal = persona.beside("qa") / "windows.jsonl"

    def finished() -> int:
        return journal.read_bytes().count(b'"pairs":') if journal.exists() else 0

    answered = kill_and_resume(
        start_command, server, [*command, "--model", f"toy@{server.url}"], finished, stops=(1, 2, 4)
    )

    assert finished() == 12
    assert len(answered) == 12 and set(answered.values()) == {1}
    days = sorted(entry.relevant_days for entry in written(persona))
    assert days == [(day,) for day in range(1, 25)]


def test_a_dry_run_and_an_estimate_ask_and_write_nothing(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    persona = write_small_persona(tmp_path, days=60)

    assert ask(persona, server, writing={"dry_run": True}) == 0
    assert "3 prompts shown" in capsys.readouterr().out
    assert ask(persona, server, writing={"estimate": True}) == 0
    assert "9 requests" in capsys.readouterr().out
    assert server.requests == 0
    assert not persona.beside("qa").exists()


def test_a_reply_without_a_valid_pair_is_retried_with_the_reasons(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=7)
    bad = [pair(2, answer="thing02 weighs 777 crates.")]

    @server.reply
    def learns(request: Request) -> str:
        return json.dumps([pair(2)] if "777 crat" in request.text else bad)

    assert ask(persona, server) == 0

    assert server.requests == 2
    assert "is not in its relevant days (777" in server.seen[1].text


def test_ids_follow_the_order_of_windows_not_of_replies(tmp_path: Path) -> None:
    persona = write_small_persona(tmp_path, days=14)
    keys = ["standard 1-7", "standard 8-14"]
    about = {keys[0]: "What does thing01 weigh?", keys[1]: "What does thing08 weigh?"}

    def came(key: str) -> Written[WindowReply]:
        given = easy_question(about[key], "crates", 1)
        task = Task(key, Prompt("", ""), lambda reply: WindowReply(key, (), {}))
        return Written(task, WindowReply(key, (given,), {}))

    killed = QuestionStore(persona).gather(keys, iter([came(keys[1]), came(keys[0])]))
    assert next(killed).key == keys[0]
    del killed

    book = QuestionStore(persona)
    assert all(map(book.is_done, keys)) and len(book) == 1
    assert [window.key for window in book.gather(keys, ())] == keys[1:]
    assert [entry.question for entry in written(persona)] == [about[key] for key in keys]


def test_the_next_pass_numbers_the_pairs_that_a_killed_one_left(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=14)
    known = easy_question("What does thing09 weigh?", "109 crates", 9)
    with Journal(persona.beside("qa") / "windows.jsonl") as journal:
        journal.append(WindowRecord("standard 8-14", (), (known,)))

    assert ask(persona, server, writing={"end": 7}) == 0

    assert [entry.id for entry in written(persona)] == [f"tester-q{n:03}" for n in range(1, 9)]
    assert written(persona)[0].question == known.question
