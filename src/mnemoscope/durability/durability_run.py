"""A durability test: rounds of writes, ends and restarts, the verdict, and the result's folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import encode_json, write_atomically
from mnemoscope._store.spec import Spec
from mnemoscope.durability.durability_report import blocks
from mnemoscope.durability.durability_result import DurabilityResult, judged
from mnemoscope.durability.kill_rounds import Kind, RoundOptions, RoundOutcome, play
from mnemoscope.durability.restartable import restartable, why_not_durable, with_storage
from mnemoscope.reports.render_markdown import render

FORMAT = 1
_KILLS: tuple[Kind, ...] = ("after", "during")
_MOST_KILLS = 1000
_MOST_MEMORIES = 10_000


class DurabilityOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How often a system is killed, and how much is written before."""

    kills: int = 5
    """Kills after acknowledged writes, and as many during writes."""
    memories: int = 50
    """Memories of each round."""
    batch: int = 5
    """Memories of one write."""
    settle: float = 1.0
    """Seconds after which memories that are missing after a restart are asked for once more."""
    timeout: float = 60.0
    """Seconds that a call may take."""
    start: float = 60.0
    """Seconds in which a server must listen."""
    seed: int = 42

    def check(self) -> None:
        for name, value, most in (
            ("kills", self.kills, _MOST_KILLS),
            ("memories", self.memories, _MOST_MEMORIES),
            ("batch", self.batch, self.memories),
        ):
            if not 1 <= value <= most:
                raise UsageError(f"--{name} {value}: give 1 to {most:,}")


def run_durability(
    spec: Spec,
    out: Path,
    options: DurabilityOptions,
    *,
    command: str = "",
    update: Callable[[str, int, int], None] = lambda kind, number, total: None,
) -> DurabilityResult:
    """Play all rounds of a system, and write durability.json and durability.md into `out`.

    After Ctrl-C the files have the rounds so far, and KeyboardInterrupt is raised again.
    """
    options.check()
    out.mkdir(parents=True, exist_ok=True)
    reason = why_not_durable(spec)
    rounds: list[RoundOutcome] = []
    interrupted: KeyboardInterrupt | None = None
    if not reason:
        spec = with_storage(spec)
        try:
            for outcome in _rounds(spec, command, out, options, update):
                rounds.append(outcome)
                if outcome.kind == "clean" and not outcome.kept:
                    break  # it keeps nothing: there is nothing to lose by a kill
        except KeyboardInterrupt as error:
            interrupted = error
    result = DurabilityResult(
        format=FORMAT,
        system=spec.label or str(spec),
        command=command,
        verdict=judged(rounds, reason),
        reason=reason,
        rounds=rounds,
        is_complete=interrupted is None,
    )
    write_atomically(out / "durability.json", encode_json(result))
    write_atomically(out / "durability.md", f"{render(blocks(result))}\n".encode())
    if interrupted is not None:
        raise interrupted
    return result


def _rounds(
    spec: Spec,
    command: str,
    out: Path,
    options: DurabilityOptions,
    update: Callable[[str, int, int], None],
) -> Iterator[RoundOutcome]:
    sizes = RoundOptions(
        memories=options.memories,
        batch=options.batch,
        settle=options.settle,
        timeout=options.timeout,
        seed=options.seed,
    )
    kinds: list[Kind] = ["clean"]
    for kind in _KILLS:
        kinds += [kind] * options.kills
    for number, kind in enumerate(kinds, 1):
        update(kind, number, len(kinds))
        storage = (out / "storage" / f"{kind}-{number}").resolve()
        shutil.rmtree(storage, ignore_errors=True)  # ours, of an earlier test in this folder
        storage.mkdir(parents=True)
        target = restartable(spec, command, storage, timeout=options.timeout, start=options.start)
        try:
            outcome = play(target, kind, number, sizes)
        finally:
            target.close()
        if not (outcome.missing or outcome.came_back or outcome.error):
            shutil.rmtree(storage, ignore_errors=True)
        yield outcome
