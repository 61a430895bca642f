"""Run commands on fixed inputs and compare all that they write with what was frozen.

    python tools/golden.py                     run all, compare with tests/golden/frozen.json
    python tools/golden.py --only run-locomo   one command, or one group of commands
    python tools/golden.py --keep DIR          also keep what was compared, for `diff -r`
    python tools/golden.py --renew-text        accept new wording; refuse if a figure changed
    python tools/golden.py --renew             accept everything

Each output has two hashes. *data* covers figures, ids, rankings and exit codes; *text* covers
wording. Of a JSON, JSONL or YAML file the values are data, except the fields of TEXT_FIELDS. Of
anything written for people the whole is text, and the numbers in it, in order, are data, so that
new wording cannot hide a changed figure. Help pages are text only. EXEMPT_FIELDS, EXEMPT_ROWS and
EXEMPT_COLUMNS list what no hash covers.

The tool calls the command line and reads files. It knows nothing of the package's modules but
`mnemoscope.cli:main`, the installed command.

To see what a change did, keep the outputs of both versions and compare them:

    git stash; python tools/golden.py --keep /tmp/before; git stash pop
    python tools/golden.py --keep /tmp/after; diff -r /tmp/before/compared /tmp/after/compared
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import html
import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

REPOSITORY = Path(__file__).resolve().parent.parent
FROZEN = REPOSITORY / "tests" / "golden" / "frozen.json"

# A field is named by its key, by the last keys of its path ("counters.tokens_reused", "*" for any
# key), or by a file's name and its whole path in it ("manifest.json:files"). Lists have no keys.
EXEMPT_FIELDS: dict[str, str] = {
    # Times.
    "recall_ms": "time",
    "index_ms": "time",
    "answer_ms": "time",
    "judge_ms": "time",
    "p50_ms": "time",
    "p95_ms": "time",
    "memories_per_s": "time",
    "latencyMs": "time",
    "ingestMs": "time",
    "queryMs": "time",
    "durationMs": "time",
    "totalIngestionMs": "time",
    "totalQueryMs": "time",
    # Timestamps.
    "timestamp": "timestamp",
    "started": "timestamp",
    "finished": "timestamp",
    "recorded": "timestamp: what the clock said beside a time that was given",
    # Counters that depend on what the cache held, and on which process came first.
    "counters.texts_embedded": "cache counter",
    "counters.vectors_reused": "cache counter",
    "counters.texts_tokenised": "cache counter",
    "counters.tokens_reused": "cache counter",
    # The machine.
    "index_bytes": "depends on the versions of SQLite, numpy and bm25s",
    "fingerprint": "covers the versions of Python, SQLite and the packages",
    "versions": "of Python, SQLite and the packages",
    "environment": "platform, Python, cores, workers",
    "embedder.package": "version of a package",
    "stdout:ready": "whether a model can be used on this machine",
    "stdout:missing": "what a model still needs on this machine",
    # Hashes of files that hold exempt fields, or floats whose last digit depends on the CPU.
    "manifest.json:files": "hashes of derived files",
    "manifest.json:id": "random",
    "manifest.json:ledger": "hash of a line with times",
    "manifest.json:chain": "begins with the fingerprint",
    "derived_from": "hash of a journal",
    "release.yaml:pairs.base.files": "hashes of derived files",
    "release.yaml:pairs.cand.files": "hashes of derived files",
    "manifest_sha256": "hash of a file that holds times",
    "release.yaml:circulated.sha256": "hash of a report that holds times",
    "release.yaml:signatures.sha256": "hash of a report that holds times",
    "release.yaml:log.before": "hash of an entry that holds hashes",
    "release.yaml:log.content": "hashes of parts that hold hashes",
    "basis": "hash of the hashes of derived files",
}

# Fields whose value is wording.
TEXT_FIELDS: dict[str, str] = {
    "reasoning": "a judge's sentence",
    "failure": "the name of a kind of failure, in words",
    "warning": "sentence in published.json",
    "description": "a cohort in words",
    "because": "why results are not comparable",
    "notes": "sentences for the reader",
    "why": "the reason why there is no figure",
    "reason": "sentence",
    "reasons": "why a judge failed its exam",
    "release.yaml:decision.open": "what is still needed, in words",
    "problem": "why a system has no figure",
    "demand": "what a conformance check asks for",
    "seen": "what a conformance check saw",
    "fix": "what to mend",
    "stdout:what": "a kind of model in words",
    "stdout:price": "what is known of a model's price, in words",
    "stdout:needs": "what to install for a model",
    "error": "message",
    "message": "message",
}

# Objects whose keys are wording, and whose values are data.
TEXT_KEYS: dict[str, str] = {
    "findings": "what a dataset repaired or dropped, in words, with counts",
    "stdout:examples": "the same, with examples",
    "stdout:counts": "what a dataset holds, in words, with counts",
    "diagnosis.classes": "kinds of failure, in words",
    "diagnosis.by_category.*": "kinds of failure, in words",
}

# Files that are listed, but whose content is not hashed.
UNREAD_FILES: dict[str, str] = {
    ".png": "the bytes depend on matplotlib and its fonts",
    "seal.json": "hashes of derived files",
    "trials.chain.jsonl": "begins with the fingerprint",
    "attempts.jsonl": "ids, times and hashes",
}
# Files that are not even listed.
IGNORED_FILES = (".lock",)

# Rows of Markdown tables, by their first cell: of these only that cell is compared.
EXEMPT_ROWS: dict[str, str] = {
    r".*\(ms\)": "time",
    r"index bytes.*": "depends on the versions of SQLite, numpy and bm25s",
}
# Rows of Markdown tables that may be there or not.
IGNORED_ROWS: dict[str, str] = {
    r"texts (tokenised|embedded)|(tokens|vectors) reused": "cache counter",
}
# Columns of tables, by their heading.
EXEMPT_COLUMNS: dict[str, str] = {
    r"p\d\d ms|index ms": "time",
    r"in/s": "memories taken in a second: time",
    r"index kB": "depends on the versions of SQLite, numpy and bm25s",
}
# Parts of texts that are replaced before anything is hashed.
_PACKAGES = "sqlite|mnemoscope|numpy|bm25s|PyStemmer|wordllama|tokenizers"
_VERSION = rf"(?:python 3\.\d[\w.]*|(?:{_PACKAGES}) \d[\w.]*)"
EXEMPT_TEXTS: dict[str, tuple[str, str]] = {
    "versions of packages": (rf"\b{_VERSION}(?:,\s+{_VERSION})*", "<versions>"),
    "hashes of derived files": (
        r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{12,64}\b",
        "<hash>",
    ),
    "Rich names the styles of a picture by a hash": (r"terminal-\d+", "terminal"),
    "time that a run took": (r"\bwall clock: [^;|\n]*", "wall clock: <time>"),
    "clock beside a time that was given": (
        r"\brecorded \d{4}-\d\d-\d\d\s+\d\d:\d\d\s+UTC",
        "recorded <now>",
    ),
    "time at which a run was blocked": (r"\d{4}-\d\d-\d\d \d\d:\d\d UTC: ", "<now>: "),
    "the machine": (r"\benvironment: [^;|\n]*", "environment: <machine>"),
    "cores of the machine": (r"\d+ CPU cores", "<n> CPU cores"),
}

LONGEST = 600
"""Seconds that a group may take."""

DIGITS = 9
"""Significant digits of a float: the last ones depend on the CPU."""
DECIMALS = 12
"""Decimals of a float: a tiny p is the difference of two numbers near 1, so that its error is that
of 1, whatever its own digits."""

# The loader in C is ten times as fast, and not in every build of PyYAML.
_YAML = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

NUMBER = re.compile(r"(?<![\w.])[-+−]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:e[-+]?\d+)?(?![\w])")


class Command(NamedTuple):
    name: str
    arguments: Sequence[str]
    writes: Mapping[str, str] = {}
    """Files to write before it runs."""
    is_help: bool = False
    """The arguments are commands, whose help is asked for in one process."""


@dataclass(frozen=True)
class Group:
    """Commands that run one after the other in one folder, and read each other's files."""

    name: str
    commands: Sequence[Command]
    needs: Sequence[str] = ()
    """Folders of ../shared/data."""
    prepare: Callable[[Path], None] = lambda folder: None


