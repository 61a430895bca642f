"""Mapping files: REST APIs without our contract, used without code; and invalid files.

The servers here are stand-ins: they follow the routes and shapes of the APIs that the shipped
mappings are for, and rank by shared words.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.connectors.raw_http import Call, RawServer, Said
from tests.described import described

from mnemoscope._store.errors import BadReply, DataError, MnemoscopeError, SystemLost, UsageError
from mnemoscope._store.spec import Spec
from mnemoscope.connectors.http import Http
from mnemoscope.connectors.http.client import ServerError
from mnemoscope.connectors.http.rest_mapping import find_mapping, shipped
from mnemoscope.connectors.live_store import LIVE_NOTE
from mnemoscope.datasets.locomo import Locomo
from mnemoscope.runner.conformance import check_system
from mnemoscope.runner.run import Settings, run
from mnemoscope.systems.loader import plan
from mnemoscope.types import Memory, Query, Receipt, Selector

AT = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
MEMORIES = [
    Memory("d/1", "Rex the dog likes the garden", AT, speaker="Ann"),
    Memory("d/2", "the piano stands in the harbour", AT),
    Memory("d/3", "a lantern hangs over the bridge", AT),
]
QUERY = Query("Who likes the garden?", AT)


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


class Notes:
    """A REST API with rooms, notes with numbers for ids, and a key in a header."""

    def __init__(self) -> None:
        self.notes: dict[int, tuple[str, str]] = {}
        self.pending = 0
        self._numbers = itertools.count(1)

    def __call__(self, call: Call) -> Said:
        if call.headers.get("X-Api-Key") != "open-sesame-4711":
            return Said({"message": f"who is {call.headers.get('X-Api-Key')}?"}, 401)
        match call.method, call.path.strip("/").split("/"):
            case "GET", ["ping"]:
                return Said({"ok": True})
            case "GET", ["queue"]:
                self.pending -= 1
                return Said({"pending": max(self.pending, 0)})
            case "POST", ["rooms", room, "notes"] if not call.body.get("said", "").strip():
                return Said({"message": "nothing in it"}, 422)
            case "POST", ["rooms", room, "notes"]:
                return Said({"note": {"id": self._add(room, call.body["said"])}}, 201)
            case "POST", ["rooms", room, "bulk"]:
                ids = [self._add(room, one["said"]) for one in call.body["notes"]]
                return Said({"notes": [{"id": id} for id in ids]})
            case "GET", ["rooms", room, "find"]:
                found = self._find(room, call.query["q"], int(call.query["top"]))
                return Said({"found": found})
            case "DELETE", ["notes", number] if int(number) in self.notes:
                del self.notes[int(number)]
                return Said(b"", 204)
            case "DELETE", ["rooms", room]:
                self.notes = {id: note for id, note in self.notes.items() if note[0] != room}
                return Said({})
            case "GET", ["size"]:
                return Said({"bytes": 123, "notes": len(self.notes)})
        return Said({"message": "no such note"}, 404)

    def _add(self, room: str, said: str) -> int:
        number = next(self._numbers)
        self.notes[number] = (room, said)
        return number

    def _find(self, room: str, asked: str, top: int) -> list[dict[str, Any]]:
        scored: list[dict[str, Any]] = [
            {"ref": number, "points": len(words(asked) & words(said)), "said": said}
            for number, (where, said) in self.notes.items()
            if where == room
        ]
        return sorted(scored, key=lambda note: -note["points"])[:top]


NOTES = """
name: notes
headers:
  X-Api-Key: ${env.NOTES_PASS}
health: {path: /ping, expect: ok}
leave:
  - {method: DELETE, path: "/rooms/${space}"}
remember:
  path: /rooms/${space}/notes
  body: {said: "${memory.text}", when: "${memory.at}", by: "${memory.speaker}"}
  keep: note.id
  reject: [422]
ready: {path: /queue, until: "pending == `0`", every: 0.01}
recall:
  method: GET
  path: /rooms/${space}/find
  query: {q: "${query.text}", top: "${k}"}
  hits: {each: found, id: ref, score: points, text: said}
