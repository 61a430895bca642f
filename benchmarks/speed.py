"""Speed, side by side with peers, in one run. Prints ratios; seconds depend on the machine.

Usage: make bench, or python benchmarks/speed.py [SECTION ...] [--write docs/speed.md], with one
thread for each library (OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1
TOKENIZERS_PARALLELISM=false). The sections and their goals are in speed_goals.py; a section calls
`found` once for each of its goals. Each section has a process and a ledger of attempts of its own:
what one leaves in memory slows the collections and forks of the next. CPU time of all processes and
threads, the best of several rounds, so that a busy machine matters less. Sections with LoCoMo need
its data (../shared/data, MNEMOSCOPE_DATA, or the cache of `datasets fetch`).
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from rounds import ROUNDS, Cost, in_turns
from speed_goals import GOALS, Goal
from speed_page import Finding, figure, page, spread

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"

_MANY_ROUNDS = 7
"""Of work whose single rounds differ most."""

console = Console()

FOUND: dict[str, Finding] = {}
"""What the sections found, by the key of the goal."""


def found(key: str, ours: float, *references: float) -> None:
    """Record the result of a goal: our cost, and that of the references."""
    goal = _goal(key)
    costs = [getattr(cost, "rounds", (cost,)) for cost in (ours, *references)]
    FOUND[key] = Finding(
        goal.ratio(ours, min(references)),
        tuple(goal.ratio(own, min(others)) for own, *others in zip(*costs, strict=True)),
    )


def show(title: str, rows: Sequence[tuple[str, float]], *keys: str) -> None:
    """One table, with the results of these goals below; ratios are against the first row."""
    table = Table(title=title, title_justify="left")
    table.add_column("implementation")
    table.add_column("CPU s", justify="right")
    table.add_column("ratio", justify="right")
    reference = rows[0][1]
    for name, seconds in rows:
        table.add_row(name, f"{seconds:.3f}", f"{seconds / reference:.2f}")
    console.print(table)
    show_goals(*keys)


def show_goals(*keys: str) -> None:
    for key in keys:
        goal, finding = _goal(key), FOUND[key]
        held = "" if goal.holds(finding.ratio) else ", which does not hold"
        console.print(f"{key}: {figure(finding.ratio)} ({spread(finding)}); {goal.words}{held}")
    console.print()


def _goal(key: str) -> Goal:
    return next(goal for goal in GOALS if goal.key == key)


def metrics() -> None:
    """The same measures over 10,000 questions x 100 results, ranx and pytrec_eval beside ours."""
    from metric_inputs import as_found, at_random, ten_found

    data = SHARED / "locomo" if (SHARED / "locomo").exists() else None
    for key, name, questions in (
        ("metrics/found", "evidence as bm25 finds it on LoCoMo", as_found(data)),
        ("metrics/missed", "evidence at random", at_random()),
        ("metrics/ten", "ten ids at random ranks", ten_found()),
    ):
        _metrics(key, f"Metrics, 10,000 questions × 100 results, {name}", *questions)


def _metrics(
    key: str, title: str, rankings: dict[str, list[str]], evidence: dict[str, list[str]]
) -> None:
    import pytrec_eval
    from ranx import Qrels, Run, evaluate

    from mnemoscope.metrics import score_all
    from mnemoscope.metrics.ranking import values_at

    ks = (1, 5, 10, 50)

    def ours() -> None:
        values_at.cache_clear()  # each round begins without values of the one before
        score_all(rankings.values(), evidence.values(), ks=ks, cuts=(100,))

    scored = {q: {d: float(100 - i) for i, d in enumerate(r)} for q, r in rankings.items()}
    judged = {question: dict.fromkeys(found, 1) for question, found in evidence.items()}
    wanted = {"map", "recip_rank"}
    wanted |= {f"{kind}.{k}" for k in ks for kind in ("recall", "P", "ndcg_cut", "success")}
    evaluator = pytrec_eval.RelevanceEvaluator(judged, wanted)
    names = ["map", "mrr"]
    names += [f"{kind}@{k}" for k in ks for kind in ("recall", "precision", "ndcg", "hit_rate")]

    qrels, run = Qrels(judged), Run(scored)

    def ranx() -> None:
        evaluate(qrels, run, names, return_mean=False, threads=1)

    ranx()  # compiles
    own, trec, ranxs = in_turns(ours, lambda: evaluator.evaluate(scored), ranx)
    rows = [
        (f"mnemoscope ({len(ks) * 5 + 2} measures)", own),
        (f"pytrec_eval-terrier ({len(wanted)} measures)", trec),
        (f"ranx, warm ({len(names)} measures)", ranxs),
    ]
    found(key, own, trec, ranxs)
    show(title, rows, key)


def engine() -> None:
    """All of LoCoMo with bm25: the bare calls with the file read, and the harness around them."""
    import json

    import bm25s

    from mnemoscope._store.spec import Spec
    from mnemoscope.api.new_runs import execute
    from mnemoscope.datasets import open_dataset
    from mnemoscope.runner.run import Settings, run
    from mnemoscope.systems.loader import plan
    from mnemoscope.text.tokenize import stems

    system = plan(Spec.parse("bm25,cache=false"))
    data = SHARED / "locomo" if (SHARED / "locomo").exists() else None
    for granularity in ("session", "turn"):
        dataset = open_dataset("locomo", data, {"granularity": granularity})
        file = next(iter(dataset.files())).path

        def bare(granularity: str = granularity, file: Path = file) -> None:
            for sample in json.loads(file.read_bytes()):
                said = [
                    [f"{turn['speaker']}: {turn['text']}" for turn in turns]
                    for name, turns in sample["conversation"].items()
                    if name.startswith("session_") and isinstance(turns, list)
                ]
                texts = ["\n".join(turns) for turns in said]
                if granularity == "turn":
                    texts = [text for turns in said for text in turns]
                index = bm25s.BM25(k1=1.5, b=0.75)
                index.index([stems(text) for text in texts], show_progress=False)
                for asked in sample["qa"]:
                    tokens = index.get_tokens_ids(stems(asked["question"]))
                    np.argsort(-index.get_scores_from_ids(tokens), kind="stable")[:50].tolist()

        def whole(how: Callable[..., object], dataset: Any = dataset) -> None:
            with tempfile.TemporaryDirectory() as folder:
                how(dataset, [system], Path(folder), Settings(workers=1))

        whole(execute)  # imports
        works = (bare, partial(whole, run), partial(whole, execute))
        calls, all_of_it, with_reports = in_turns(*works, rounds=_MANY_ROUNDS)
        rows = [
            ("bare calls: read the file, tokenise, index, query", calls),
            ("whole run: load, ask, journal, measure, write", all_of_it),
            ("the same with reports", with_reports),
        ]
        keys = (f"engine/{granularity}s", f"engine/{granularity}s-reports")
        found(keys[0], all_of_it, calls)
        found(keys[1], with_reports, calls)
        show(f"All of LoCoMo with bm25, {granularity}s, 1,986 questions", rows, *keys)


def longmemeval() -> None:
    """LongMemEval-S with bm25 and dense; both sides take tokens and vectors from warm caches."""
    import json

    import bm25s

    from mnemoscope._store.spec import Spec
    from mnemoscope.datasets import open_dataset
    from mnemoscope.datasets._io.json_stream import unpacked
    from mnemoscope.runner.run import Settings, run
    from mnemoscope.systems.builtin.dense import Dense
    from mnemoscope.systems.builtin.scored import TokenCache
    from mnemoscope.systems.loader import plan
    from mnemoscope.text.tokenize import stems
    from mnemoscope.types import Memory, Query

    data = SHARED / "longmemeval" if (SHARED / "longmemeval").exists() else None
    dataset = open_dataset("longmemeval", data)
    file = next(iter(dataset.files())).path
    systems = [plan(Spec.parse(name)) for name in ("bm25", "dense")]

    def bare() -> None:
        cache, dense = TokenCache(stems, "stems-1"), Dense()
        for item in json.loads(b"".join(unpacked(file))):
            texts = [
                "\n".join(f"{turn['role']}: {turn['content']}" for turn in session)
                for session in item["haystack_sessions"]
            ]
            index = bm25s.BM25(k1=1.5, b=0.75)
            index.index(cache.of(texts), show_progress=False)
            tokens = index.get_tokens_ids(stems(item["question"]))
            np.argsort(-index.get_scores_from_ids(tokens), kind="stable")[:50].tolist()
            dense.clear()
            dense.add([Memory("", text) for text in texts])
            np.argsort(-dense.scores(Query(item["question"])), kind="stable")[:50].tolist()

    def whole() -> None:
        with tempfile.TemporaryDirectory() as folder:
            run(open_dataset("longmemeval", data), systems, Path(folder), Settings(workers=1))

    whole()  # fills the caches
    calls, all_of_it = in_turns(bare, whole, rounds=1)
    rows = [
        ("bare calls: read the file, cached tokens and vectors, index, query", calls),
        ("whole run: load, ask, journal, measure, write", all_of_it),
    ]
    found("longmemeval/warm", all_of_it, calls)
    show("LongMemEval-S with bm25 and dense, warm caches", rows, "longmemeval/warm")


def hosting() -> None:
    """All of LoCoMo with bm25 built in, and with a copy of it in the worker and in a host."""
    from hosting_cost import costs

    data = SHARED / "locomo" if (SHARED / "locomo").exists() else None
    for workers in (1, 2):
        costed = costs(data, _MANY_ROUNDS, workers)
        reference, hosted, copy_here, copy_hosted = costed.values()
        number = {1: "one", 2: "two"}[workers]
        keys = (f"hosting/{number}", f"hosting/{number}-wall", f"hosting/{number}-same")
        found(keys[0], hosted.cpu, reference.cpu)
        found(keys[1], hosted.wall, reference.wall)
        found(keys[2], copy_hosted.cpu, copy_here.cpu)
        table = Table(
            title=f"The whole command on LoCoMo with bm25, {workers} workers, starts included",
            title_justify="left",
        )
        for name in ("where it runs", "CPU s", "ratio", "wall s", "ratio"):
            table.add_column(name, justify="left" if name == "where it runs" else "right")
        for name, cost in costed.items():
            cpu, wall = cost.cpu / reference.cpu, cost.wall / reference.wall
            table.add_row(name, f"{cost.cpu:.3f}", f"{cpu:.2f}", f"{cost.wall:.3f}", f"{wall:.2f}")
        console.print(table)
        show_goals(*keys)


def embedding() -> None:
    """Texts embedded by the default model: the package's own call, and ours."""
    import wordllama
    from wordllama import WordLlama

    from mnemoscope.models.embedders import WordLlamaEmbedder

    draw = random.Random(0)
    words = [line.strip() for line in VOCABULARY.split()]
    texts = [" ".join(draw.choices(words, k=100)) for _ in range(5_000)]
    package = Path(wordllama.__file__).parent
    model = WordLlama.load(cache_dir=package, disable_download=True)
    embedder = WordLlamaEmbedder()
    embedder.embed(texts[:100])
    bare, own = in_turns(lambda: model.embed(texts, norm=True), lambda: embedder.embed(texts))
    rows = [("bare wordllama", bare), ("mnemoscope's embedder", own)]
    found("embedding/wordllama", own, bare)
    show("Embedding 5,000 texts of 100 words", rows, "embedding/wordllama")
    _warm("wordllama", embedder, texts)
    minilm()


