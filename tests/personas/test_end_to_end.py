"""All passes on a history of sixty days, from `create` to the audit, with interruptions.

One history is written without interruption. Others are killed, get failed requests or reach the
cost limit, and must end with the same files.
"""

from __future__ import annotations

import json
import os
import random
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from functools import partial
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.conftest import CommandProcess, StartCommand
from tests.personas.scripted_author import author
from tests.personas.small_persona import EPOCH, kill_and_resume
from tests.response_cache import kept_replies
from tests.scripted_server import Request, ScriptedServer, failing

from mnemoscope._store.jsonl import read_records
from mnemoscope.cli.app import invoke
from mnemoscope.datasets.persona_folder import read_questions
from mnemoscope.models.chat import total
from mnemoscope.personas.write.daily_log_writer import gaps
from mnemoscope.personas.write.llm_writer import AccountEntry, paid
from mnemoscope.personas.write.persona_files import open_persona_files

PASSES: dict[str, Sequence[str]] = {
    "create": ["create", "--prompt", "A berth planner", "--days", "60", "--epoch", EPOCH],
    "generate": ["generate", "--parallelism", "4"],
    "conversations": ["conversations", "--parallelism", "4", "--format", "markdown"],
    "tool-calls": ["tool-calls", "--parallelism", "4"],
    "qa": ["qa", "--parallelism", "4"],
    "qa-boundary": ["qa", "--parallelism", "4", "--mode", "boundary"],
    "audit": ["audit", "--parallelism", "4"],
}
"""By their names in account.jsonl."""
FAILURE = re.compile("skipped: |no usable ")
"""How a pass reports a failure."""
FROZEN = Path(__file__).with_name("frozen_prompts.json")
"""Hashes of prompts and outputs; MNEMOSCOPE_FREEZE=1 computes them anew."""
KILLS = 10
DEARER = 4
"""What a token of output usually costs in tokens of input."""
AS_THEY_CAME = {
    "qa-60d/windows.jsonl": rb"(?<=\n)",
    "qa-60d/model-audit.jsonl": rb"(?<=\n)",
}
"""Files with lines in the order of replies, and the pattern that separates the lines."""


class Undisturbed(NamedTuple):
    """The files, requests and outputs of the uninterrupted history."""

    folder: Path
    files: dict[str, bytes]
    answered: Counter[str]
    requests: dict[str, int]
    """In each pass."""
    dry_runs: dict[str, str]
    estimates: dict[str, str]
    asked_by_them: int
    """Requests of dry runs and estimates."""
    hashes: dict[str, dict[str, str]]
    """Of each pass: its prompts, its output, and the outputs of its dry run and estimate."""


class Writer:
    """Runs the passes on one folder, each in its own process, with one cache for all."""

    def __init__(self, start: StartCommand, server: ScriptedServer, place: Path) -> None:
        self._start = start
        self.server = server
        self.folder = place / "planner"
        self.cache = place / "cache"

    def command(self, name: str, *more: str, options: str = "") -> list[str]:
        model = f"toy@{self.server.url}{options}"
        return ["personas", *PASSES[name], "--persona", str(self.folder), "--model", model, *more]

    def start(
        self, arguments: Sequence[object], *, file_bytes: int = 0, **environment: object
    ) -> CommandProcess:
        return self._start(
            arguments, file_bytes=file_bytes, MNEMOSCOPE_CACHE=self.cache, **environment
        )

    def run(self, name: str, *more: str, code: int = 0, options: str = "") -> str:
        """Run a pass to its end; its output."""
        leg = self.start(self.command(name, *more, options=options))
        assert leg.wait() == code, leg.output
        return leg.output

    def cached(self) -> int:
        return kept_replies(self.cache)

    def files(self) -> dict[str, bytes]:
        """All files except the account."""
        found = {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.name not in ("account.jsonl", ".purse.lock")
        }
        for name in found.keys() & AS_THEY_CAME.keys():
            parts = re.split(AS_THEY_CAME[name], found[name], flags=re.MULTILINE)
            found[name] = b"".join(sorted(parts))
        return found


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(author) as running:
        yield running