forget: {method: DELETE, path: "/notes/${kept}"}
stats: {path: /size, numbers: {index_bytes: bytes, notes_held: notes}}
"""


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Notes, RawServer]]:
    monkeypatch.setenv("NOTES_PASS", "open-sesame-4711")
    api = Notes()
    with RawServer(api) as raw:
        yield api, raw


NotesServer = tuple[Notes, RawServer]


def write(folder: Path, text: str) -> Path:
    path = folder / "notes.yaml"
    path.write_text(text)
    return path


def opened(raw: RawServer, mapping: object, *, live: bool = False) -> Http:
    system = Http(raw.url, timeout=20.0, patience=0.3, mapping=str(mapping), live=live)
    system.reset("conv 26")
    return system


def failed(spec: str) -> list[str]:
    results = check_system(plan(Spec.parse(spec)), timeout=30.0)
    return [f"{result.check}: {result.seen}" for result in results if result.verdict == "failed"]


def test_a_mapped_api_conforms_with_ids_that_the_server_gave(
    notes: NotesServer, tmp_path: Path
) -> None:
    _, raw = notes
    assert failed(f"http:{raw.url},mapping={write(tmp_path, NOTES)}") == []


def test_a_mapped_api_ranks_in_a_run_with_two_workers(
    notes: NotesServer, tmp_path: Path, write_locomo: Callable[..., Path]
) -> None:
    api, raw = notes
    data = write_locomo(tmp_path / "locomo10.json", conversations=3, sessions=6, questions=5)
    spec = f"http:{raw.url},mapping={write(tmp_path, NOTES)}"
    out = tmp_path / "out"
    [made] = run(Locomo(data), [plan(Spec.parse(spec))], out, Settings(depth=10, workers=2))
    trials = list(made.trials())
    assert [trial.status for trial in trials] == ["answered"] * 15
    assert not any(trial.unknown for trial in trials)
    assert all(len(trial.ranking) == 6 for trial in trials)
    assert api.notes == {}  # `leave` removed all of it
    written = [path.read_bytes() for path in out.rglob("*") if path.is_file()]
    assert any(b"mapping_sha256" in content for content in written)
    assert not any(b"open-sesame" in content for content in written)


def test_each_verb_sends_the_request_in_the_mapping(notes: NotesServer, tmp_path: Path) -> None:
    api, raw = notes
    system = opened(raw, write(tmp_path, NOTES))
    receipt = system.remember([*MEMORIES, Memory("d/4", " ")])
    assert receipt == Receipt(rejected={"d/4": "nothing in it"})
    api.pending = 3
    system.ready()
    assert raw.paths().count("GET /queue") == 3
    hits = system.recall(QUERY, 2)
    assert [(hit.id, hit.score, hit.text) for hit in hits] == [
        ("d/1", 3.0, "Rex the dog likes the garden"),
        ("d/2", 1.0, "the piano stands in the harbour"),
    ]
    system.forget(Selector((MEMORIES[0], Memory("d/4", " "))))
    assert [hit.id for hit in system.recall(QUERY, 5)] == ["d/2", "d/3"]
    assert system.stats() == {"index_bytes": 123, "notes_held": 2}
    told = next(call for call in raw.calls if call.path.endswith("/notes"))
    assert told.body == {
        "said": "Rex the dog likes the garden",
        "when": "2023-05-08T13:56:00Z",
        "by": "Ann",
    }
    assert re.fullmatch(r"/rooms/conv-26-[0-9a-f]{12}/notes", told.path)
    assert not hasattr(system, "answer")


def test_the_identity_has_the_hash_of_the_file_and_no_secret(
    notes: NotesServer, tmp_path: Path
) -> None:
    _, raw = notes
    file = write(tmp_path, NOTES)
    spec = Spec.parse(f"http:{raw.url},mapping={file}")
    before = described(spec).identity
    assert before["mapping"] == "notes"
    assert before["provenance"] == "the server's ids"
    assert before["notes"] == []
    assert described(spec).identity == before
    assert "sesame" not in repr(before)
    file.write_text(NOTES + "notes: [edited]\n")
    after = described(spec).identity
    assert after["mapping_sha256"] != before["mapping_sha256"]
    assert after["notes"] == ["edited"]


BULK = NOTES.replace(
    """  path: /rooms/${space}/notes
  body: {said: "${memory.text}", when: "${memory.at}", by: "${memory.speaker}"}
  keep: note.id
  reject: [422]""",
    """  path: /rooms/${space}/bulk
  each: {said: "${memory.dated_text}"}
  batch: 2
  body: {notes: "${items}"}
  keep: notes[].id""",
)


def test_memories_are_sent_in_batches_and_their_ids_recorded_in_order(
    notes: NotesServer, tmp_path: Path
) -> None:
    _, raw = notes
    system = opened(raw, write(tmp_path, BULK))
    system.remember(MEMORIES)
    sent = [call.body["notes"] for call in raw.calls if call.path.endswith("/bulk")]
    assert [len(some) for some in sent] == [2, 1]
    assert sent[0][0]["said"] == "[2023-05-08] Rex the dog likes the garden"
    assert [hit.id for hit in system.recall(Query("lantern"), 1)] == ["d/3"]


def test_too_few_ids_in_a_reply_are_an_error(notes: NotesServer, tmp_path: Path) -> None:
    _, raw = notes
    system = opened(raw, write(tmp_path, BULK.replace("notes[].id", "notes[:1].id")))
    with pytest.raises(BadReply, match="expected 2 ids"):
        system.remember(MEMORIES)


def test_each_without_items_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"remember does not send what to remember: use \$\{items\}"
    ):
        find_mapping(str(write(tmp_path, BULK.replace("${items}", "nothing"))))


def test_a_second_worker_on_a_server_with_one_space_is_refused(
    notes: NotesServer, tmp_path: Path
) -> None:
    _, raw = notes
    text = NOTES.replace("${space}", "room") + "reset: [{method: GET, path: /ping}]\n"
    file = write(tmp_path, re.sub(r"leave:\n.*\n", "", text))
    system, other = opened(raw, file, live=True), Http(raw.url, mapping=str(file), live=True)
    with pytest.raises(MnemoscopeError, match=r"one memory at a time.*--workers 1"):
        other.reset("scope")
    system.close()
    other.reset("scope")
    other.close()


BY_TEXT = NOTES.replace("  keep: note.id\n", "").replace(
    "hits: {each: found, id: ref, score: points, text: said}",
    "hits: {each: found, text: said, by_text: true}",
)
BY_TEXT = re.sub(r"forget: .*\n", "", BY_TEXT)


def test_hits_without_ids_are_traced_by_text_and_the_run_notes_it(
    notes: NotesServer, tmp_path: Path
) -> None:
    api, raw = notes
    file = write(tmp_path, BY_TEXT.replace("${memory.text}", "${memory.dated_text}"))
    system = opened(raw, file)
    twin = Memory("twin", MEMORIES[0].text, MEMORIES[0].at)
    system.remember([*MEMORIES, twin])
    room = next(iter(api.notes.values()))[0]
    api.notes[99] = (room, "nobody told this about the garden")
    first, *others = system.recall(QUERY, 9)
    assert first.sources == ("d/1", "twin")
    assert [hit.id for hit in others] == [
        "untraced: nobody told this about the garden",
        "d/2",
        "d/3",
    ]
    identity = system.identity()
    assert identity["provenance"] == "text"
    assert any("comparing their words" in note for note in identity["notes"])


def test_two_memories_under_one_id_of_the_server_are_merged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NOTES_PASS", "x")

    def script(call: Call) -> Said:
        if call.path.endswith("/find"):
            return Said({"found": [{"ref": 7, "said": "both"}]})
        return Said({"note": {"id": 7}, "ok": True})

    with RawServer(script) as raw:
        system = opened(raw, write(tmp_path, NOTES))
        assert system.remember(MEMORIES[:2]).merged == {"d/2": "d/1"}
        [hit] = system.recall(QUERY, 5)
        assert (hit.id, hit.sources) == ("d/1", ("d/1", "d/2"))


def test_our_id_can_be_a_tag_in_a_text_reply(tmp_path: Path) -> None:
    text = """