def minilm() -> None:
    """Few texts: the model is slow, and both sides make the same calls for each text."""
    from mnemoscope.models.onnx_embedders import MiniLMEmbedder

    draw = random.Random(1)
    words = VOCABULARY.split()
    texts = [" ".join(draw.choices(words, k=draw.randint(5, 100))) for _ in range(60)]
    embedder = MiniLMEmbedder()
    embedder.embed(texts[:1])
    tokenizer, session = embedder._tokenizer, embedder._session
    inputs = [needed.name for needed in session.get_inputs()]

    def bare() -> None:
        for text in texts:
            ids = np.array([tokenizer.encode(text).ids], np.int64)
            offered = {
                "input_ids": ids,
                "attention_mask": np.ones_like(ids),
                "token_type_ids": np.zeros_like(ids),
            }
            session.run(None, {name: offered[name] for name in inputs})[0][0].mean(axis=0)

    calls, own = in_turns(bare, lambda: embedder.embed(texts))
    rows = [("bare tokenizers and onnxruntime", calls), ("mnemoscope's embedder", own)]
    found("embedding/minilm", own, calls)
    show("Embedding 60 texts of 5 to 100 words by MiniLM", rows, "embedding/minilm")
    _warm("minilm", embedder, texts)


def _warm(name: str, embedder: Any, texts: list[str]) -> None:
    """The same texts through the cache of the dense system: an empty file, then a full one."""
    from mnemoscope.models.cache import ContentCache

    def vectors(file: Path) -> None:
        cache = ContentCache(file, name)
        packed = cache.get_or_compute(
            texts, lambda missing: [row.tobytes() for row in embedder.embed(missing)]
        )
        np.frombuffer(b"".join(packed), np.float32)
        cache.close()

    with tempfile.TemporaryDirectory() as folder:
        full = Path(folder) / "full.sqlite"
        vectors(full)
        new = (Path(folder) / f"{number}.sqlite" for number in range(ROUNDS))
        cold, warm = in_turns(lambda: vectors(next(new)), lambda: vectors(full))
    key = f"embedding/{name}-warm"
    found(key, warm, cold)
    rows = [("warm: a full cache", warm), ("cold: an empty cache", cold)]
    show(f"{len(texts):,} texts through the cache, {name}", rows, key)


