"""Damaged files of every format: each gives a result or one clear error, and none a traceback.

The inputs are drawn from fixed seeds, so a failure names the format and the number that repeat it.
MNEMOSCOPE_FUZZ=20000 draws more of them.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from tests.datasets import (
    test_beam,
    test_memoryagentbench,
    test_precisionmembench,
    test_realmem,
    test_rhelm,
)
from tests.importers.sources import (
    chatgpt_conversations,
    claude_conversations,
    claude_memory,
    slack_files,
)

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.spec import Spec
from mnemoscope.analysis.aggregates import read_aggregates, seed_comparison
from mnemoscope.api import import_memories
from mnemoscope.connectors.http import rest_mapping
from mnemoscope.connectors.mcp import tool_mapping
from mnemoscope.datasets import open_dataset
from mnemoscope.datasets.checkpoint_plan import parse_ranges
from mnemoscope.datasets.dataset_check import check
from mnemoscope.datasets.strata_export import export_store
from mnemoscope.models.cache import ContentCache
from mnemoscope.models.prompts import load_prompt
from mnemoscope.personas.simulate.history_files import list_histories
from mnemoscope.personas.simulate.story import find_story
from mnemoscope.personas.write.persona_files import open_persona_files
from mnemoscope.personas.write.question_store import QuestionStore
from mnemoscope.protocols import read_protocol
from mnemoscope.published import load as load_published
from mnemoscope.release.claims import lint_file
from mnemoscope.release.history import read_history
from mnemoscope.release.state import Release
from mnemoscope.runner.profile import load_profile
from mnemoscope.runner.ranking_files import read_rankings
from mnemoscope.runner.score_rankings import score
from mnemoscope.types import Question

INPUTS = int(os.environ.get("MNEMOSCOPE_FUZZ", "1000"))
SECONDS = 20
PACKAGE = Path(str(__import__("mnemoscope").__path__[0]))


class Format(NamedTuple):
    """What is written into a folder, and how the product reads it."""

    files: dict[str, bytes]
    read: Callable[[Path], object]


def _lines(*records: object) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def _dataset(name: str, place: str = "") -> Callable[[Path], object]:
    return lambda folder: check(open_dataset(name, folder / place))


def _shipped(*parts: str) -> bytes:
    return PACKAGE.joinpath(*parts).read_bytes()


def _store() -> bytes:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE memories (id INTEGER, content TEXT, is_sensitive INTEGER)")
        database.execute("INSERT INTO memories VALUES (1, 'Anna has a dog', 0), (2, 'x', 1)")
        return database.serialize()


def _imported(folder: Path, source: str, kind: str) -> object:
    """Import a source, detected and as the kind that it is."""
    with suppress(MnemoscopeError):  # the damaged source may look like another kind
        import_memories(folder / source, folder / "detected")
    return import_memories(folder / source, folder / "out", kind=kind)


def _source(kind: str, source: str, contents: Mapping[str, str | bytes]) -> Format:
    files = {n: c.encode() if isinstance(c, str) else c for n, c in contents.items()}
    return Format(files, lambda folder: _imported(folder, source, kind))


def _saved(make: Callable[[Path], Path]) -> bytes:
    with TemporaryDirectory() as folder:
        return make(Path(folder) / "store.db").read_bytes()


SOURCES = {
    "chatgpt": _source("chatgpt", "c.json", {"c.json": json.dumps(chatgpt_conversations())}),
    "claude": _source("claude", "c.json", {"c.json": json.dumps(claude_conversations())}),
    "slack": _source("slack", "", slack_files()),
    "whatsapp": _source(
        "whatsapp",
        "chat.txt",
        {"chat.txt": "31/12/23, 23:59 - Ann: one\n1/1/24, 00:10 - Bo: two\nmore\n"},
    ),
    "notes": _source(
        "notes",
        "v",
        {
            "v/a.md": "---\ntags: [x]\ndate: 2024-05-01\n---\n# A\ntext\n",
            "v/b.txt": "pin: 47114711",
        },
    ),
    "claude-memory": _source("claude-memory", "s.db", {"s.db": _saved(claude_memory)}),
    "sqlite": _source("sqlite", "s.db", {"s.db": _store()}),
    "csv": _source("csv", "t.csv", {"t.csv": 'id,text,at\n1,"a, b",2024-05-01\n2,c,1714550400\n'}),
    "jsonl": _source("jsonl", "l.jsonl", {"l.jsonl": _lines({"id": 1, "text": "a", "at": 5})}),
    "mem0": _source("mem0", "m.json", {"m.json": '{"results": [{"id": "a", "memory": "tea"}]}'}),
    "letta": _source(
        "letta",
        "a.af",
        {"a.af": '{"blocks": [{"label": "x", "value": "y"}], "agents": [{"messages": []}]}'},
    ),
    "mcp-graph": _source(
        "mcp-graph",
        "m.jsonl",
        {
            "m.jsonl": _lines(
                {"type": "entity", "name": "a", "entityType": "b", "observations": ["c"]},
                {"type": "relation", "from": "a", "to": "d", "relationType": "e"},
            )
        },
    ),
}


def _cache() -> bytes:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE entries (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")
        return database.serialize()


LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ann", "dia_id": "D1:1", "text": "I have a dog"},
                {"speaker": "Bob", "dia_id": "D1:2", "text": "A cat", "blip_caption": "cat"},
            ],
        },
        "qa": [
            {"question": "Which pet?", "answer": "dog", "category": 1, "evidence": ["D1:1"]},
            {"question": "Who?", "answer": 5, "category": 5, "evidence": ["D1:1; D1:2"]},
        ],
    }
]
LONGMEMEVAL = [
    {
        "question_id": "e47becba",
        "question_type": "single-session-user",
        "question": "Which degree?",
        "question_date": "2023/05/30 (Tue) 23:40",
        "answer": "Business",
        "answer_session_ids": ["answer_1"],
        "haystack_dates": ["2023/05/21 (Sun) 02:21", "2023/05/20 (Sat) 02:21"],
        "haystack_session_ids": ["other_1", "answer_1"],
        "haystack_sessions": [
            [{"role": "user", "content": "hi"}],
            [{"role": "user", "content": "I study business", "has_answer": True}],
        ],
    }
]
STRATA = {
    "corpus.jsonl": _lines({"id": 1, "content": "a dog"}, {"id": 2, "content": "a key"}),
    "queries.jsonl": _lines({"query_id": "e1", "text": "dog?", "stratum": "exact"}),
    "qrels.jsonl": _lines({"query_id": "e1", "relevant_ids": [1]}),
}
BEIR = {
    "corpus.jsonl": _lines({"_id": "d1", "title": "Tea", "text": "hot"}, {"_id": "d2", "text": ""}),
    "queries.jsonl": _lines({"_id": "q1", "text": "hot?"}, {"_id": "q2", "text": "cold?"}),
    "qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t2\n",
}
QUESTIONS = [Question("e1", "dog?", evidence=("1",)), Question("q2", "Which pet?")]
RANKINGS = _lines(
    {"question": "e1", "ranking": ["2", "1"], "scores": [0.5, 0.25], "depth": 10},
    {"question": "q2", "ranking": ["1"], "sources": {"1": ["2"]}, "status": "error"},
)
PGMNEMO = _lines({"retrieved_top10": ["D1"], "question": "Which pet?", "first_hit_rank": 1})
RELEASE = b"""version: "1.2"
author: A. Author
created: {at: "2026-11-01T10:00:00Z"}
protocol: {id: "mnemoscope-retrieval-1:sound", sha256: abc}
pairs:
  - benchmark: locomo
    base: {path: runs/a, fingerprint: x, manifest_sha256: y, files: {metrics.json: z}}
    cand: {path: runs/b, fingerprint: x, manifest_sha256: y, files: {metrics.json: z}}