name: tags
remember: {path: /add, body: {text: "${memory.text} #id:${memory.id}", room: "${space}"}}
recall:
  path: /search
  body: {text: "${query.text}", room: "${space}"}
  hits: {pattern: '#id:(\\S+)'}
"""
    held: list[str] = []

    def script(call: Call) -> Said:
        if call.path == "/add":
            held.append(call.body["text"])
            return Said({})
        return Said("\n".join(reversed(held)).encode(), 200, {"Content-Type": "text/plain"})

    with RawServer(script) as raw:
        system = opened(raw, write(tmp_path, text))
        system.remember(MEMORIES)
        assert [hit.id for hit in system.recall(QUERY, 2)] == ["d/3", "d/2"]


# The server's failures


def test_a_wrong_key_names_the_variable_and_not_its_value(
    notes: NotesServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, raw = notes
    monkeypatch.setenv("NOTES_PASS", "open-barley")
    with pytest.raises(MnemoscopeError, match="set NOTES_PASS to a key") as caught:
        described(f"http:{raw.url},mapping={write(tmp_path, NOTES)}")
    assert "who is …?" in str(caught.value)
    assert "barley" not in str(caught.value)


def test_a_variable_that_is_not_set_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOTES_PASS", raising=False)
    with pytest.raises(UsageError, match=r"notes\.yaml uses the environment variable NOTES_PASS"):
        find_mapping(str(write(tmp_path, NOTES)))


def test_a_key_that_no_header_can_carry_is_not_repeated(
    notes: NotesServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, raw = notes
    monkeypatch.setenv("NOTES_PASS", "open\nbarley")
    with pytest.raises(UsageError, match="'X-Api-Key' contains characters") as caught:
        described(f"http:{raw.url},mapping={write(tmp_path, NOTES)}")
    assert "barley" not in str(caught.value)


def test_a_server_that_is_not_healthy_is_waited_for_and_then_down(
    notes: NotesServer, tmp_path: Path
) -> None:
    _, raw = notes
    file = write(tmp_path, NOTES.replace("expect: ok", "expect: not_ok"))
    with pytest.raises(MnemoscopeError, match=r"is down \(.*\): start it") as caught:
        opened(raw, file)
    assert "is not healthy" in str(caught.value)


def test_a_server_that_dies_is_lost(notes: NotesServer, tmp_path: Path) -> None:
    _, raw = notes
    raw.hangs_up = True
    system = opened(raw, write(tmp_path, NOTES))
    raw.close()
    with pytest.raises(SystemLost):
        system.remember(MEMORIES)


@pytest.mark.parametrize("kept", ["", "..", None, True, {"id": 1}])
def test_a_missing_id_is_never_put_into_a_path(
    kept: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A DELETE of /notes/ could delete all of them."""
    monkeypatch.setenv("NOTES_PASS", "x")
    with RawServer(lambda call: Said({"ok": True, "note": {"id": kept}})) as raw:
        system = opened(raw, write(tmp_path, NOTES))
        with pytest.raises(BadReply):
            system.remember(MEMORIES[:1])
            system.forget(Selector((MEMORIES[0],)))
        assert not any(call.path.startswith("/notes") for call in raw.calls)