VOCABULARY = """
the of a to and in that it was for on with as at by from about because before during every however
morning evening train window library garden recipe invoice contract database migration meeting
doctor appointment holiday mountain river bicycle neighbour birthday present kitchen renovation
insurance passport language lesson guitar concert marathon training schedule deadline release
architecture decision incident postmortem customer feedback budget quarter forecast pipeline
"""


def resampling() -> None:
    """10,000 draws over 1,982 questions and 40 measures: ours, scipy's, ranx's."""
    from bootstrap_speed import bootstrap_rows

    rows = bootstrap_rows()
    costs = dict(rows)
    for kind, library in (("bootstrap", "scipy"), ("permutation", "ranx")):
        ours, theirs = (costs[f"{kind}: {who}, single questions"] for who in ("ours", library))
        found(f"resampling/{kind}", ours, theirs)
    keys = ("resampling/bootstrap", "resampling/permutation")
    show("Resampling, 10,000 draws, 1,982 questions × 40 measures", rows, *keys)


def answers() -> None:
    """1,540 questions answered and judged over HTTP, 64 requests at a time."""
    from answer_rate import rates

    took = rates(SHARED / "locomo")
    ours, sync, asynchronous = map(Cost, (took.ours, took.sync, took.asynchronous))
    found("answers/rate", ours, sync, asynchronous)
    table = Table(
        title="Answered and judged, 64 requests at a time, a server that replies at once",
        title_justify="left",
    )
    for name in ("who", "questions/s", "ratio"):
        table.add_column(name, justify="left" if name == "who" else "right")
    for name, seconds in (
        ("bare openai client, threads", sync),
        ("bare openai client, asyncio", asynchronous),
        ("ours: recall, prompts, cache, journal, figures", ours),
    ):
        ratio = min(sync, asynchronous) / seconds
        table.add_row(name, f"{took.questions / seconds:,.0f}", f"{ratio:.2f}")
    console.print(table)
    show_goals("answers/rate")


