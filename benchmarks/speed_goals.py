"""What the speed page compares, and the goal of each row.

A section of benchmarks/speed.py reports one ratio for each of its goals. An `at most` goal is about
our cost divided by that of the reference; an `at least` goal is about our rate divided by that of
the reference, so above 1 is faster. Where there are several references, the fastest one counts.
A row without a limit has no goal: its ratio is shown beside the others.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class Goal(NamedTuple):
    """One row of the page; `key` is unique, and starts with the section's name."""

    key: str
    compared: str
    against: str
    sense: Literal["at most", "at least"]
    limit: float | None

    @property
    def section(self) -> str:
        return self.key.partition("/")[0]

    @property
    def words(self) -> str:
        return "no goal" if self.limit is None else f"{self.sense} {self.limit:g}"

    def ratio(self, ours: float, fastest: float) -> float:
        """The ratio of two costs, in the sense of the goal."""
        return ours / fastest if self.sense == "at most" else fastest / ours

    def holds(self, ratio: float) -> bool:
        """Whether the ratio keeps the limit; a row without one cannot fail."""
        if self.limit is None:
            return True
        return ratio <= self.limit if self.sense == "at most" else ratio >= self.limit


SECTIONS = {
    "engine": "A whole run",
    "longmemeval": "LongMemEval-S with a warm cache",
    "checkpoints": "Many checkpoints",
    "hosting": "Host processes",
    "isolation": "Isolation",
    "metrics": "Metrics",
    "embedding": "Embedding",
    "answers": "Answers and verdicts",
    "resampling": "Resampling",
    "report": "The report page",
    "startup": "Start-up",
}
"""The sections in the order of the page, each with its title."""

GOALS = (
    Goal(
        "engine/sessions",
        "LoCoMo with bm25, one memory a session: the whole run (`runner.run`)",
        "reading the file, and the bare index and query calls of bm25s",
        "at most",
        2.0,
    ),
    Goal(
        "engine/sessions-reports",
        "the same with report.md, report.html and summary.md written after it",
        "reading the file, and the bare index and query calls of bm25s",
        "at most",
        None,
    ),
    Goal(
        "engine/turns",
        "LoCoMo with bm25, one memory a turn: the whole run (`runner.run`)",
        "reading the file, and the bare index and query calls of bm25s",
        "at most",
        2.0,
    ),
    Goal(
        "engine/turns-reports",
        "the same with report.md, report.html and summary.md written after it",
        "reading the file, and the bare index and query calls of bm25s",
        "at most",
        None,
    ),
    Goal(
        "longmemeval/warm",
        "LongMemEval-S with bm25 and dense, tokens and vectors cached: the whole run (`run`)",
        "reading the file, and the bare index and query calls",
        "at most",
        2.0,
    ),
    Goal(
        "checkpoints/bm25",
        "a persona of 1,000 days at 143 checkpoints with bm25, each question once: the whole run",
        "the same questions at one checkpoint",
        "at most",
        1.6,
    ),
    Goal(
        "checkpoints/hybrid",
        "the same with hybrid",
        "the same questions at one checkpoint",
        "at most",
        1.6,
    ),
    Goal(
        "hosting/one",
        "LoCoMo with a copy of bm25 in a host process, 1 worker: the whole command",
        "the built-in bm25, in CPU time",
        "at most",
        1.6,
    ),
    Goal(
        "hosting/one-wall",
        "the same, by the clock",
        "the built-in bm25, by the clock",
        "at most",
        1.6,
    ),
    Goal(
        "hosting/one-same",
        "LoCoMo by a script with the copy in a host process, 1 worker: the whole script",
        "the same script with the same copy in the worker process, in CPU time",
        "at most",
        1.6,
    ),
    Goal(
        "hosting/two",
        "LoCoMo with a copy of bm25 in host processes, 2 workers: the whole command",
        "the built-in bm25, in CPU time",
        "at most",
        1.6,
    ),
    Goal(
        "hosting/two-wall",
        "the same, by the clock",
        "the built-in bm25, by the clock",
        "at most",
        1.6,
    ),
    Goal(
        "hosting/two-same",
        "LoCoMo by a script with the copy in host processes, 2 workers: the whole script",
        "the same script with the same copy in the worker process, in CPU time",
        "at most",
        1.6,
    ),
    Goal(
        "isolation/locked",
        "LoCoMo with bm25 behind stdio, locked (level 2): the whole run",
        "the same in a child process that is not locked (level 1)",
        "at most",
        1.2,
    ),
    Goal(
        "isolation/decoys",
        "LoCoMo with bm25 behind stdio, locked, with decoys (level 3): the whole run",
        "the same in a child process that is not locked (level 1)",
        "at most",
        1.2,
    ),
    Goal(
        "metrics/found",
        "22 measures of 10,000 questions × 100 results, evidence as bm25 finds it on LoCoMo",
        "18 of them by the faster of pytrec_eval and ranx",
        "at least",
        5.0,
    ),
    Goal(
        "metrics/missed",
        "the same, evidence drawn at random: three ids of 1,000 documents, most not in the list",
        "18 of them by the faster of pytrec_eval and ranx",
        "at least",
        5.0,
    ),
    Goal(
        "metrics/ten",
        "the same, ten evidence ids at random ranks of each list",
        "18 of them by the faster of pytrec_eval and ranx",
        "at least",
        None,
    ),
    Goal(
        "embedding/wordllama",
        "5,000 texts of 100 words by the default embedder",
        "the bare wordllama package",
        "at least",
        0.95,
    ),
    Goal(
        "embedding/minilm",
        "60 texts of 5 to 100 words by MiniLM",
        "the bare calls of tokenizers and onnxruntime, one text a call",
        "at least",
        0.95,
    ),
    Goal(
        "embedding/wordllama-warm",
        "the same texts again, from the cache",
        "the default embedder with an empty cache",
        "at least",
        50.0,
    ),
    Goal(
        "embedding/minilm-warm",
        "the same texts again, from the cache",
        "MiniLM with an empty cache",
        "at least",
        50.0,
    ),
    Goal(
        "answers/rate",
        "LoCoMo answered and judged over HTTP, 64 requests at a time: the whole run",
        "the faster bare openai client (threads or asyncio) with the same requests, by the clock",
        "at least",
        0.95,
    ),
    Goal(
        "resampling/bootstrap",
        "bootstrap of 40 measures over 1,982 questions, 10,000 draws",
        "scipy's bootstrap of the same means",
        "at least",
        1.0,
    ),
    Goal(
        "resampling/permutation",
        "permutation test of 40 measures over 1,982 questions, 10,000 draws",
        "the randomisation test of ranx",
        "at least",
        1.0,
    ),
    Goal(
        "report/locomo",
        "report.md and report.html of a run on LoCoMo",
        "the run itself",
        "at most",
        1.0,
    ),
    Goal(
        "startup/cpu",
        "`mnemoscope --help`, in CPU time",
        "`python -c pass`",
        "at most",
        4.0,
    ),
    Goal(
        "startup/modules",
        "`mnemoscope --help`, in imported modules",
        "`python -c pass`",
        "at most",
        4.0,
    ),
)
