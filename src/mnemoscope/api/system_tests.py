"""Tests of how a system serves and stores: under load, when it is killed, when it forgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mnemoscope.api.arguments import Where, optional_path
from mnemoscope.types import Scalar

if TYPE_CHECKING:
    from mnemoscope.datasets.base import Dataset
    from mnemoscope.durability import DurabilityResult, ErasureResult
    from mnemoscope.loadtest import LoadOptions, LoadResult, LoadUpdate
    from mnemoscope.runner.run_setup import Systems


def load_test(
    benchmark: str | Dataset,
    *,
    systems: Systems,
    clients: Sequence[int] = (),
    rate: Sequence[float] = (),
    arrivals: Literal["poisson", "fixed"] = "poisson",
    connections: int = 64,
    duration: float = 10.0,
    requests: int = 10_000,
    writers: int = 0,
    write_rate: float | None = None,
    data: Where | None = None,
    scenarios: int = 1,
    k: int = 10,
    timeout: float = 30.0,
    seed: int = 42,
    out: Where = "runs/load",
    progress: Callable[[LoadUpdate], None] | None = None,
    **options: Scalar,
) -> LoadResult:
    """Send recalls to systems from several clients, and measure latency, throughput and recall.

    The load goes to the system under test: to this machine, or to the server that a spec names.
    Each of `clients` is a closed loop, each `rate` (requests a second) an open loop; `LoadOptions`
    describes the other arguments. `options` are passed to the dataset. `out` gets load.json,
    load.md, load.png and requests.jsonl.
    """
    from mnemoscope.loadtest import LoadOptions

    settings = LoadOptions(
        clients=tuple(clients),
        rates=tuple(rate),
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
    return load_test_config(benchmark, systems, settings, data, out, options, progress)


def load_test_config(
    benchmark: str | Dataset,
    systems: Systems,
    settings: LoadOptions,
    data: Where | None = None,
    out: Where = "runs/load",
    options: Mapping[str, Scalar] = {},
    progress: Callable[[LoadUpdate], None] | None = None,
) -> LoadResult:
    """Like `load_test`, with the arguments in one object."""
    from mnemoscope.datasets import open_dataset
    from mnemoscope.loadtest import run_load
    from mnemoscope.runner.run_setup import read_systems
    from mnemoscope.systems.loader import plan

    dataset = (
        open_dataset(benchmark, optional_path(data), options)
        if isinstance(benchmark, str)
        else benchmark
    )
    plans = [plan(spec, target) for spec, target in read_systems(systems)]
    update = progress or (lambda at: None)
    return run_load(dataset, plans, Path(out), settings, update=update)


def durability_test(
    system: str,
    *,
    command: str = "",
    kills: int = 5,
    memories: int = 50,
    batch: int = 5,
    settle: float = 1.0,
    timeout: float = 60.0,
    start: float = 60.0,
    seed: int = 42,
    out: Where = "runs/durability",
    progress: Callable[[str, int, int], None] | None = None,
) -> DurabilityResult:
    """Kill a system that is started here, start it again, and count which memories are gone.

    `system` is a spec. `{storage}` in it, or in the `command` that starts a server, is replaced by
    a new folder for each round; an integration with the option `storage` gets it by itself.
    `DurabilityOptions` describes the other arguments. `out` gets durability.json and durability.md.
    """
    from mnemoscope._store.spec import Spec
    from mnemoscope.durability import DurabilityOptions, run_durability

    options = DurabilityOptions(
        kills=kills,
        memories=memories,
        batch=batch,
        settle=settle,
        timeout=timeout,
        start=start,
        seed=seed,
    )
    update = progress or (lambda kind, number, total: None)
    return run_durability(Spec.labelled(system), Path(out), options, command=command, update=update)


def erasure_test(
    system: str,
    *,
    command: str = "",
    memories: int = 40,
    batch: int = 5,
    also: Sequence[Where] = (),
    timeout: float = 60.0,
    start: float = 60.0,
    seed: int = 42,
    out: Where = "runs/erasure",
) -> ErasureResult:
    """Let a system that is started here forget memories, and search its files for their texts.

    `system` is a spec. `{storage}` in it, or in the `command` that starts a server, is replaced by
    a new folder; an integration with the option `storage` gets it by itself. `ErasureOptions`
    describes the other arguments. `out` gets erasure.json and erasure.md.
    """
    from mnemoscope._store.spec import Spec
    from mnemoscope.durability import ErasureOptions, run_erasure

    options = ErasureOptions(
        memories=memories,
        batch=batch,
        also=tuple(map(Path, also)),
        timeout=timeout,
        start=start,
        seed=seed,
    )
    return run_erasure(Spec.labelled(system), Path(out), options, command=command)
