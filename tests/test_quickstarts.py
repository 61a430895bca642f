"""The commands of the quickstarts and the README run as they stand, and print what is shown."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from tests.integrations.needed import need
from tests.optional import missing

from mnemoscope.cli.app import app
from mnemoscope.integrations.catalog import ITEMS

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs" / "quickstarts").glob("*.md"))
README = ROOT / "README.md"
FENCE = re.compile(
    r"^(?:<!-- needs: (?P<needs>\S+) -->\n)?"
    r"```(?P<language>\w+)(?: title=\"(?P<file>[^\"]+)\")?\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """One fenced block of a page."""

    language: str
    body: str
    file: str
    """The name of the file that the block is the content of."""
    needs: str
    """What must be there for its commands: a command of ours, or an installed integration."""


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = [
        Block(m["language"], m["body"], m["file"] or "", m["needs"] or "")
        for m in FENCE.finditer(text)
    ]
    fences = len(re.findall(r"^```", text, re.MULTILINE))
    if page != README:  # it also has commands for make, and a notebook's lines
        assert len(found) * 2 == fences, "a fence of another kind"
        assert all(own.file or own.language in ("sh", "text") for own in found)
    return found


def can_run(block: Block) -> bool:
    """Whether this version has the command that the block needs.

    An integration that is not installed skips the test, or fails it where CI installs it.
    """
    if block.needs in ITEMS:
        need(block.needs)
    return not block.needs or block.needs in ITEMS or block.needs in app


@pytest.fixture
def shell(
    page: Path,
    tmp_path: Path,
    shared_data: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[str], str]:
    """Runs a script in an empty folder, without a network; LoCoMo is there if the page gets it."""
    if "fetch locomo" in page.read_text(encoding="utf-8"):
        cached = tmp_path / "cache" / "mnemoscope" / "data" / "locomo"
        cached.mkdir(parents=True)
        shutil.copy(shared_data("locomo") / "locomo10.json", cached)
    folder = tmp_path / "project"
    folder.mkdir()
    dead = "http://127.0.0.1:9"
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "COLUMNS": "80",
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), dead),
        **dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1,localhost"),
    }
    for name in ("MNEMOSCOPE_DATA", "PYTHONPATH"):
        environment.pop(name, None)

    def run(script: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}"
        return done.stdout

    monkeypatch.chdir(folder)
    return run


@pytest.mark.parametrize("page", [*PAGES, README], ids=lambda page: page.stem)
def test_the_commands_of_a_page_run_as_they_stand(page: Path, shell: Callable[[str], str]) -> None:
    printed, lacking = "", []
    for block in blocks(page):
        if block.file:
            Path(block.file).parent.mkdir(parents=True, exist_ok=True)
            Path(block.file).write_text(block.body, encoding="utf-8")
        elif block.language == "sh":
            try:
                printed = shell(block.body) if can_run(block) else ""
            except pytest.skip.Exception as skipped:
                lacking.append(str(skipped))
        elif block.language == "text":
            seen = [_plain(line) for line in printed.splitlines()]
            for line in block.body.splitlines():
                assert _plain(line) in seen, f"{page.name} shows {line!r}; printed:\n{printed}"
    if lacking:  # everything else of the page ran
        missing("; ".join(lacking), required=False)


def test_the_workflow_has_the_commands_of_its_page() -> None:
    [page] = [page for page in PAGES if page.stem == "ci-gate"]
    [workflow] = [block for block in blocks(page) if block.language == "yaml"]
    scripts = (block.body for block in blocks(page) if block.language == "sh")
    shown = "".join(scripts).replace(" \\\n  ", " ").splitlines()
    steps = yaml.safe_load(workflow.body)["jobs"]["recall"]["steps"]
    commands = [step["run"] for step in steps if step.get("run", "").startswith("mnemoscope")]
    assert len(commands) == 3
    assert set(commands) <= set(shown)


def _plain(line: str) -> str:
    return line.replace("\xa0", " ").strip()