class Compared(NamedTuple):
    """What is compared of one output."""

    data: str | None
    text: str | None


@dataclass
class Outcome:
    """What is compared of one command."""

    exit: int
    parts: dict[str, Compared] = field(default_factory=dict)

    def frozen(self) -> dict[str, Any]:
        return {
            "exit": self.exit,
            "data": {k: _sha(p.data) for k, p in sorted(self.parts.items()) if p.data is not None},
            "text": {k: _sha(p.text) for k, p in sorted(self.parts.items()) if p.text is not None},
        }


def command(name: str, line: str, *extra: str, **writes: str) -> Command:
    """A command from a line whose words have no spaces, and arguments that have."""
    return Command(name, [*line.split(), *extra], writes)


# ------------------------------------------------------------------------------------- the commands

_RELEASE = "releases/v0.2.0"
_RUNS_AND_FIGURES = [
    command(
        "run-locomo",
        "run locomo --system bm25 --system hybrid --system dense "
        "--protocol mnemoscope-retrieval-1 --out runs/locomo",
    ),
    command("report", "report runs/locomo --svg locomo.svg"),
    command("report-json", "report runs/locomo/bm25 --json"),
    command("verify", "verify runs/locomo/hybrid"),
    command("verify-json", "verify runs/locomo/bm25 --json"),
    command("compare", "compare runs/locomo/bm25 runs/locomo/hybrid --markdown change.md"),
    command("compare-worse", "compare runs/locomo/hybrid runs/locomo/random --json"),
    command(
        "compare-band",
        "compare runs/locomo/bm25 runs/locomo/hybrid --metrics recall@10,hit@10 --band 0.02 "
        "--no-by-category --discordant hit@10",
    ),
    command(
        "compare-seed", "compare runs/locomo/bm25/metrics.json runs/locomo/hybrid --tests seed"
    ),
    command(
        "gate-passes",
        "gate runs/locomo/hybrid --baseline runs/locomo/bm25/metrics.json "
        "--max-drop recall@10=0.02",
    ),
    command(
        "gate-fails",
        "gate runs/locomo/bm25 --baseline runs/locomo/hybrid --max-drop recall@10=0.001",
    ),
    command(
        "score",
        "score runs/locomo/bm25/raw_retrievals.jsonl --dataset locomo --out runs/scored",
    ),
    command(
        "score-pgmnemo",
        "score data/pgmnemo/locomo/v0.2.1_session_20260509/raw_retrievals.jsonl --dataset locomo "
        "--format pgmnemo --compat pgmnemo --out runs/pgmnemo",
    ),
    command("compare-refused", "compare runs/locomo/bm25 runs/pgmnemo"),
    command("verify-scored", "verify runs/scored --protocol mnemoscope-retrieval-1"),
    # The walk-through of docs/release.md.
    command(
        "release-new",
        f"release new v0.2.0 --base runs/locomo/bm25 --cand runs/locomo/hybrid --out {_RELEASE} "
        "--tag-date 2099-11-18T12:00 --at 2099-11-16T08:00",
        "--author",
        "name of the author",
        "--waive",
        "longmemeval=the change was made for LoCoMo; no claim on other data",
        "--other-base",
        "the first release under this process",
        "--changed",
        "none",
    ),
    command("release-report", f"release report {_RELEASE} --at 2099-11-16T08:30"),
    command(
        "release-rederive",
        f"release rederive {_RELEASE} --at 2099-11-16T08:40",
        "--name",
        "name of the statistician",
    ),
    command("release-decide", f"release decide {_RELEASE} --at 2099-11-16T08:45"),
    command(
        "release-set",
        f"release set {_RELEASE}",
        "--internal",
        "one run of each system; both are deterministic",
        "--external",
        "LoCoMo only: ten English conversations",
        "--rationale",
        "users asked for search by meaning",
        "--no-claim",
        "ships as neutral: no metric changed significantly",
    ),
    command("release-decide-again", f"release decide {_RELEASE} --at 2099-11-16T08:50"),
    command("release-report-again", f"release report {_RELEASE} --at 2099-11-16T08:50"),
    command(
        "release-circulate",
        f"release circulate {_RELEASE} --at 2099-11-16T09:00",
        "--evidence",
        "nowhere: no group was asked",
    ),
    *(
        command(
            f"release-sign-{role}",
            f"release sign {_RELEASE} --role {role} --at 2099-11-17T{hour}:00",
            "--name",
            f"name of the {name}",
        )
        for role, name, hour in (
            ("architect", "architect", 10),
            ("statistician", "statistician", 11),
            ("research-supervisor", "supervisor", 12),
        )
    ),
    command("release-check-fails", f"release check {_RELEASE}"),
    command(
        "release-sign-pi",
        f"release sign {_RELEASE} --role pi --at 2099-11-17T13:00 "
        "--accept waiver:longmemeval --accept base",
        "--name",
        "name of the PI",
    ),
    command("release-notes", f"release notes {_RELEASE}"),
    command("release-lint", f"release lint {_RELEASE}/notes.md --release {_RELEASE}"),
    Command(
        "release-lint-fails",
        ["release", "lint", "announcement.md", "--release", _RELEASE],
        {"announcement.md": "Hybrid search improves recall@10 on LoCoMo by 0.5 pp.\n"},
    ),
    command("release-check", f"release check {_RELEASE}"),
    command("cite", "cite runs/locomo/hybrid --base runs/locomo/bm25"),
    command(
        "release-history-add",
        f"release history add --release {_RELEASE} --at 2099-11-18T12:00",
        "--change",
        "hybrid search instead of BM25",
        "--reason",
        "users asked for search by meaning",
    ),
    command("release-history-show", "release history show"),
    command("verify-block", "verify runs/scored --block", "a reason to block"),
]

