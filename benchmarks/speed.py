"""Speed, side by side with peers, in one run. Prints ratios; seconds depend on the machine.

Usage: make bench, or python benchmarks/speed.py [engine] [hosting] [isolation] [metrics]
[embedding] [resampling] [answers], with one thread for each library (OMP_NUM_THREADS=1
OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false).
CPU time of all processes and threads, the best of several rounds, so that a busy machine matters
less. `engine`, `hosting` and `isolation` need LoCoMo (../shared/data, MNEMOSCOPE_DATA, or the cache
of `datasets fetch`).
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

ROUNDS = 3
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"

console = Console()


def cpu_seconds() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def best(work: Callable[[], object]) -> float:
    """CPU seconds of the fastest of several rounds."""
    taken = []
    for _ in range(ROUNDS):
        started = cpu_seconds()
        work()
        taken.append(cpu_seconds() - started)
    return min(taken)


def show(title: str, rows: list[tuple[str, float]], goal: str) -> None:
    """One table; the first row is the reference that the ratios are against."""
    table = Table(title=title, title_justify="left", caption=goal, caption_justify="left")
    table.add_column("implementation")
    table.add_column("CPU s", justify="right")
    table.add_column("ratio", justify="right")
    reference = rows[0][1]
    for name, seconds in rows:
        table.add_row(name, f"{seconds:.3f}", f"{seconds / reference:.2f}")
    console.print(table)


def metrics() -> None:
    """The same measures over 10,000 questions x 100 results, ranx and pytrec_eval beside ours."""
    import pytrec_eval
    from ranx import Qrels, Run, evaluate

    from mnemoscope.metrics import score

    draw = random.Random(0)
    documents = [f"d{number}" for number in range(1000)]
    rankings = {f"q{n}": draw.sample(documents, 100) for n in range(10_000)}
    evidence = {question: draw.sample(documents, 3) for question in rankings}
    ks = (1, 5, 10, 50)

    def ours() -> None:
        for question, ranking in rankings.items():
            score(ranking, evidence[question], ks=ks, cuts=(100,))

    scored = {q: {d: float(100 - i) for i, d in enumerate(r)} for q, r in rankings.items()}
    judged = {question: dict.fromkeys(found, 1) for question, found in evidence.items()}
    wanted = {"map", "recip_rank"}
    wanted |= {f"{kind}.{k}" for k in ks for kind in ("recall", "P", "ndcg_cut", "success")}
    evaluator = pytrec_eval.RelevanceEvaluator(judged, wanted)
    names = ["map", "mrr"]
    names += [f"{kind}@{k}" for k in ks for kind in ("recall", "precision", "ndcg", "hit_rate")]

    def ranx() -> None:
        evaluate(Qrels(judged), Run(scored), names, return_mean=False, threads=1)

    ranx()  # compiles
    rows = [
        (f"mnemoscope ({len(ks) * 5 + 2} measures)", best(ours)),
        (f"pytrec_eval-terrier ({len(wanted)} measures)", best(lambda: evaluator.evaluate(scored))),
        (f"ranx, warm ({len(names)} measures)", best(ranx)),
    ]
    show("Metrics, 10,000 questions × 100 results", rows, "goal: both ratios above 1")


def engine() -> None:
    """All of LoCoMo with bm25: the bare bm25s calls, and the harness around them."""
    import bm25s

    from mnemoscope._store.spec import Spec
    from mnemoscope.datasets import open_dataset
    from mnemoscope.runner.run import Settings, run
    from mnemoscope.systems.loader import plan
    from mnemoscope.text.tokenize import stems

    system = plan(Spec.parse("bm25,cache=false"))
    data = SHARED / "locomo" if (SHARED / "locomo").exists() else None
    for granularity in ("session", "turn"):
        dataset = open_dataset("locomo", data, {"granularity": granularity})
        scenarios = list(dataset.scenarios())

        def bare(scenarios: list[Any] = scenarios) -> None:
            for scenario in scenarios:
                index = bm25s.BM25(k1=1.5, b=0.75)
                index.index([stems(m.text) for m in scenario.memories], show_progress=False)
                for question in scenario.questions:
                    tokens = index.get_tokens_ids(stems(question.text))
                    np.argsort(-index.get_scores_from_ids(tokens), kind="stable")[:50].tolist()

        def whole(dataset: Any = dataset) -> None:
            with tempfile.TemporaryDirectory() as folder:
                run(dataset, [system], Path(folder), Settings(workers=1))

        rows = [
            ("bare bm25s calls, no files read or written", best(bare)),
            ("whole run: load, ask, journal, measure, write", best(whole)),
        ]
        goal = "goal: ratio under 1.30"
        show(f"All of LoCoMo with bm25, {granularity}s, 1,986 questions", rows, goal)


def hosting() -> None:
    """All of LoCoMo by the command: bm25 built in, and a copy of it in a host process."""
    from hosting_cost import costs

    data = SHARED / "locomo" if (SHARED / "locomo").exists() else None
    for workers in (1, 2):
        found = costs(data, ROUNDS, workers)
        reference = next(iter(found.values()))
        table = Table(
            title=f"The whole command on LoCoMo with bm25, {workers} workers, starts included",
            title_justify="left",
            caption="goal: both ratios under 1.60",
            caption_justify="left",
        )
        for name in ("where it runs", "CPU s", "ratio", "wall s", "ratio"):
            table.add_column(name, justify="left" if name == "where it runs" else "right")
        for name, cost in found.items():
            cpu, wall = cost.cpu / reference.cpu, cost.wall / reference.wall
            table.add_row(name, f"{cost.cpu:.3f}", f"{cpu:.2f}", f"{cost.wall:.3f}", f"{wall:.2f}")
        console.print(table)


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
    rows = [
        ("bare wordllama", best(lambda: model.embed(texts, norm=True))),
        ("mnemoscope's embedder", best(lambda: embedder.embed(texts))),
    ]
    show("Embedding 5,000 texts of 100 words", rows, "goal: ratio under 1.10")


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
    show("Resampling, 10,000 draws, 1,982 questions × 40 measures", rows, "goal: about a second")


def answers() -> None:
    """1,540 questions answered and judged over HTTP, 64 requests at a time."""
    from answer_rate import rates

    found = rates(SHARED / "locomo")
    table = Table(
        title="Answered and judged, 64 requests at a time, a server that replies at once",
        title_justify="left",
        caption=f"goal: ours at least 0.80 of the faster bare client; it is {found.ratio:.2f}",
        caption_justify="left",
    )
    for name in ("who", "questions/s", "ratio"):
        table.add_column(name, justify="left" if name == "who" else "right")
    for name, rate in (
        ("bare openai client, threads", found.sync),
        ("bare openai client, asyncio", found.asynchronous),
        ("ours: recall, prompts, cache, journal, figures", found.ours),
    ):
        table.add_row(name, f"{rate:,.0f}", f"{rate / max(found[1:]):.2f}")
    console.print(table)


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

    rows = [("level 1: a child process", best(lambda: whole(1)))]
    if best_mechanism() is not None:
        rows.append((f"level 2: locked by {best_mechanism()}", best(lambda: whole(2))))
        rows.append(("level 3: locked, with decoys", best(lambda: whole(3))))
    show("All of LoCoMo with bm25 behind stdio, 1,986 questions", rows, "goal: ratio under 1.20")


PARTS: dict[str, Callable[[], None]] = {
    # First, before others have filled the process that the engine forks its workers from.
    "engine": engine,
    "hosting": hosting,
    "metrics": metrics,
    "embedding": embedding,
    "resampling": resampling,
    "answers": answers,
    "isolation": isolation,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