@pytest.fixture(scope="module")
def undisturbed(
    server: ScriptedServer, start_command: StartCommand, tmp_path_factory: pytest.TempPathFactory
) -> Undisturbed:
    """Each pass once, after its dry run and its estimate."""
    writer = Writer(start_command, server, tmp_path_factory.mktemp("undisturbed"))
    dry_runs, estimates, requests, hashes = {}, {}, {}, {}
    asked_by_them = 0
    for name in PASSES:
        before = server.requests
        dry_runs[name] = _said(writer.command(name, "--dry-run"))
        estimates[name] = _said(writer.command(name, "--estimate"))
        asked_by_them += server.requests - before
        before = server.requests
        said = writer.run(name)
        requests[name] = server.requests - before
        names = {str(writer.folder): "FOLDER", server.url: "SERVER"}
        hashes[name] = {
            "prompts": _hash(f"{one.system}\0{one.text}" for one in server.seen[before:]),
            "said": _hash(_without(names, re.sub(r"\(\d+ unique\)", "", said)).splitlines()),
            "dry run": _hash([_without(names, dry_runs[name])]),
            "estimate": _hash([_without(names, estimates[name])]),
        }
    return Undisturbed(
        writer.folder,
        writer.files(),
        server.answered,
        requests,
        dry_runs,
        estimates,
        asked_by_them,
        hashes,
    )


def _without(names: dict[str, str], text: str) -> str:
    """The text without what differs between two test runs."""
    for name, stands_for in names.items():
        text = text.replace(name, stands_for)
    return text


def _hash(texts: Iterable[str]) -> str:
    """One hash for texts in any order, because the order of replies is random."""
    return sha256("\0".join(sorted(texts)).encode()).hexdigest()


def _said(command: Sequence[str]) -> str:
    """The output of a command, run in this process."""
    with redirect_stdout(StringIO()) as printed:
        assert invoke(command) == 0
    return printed.getvalue()


@pytest.fixture
def writer(
    undisturbed: Undisturbed, server: ScriptedServer, start_command: StartCommand, tmp_path: Path
) -> Writer:
    """A writer of a new history, with a server that was reset."""
    server.reset()
    return Writer(start_command, server, tmp_path)


def test_all_passes_write_all_of_their_files(undisturbed: Undisturbed) -> None:
    persona = open_persona_files(undisturbed.folder)
    logs = sorted(persona.beside("memories").iterdir())
    assert (persona.days, len(logs)) == (60, 49) and gaps(persona) == []
    days = [int(log.stem[-4:]) for log in logs]
    made = {path.name for path in persona.beside("tools").iterdir()}
    assert made == {f"day-{day:04}.yaml" for day in days}
    told = {path.name: path.read_text() for path in persona.beside("conversations").iterdir()}
    open_days = [day for day in days if any(map(persona.is_open, persona.sessions_of(day)))]
    assert told.keys() == {f"conv-{day:04}.md" for day in open_days}
    assert len(open_days) < len(days) and "vaultword" not in "".join(told.values())
    asked = Counter(one.category for one in read_questions(persona.beside("qa") / "questions.yaml"))
    assert asked["information-boundary"] == 4
    assert len(asked) == 10 and asked.total() > 100


def test_prompts_and_outputs_are_the_frozen_ones(
    undisturbed: Undisturbed, server: ScriptedServer
) -> None:
    names = {server.url: "SERVER"}
    files = (f"{name}\n{_without(names, x.decode())}" for name, x in undisturbed.files.items())
    found = {"passes": undisturbed.hashes, "files": _hash(files)}
    if os.environ.get("MNEMOSCOPE_FREEZE"):
        FROZEN.write_text(json.dumps(found, indent=2) + "\n")
    assert found == json.loads(FROZEN.read_text())


def test_the_audit_only_finds_the_planted_errors(undisturbed: Undisturbed) -> None:
    trail = undisturbed.files["qa-60d/model-audit.jsonl"].splitlines()
    codes = Counter(json.loads(line).get("code", "") for line in trail)
    assert codes.keys() == {"", "loose-evidence", "superseded"}
    assert undisturbed.files["qa-60d/static-audit.jsonl"] == b""