_ANSWERS = [
    command(
        "run-locomo-turns",
        "run locomo --granularity turn --scenarios 2 --system graph --system fts5 --out runs/turns",
    ),
    command(
        "run-locomo-answers",
        "run locomo --system bm25 --reader extractive --scenarios 2 --questions 120 "
        "--out runs/answers",
    ),
    command(
        "answer",
        "answer runs/turns/fts5 --reader extractive,form=sentences,sentences=2 --judge exact "
        "--out runs/answered",
    ),
    command("judge", "judge runs/answers --judge rouge-l --out runs/judged"),
    command(
        "judge-panel",
        "judge runs/answers/bm25 --judge rouge-l --judge f1 --judge exact --out runs/panel --json",
    ),
    command("compare-answers", "compare runs/answers/bm25 runs/answers/oracle --no-by-category"),
    command("verify-answers", "verify runs/answers/bm25 --json"),
    command("run-refused", "run locomo --system bm25 --scenarios 3 --out runs/answers --no-arms"),
    command(
        "systems-survey",
        "systems survey --system bm25 --system fts5 --system recency --scenarios 1 --out survey",
    ),
    command("datasets-check", "datasets check locomo"),
    command("datasets-check-json", "datasets check locomo --json --granularity turn"),
]

_OTHER_DATA = [
    command(
        "run-longmemeval",
        "run longmemeval --variant oracle --scenarios 20 --system bm25 --system hybrid "
        "--out runs/longmemeval",
    ),
    command(
        "run-tofu", "run tofu --forget 01 --questions 200 --system bm25 --no-arms --out runs/tofu"
    ),
    command(
        "score-trec",
        "score data/trec_eval/results.test --dataset trec --data data/trec_eval/qrels.test "
        "--format trec --out runs/trec",
    ),
]

