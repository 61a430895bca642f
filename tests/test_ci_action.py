"""The GitHub Action and the GitLab template: their steps run as they stand, to a failing gate."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import venv
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
import yaml
from tests.analysis import rewritten_store
from tests.analysis.rewritten_store import example, write
from tests.conftest import REPOSITORY

import mnemoscope as ms

ACTION: dict[str, Any] = yaml.safe_load((REPOSITORY / "action.yml").read_text(encoding="utf-8"))
GITLAB: dict[str, Any] = yaml.safe_load((REPOSITORY / "ci" / "gitlab.yml").read_text())
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
EXPRESSION = re.compile(r"\$\{\{\s*([\w.-]+)\s*\}\}")
GH = """#!/bin/sh
# Stands for GitHub's command: it keeps what it was asked, and the body of the comment.
printf '%s\\n' "$*" >> "$GH_LOG"
for part in "$@"; do
  case "$part" in body=@*) cp "${part#body=@}" "$GH_LOG.body";; esac
done
case "$*" in *--jq*) cat "$GH_LOG.earlier" 2>/dev/null || true;; esac
"""


class Repository(NamedTuple):
    """A repository with a store and a baseline, and the tools of a runner."""

    folder: Path
    tools: Path
    wheel: Path

    def run(self, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a script as a runner does: bash that stops at the first error."""
        own = {
            name: value
            for name, value in os.environ.items()
            if name.startswith(("MNEMOSCOPE_", "OPENBLAS")) or name in ("HOME", "LANG", "TMPDIR")
        }
        # Nothing is fetched: what the wheel needs is there, and an index would be an error.
        fixed = {"PATH": f"{self.tools}:/usr/bin:/bin", "PIP_NO_INDEX": "1", "PIP_NO_COMPILE": "1"}
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=self.folder,
            env={**own, **fixed, **environment},
            capture_output=True,
            text=True,
            check=False,
        )


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment without Mnemoscope, with what it needs, and a stand-in for `gh`."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder / "python", with_pip=False)
    needed = folder / "needed"
    needed.mkdir()
    for place in Path(sysconfig.get_path("purelib")).iterdir():
        if not re.search("mnemoscope", place.name) and place.suffix != ".pth":
            (needed / place.name).symlink_to(place)
    (library,) = (folder / "python" / "lib").glob("python*/site-packages")
    (library / "needed.pth").write_text(f"{needed}\n")
    gh = folder / "python" / "bin" / "gh"
    gh.write_text(GH)
    gh.chmod(0o755)
    return folder / "python" / "bin"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=REPOSITORY, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def repository(tools: Path, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """From an empty repository: a store, a baseline, and a branch that loses memories."""
    folder = tmp_path_factory.mktemp("repository") / "notes of mine"
    store = write(folder / "store", example())
    git(folder, "init", "-q")
    for name in ("queries.jsonl", "qrels.jsonl"):
        shutil.copy(rewritten_store.EXAMPLE / name, store)
    ms.run("strata", systems=["bm25"], data=store, out=folder / "baseline", baselines=False)
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "a store and its baseline")
    git(folder, "remote", "add", "origin", str(folder))
    write(store, rewritten_store.split(example(), loses=True).lines)
    return Repository(folder, tools, wheel)


class Job(NamedTuple):
    """What a job left behind."""

    codes: dict[str, int]
    log: str
    summary: str
    outputs: dict[str, str]
    asked: str
    """What GitHub was asked for."""
    comment: str


def filled_in(text: str, known: Mapping[str, str]) -> str:
    return EXPRESSION.sub(lambda found: known[found[1]], text)