def isolation() -> None:
    """All of LoCoMo with bm25 behind the stdio connector, with and without lock and decoys."""
    from mnemoscope._store.spec import Spec
    from mnemoscope.datasets import open_dataset
    from mnemoscope.isolation.lock import best_mechanism
    from mnemoscope.runner.run import Settings, run
    from mnemoscope.systems.loader import plan

    served = "mnemoscope.connectors.serve_stdio mnemoscope.systems.builtin.bm25:Bm25"
    system = plan(Spec.parse(f"stdio:{sys.executable} -m {served}"))
    dataset = open_dataset("locomo", SHARED / "locomo" if (SHARED / "locomo").exists() else None)

    def whole(level: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            run(dataset, [system], Path(folder), Settings(workers=1, isolation=level))

    if best_mechanism() is None:
        raise SystemExit("this machine cannot lock a child process: see docs/isolation.md")
    keys = ("isolation/locked", "isolation/decoys")
    unlocked, *locked = in_turns(*(partial(whole, level) for level in (1, 2, 3)))
    for key, cost in zip(keys, locked, strict=True):
        found(key, cost, unlocked)
    names = ("a child process", f"locked by {best_mechanism()}", "locked, with decoys")
    rows = [
        (f"level {level}: {name}", cost)
        for level, name, cost in zip((1, 2, 3), names, (unlocked, *locked), strict=True)
    ]
    show("All of LoCoMo with bm25 behind stdio, 1,986 questions", rows, *keys)


def checkpoints() -> None:
    """A simulated persona of 1,000 days: 143 checkpoints, and one with the same questions."""
    from checkpoint_cost import costs

    for system in ("bm25", "hybrid"):
        took = costs(system)
        found(f"checkpoints/{system}", took.sweep, took.one)
        rows = [
            ("one checkpoint, all questions at the end", took.one),
            ("143 checkpoints, each question asked once", took.sweep),
        ]
        show(f"1,000 days with {system}, whole runs", rows, f"checkpoints/{system}")


def report() -> None:
    """The reports of a run on LoCoMo, beside the run."""
    import mnemoscope as ms
    from mnemoscope.reports.run_report import write_report

    with tempfile.TemporaryDirectory() as folder:
        places = (Path(folder) / str(number) for number in range(ROUNDS))
        data = SHARED / "locomo" if (SHARED / "locomo").exists() else None
        runs = []

        def whole() -> None:
            done = ms.run("locomo", systems="bm25", data=data, out=next(places), baselines=False)
            runs.append(done.runs[0])

        ran, wrote = in_turns(whole, lambda: write_report(runs[-1].directory))
    found("report/locomo", wrote, ran)
    rows = [("the run", ran), ("report.md and report.html", wrote)]
    show("The reports of a run on LoCoMo with bm25", rows, "report/locomo")


def startup() -> None:
    """`mnemoscope --help` beside an interpreter that does nothing, by CPU time and by modules."""
    python = [sys.executable, "-X", "importtime"]
    nothing, help_ = ["-c", "pass"], ["-m", "mnemoscope", "--help"]

    def start(arguments: list[str]) -> None:
        for _ in range(10):
            subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)

    def modules(arguments: list[str]) -> int:
        done = subprocess.run([*python, *arguments], capture_output=True, text=True, check=True)
        return sum(line.startswith("import time:") for line in done.stderr.splitlines()) - 1

    bare, own = in_turns(partial(start, nothing), partial(start, help_))
    found("startup/cpu", own, bare)
    counts = [(modules(help_), modules(nothing)) for _ in range(ROUNDS)]
    found("startup/modules", *(Cost(map(float, each)) for each in zip(*counts, strict=True)))
    rows = [("python -c pass, 10 times", bare), ("mnemoscope --help, 10 times", own)]
    show("Start-up", rows, "startup/cpu", "startup/modules")