def test_an_error_of_the_server_is_the_error_of_that_call(
    notes: NotesServer, tmp_path: Path
) -> None:
    _, raw = notes
    system = opened(raw, write(tmp_path, NOTES.replace("/find", "/seek")))
    with pytest.raises(ServerError, match=r"404 \(no such note\)"):
        system.recall(QUERY, 1)


# Invalid files


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        ("name: notes", "nome: notes", "unknown field `nome`"),
        ("  keep: note.id", "  keeps: note.id", r"unknown field `keeps` - at `\$\.remember`"),
        ("method: GET", "method: FETCH", r"at `\$\.recall\.method`"),
        ("path: /ping", "path: ping", "health.path: 'ping' must begin with /"),
        ("path: /ping", "path: 'http://evil/ping'", "must begin with /"),
        ("${memory.text}", "${memory.text", "without its }"),
        ("${memory.text}", "${memory..text}", "the expression 'memory..text' cannot be read"),
        ("${memory.text}", "${upper(memory.text)}", "Unknown function: upper"),
        ("${memory.text}", "${memroy.text}", "uses memroy; known here are"),
        ("${query.text}", "${memory.text}", "recall.query: .* uses memory"),
        ("${query.text}", "all", "recall does not send the query"),
        ("/notes/${kept}", "/notes/${items}", "forget.path: .* uses items"),
        ("keep: note.id", "each: '${memory.text}'", "remember.body: .* uses memory"),
        ("/notes/${kept}", "/notes/all", "forget does not send what to forget"),
        ("keep: note.id", "keep: 'note['", "cannot be read"),
        ("until: ", "while: ", "unknown field `while`|missing required field `until`"),
        ("every: 0.01", "every: 0", "ready.every is 0"),
        ("each: found,", "each: found, by_text: true, pattern: '(', ", "not a regular expression"),
        ("each: found,", "each: found, pattern: 'x', ", "needs a group"),
        (", text: said}", ", by_text: true}", "by_text needs recall.hits.text"),
        ("remember:", "remembers:", "unknown field `remembers`|missing required field"),
        ("name: notes", "name: notes\n  x: [", "line"),
        ("name: notes", "- a list", "."),
    ],
)
def test_a_wrong_file_is_refused_by_name_and_field(
    was: str, becomes: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTES_PASS", "x")
    assert was in NOTES
    with pytest.raises(DataError, match=says) as caught:
        find_mapping(str(write(tmp_path, NOTES.replace(was, becomes))))
    assert "notes.yaml" in str(caught.value)


def test_a_file_that_expands_to_too_many_values_is_refused(tmp_path: Path) -> None:
    bomb = "a0: &a0 [x, x]\n" + "\n".join(
        f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40)
    )
    with pytest.raises(DataError, match=r"more than [0-9,]+ values"):
        find_mapping(str(write(tmp_path, bomb)))
    with pytest.raises(DataError, match="contains itself"):
        find_mapping(str(write(tmp_path, "a: &a [*a]")))