_OWN_DATA = [
    command(
        "run-strata",
        "run strata --data strata --system bm25 --system hybrid,fusion=rrf,weight=0.6 "
        "--out runs/strata",
    ),
    command("datasets-check-strata", "datasets check strata --data strata"),
    command("run-beir", "run beir --data beir --system bm25 --system recency --out runs/beir"),
    command(
        "run-beir-json", "run beir --data beir --system dense --no-arms --out runs/dense --json"
    ),
    command("datasets-check-beir", "datasets check beir --data beir"),
    command("datasets-export", "datasets export store.db --to exported"),
    command("systems-check", "systems check bm25"),
    command("systems-check-json", "systems check recency --json"),
]

_LIVES = [
    command("simulate", "personas simulate executive-assistant --days 60 --out lives"),
    command("personas-list-lives", "personas list --data lives"),
    command("personas-audit", "personas audit --persona lives/executive-assistant --out audit"),
    command(
        "run-personas",
        "run personas --data lives --system bm25 --ranges 30,60 --groups-enabled --out runs/lives",
    ),
    command(
        "run-personas-sections",
        "run personas --data lives --system bm25 --ranges 20-60/20 --sample 5 --no-arms "
        "--granularity section --out runs/sections --json",
    ),
    command(
        "run-personas-at-the-end",
        "run personas --data lives --system bm25 --ranges none --no-arms --out runs/end",
    ),
    command("report-lives", "report runs/lives"),
    command("canaries", "canaries runs/lives/bm25 runs/lives/random"),
    command("canaries-json", "canaries runs/lives/random runs/lives/bm25 --json"),
]

_HELP = """
mnemoscope
answer|canaries|cite|compare|datasets|datasets check|datasets export|datasets fetch|datasets list
demo|gate|judge|judges|judges exam|judges list|models|models check|models list|personas
personas audit|personas conversations|personas create|personas generate|personas list|personas qa
personas simulate|personas tool-calls|protocols|protocols list|protocols show|published
published audit|published baselines|published list|published spread|ranges|release|release amend
release check|release circulate|release decide|release history|release history add
release history show|release lint|release new|release notes|release rederive|release report
release set|release sign|release process|release process add|release process show|release tag
report|run|run personas|score|serve|serve embeddings|serve grpc|serve http|systems|systems check
systems install|systems list|systems probe|systems remove|systems survey|verify
""".strip().replace("\n", "|")

_CATALOGUES = [
    Command("help", _HELP.split("|"), is_help=True),
    *(
        command(re.sub(r"[^\w.]+", "-", line), line)
        for line in (
            "systems list",
            "systems list hybrid fts5",
            "datasets list",
            "models list --json",
            "judges list",
            "judges exam f1",
            "judges exam rouge-l --json",
            "protocols list",
            "protocols show mnemoscope-retrieval-1",
            "protocols show pgmnemo-recall-1.0.0:faithful",
            "published audit",
            "published baselines",
            "published spread --benchmark LoCoMo",
            "published list --benchmark LoCoMo --category all",
            "published list --system zep --json",
            "personas list",
            "ranges",
            "ranges 7-60/7 --json",
        )
    ),
    command("error-unknown-command", "runn"),
    command("error-unknown-option", "run locomo --system bm25 --no-such-option 1 --out runs/x"),
    command("error-unknown-dataset", "run nothing --system bm25 --out runs/x"),
    command("error-unknown-system", "run strata --data strata --system bm26 --out runs/x"),
    command("error-bad-system-option", "run strata --data strata --system bm25,k=x --out runs/x"),
    command("error-bad-value", "run strata --data strata --system bm25 --depth deep --out runs/x"),
    command("error-missing-option", "run strata --data strata --out runs/x"),
    command("error-missing-data", "run locomo --data nowhere --system bm25 --out runs/x"),
    command("error-no-run", "verify runs/none"),
    command("error-unknown-protocol", "protocols show no-such-protocol"),
    command("error-unknown-judge", "judges exam no-such-judge"),
    command("error-bad-ranges", "ranges 7-x"),
]

BEIR_TOPICS = (
    "the harbour was closed in winter and the ferry waited",
    "a violin teacher moved to the village beside the orchard",
    "the museum bought a letter that a doctor had written",
    "tickets for the railway bridge are sold at the market",
    "a recipe for quince from the castle kitchen",
    "sailing to the island takes a summer afternoon",
)


