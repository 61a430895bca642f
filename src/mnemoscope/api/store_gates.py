"""The gate for a store that changed: run the baseline's system on it, and compare."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.fingerprint import fingerprint, sha256_file
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.api.arguments import RunLike, Where, benchmark_of, existing, optional_path, readable
from mnemoscope.api.kept_memories import kept_memories, question_texts
from mnemoscope.api.new_runs import run_config
from mnemoscope.api.run_progress import Progress
from mnemoscope.runner.run_setup import RunConfig, SystemLike

if TYPE_CHECKING:
    from mnemoscope.analysis.store_bridge import AskedAs, KeptStore
    from mnemoscope.analysis.store_gate import BaselineQuestions, StoreGate
    from mnemoscope.types import Question

Ids = str | int | list[str | int] | None


def gate_store(
    store: Where,
    *,
    baseline: RunLike,
    system: SystemLike | None = None,
    id_map: Where | Mapping[str, Ids] | None = None,
    missing_gold: Literal["fail", "leave-out"] = "fail",
    bridge: Literal["content", "exact"] = "content",
    max_drop: Mapping[str, float] = {},
    baseline_data: Where | None = None,
    out: Where | None = None,
    workers: int | None = None,
    progress: Progress = None,
) -> StoreGate:
    """Ask a changed store the questions of a baseline, and say what was lost.

    `store` is a folder with corpus.jsonl, or such a file. `id_map` maps ids of the baseline to
    those of the store, or is a JSON file with such a map. The gate fails if a gold memory is
    missing (`missing_gold`), if a metric is worse by its interval, or drops by more than `max_drop`
    allows. `system` is that of the baseline if it is not given.
    """
    from mnemoscope.analysis.compare import NotComparable
    from mnemoscope.analysis.pairing import recorded_depth
    from mnemoscope.analysis.store_bridge import DeclaredSuccessors, StoreBridge
    from mnemoscope.analysis.store_gate import baseline_questions, compare_stores
    from mnemoscope.datasets import dataset_info
    from mnemoscope.datasets.changed_store import ChangedStore, read_store
    from mnemoscope.runner.scheduler import Limits

    place, base = existing(str(store)), RunDirectory(existing(baseline))
    data = optional_path(baseline_data)
    with readable():
        asked = baseline_questions(base)
        manifest = base.manifest()
        kept = kept_memories(base, data)
        texts = question_texts(base, data) if manifest.private else {}
        depth = recorded_depth(base)
    for metric, allowed in max_drop.items():  # before the system is asked
        if metric not in depth.names:
            known = ", ".join(depth.names)
            raise UsageError(f"{base.path} has no metric {metric!r}; it has {known}")
        if not allowed >= 0:
            raise UsageError(f"{metric}={allowed}: the allowed drop must be zero or more")
    name = benchmark_of(base)
    now = read_store(place, name)
    declared = DeclaredSuccessors(
        _id_map(id_map, kept, {memory.id for memory in now.memories}), now.superseded
    )
    follower = StoreBridge(kept, now.memories, declared, exact_only=bridge == "exact")
    followed = follower.follow(id for id in asked.gold if id in kept.memories)
    questions = _questions(asked, kept, {id: one.ids for id, one in followed.items()}, texts)
    if not questions and missing_gold == "leave-out":
        raise NotComparable(f"no gold memory of {base.path} is left in {place}")
    spec = _system(base, system)
    run: RunDirectory | None = None
    if questions:
        dataset = ChangedStore(
            dataset_info(name), now, questions, asked.scenario, manifest.fingerprint
        )
        dataset.is_private |= manifest.private
        folder = optional_path(out) or Path("runs") / "gate" / _version(
            *(now.file, declared, spec, manifest.fingerprint)
        )
        limits = msgspec.convert(manifest.identity.get("limits", {}), Limits)
        config = RunConfig(
            out=folder,
            depth=int(manifest.identity["depth"]),
            seed=int(manifest.identity["seed"]),
            timeout=limits.recall,
            remember_timeout=limits.remember,
            restarts=limits.restarts,
            baselines=False,
            workers=workers,
        )
        (result,) = run_config(dataset, [spec], config, progress=progress).runs
        run = result.directory
    return compare_stores(
        asked,
        run,
        follower,
        followed,
        depth,
        names=(str(place), str(base.path), run.label if run else base.label),
        missing_gold=missing_gold,
        max_drop=max_drop,
    )


def _system(base: RunDirectory, given: SystemLike | None) -> SystemLike:
    """The system that is asked: the given one, else that of the baseline under its label."""
    if given is not None:
        return given
    spec = str(base.manifest().identity["system"]["spec"])
    if spec.startswith("rankings from "):
        raise UsageError(f"{base.path} was scored from a file: name the system with --system")
    label = base.label.partition("@")[0]  # of a repeat
    if label == Spec.parse(spec).slug or not re.fullmatch(r"[A-Za-z0-9][\w.-]*", label):
        return spec
    return f"{label}={spec}"


def _version(file: Path, *others: object) -> str:
    """A folder name for this version of the store, so that each has a run of its own."""
    return fingerprint({"store": sha256_file(file), "others": list(map(str, others))})[:12]


def _questions(
    asked: BaselineQuestions,
    kept: KeptStore,
    here: Mapping[str, list[str]],
    texts: Mapping[str, str],
) -> list[Question]:
    """The questions that still have a gold memory, with its ids in the new store as evidence.

    `texts` are those of a private baseline, which has none itself.
    """
    found = []
    for id, question in asked.questions.items():
        gold = [new for old in asked.trials[id].evidence for new in here.get(old, ())]
        if gold:
            about: AskedAs | None = kept.asked.get(id)
            found.append(
                replace(
                    question,
                    text=texts.get(id, question.text),
                    evidence=tuple(dict.fromkeys(gold)),
                    now=datetime.fromisoformat(about.now) if about and about.now else None,
                    session=about.session if about else "",
                    cluster=about.cluster if about else "",
                )
            )
    return found


def _id_map(
    given: Where | Mapping[str, Ids] | None, kept: KeptStore, there: set[str]
) -> dict[str, list[str]]:
    """The ids of the baseline to ids of the store; an unknown id is an error."""
    if given is None:
        return {}
    file = "id map"
    if isinstance(given, str | Path):
        file = str(existing(str(given)))
        try:
            given = msgspec.json.decode(Path(file).read_bytes(), type=dict[str, Ids])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataError(
                f'expected {{"OLD ID": "NEW ID"}}, a list of new ids, or null: {error}', file=file
            ) from None
    found = {
        str(old): [] if new is None else list(map(str, new if isinstance(new, list) else [new]))
        for old, new in given.items()
    }
    for old, new in found.items():
        if old not in kept.memories:
            raise DataError(f"the baseline has no memory {old!r}", file=file)
        if unknown := [id for id in new if id not in there and id not in found]:
            raise DataError(f"{old!r}: the store has no memory {unknown[0]!r}", file=file)
    return found
