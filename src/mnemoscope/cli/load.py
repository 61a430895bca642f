"""`mnemoscope load`: send load to systems, and measure how fast and how well they recall."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import CycloptsError, Parameter

from mnemoscope import api
from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import err, out, parse_options, print_json, progress_bar, say

if TYPE_CHECKING:
    from mnemoscope.loadtest import LoadUpdate

_EVERY = 30.0


def load(
    benchmark: str,
    /,
    *,
    system: Annotated[list[str] | None, Parameter(name=["--system", "-s"])] = None,
    clients: str = "",
    rate: Annotated[list[float] | None, Parameter(consume_multiple=True)] = None,
    arrivals: Literal["poisson", "fixed"] = "poisson",
    connections: int = 64,
    duration: float = 10.0,
    requests: int = 10_000,
    writers: int = 0,
    write_rate: float | None = None,
    data: Path | None = None,
    scenarios: int = 1,
    k: int = 10,
    timeout: float = 30.0,
    seed: int = 42,
    folder: Annotated[Path, Parameter(name="--out")] = Path("runs/load"),
    json: bool = False,
    **options: str,
) -> int:
    """Send recalls from many clients to a system, and measure latency, throughput and recall.

    This command sends load to the system under test: to this machine, or to the server whose
    address you name. Only test servers that you may put under load. Each step ends after
    --duration seconds or --requests requests. Ctrl-C ends the test and keeps what was measured.

    A closed loop (--clients) shows how much a system does. An open loop (--rate) shows how long
    users wait: latency counts from the time at which a request was due, so a stall shows in p99.

    For example:

        mnemoscope load locomo --system bm25 --clients 1,8,64

        mnemoscope load locomo --system http:http://127.0.0.1:8080 --rate 20 --rate 100 --writers 2

        mnemoscope load longmemeval --variant s --scenarios 50 --system sqlite-vec --rate 50

    Parameters
    ----------
    benchmark
        The name of a dataset: its memories are ingested, its questions asked.
    system
        A system: `name`, `name,option=value`, `module:Name`, or `CONNECTOR:ADDRESS`. Repeatable.
    clients
        Closed loops, such as 1,8,64: so many clients, each sends when its last request returned.
        Default without --rate: 1,8.
    rate
        An open loop: so many requests are due each second. Repeatable.
    arrivals
        When requests of an open loop are due: at random (poisson), or evenly spaced.
    connections
        The most requests of an open loop in flight at a time.
    duration
        Seconds of each step.
    requests
        The most requests of each step.
    writers
        Clients that write memories meanwhile: half of each history is ingested before, the other
        half during the step.
    write_rate
        Memories written each second. Default: the second half in the duration.
    data
        The dataset's file or folder; else $MNEMOSCOPE_DATA/NAME, else the cache of `fetch`.
    scenarios
        How many histories are ingested, all in one space.
    k
        Hits that each recall requests.
    timeout
        Seconds that a recall may take.
    seed
        Decides the order of questions and the times of arrival.
    folder
        The folder for load.md, load.json, load.png and requests.jsonl.
    json
        Print JSON instead of a table.
    options
        Options of the dataset, such as --granularity turn.
    """
    from mnemoscope.loadtest import LoadOptions
    from mnemoscope.loadtest.load_report import blocks
    from mnemoscope.reports import render_terminal

    if not system:
        raise CycloptsError(msg='Command "load" parameter --system requires an argument.')
    settings = LoadOptions(
        clients=_numbers(clients),
        rates=tuple(rate or ()),
        arrivals=arrivals,
        connections=connections,
        duration=duration,
        requests=requests,
        writers=writers,
        write_rate=write_rate,
        scenarios=scenarios,
        k=k,
        timeout=timeout,
        seed=seed,
    )
    with _shown(folder) as progress:
        result = api.load_test_config(
            *(benchmark, system, settings, data, folder, parse_options(options, load), progress)
        )
    if json:
        print_json(result)
    else:
        out.print(render_terminal.render(blocks(result)))
        say(out, f"the table: {folder}/load.md, the plot: {folder}/load.png")
    return 0


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise UsageError(f"--clients {text}: write numbers such as 1,8,64") from None


@contextmanager
def _shown(folder: Path) -> Iterator[Callable[[LoadUpdate], None]]:
    """Show progress as a bar, or as a line every 30 seconds; say where an interrupted test is."""
    printed = time.monotonic()
    with progress_bar("", None) as bar:

        def update(at: LoadUpdate) -> None:
            nonlocal printed
            count = f"step {at.number} of {at.steps}, {at.requests:,} requests"
            bar.update(
                bar.task_ids[0],
                description=at.step,
                total=at.steps,
                completed=at.number - 1,
                count=count,
                refresh=True,
            )
            if not err.is_terminal and time.monotonic() - printed > _EVERY:
                printed = time.monotonic()
                say(err, f"{at.step}: {count}")

        try:
            yield update
        except KeyboardInterrupt:
            say(err, f"\nwhat was measured is in {folder}/load.md", lines=True)
            raise