tag_date: "2026-11-05T10:00:00Z"
waived: {longmemeval: no time}
words: {internal: none}
"""
PROFILE = b"""run: {personas: all, ranges: [30d, 60d], sample: 3, seed: 1}
models: {judge: f1}
persona: {id: tester}
"""
METRICS = json.dumps(
    {
        "overall": {"recall@10": {"mean": 0.5, "n": 10}, "mrr@50": {"mean": 0.25, "n": 10}},
        "questions": {"coverage": 1.0},
        "benchmark": {"sha256": ["abc"]},
    }
).encode()
PUBLISHED = b"".join(_shipped("published", "results.jsonl").splitlines(keepends=True)[:2])
TEXT = (
    b"# Notes\n\n- recall@10 rose by 2.00pp (95% CI [+1.00, +3.00], p=0.01, h=0.2).\n\n"
    b"| metric | value |\n|---|---|\n| recall@10 | 0.51 [0.4, 0.6] |\n"
)

CONFLICTS = [
    test_memoryagentbench.row("sh", ["In which city does Ann work?"], [["Oslo"]]),
    test_memoryagentbench.row("mh", ["Who works where Bob works?"], [["Ann"]]),
]


def _persona_files() -> dict[str, bytes]:
    question = {
        "id": "tester-q001",
        "question": "What does the crate weigh?",
        "answer": "It weighs 5 kg.",
        "category": "factual-recall",
        "difficulty": "easy",
        "relevant_days": [1],
        "requires_synthesis": False,
        "key": ["f1.value"],
        "no_evidence": False,
    }
    fact = {"id": "f1", "entity": "crate", "attribute": "a.b", "value": "5 kg", "day": 1}
    return {
        "tester/persona.yaml": b"id: tester\nname: T\nrole: r\ndomain: d\nprofile: p\n"
        b"communication_style: c\nprincipal: {name: P, role: boss}\ncast: []\n"
        b"sessions: [{id: principal, kind: 1to1, participants: [P]}]\n",
        "tester/arcs-2d.yaml": b'epoch: "2026-01-05"\narcs: [{id: a, type: project, title: t, '
        b"description: d, startDay: 1, endDay: 2}]\n",
        "tester/qa-2d/questions.yaml": json.dumps([question]).encode(),
        "tester/qa-2d/ledger.jsonl": _lines(fact),
        "tester/memories-2d/day-0001.md": b"---\ntype: daily\n---\n\n# session: principal\n\n"
        b"### crate\n\nThe crate weighs 5 kg.\n",
    }


def _read_personas(folder: Path) -> None:
    list_histories(folder)
    check(open_dataset("personas", folder, {"ranges": "1d,2d"}))


def _read_for_writing(folder: Path) -> None:
    files = open_persona_files(folder / "tester")
    files.dated(1)
    QuestionStore(files)


def _read_cache(folder: Path) -> None:
    cache = ContentCache(folder / "cache.sqlite", "test")
    try:
        cache.get_or_compute(["key"], lambda texts: [b"value" for _ in texts])
    finally:
        cache.close()


def _read_scored(folder: Path) -> None:
    score(open_dataset("strata", folder), folder / "rankings.jsonl", folder / "run")


def _read_metrics(path: Path) -> None:
    found = read_aggregates(path)
    seed_comparison(found, found)


def _read_words(folder: Path) -> None:
    for word in (folder / "words.txt").read_text("utf-8", "surrogateescape").splitlines()[:50]:
        for parse in (Spec.parse, parse_ranges):
            try:
                parse(word)
            except MnemoscopeError:
                continue


def _of(name: str, content: bytes, read: Callable[[Path], object]) -> Format:
    return Format({name: content}, lambda folder: read(folder / name))


FORMATS = {
    **{f"import {kind}": source for kind, source in SOURCES.items()},
    "locomo": Format({"locomo10.json": json.dumps(LOCOMO).encode()}, _dataset("locomo")),
    "longmemeval": Format(
        {"longmemeval_s_cleaned.json": json.dumps(LONGMEMEVAL).encode()}, _dataset("longmemeval")
    ),
    "beam": Format(
        {
            "100K/1/chat.json": json.dumps(test_beam.CHAT).encode(),
            "100K/1/probing_questions/probing_questions.json": json.dumps(
                test_beam.PROBES
            ).encode(),
        },
        _dataset("beam"),
    ),
    "memoryagentbench": Format(
        {"Conflict_Resolution.json": json.dumps(CONFLICTS).encode()}, _dataset("memoryagentbench")
    ),
    "precisionmembench": Format(
        {
            "beliefs.seed.json": json.dumps([test_precisionmembench.BELIEF]).encode(),
            "retrieval.cases.json": json.dumps([test_precisionmembench.CASE]).encode(),
        },
        _dataset("precisionmembench"),
    ),
    "rhelm": Format(
        {
            "conversations/Ann/conversation_2024_02_01.json": json.dumps(
                test_rhelm.session("2024-02-01")
            ).encode(),
            "QA_final/low_score_qa_Ann_all_validated.jsonl": _lines(*test_rhelm.QUESTIONS),
        },
        _dataset("rhelm"),
    ),
    "realmem": Format(
        {"Ann_dialogues_256k.json": json.dumps({"dialogues": test_realmem.SESSIONS}).encode()},
        _dataset("realmem"),
    ),
    "strata": Format(STRATA, _dataset("strata")),
    "beir": Format(BEIR, _dataset("beir")),
    "tofu": Format(
        {"full.json": _lines(*({"question": f"Q{n}?", "answer": f"A{n}."} for n in range(4000)))},
        _dataset("tofu"),
    ),
    "trec": Format(
        {"qrels.txt": b"301 0 A 1\n301 0 B 0\n302 0 A 2\n"}, _dataset("trec", "qrels.txt")
    ),
    "personas": Format(_persona_files(), _read_personas),
    "persona to write": Format(_persona_files(), _read_for_writing),
    "rankings": _of("r.jsonl", RANKINGS, lambda path: read_rankings(path, "jsonl", QUESTIONS)),
    "scored": Format({**STRATA, "rankings.jsonl": RANKINGS}, _read_scored),
    "trec run": _of(
        "r.txt",
        b"e1 Q0 1 1 0.5 me\ne1 Q0 2 2 0.25 me\n",
        lambda path: read_rankings(path, "trec", QUESTIONS),
    ),
    "pgmnemo": _of("r.jsonl", PGMNEMO, lambda path: read_rankings(path, "pgmnemo", QUESTIONS)),
    "release": Format({"release.yaml": RELEASE}, Release.load),
    "profile": _of("profile.yaml", PROFILE, load_profile),
    "story": _of(
        "story.yaml",
        _shipped("personas", "simulate", "stories", "backend-eng-saas.yaml"),
        lambda path: find_story(str(path)),
    ),
    "protocol": _of(
        "p.yaml",
        _shipped("protocols", "mnemoscope-retrieval-1.yaml"),
        lambda path: read_protocol(path.read_text("utf-8", "replace"), path),
    ),
    "tools": _of(
        "m.yaml",
        next(iter(sorted(PACKAGE.joinpath("connectors/mcp/mappings").glob("*.yaml")))).read_bytes(),
        lambda path: tool_mapping.load(str(path)),
    ),
    "endpoints": _of(
        "m.yaml",
        _shipped("connectors", "http", "mappings", "nexus.yaml"),
        lambda path: rest_mapping.find_mapping(str(path)),
    ),
    "prompt": _of(
        "p.yaml",
        b"max_tokens: 100\ntypical: A dog.\nsystem: You answer.\n"
        b"user: |\n  {{context}}\n  {{question}}\n",
        lambda path: load_prompt(str(path), frozenset({"context", "question"})),
    ),
    "published": _of("results.jsonl", PUBLISHED, load_published),
    "metrics": _of("metrics.json", METRICS, _read_metrics),
    "cache": Format({"cache.sqlite": _cache()}, _read_cache),
    "store": _of(
        "store.sqlite", _store(), lambda path: export_store(path, path.with_name("corpus.jsonl"))
    ),
    "text": _of("notes.md", TEXT, lint_file),
    "history": _of("HISTORY.md", b"# Methodology history\n\nNewest first.\n", read_history),
    "words": Format(
        {"words.txt": b"bm25,k1=1.2\n30d,60d-90d\n0-1000/10\nname:Class,x=yes"}, _read_words
    ),
}

VALUES = [
    *(b"null", b"true", b"-1", b"0", b"1e999", b"NaN", b"-Infinity", b"1" + b"0" * 400),
    *(b"9" * 5000, b"1e-400", b"99999999999999999999"),
    *(b'""', b"[]", b"{}", b'"\\ud800"', b'"\\u0000\\u001b[2J"', b'"' + b"x" * 5000 + b'"'),
    *(b"[" * 3000, b"[" * 200 + b"]" * 200, b'{"a":' * 2000, b"- " * 2000, b"&a [*a]", b"*b"),
    *(b"!!python/object/apply:os.system [x]", b"!!timestamp x", b"2026-13-45", b"12:99:99"),
]
SPLICES = [
    b"\x00",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\r",
    b"\n\n",
    b'"',
    b"}",
    b"\t",
]
VALUE = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?|\b(?:true|false|null)\b|\[[^\[\]]*\]')


def damaged(content: bytes, draw: random.Random) -> bytes:
    """The content with one to three kinds of damage."""
    for _ in range(draw.randint(1, 3)):
        here = draw.randrange(len(content) + 1)
        values = list(VALUE.finditer(content))
        lines = content.splitlines(keepends=True)
        kind = draw.randrange(9)
        if kind == 0:
            content = content[:here]
        elif kind == 1:
            content = content[:here] + draw.choice(SPLICES) + content[here:]
        elif kind in (2, 3, 4) and values:
            place = draw.choice(values)
            content = content[: place.start()] + draw.choice(VALUES) + content[place.end() :]
        elif kind == 5 and lines:
            content += draw.choice(lines) * draw.choice((1, 2, 50))
        elif kind == 6:
            content = content[:here] + content[here + draw.randint(1, 40) :]
        elif kind == 7 and len(values) > 1:  # a value in the place of another: types and ids clash
            one, other = draw.sample(values, 2)
            content = content[: one.start()] + other[0] + content[one.end() :]
        elif kind == 8:
            wide = content.decode("latin-1").encode("utf-16")
            content = draw.choice((b"", b"\xef\xbb\xbf" + content, wide, b"[]", b"{}", b"x"))
    return content


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise AssertionError(f"not read within {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


@pytest.mark.parametrize("name", FORMATS)
def test_an_undamaged_file_is_read(name: str, tmp_path: Path) -> None:
    _write(tmp_path, FORMATS[name].files)

    FORMATS[name].read(tmp_path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_file_gives_a_result_or_one_clear_error(name: str, tmp_path: Path) -> None:
    files, read = FORMATS[name]
    for number in range(INPUTS // len(FORMATS) + 1):
        draw = random.Random(f"{name} {number}")
        folder = tmp_path / str(number)
        victim = draw.choice(list(files))
        _write(folder, {**files, victim: damaged(files[victim], draw)})
        try:
            with at_most(SECONDS):
                read(folder)
        except MnemoscopeError as error:
            assert str(error).strip(), f"{name} {number}: an error without a text"
        except Exception as error:
            raise AssertionError(f"{name} {number}, {victim}: {error!r}") from error