def _copy_strata(folder: Path) -> None:
    shutil.copytree(REPOSITORY / "examples" / "strata", folder / "strata")


def _write_own_data(folder: Path) -> None:
    """The strata example, a small corpus in BEIR's format with grades, a SQLite memory store."""
    _copy_strata(folder)
    with closing(sqlite3.connect(folder / "store.db")) as store, store:
        store.execute("CREATE TABLE memories (id INTEGER, content, category, tags, is_sensitive)")
        store.executemany(
            "INSERT INTO memories VALUES (?, ?, ?, ?, ?)",
            [(n, topic, "note", "a,b", n == 2) for n, topic in enumerate(BEIR_TOPICS)],
        )
    beir = folder / "beir"
    (beir / "qrels").mkdir(parents=True)
    documents = [
        {"_id": f"d{n}", "title": f"Note {n}" if n % 2 else "", "text": f"{topic}, part {n % 4}"}
        for n, topic in enumerate(BEIR_TOPICS * 4)
    ]
    queries = [{"_id": f"q{n}", "text": f"what of {t}?"} for n, t in enumerate(BEIR_TOPICS)]
    for name, rows in (("corpus", documents), ("queries", queries)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (beir / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    size = len(BEIR_TOPICS)
    judgments = "".join(
        f"q{n}\td{n + size * part}\t{grade}\n"
        for n in range(size)
        for part, grade in ((0, 2), (1, 1), (2, 0))
    )
    (beir / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judgments}")


GROUPS = {
    group.name: group
    for group in (
        Group("runs", _RUNS_AND_FIGURES, needs=("locomo", "pgmnemo")),
        Group("answers", _ANSWERS, needs=("locomo",)),
        Group("other-data", _OTHER_DATA, needs=("longmemeval", "tofu", "trec_eval")),
        Group("own-data", _OWN_DATA, prepare=_write_own_data),
        Group("lives", _LIVES),
        Group("catalogues", _CATALOGUES, prepare=_copy_strata),
    )
}
GROUP_OF = {one.name: group.name for group in GROUPS.values() for one in group.commands}
assert len(GROUP_OF) == sum(len(group.commands) for group in GROUPS.values()), "a name twice"


# ------------------------------------------------------------------------------------- running them

# One process for a group: it imports the command line once, and makes each command a fork. What a
# command has imported, it imports as well, so that the commands after it need not.
_DRIVER = """
import atexit, contextlib, datetime, gc, importlib, json, os, sys
import cyclopts, msgspec, numpy, rich.table
from mnemoscope.cli import main
from mnemoscope.cli.app import invoke
import mnemoscope.release.state
# Releases have fixed times (--at), which must lie between the end of the runs and the clock.
mnemoscope.release.state.clock = lambda: datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)
def tell(file):
    with open(file, "w") as names:
        names.write("\\n".join(sys.modules))
for line in sys.stdin:
    order = json.loads(line)
    gc.freeze()
    child = os.fork()
    if child == 0:
        atexit.register(tell, order["modules"])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for descriptor in (1, 2):
            name = order["streams"][descriptor - 1]
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), descriptor)
        if order["help"]:
            for line in order["arguments"]:
                print(f"\\f{line}", flush=True)
                invoke([*line.removeprefix("mnemoscope").split(), "--help"])
            sys.exit()
        sys.argv = ["mnemoscope", *order["arguments"]]
        main()
    _, status = os.waitpid(child, 0)
    os.write(1, b"%d\\n" % os.waitstatus_to_exitcode(status))
    with contextlib.suppress(OSError), open(order["modules"]) as names:
        for name in names.read().split():
            with contextlib.suppress(Exception):
                importlib.import_module(name)
"""


def data_folder() -> Path:
    """Where the real data lies: beside the repository, or where MNEMOSCOPE_SHARED says."""
    return Path(os.environ.get("MNEMOSCOPE_SHARED") or REPOSITORY.parent / "shared") / "data"


def missing_data(group: Group) -> list[Path]:
    return [place for name in group.needs if not (place := data_folder() / name).exists()]


def _environment(folder: Path) -> dict[str, str]:
    """Nothing of the caller's: no keys, no cache, no width of a terminal."""
    kept = ("LD_LIBRARY_PATH", "SYSTEMROOT")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "PATH": os.defpath,
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "MNEMOSCOPE_CACHE": "../cache",
        "MNEMOSCOPE_DATA": "data",
        "PYTHONPATH": str(REPOSITORY / "src"),
        "COLUMNS": "100",
        "LINES": "50",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }


def run_group(group: Group, keep: Path | None = None) -> dict[str, Outcome]:
    """Run a group's commands in a new folder; what is compared of each."""
    # Resolved: a command may print the real path.
    folder = Path(tempfile.mkdtemp(prefix="golden-")).resolve()
    work = folder / "work"
    try:
        for name in ("home", "tmp", "cache", "work/data"):
            (folder / name).mkdir(parents=True)
        for name in group.needs:
            (work / "data" / name).symlink_to((data_folder() / name).resolve())
        group.prepare(work)
        return dict(_outcomes(group, folder, keep))
    finally:
        if keep:
            shutil.copytree(work, keep / "raw" / group.name, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(folder)


def _outcomes(group: Group, folder: Path, keep: Path | None) -> Iterator[tuple[str, Outcome]]:
    work = folder / "work"
    streams = [folder / "stdout", folder / "stderr"]
    replaced = {
        str(work): "<work>",
        str(folder): "<folder>",
        str(data_folder().resolve()): "<data>",
        str(REPOSITORY): "<repository>",
    }
    with subprocess.Popen(
        [sys.executable, "-c", _DRIVER],
        cwd=work,
        env=_environment(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as driver:
        assert driver.stdin is not None and driver.stdout is not None
        timer = threading.Timer(LONGEST, _end, [driver.pid])
        timer.start()
        for one in group.commands:
            for name, content in one.writes.items():
                (work / name).write_text(content, encoding="utf-8")
            before = _files(work)
            order = {
                "arguments": list(one.arguments),
                "help": one.is_help,
                "streams": [str(stream) for stream in streams],
                "modules": str(folder / "modules"),
            }
            with suppress(BrokenPipeError):
                driver.stdin.write(json.dumps(order) + "\n")
                driver.stdin.flush()
            code = driver.stdout.readline()
            if not code:  # the commands after it have no outcome
                break
            outcome = Outcome(int(code))
            for stream in streams:
                content = _replace(stream.read_text(encoding="utf-8"), replaced)
                outcome.parts.update(_compared_stream(stream.name, content, one.is_help))
            changed = [path for path, state in _files(work).items() if before.get(path) != state]
            outcome.parts.update(_compared_files(work, changed, replaced))
            if keep:
                _keep(keep / "compared" / one.name, outcome)
            yield one.name, outcome
        timer.cancel()
        with suppress(BrokenPipeError):
            driver.stdin.close()


def _end(session: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)


def _compared_stream(name: str, content: str, is_help: bool) -> Iterator[tuple[str, Compared]]:
    if not is_help:
        yield name, compared(name, content)
        return
    before, *pages = content.split("\f")
    yield name, Compared(None, before)
    for page in pages:
        line, _, text = page.partition("\n")
        yield line, Compared(None, without_exempt(text))


def _files(work: Path) -> dict[str, tuple[int, int, int]]:
    """Every file with what changes when it is written."""
    found = {}
    for folder, _, names in os.walk(work):
        for name in names:
            if name not in IGNORED_FILES:
                path = Path(folder) / name
                state = path.stat()
                key = path.relative_to(work).as_posix()
                found[key] = (state.st_ino, state.st_mtime_ns, state.st_size)
    return found


_DAY = re.compile(r"day-\d+\.md$")


def _compared_files(
    work: Path, names: Iterable[str], replaced: Mapping[str, str]
) -> Iterator[tuple[str, Compared]]:
    days: dict[str, list[str]] = {}
    for name in sorted(names):
        path = work / name
        if path.suffix in UNREAD_FILES or path.name in UNREAD_FILES:
            yield name, Compared("listed", None)
        elif _DAY.search(name):  # simulated: what they say is data, and one hash is enough
            days.setdefault(_DAY.sub("day-*.md", name), []).append(
                f"{name}\n{path.read_text(encoding='utf-8')}"
            )
        else:
            content = _replace(path.read_text(encoding="utf-8"), replaced)
            yield name, compared(name, content)
    for name, contents in days.items():
        yield name, Compared("\n".join(contents), None)


def _replace(text: str, replaced: Mapping[str, str]) -> str:
    for path, name in replaced.items():
        text = text.replace(path, name)
    return text


def _keep(folder: Path, outcome: Outcome) -> None:
    for name, part in outcome.parts.items():
        for kind, content in part._asdict().items():
            if content:
                place = folder / f"{name}.{kind}"
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(content, encoding="utf-8")
    (folder / "exit").parent.mkdir(parents=True, exist_ok=True)
    (folder / "exit").write_text(f"{outcome.exit}\n")


# --------------------------------------------------------------------------------- what is compared


def compared(name: str, content: str) -> Compared:
    """Cut an output into data and text, without what is exempt."""
    values = _values(name, content)
    if name.endswith(".html"):
        return _compared_page(name, content)
    if values is None:
        if name.endswith(".svg"):
            words = html.unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", content, flags=re.S))
            content = "\n".join(filter(None, map(str.strip, words.splitlines())))
        text = without_exempt(content)
        return Compared("\n".join(NUMBER.findall(text)), text)
    cutter = _Cutter(Path(name).name)
    data = "\n".join(_indented(cutter.data(value, ())) for value in values)
    return Compared(data, "\n".join(cutter.texts) if cutter.texts else None)


def _indented(value: Any) -> str:
    """As `json.dumps` with indent=1, whose encoder in C does not indent."""
    flat = json.dumps(value, ensure_ascii=False)
    try:
        return msgspec.json.format(flat, indent=1)
    except (msgspec.DecodeError, UnicodeEncodeError):  # NaN or half a character
        return json.dumps(value, ensure_ascii=False, indent=1)


_PACKED = re.compile(r'<script [^>]*id="data">([^<]*)</script>')
_UNREAD = re.compile(r"<(style|script|svg)\b.*?</\1>", re.S)


def _compared_page(name: str, content: str) -> Compared:
    """The questions that a page has packed are data; of the rest, the words that it shows."""
    cutter = _Cutter(Path(name).name)
    data = [
        _indented(cutter.data(json.loads(unpacked), ()))
        for unpacked in (zlib.decompress(base64.b64decode(one)) for one in _PACKED.findall(content))
    ]
    text = _UNREAD.sub(" ", _PACKED.sub(" ", content))
    text = re.sub(r"</t[dh]><t[dh][^>]*>", " | ", text)  # rows as in Markdown
    text = html.unescape(re.sub(r"<[^>]*>", " ", text.replace("<tr>", "| ")))
    text = re.sub(r"\b[\d,.]+ ms\b", "<time>", text)
    lines = filter(None, (" ".join(line.split()) for line in text.splitlines()))
    text = without_exempt("\n".join(lines))
    return Compared("\n".join([*data, *NUMBER.findall(text)]), text)


def _values(name: str, content: str) -> list[Any] | None:
    """The parsed values of a file or stream that holds JSON, JSON lines or YAML."""
    suffix = Path(name).suffix
    try:
        if suffix == ".jsonl":
            return [json.loads(line) for line in content.splitlines()]
        if suffix in (".yaml", ".yml"):
            return [json.loads(json.dumps(yaml.load(content, _YAML), default=str))]
        if suffix == ".json" or (not suffix and content[:1] in ("{", "[")):
            return [json.loads(content)]
    except (ValueError, yaml.YAMLError):
        return None
    return None


class _Cutter:
    """Takes exempt fields out of parsed JSON, and collects text fields apart."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.texts: list[str] = []

    def data(self, value: Any, path: tuple[str, ...]) -> Any:
        if isinstance(value, dict):
            return self._object(value, path)
        if isinstance(value, list):
            return [self.data(item, path) for item in value]
        if isinstance(value, float):
            return float(f"{round(value, DECIMALS):.{DIGITS}g}")
        return value

    def _object(self, value: dict[str, Any], path: tuple[str, ...]) -> Any:
        if _kind(self._file, path).has_text_keys:
            self.texts += [f"{'.'.join(path)}: {key}" for key in value]
            return [self.data(item, (*path, key)) for key, item in value.items()]
        kept = {}
        for key, item in value.items():
            here = (*path, key)
            kind = _kind(self._file, here)
            if kind.is_exempt:
                continue
            if kind.is_text and not isinstance(item, dict):
                # That there is a text, and how many there are, is data.
                kept[key] = len(item) if isinstance(item, list) else bool(item)
                words = json.dumps(item, ensure_ascii=False)
                self.texts.append(f"{'.'.join(here)}: {without_exempt(words)}")
            else:
                kept[key] = self.data(item, here)
        return kept


class _Kind(NamedTuple):
    """Which of the tables a field is in."""

    is_exempt: bool
    is_text: bool
    has_text_keys: bool


@lru_cache(1 << 14)
def _kind(file: str, path: tuple[str, ...]) -> _Kind:
    names = {".".join(path[-length:]) for length in (1, 2)}
    names |= {".".join((*path[-3:-1], "*")), f"{file}:{'.'.join(path)}"}
    tables = (EXEMPT_FIELDS, TEXT_FIELDS, TEXT_KEYS)
    return _Kind(*(bool(path) and not names.isdisjoint(table) for table in tables))


def without_exempt(text: str) -> str:
    """A text for people without times, sizes, versions and hashes."""
    lines = [line.rstrip() for line in text.splitlines()]
    text = "\n".join(_without_columns(lines))
    for pattern, instead in EXEMPT_TEXTS.values():
        text = re.sub(pattern, instead, text)
    return text


def _any(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


_ROW, _IGNORED_ROW = _any(EXEMPT_ROWS), _any(IGNORED_ROWS)
_COLUMN = _any(EXEMPT_COLUMNS)
_HEADING = re.compile(rf"(?<!\S)(?:{_COLUMN.pattern})(?!\S)")
_CELL = re.compile(r"[\s\d.,─-]*")


def _without_columns(lines: Iterable[str]) -> Iterator[str]:
    """Empty the exempt cells of tables, in Markdown and as a terminal shows them."""
    cells: list[int] = []  # of a Markdown table
    spans: list[tuple[int, int]] = []  # of a terminal's table
    for line in lines:
        if line.startswith("|"):
            row = [cell.strip() for cell in line.split("|")]
            cells = [i for i, cell in enumerate(row) if _COLUMN.fullmatch(cell)] or cells
            if _IGNORED_ROW.fullmatch(row[1]):
                continue
            if _ROW.fullmatch(row[1]):
                line = f"|{row[1]}|<exempt>|"
            elif cells:
                line = "|".join("" if i in cells else cell for i, cell in enumerate(row))
            yield line
            continue
        cells = []
        headings = list(_HEADING.finditer(line))
        if len(headings) > 1:
            # Cells are flush right below their heading, and wider ones widen the table.
            spans = [(len(line[: one.start()].rstrip()), one.end()) for one in headings]
            yield " ".join(line.split())
        elif line and spans and all(_CELL.fullmatch(line[slice(*span)]) for span in spans):
            for start, end in reversed(spans):
                line = f"{line[:start]} {line[end:]}"
            yield re.sub("[─ ]*─[─ ]*", "─", " ".join(line.split()))
        else:
            spans = []
            yield line


def _sha(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()[:16]


# ---------------------------------------------------------------------------------- the frozen list

Frozen = dict[str, dict[str, Any]]


def load() -> Frozen:
    if not FROZEN.exists():
        return {}
    frozen: Frozen = json.loads(FROZEN.read_text(encoding="utf-8"))
    return frozen


def save(frozen: Frozen) -> None:
    order = [name for name in GROUP_OF if name in frozen]
    text = json.dumps({name: frozen[name] for name in order}, indent=1)
    FROZEN.write_text(text + "\n", encoding="utf-8")


def differences(
    frozen: Frozen, name: str, outcome: Outcome | None, kinds: Sequence[str] = ("data", "text")
) -> list[str]:
    """What differs between a command's outputs and what was frozen, one line each."""
    if outcome is None:
        return [f"{name}: no exit code: it, or a command before it, was ended"]
    if name not in frozen:
        return [f"{name}: not frozen yet"]
    was, now = frozen[name], outcome.frozen()
    lines = []
    if "data" in kinds and was["exit"] != now["exit"]:
        lines.append(f"{name}: exit code {now['exit']}, was {was['exit']}")
    for kind in kinds:
        for file in sorted({*was[kind], *now[kind]}):
            old, new = was[kind].get(file), now[kind].get(file)
            if old == new:
                continue
            what = "is new" if old is None else "is gone" if new is None else "changed"
            lines.append(f"{name}: {file}: {kind} {what}")
    return lines


def explain(lines: Sequence[str]) -> str:
    """The differences, and how to see them."""
    name = lines[0].partition(":")[0]
    return "\n".join(
        [
            *lines,
            "",
            f"the command: mnemoscope {_line(name)}",
            f"to see it: python tools/golden.py --only {name} --keep DIR, before and after the "
            "change, then diff -r DIR-before/compared DIR-after/compared",
            "to accept new wording: python tools/golden.py --renew-text",
        ]
    )


def _line(name: str) -> str:
    [found] = [one for one in GROUPS[GROUP_OF[name]].commands if one.name == name]
    return "… --help" if found.is_help else " ".join(found.arguments)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="a command or a group")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the outputs there")
    parser.add_argument("--renew", action="store_true", help="freeze what the commands write now")
    parser.add_argument(
        "--renew-text", action="store_true", help="freeze new wording; refuse if data changed"
    )
    parser.add_argument("--list", action="store_true", help="list the commands and end")
    asked = parser.parse_args(arguments)
    if asked.list:
        for group in GROUPS.values():
            for one in group.commands:
                _say(f"{group.name:12}{one.name:48}mnemoscope {_line(one.name)}")
        return 0
    only = set(asked.only or GROUPS)
    if unknown := only - set(GROUPS) - set(GROUP_OF):
        parser.error(f"no command or group is called {', '.join(sorted(unknown))}: see --list")

    frozen = load()
    outcomes: dict[str, Outcome | None] = {}
    for group in GROUPS.values():
        wanted = {one.name for one in group.commands if {group.name, one.name} & only}
        if not wanted:
            continue
        if missing := missing_data(group):
            _say(f"{group.name}: skipped, no data at {', '.join(map(str, missing))}")
            continue
        clock, cpu = time.monotonic(), _cpu()
        found = run_group(group, asked.keep)
        outcomes.update({name: found.get(name) for name in GROUP_OF if name in wanted})
        _say(
            f"{group.name}: {len(wanted)} commands, {time.monotonic() - clock:.1f} s, "
            f"{_cpu() - cpu:.1f} s of CPU"
        )

    now = {name: outcome.frozen() for name, outcome in outcomes.items() if outcome}
    if asked.renew:
        save({**frozen, **now})
        _say(f"frozen: {len(now)} of {len(outcomes)} commands")
        return 0 if len(now) == len(outcomes) else 1
    kinds = ("data",) if asked.renew_text else ("data", "text")
    lines = [
        line
        for name, outcome in outcomes.items()
        for line in differences(frozen, name, outcome, kinds)
    ]
    for line in lines:
        _say(line)
    if lines:
        if asked.renew_text:
            _say("not renewed: data changed")
        return 1
    if asked.renew_text:
        for name, parts in now.items():
            frozen[name]["text"] = parts["text"]
        save(frozen)
        _say(f"texts frozen: {len(now)} commands")
    else:
        _say(f"{len(now)} commands as frozen")
    return 0


if __name__ == "__main__":
    sys.exit(main())
