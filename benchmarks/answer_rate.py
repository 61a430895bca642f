"""Questions answered and judged a second, beside the bare client with the very same requests.

Both ask a server in a process of its own that replies at once, 64 requests at a time, from one
process. Ours recalls, builds the prompts, keeps a journal, a cache and accounts, measures and
reports; the bare client sends requests that were recorded before and keeps nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

ABREAST = 64
ROUNDS = 3
TESTS = Path(__file__).resolve().parents[1] / "tests"
ANSWER, VERDICT = "7 May 2023", "CORRECT"


class Rounds(NamedTuple):
    """Seconds by the clock of each round, taken in turns."""

    questions: int
    ours: list[float]
    sync: list[float]
    asynchronous: list[float]


def rates(data: Path) -> Rounds:
    with tempfile.TemporaryDirectory() as folder:
        bodies = recorded_requests(data, Path(folder))
        questions = len(bodies) // 2
        with instant_server() as url:
            took = Rounds(questions, [], [], [])
            for number in range(ROUNDS):
                took.sync.append(_seconds(lambda: bare(url, bodies)))
                place = Path(folder) / str(number)
                took.ours.append(_seconds(partial(ours, url, data, place)))
                took.asynchronous.append(_seconds(lambda: bare_async(url, bodies)))
    return took


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def ours(url: str, data: Path, folder: Path) -> None:
    """A whole run, cache and all, nothing left over from the round before."""
    from mnemoscope._store.spec import Spec
    from mnemoscope.datasets.locomo import Locomo
    from mnemoscope.runner.pipeline import Pipeline, plan_judge, plan_reader
    from mnemoscope.runner.run import Settings, run
    from mnemoscope.systems.loader import plan

    os.environ["MNEMOSCOPE_CACHE"] = str(folder / "cache")
    model = f"m@{url}"
    pipeline = Pipeline(
        reader=plan_reader(Spec(model), "locomo"),
        judge=plan_judge(Spec("binary", {"model": model})),
        parallelism=ABREAST,
    )
    dataset = Locomo(data, granularity="turn", adversarial=False)
    run(dataset, [plan(Spec("bm25"))], folder, Settings(depth=10, workers=1), pipeline=pipeline)


def recorded_requests(data: Path, folder: Path) -> list[dict[str, Any]]:
    """The bodies that a run sends."""
    sys.path.insert(0, str(TESTS.parent))
    from tests.scripted_server import ScriptedServer

    def reply(request: Any) -> str:
        return VERDICT if VERDICT in request.system + request.text else ANSWER

    with ScriptedServer(reply) as server:
        ours(server.url, data, folder / "recording")
        return [request.body for request in server.seen]


@contextmanager
def instant_server() -> Iterator[str]:
    command = [sys.executable, str(TESTS / "scripted_server.py"), "--port", "0", "--instant"]
    says = ["--text", ANSWER, "--when", VERDICT, VERDICT]  # only judges' prompts hold the word
    with subprocess.Popen([*command, *says], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        finally:
            server.kill()


def bare(url: str, bodies: list[dict[str, Any]]) -> None:
    """The official client as its documentation shows it, in so many threads."""
    import openai

    with (
        openai.OpenAI(api_key="none", base_url=url) as client,
        ThreadPoolExecutor(ABREAST) as threads,
    ):
        for answer in threads.map(lambda b: client.chat.completions.create(**b), bodies):
            assert answer.choices[0].message.content


def bare_async(url: str, bodies: list[dict[str, Any]]) -> None:
    import asyncio

    import openai

    async def ask_all() -> None:
        limit = asyncio.Semaphore(ABREAST)
        async with openai.AsyncOpenAI(api_key="none", base_url=url) as client:

            async def ask(body: dict[str, Any]) -> None:
                async with limit:
                    answer = await client.chat.completions.create(**body)
                    assert answer.choices[0].message.content

            await asyncio.gather(*map(ask, bodies))

    asyncio.run(ask_all())