PARTS: dict[str, Callable[[], None]] = {
    "engine": engine,
    "longmemeval": longmemeval,
    "hosting": hosting,
    "metrics": metrics,
    "embedding": embedding,
    "resampling": resampling,
    "answers": answers,
    "isolation": isolation,
    "checkpoints": checkpoints,
    "report": report,
    "startup": startup,
}


def apart(name: str) -> None:
    """Measure a section in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "found.json"
        subprocess.run(
            [sys.executable, __file__, name, "--found", results],
            env={**os.environ, "MNEMOSCOPE_DATA_HOME": folder},
            check=True,
        )
        FOUND.update(msgspec.json.decode(results.read_bytes(), type=dict[str, Finding]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(PARTS))
    parser.add_argument("--write", type=Path, metavar="FILE", help="run all and write the page")
    parser.add_argument("--found", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if unknown := set(given.sections) - set(PARTS):
        parser.error(
            f"unknown sections: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}"
        )
    if given.write and given.sections:
        parser.error("the page has all sections: omit their names, or omit --write")
    for name in given.sections or PARTS:
        if given.found:
            PARTS[name]()
        else:
            apart(name)
    if given.found:
        given.found.write_bytes(msgspec.json.encode(FOUND))
    if given.write:
        given.write.write_text(page(FOUND), encoding="utf-8")


if __name__ == "__main__":
    main()