def test_a_missing_mapping_is_an_error_that_lists_the_shipped_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="hindsight, nexus"):
        find_mapping(str(tmp_path / "none.yaml"))


@pytest.mark.parametrize(
    ("reset", "room", "says"),
    [
        ("", "", "scenarios are not isolated"),
        ("reset: [{path: /clear}]", "", "run it with one worker"),
        ("", "${scope}", "begins again still contains"),
        ("reset: [{path: '/clear/${scope}'}]", "${scope}", ""),
        ("", "${space}", ""),
    ],
)
def test_caveats_that_follow_from_the_mapping_are_notes(
    reset: str, room: str, says: str, tmp_path: Path
) -> None:
    text = f"""
name: small
{reset}
remember: {{path: /add, body: {{text: "${{memory.text}}", at: "${{memory.at}}", room: "{room}"}}}}
recall: {{path: /search, body: {{text: "${{query.text}}", room: "{room}"}}}}
"""
    with RawServer(lambda call: Said({})) as raw:
        noted = Http(raw.url, mapping=str(write(tmp_path, text)), live=True).identity()["notes"]
    *noted, live = noted
    assert live == LIVE_NOTE
    assert [says in note for note in noted] == ([True] if says else [])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("${memory.text}", "does not get the time"),
        ("${memory.dated_text}", "dates are written into the texts"),
        ("${memory}", ""),
    ],
)
def test_how_the_server_gets_dates_is_a_note(text: str, says: str, tmp_path: Path) -> None:
    mapping = f"""
name: small
remember: {{path: "/add/${{space}}", body: {{text: "{text}"}}}}
recall: {{path: "/search/${{space}}", body: {{text: "${{query.text}}"}}}}
"""
    with RawServer(lambda call: Said({})) as raw:
        noted = Http(raw.url, mapping=str(write(tmp_path, mapping))).identity()["notes"]
    assert [says in note for note in noted] == ([True] if says else [])


def test_the_example_of_the_guide_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTES_KEY", "x")
    guide = (Path(__file__).parent.parent.parent / "docs" / "http.md").read_text()
    [example] = re.findall(r"```yaml\n(.*?)```", guide, re.S)
    assert find_mapping(str(write(tmp_path, example))).secrets == {"NOTES_KEY": "x"}


# The shipped mappings, against stand-ins


