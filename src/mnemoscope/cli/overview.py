"""The commands, and the answers to `mnemoscope`, `--help` and `--version`.

Both answers are printed without importing cyclopts, rich or any command: that takes most of the
time of such a short process. A test compares the page with the one that cyclopts draws.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress

import mnemoscope

ABOUT = "Measure how well AI agents' memory systems remember."
COMMANDS = {
    "import": (
        "import_source:import_source",
        "Import your notes, chats or memory store as a dataset folder.",
    ),
    "run": ("run:run", "Run memory systems on a benchmark and print one table of all results."),
    "score": (
        "score:score",
        "Score a file of rankings against a dataset's evidence, or judge a file of answers.",
    ),
    "report": (
        "report:report",
        "Print the tables of a finished run, or of all runs in a folder, and write the reports "
        "again.",
    ),
    "show": (
        "show:show",
        "Show one question of a finished run, or list the questions that it missed.",
    ),
    "view": (
        "view:view",
        "Look at many runs in a browser: a list, a table with groups, differences, single "
        "questions.",
    ),
    "plan": (
        "plan:plan",
        "Say what a comparison can find before you pay for the candidate's run, and fix its rules.",
    ),
    "compare": (
        "compare:compare",
        "Compare two results of one benchmark: the answer in one sentence, then the figures.",
    ),
    "questions": (
        "questions:app",
        "List what no system finds, what all find, what separates them; draft and review "
        "questions.",
    ),
    "gate": (
        "gate:gate",
        "Fail if a run, or a store that changed, is worse than a baseline.",
    ),
    "verify": (
        "verify:verify",
        "Recompute a run's figures from its journal and check every gate of its protocol.",
    ),
    "sign": (
        "sign:sign",
        "Sign the manifest of a finished run with an SSH key, as manifest.json.sig.",
    ),
    "cite": (
        "cite:cite",
        "Print the citation of a run: values with intervals, protocol, artefacts and hashes.",
    ),
    "export": (
        "export:export",
        "Write finished runs in the format of another tool, with their status and their caveats.",
    ),
    "plot": ("plot:plot", "Draw finished runs of one benchmark as PNG, SVG or PDF."),
    "judge": (
        "judge:judge",
        "Judge the saved answers of a run with other judges; system and reader are not called.",
    ),
    "answer": (
        "answer:answer",
        "Answer from the saved hits of a run with another reader; the system is not called.",
    ),
    "replay": (
        "replay:replay",
        "Replay what your agent wrote to and asked its memory, and say which recalls would change.",
    ),
    "demo": (
        "demo:demo",
        "Simulate a history of 180 days and test three systems on it, offline.",
    ),
    "load": (
        "load:load",
        "Send recalls from many clients to a system, and measure latency, throughput and recall.",
    ),
    "durability": (
        "durability:durability",
        "Kill a system after and during writes, start it again, and count which memories are gone.",
    ),
    "erasure": (
        "erasure:erasure",
        "Let a system forget memories, and search the bytes of its files for their texts.",
    ),
    "ranges": ("ranges:ranges", "Show the checkpoints that a value of --ranges selects."),
    "canaries": (
        "canaries:canaries",
        "List the questions whose answers are hallucinations in every run, newly, or no longer.",
    ),
    "personas": ("personas:app", "Persona histories, simulated or written by a model."),
    "datasets": (
        "datasets:app",
        "List, download and check the datasets that systems are tested on.",
    ),
    "systems": ("systems:app", "List, check, install and survey memory systems."),
    "serve": ("serve:app", "Serve a memory system, or an embedding model, on a port."),
    "judges": ("judges:app", "List, check and examine the judges of answers."),
    "metrics": ("metrics:app", "List and check the metrics of rankings."),
    "models": ("models:app", "List, fetch and try the language models that answer and judge."),
    "published": (
        "published:app",
        "Published results of other projects, and which may be compared. Quoted, not verified.",
    ),
    "protocols": (
        "protocols:app",
        "List and show protocols: frozen rules to run and verify under.",
    ),
    "release": ("release:app", "The release process: report, signatures, decision, notes."),
    "new": ("new:new", "Write a package that adds a system, a dataset, a metric or a judge."),
}
"""The name of a command to its import path below `mnemoscope.cli`, and its line in the help."""
_FLAGS = {
    "--help (-h)": "Display this message and exit.",
    "--version": "Display application version.",
}
_NARROWEST = 60
"""In fewer columns the first lines of the page are wrapped, too."""
_OF_RICH = (
    *("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"),
    *("JUPYTER_COLUMNS", "JUPYTER_LINES"),
)
"""Variables that change what rich prints."""


def answered(arguments: Sequence[str]) -> bool:
    """Print the version or the page, if that is all that was asked and the terminal is usual."""
    if list(arguments) == ["--version"]:
        text = f"{mnemoscope.__version__}\n"
    elif list(arguments) in ([], ["--help"], ["-h"]) and _is_usual():
        text = page(_columns(), in_colour=sys.stdout.isatty())
    else:
        return False
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError:  # the disk is full, or the reader has gone: the app fails the same way
        return False
    return True


def page(columns: int, *, in_colour: bool) -> str:
    """The help page."""
    bold, code, cyan, end = (
        ("\x1b[1m", "\x1b[1;36;40m", "\x1b[36m", "\x1b[0m") if in_colour else ("",) * 4
    )
    rows = {**{name: COMMANDS[name][1] for name in sorted(COMMANDS)}, **_FLAGS}
    names = max(map(len, rows))
    lines = [
        f"{bold}Usage: {end}{bold}mnemoscope COMMAND{end}",
        "",
        ABOUT.ljust(columns),
        "",
        f"Try it offline: {code}mnemoscope demo{end}",
        "",
        f"╭─ Commands {'─' * (columns - 13)}╮",
    ]
    for name, about in rows.items():
        first = f"{cyan}{name.ljust(names)}{end}{cyan}  {end}"
        for line in _wrapped(about, columns - names - 6):
            lines.append(f"│ {first}{line} │")
            first = f"{cyan}{' ' * (names + 2)}{end}"
    lines.append(f"╰{'─' * (columns - 2)}╯")
    return "\n".join(lines) + "\n"


def _wrapped(text: str, width: int) -> Iterator[str]:
    """Lines of exactly this width."""
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            yield line.ljust(width)
            line = word
        else:
            line = f"{line} {word}".lstrip()
    yield line.ljust(width)


def _is_usual() -> bool:
    """Whether rich would print the page as `page` does."""
    if os.name != "posix" or any(name in os.environ for name in _OF_RICH):
        return False
    if sys.stdout.isatty() and os.environ.get("TERM", "").lower() in ("dumb", "unknown"):
        return False
    encoding = sys.stdout.encoding or ""
    return encoding.lower().startswith("utf") and _columns() >= _NARROWEST


def _columns() -> int:
    if (columns := os.environ.get("COLUMNS", "")).isdigit():
        return int(columns)
    for stream in range(3):
        with suppress(OSError):
            return os.get_terminal_size(stream).columns or 80
    return 80