def test_a_written_history_can_be_benchmarked(
    undisturbed: Undisturbed, start_command: StartCommand, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    leg = start_command(
        ["run", "personas", "--data", undisturbed.folder, "--system", "bm25", "--out", runs]
    )
    assert leg.wait() == 0, leg.output
    [run] = (one for one in runs.iterdir() if one.name.startswith("bm25"))
    measured = json.loads((run / "metrics.json").read_text())
    assert measured["questions"]["measured"] > 50
    assert 0.5 < measured["overall"]["recall@10"]["mean"] <= 1.0


def test_killed_ten_times_it_writes_the_same_files_and_pays_for_no_reply_twice(
    undisturbed: Undisturbed, writer: Writer, server: ScriptedServer
) -> None:
    moments = _moments(undisturbed.requests)
    answered: Counter[str] = Counter()
    for name in PASSES:
        answered += kill_and_resume(
            writer.start, server, writer.command(name), writer.cached, moments[name]
        )
        server.reset()

    assert sum(map(len, moments.values())) == KILLS
    assert set(answered.values()) == {1}
    assert answered == undisturbed.answered
    assert writer.files() == undisturbed.files


def _moments(requests: dict[str, int]) -> dict[str, list[int]]:
    """After how many more replies to kill each pass: once each, and the rest at random."""
    draw = random.Random(7)
    long = [name for name, number in requests.items() if number > KILLS]
    kills = Counter([*PASSES, *draw.choices(long, k=KILLS - len(PASSES))])
    moments: dict[str, list[int]] = {}
    for name, times in kills.items():
        places = sorted(draw.sample(range(1, requests[name]), times))
        moments[name] = [now - before for before, now in zip([0, *places], places, strict=False)]
    return moments


def test_with_a_fifth_of_the_calls_failing_skipped_tasks_are_reported_and_written_later(
    undisturbed: Undisturbed, writer: Writer, server: ScriptedServer
) -> None:
    server.when(partial(_fails_at_first, server), failing(400))
    failed: dict[str, int] = {}
    for name in PASSES:
        before = server.requests - server.delivered
        leg = writer.start(writer.command(name))
        code = leg.wait()
        failed[name] = server.requests - server.delivered - before
        assert len(FAILURE.findall(leg.output)) == failed[name]
        assert code == (1 if failed[name] and name != "audit" else 0), leg.output
        for _ in range(3):
            if not FAILURE.search(leg.output):
                break
            leg = writer.start(writer.command(name, *(["--missing"] if name == "generate" else [])))
            code = leg.wait()
        assert code == 0 and not FAILURE.search(leg.output)
    assert sum(map(bool, failed.values())) >= 5, failed
    assert gaps(open_persona_files(writer.folder)) == []
    assert writer.files().keys() == undisturbed.files.keys()
    assert set(server.answered.values()) == {1}


def _fails_at_first(server: ScriptedServer, request: Request) -> bool:
    """One prompt in five, by its text, and only when it is asked for the first time."""
    return zlib.crc32(request.text.encode()) % 5 == 0 and server.asked[request.text] == 1


def test_a_pass_stops_at_the_cost_limit_and_continues_with_a_higher_one(
    undisturbed: Undisturbed, writer: Writer, server: ScriptedServer
) -> None:
    price = "?price_in=1&price_out=4"
    writer.run("create", options=price)
    before = paid(writer.folder)
    low = before + 0.05

    said = writer.run("generate", "--max-cost", f"{low}", code=1, options=price)

    assert "give a higher --max-cost and run the same command" in said
    assert before < paid(writer.folder) <= low
    there, asked = writer.files(), server.requests
    writer.run("conversations", "--max-cost", f"{low}", code=1, options=price)
    assert server.requests <= asked + 1, "what the days cost counts as well"
    writer.run("generate", "--max-cost", "5", options=price)
    assert there.items() <= writer.files().items()
    assert set(server.answered.values()) == {1}
    assert gaps(open_persona_files(writer.folder)) == []
    assert low < paid(writer.folder) < 5


@pytest.mark.parametrize("name", PASSES)
def test_an_estimate_is_near_what_the_server_counts(undisturbed: Undisturbed, name: str) -> None:
    said = re.sub(r"\s+", " ", undisturbed.estimates[name])
    numbers = re.findall(r"([\d,]+) (?:requests|input tokens|output tokens)", said)
    requests, *tokens = (int(number.replace(",", "")) for number in numbers)
    assert requests == undisturbed.requests[name]
    entries = read_records(undisturbed.folder / "account.jsonl", AccountEntry)
    used = total([one.usage for one in entries if one.pass_name == name])
    assert used is not None and used.requests == requests
    assert tokens[0] == pytest.approx(used.input_tokens, rel=0.3)
    dollars = tokens[0] + DEARER * tokens[1]
    assert dollars == pytest.approx(used.input_tokens + DEARER * used.output_tokens, rel=0.3)


@pytest.mark.parametrize("name", PASSES)
def test_a_dry_run_shows_the_prompts_that_are_asked_first(
    undisturbed: Undisturbed, name: str
) -> None:
    shown = re.findall(
        r"=== prompt \d, user\n(.*?)(?=\n\n===|\n\n\d prompts shown)",
        undisturbed.dry_runs[name],
        re.S,
    )
    assert 1 <= len(shown) <= 3
    assert shown[0] in undisturbed.answered


def test_dry_runs_and_estimates_make_no_request(undisturbed: Undisturbed) -> None:
    assert undisturbed.asked_by_them == 0