class Nexus:
    """Routes and shapes of nexus-ai-fs 0.9.0's /api/v2/memories; it ranks by shared words."""

    def __init__(self) -> None:
        self.held: dict[str, dict[str, Any]] = {}
        self._numbers = itertools.count()

    def __call__(self, call: Call) -> Said:
        if call.path == "/health":
            return Said({"status": "healthy", "service": "nexus-rpc", "has_auth": True})
        if call.headers.get("Authorization") != "Bearer sk-nexus-0815":
            return Said({"detail": "Invalid or missing API key"}, 401)
        match call.method, call.path.removeprefix("/api/v2/memories"):
            case "POST", "":
                return self._store(call)
            case "POST", "/search":
                return self._search(call.body)
            case "DELETE", rest if self.held.pop(rest.strip("/"), None):
                return Said({"deleted": True, "memory_id": rest.strip("/"), "soft": True})
        return Said({"detail": "Memory not found"}, 404)

    def _store(self, call: Call) -> Said:
        if call.body["scope"] not in ("agent", "user", "zone", "global", "session"):
            return Said({"detail": [{"loc": ["body", "scope"]}]}, 422)
        assert len(call.body["memory_type"]) <= 50
        id = f"mem_{next(self._numbers):04}"
        self.held[id] = {**call.body, "zone_id": call.headers["X-Nexus-Zone-ID"]}
        return Said({"memory_id": id, "status": "created"}, 201)

    def _search(self, asked: dict[str, Any]) -> Said:
        if not 1 <= asked["limit"] <= 100:
            return Said({"detail": [{"loc": ["body", "limit"]}]}, 422)
        query = words(asked["query"])
        found = [
            {
                "memory_id": id,
                "content": memory["content"],
                "score": len(query & words(memory["content"])) / max(len(query), 1),
                "zone_id": memory["zone_id"],
            }
            for id, memory in self.held.items()
            if memory["memory_type"] == asked["memory_type"] and memory["scope"] == asked["scope"]
        ]
        found.sort(key=lambda hit: -float(hit["score"]))
        results = found[: asked["limit"]]
        return Said({"results": results, "total": len(results), "query": asked["query"]})


class Hindsight:
    """Routes and shapes of hindsight-api 1.1.0's banks; it ranks by shared words."""

    def __init__(self) -> None:
        self.banks: dict[str, dict[str, str]] = {}

    def __call__(self, call: Call) -> Said:
        if call.path == "/health":
            return Said({"status": "healthy", "database": "connected"})
        bank, _, rest = call.path.removeprefix("/v1/default/banks/").partition("/")
        held = self.banks.setdefault(bank, {})
        match call.method, rest:
            case "POST", "memories":
                for item in call.body["items"]:
                    if item["timestamp"] != "unset":
                        datetime.fromisoformat(item["timestamp"])
                    held[item["document_id"]] = item["content"]
                count = len(call.body["items"])
                return Said(
                    {"success": True, "bank_id": bank, "items_count": count, "async": False}
                )
            case "POST", "memories/recall":
                query = words(call.body["query"])
                if not query:
                    return Said({"detail": "query must contain at least one word character"}, 422)
                ranked = sorted(held.items(), key=lambda one: -len(query & words(one[1])))
                results = [
                    {"id": f"unit-{id}", "text": text, "document_id": id, "scores": {"final": 0.5}}
                    for id, text in ranked
                ]
                return Said({"results": results})
            case "DELETE", "":
                del self.banks[bank]
                return Said({"success": True})
            case "DELETE", rest if held.pop(rest.removeprefix("documents/"), None) is not None:
                return Said({"success": True})
        return Said({"detail": "Not found"}, 404)


def test_the_nexus_mapping_conforms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXUS_API_KEY", "sk-nexus-0815")
    nexus = Nexus()
    with RawServer(nexus) as raw:
        assert failed(f"http:{raw.url},mapping=nexus,key=NEXUS_API_KEY") == []
        system = Http(raw.url, mapping="nexus", key="NEXUS_API_KEY")
        system.reset("conv-26")
        system.remember(MEMORIES)
        assert system.recall(QUERY, 500)[0].id == "d/1"
        stored = nexus.held[max(nexus.held)]
        assert stored["valid_at"] == "2023-05-08T13:56:00Z"
        assert stored["zone_id"] == stored["memory_type"]
        assert "not a live Nexus" in str(system.identity()["notes"])


def test_the_hindsight_mapping_conforms() -> None:
    hindsight = Hindsight()
    with RawServer(hindsight) as raw:
        assert failed(f"http:{raw.url},mapping=hindsight") == []
        system = Http(raw.url, mapping="hindsight")
        system.reset("conv-26")
        system.remember([*MEMORIES, Memory("undated", "no date")])
        assert system.recall(QUERY, 2)[0].id == "d/1"
        system.close()
        assert not any("conv-26" in bank for bank in hindsight.banks)


def test_all_shipped_mappings_can_be_read() -> None:
    assert {find_mapping(name).mapping.name for name in shipped()} == {"nexus", "hindsight"}