def run_action(
    repository: Repository, folder: Path, inputs: Mapping[str, str], *, pull: str = "7"
) -> Job:
    """Run the steps of action.yml in order, until one fails."""
    folder.mkdir(parents=True, exist_ok=True)
    given = {name: about.get("default", "") for name, about in ACTION["inputs"].items()}
    given |= inputs
    known = {f"inputs.{name}": value for name, value in given.items()}
    known |= {"github.token": "secret", "github.event.pull_request.number": pull}
    known["inputs.token"] = known["github.token"]
    files = {name: folder / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.touch()
    environment = {
        **{name: str(file) for name, file in files.items()},
        "GITHUB_REPOSITORY": "me/notes",
        "RUNNER_TEMP": str(folder / "temp"),
        "GH_LOG": str(folder / "gh"),
    }
    codes, log, outputs = {}, "", {}
    for step in STEPS:
        if "run" not in step:
            continue
        # An expression that is not known here would be empty on a runner: a test must know it.
        own = {name: filled_in(text, known) for name, text in step.get("env", {}).items()}
        done = repository.run(step["run"], **environment, **own)
        codes[step["name"]] = done.returncode
        log += done.stdout + done.stderr
        if done.returncode:
            break
        outputs = dict(
            line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines()
        )
        known |= {f"steps.gate.outputs.{name}": value for name, value in outputs.items()}
    asked, comment = folder / "gh", folder / "gh.body"
    return Job(
        codes,
        log,
        files["GITHUB_STEP_SUMMARY"].read_text(),
        outputs,
        asked.read_text() if asked.exists() else "",
        comment.read_text() if comment.exists() else "",
    )


@pytest.fixture(scope="module")
def failed(repository: Repository, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """The whole job on a pull request that loses memories."""
    inputs = {
        "store": "store",
        "baseline": "baseline/bm25",
        "package": str(repository.wheel),
        "badge": "badge.svg",
        "max-drop": "recall@10=0.02  mrr@50=0.1",
    }
    return run_action(repository, tmp_path_factory.mktemp("job"), inputs)


def test_the_action_runs_from_an_empty_repository_to_a_failing_gate(
    failed: Job, repository: Repository
) -> None:
    assert failed.codes == {"Install": 0, "Gate": 0, "Comment": 0, "Result": 1}, failed.log
    assert failed.outputs["passed"] == "false"
    assert "gate failed: 3 gold memories are missing" in failed.log
    cases = ElementTree.parse(failed.outputs["junit"]).getroot()
    assert [case.get("name") for case in cases.iter("testcase") if case.find("failure") is not None
            ] == ["gold memories"]  # fmt: skip
    assert "failed" in (repository.folder / "badge.svg").read_text()


def test_the_comment_and_the_summary_name_what_was_lost(failed: Job) -> None:
    assert failed.asked.splitlines()[1].startswith(
        "api --silent --method POST repos/me/notes/issues/7/comments --field body=@"
    )
    assert failed.comment.startswith("<!-- mnemoscope-gate -->\n### ❌ gate failed: 3 gold")
    assert "139 (needed by exact_006)" in failed.comment
    assert failed.summary == failed.comment


def test_a_second_build_replaces_its_comment_and_a_fixed_store_passes(
    failed: Job, repository: Repository, tmp_path: Path
) -> None:
    write(tmp_path / "fixed", rewritten_store.split(example(), loses=False).lines)
    (tmp_path / "gh.earlier").write_text("4711\n9\n")
    inputs = {"store": str(tmp_path / "fixed"), "baseline": "baseline/bm25", "package": ""}

    job = run_action(repository, tmp_path, inputs)

    assert job.codes == {"Install": 0, "Gate": 0, "Comment": 0, "Result": 0}, job.log
    assert "--method PATCH repos/me/notes/issues/comments/4711 " in job.asked
    assert job.comment.startswith("<!-- mnemoscope-gate -->\n### ✅ gate passed")


def test_a_pull_request_cannot_lower_its_own_baseline(
    failed: Job, repository: Repository, tmp_path: Path
) -> None:
    """The cheat: the branch that loses memories records a new baseline, too."""
    folder = repository.folder
    branch = tmp_path / "branch"
    shutil.copytree(folder, branch)
    shutil.rmtree(branch / "baseline")
    lost = rewritten_store.pruned(example(), loses=True)
    write(branch / "store", lost.lines)
    for name in ("queries.jsonl", "qrels.jsonl"):
        file = branch / "store" / name
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        kept = [row for row in rows if not lost.lost & set(row["relevant_ids"])]
        file.write_text("".join(json.dumps(row) + "\n" for row in kept))
    ms.run("strata", systems=["bm25"], data=branch / "store", out=branch / "baseline",
           baselines=False)  # fmt: skip
    inputs = {"store": "store", "baseline": "baseline/bm25", "package": "", "comment": "false"}
    there = Repository(branch, repository.tools, repository.wheel)

    own = run_action(there, tmp_path / "own", inputs)
    protected = run_action(there, tmp_path / "main", {**inputs, "baseline-ref": "main"})

    assert own.outputs["passed"] == "true"
    assert protected.outputs["passed"] == "false"
    assert "3 gold memories are missing" in protected.summary


def test_what_cannot_be_compared_fails_without_a_comment(
    failed: Job, repository: Repository, tmp_path: Path
) -> None:
    inputs = {"store": "store", "baseline": "baseline/nothing", "package": ""}

    job = run_action(repository, tmp_path, inputs)

    assert job.codes["Result"] == 2
    assert "could not compare: exit code 2" in job.summary
    assert job.asked == ""


HOSTILE = '"; touch hacked; echo "$(touch hacked)`touch hacked` --junit=hacked'


def test_inputs_are_not_run_as_code(failed: Job, repository: Repository, tmp_path: Path) -> None:
    texts = ("store", "baseline", "baseline-ref", "system", "missing-gold", "max-drop", "id-map")
    inputs = dict.fromkeys((*texts, "ids-only", "badge", "comment", "package"), HOSTILE)

    whole = run_action(repository, tmp_path / "all", inputs)
    without = {**inputs, "package": "", "baseline-ref": ""}
    gated = run_action(repository, tmp_path / "gate", without)

    assert list(whole.codes) == ["Install"], whole.log
    assert gated.codes["Result"] == 2, gated.log
    assert not (repository.folder / "hacked").exists()


def test_no_expression_stands_inside_a_script() -> None:
    scripts = [step["run"] for step in STEPS if "run" in step]

    assert len(scripts) == 4
    assert [script for script in scripts if "${{" in script] == []
    assert all(step["shell"] == "bash" for step in STEPS if "run" in step)


def test_each_input_is_used_and_each_use_is_an_input() -> None:
    used = set(re.findall(r"inputs\.([\w-]+)", (REPOSITORY / "action.yml").read_text()))

    assert used == ACTION["inputs"].keys()


class Notes(BaseHTTPRequestHandler):
    """GitLab's server, as far as notes need it."""

    received: list[tuple[str, str | None, dict[str, Any]]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.received.append((self.path, self.headers["PRIVATE-TOKEN"], body))
        self.send_response(201)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def notes() -> Iterator[tuple[str, list[tuple[str, str | None, dict[str, Any]]]]]:
    received: list[tuple[str, str | None, dict[str, Any]]] = []
    server = HTTPServer(("127.0.0.1", 0), type("Own", (Notes,), {"received": received}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", received
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_gitlab_job_fails_and_writes_a_note(
    failed: Job,
    repository: Repository,
    notes: tuple[str, list[tuple[str, str | None, dict[str, Any]]]],
) -> None:
    server, received = notes
    job = GITLAB[".memory-gate"]
    script = "\n".join([*job["before_script"], *job["script"]])
    variables = {**job["variables"], "PIP_CACHE_DIR": "", "MNEMOSCOPE_CACHE": ""}
    variables |= {"MEMORY_STORE": "store", "MEMORY_BASELINE": "baseline/bm25"}
    variables |= {"MEMORY_PACKAGE": "", "MEMORY_TOKEN": "secret", "MEMORY_MAX_DROP": "mrr@50=0.2"}
    predefined = {"CI_API_V4_URL": server, "CI_PROJECT_ID": "5", "CI_MERGE_REQUEST_IID": "8"}

    done = repository.run(script, **variables, **predefined)

    assert done.returncode == 1, done.stdout + done.stderr
    ((path, token, body),) = received
    assert (path, token) == ("/projects/5/merge_requests/8/notes", "secret")
    assert body["body"].startswith("<!-- mnemoscope-gate -->\n### ❌ gate failed: 3 gold")
    report = repository.folder / job["artifacts"]["reports"]["junit"]
    assert ElementTree.parse(report).getroot().find(".//failure") is not None
