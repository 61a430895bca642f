"""What runs keep of a store's memories, and reading it again: the store itself may change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mnemoscope._store.errors import DataError
from mnemoscope._store.fingerprint import fingerprint
from mnemoscope._store.jsonl import encode_json
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.seal import KEPT_STORE

if TYPE_CHECKING:
    from mnemoscope.analysis.store_bridge import KeptStore
    from mnemoscope.datasets.base import Dataset
    from mnemoscope.types import Scenario


def keep_memories(dataset: Dataset, runs: Sequence[RunDirectory]) -> None:
    """Write what a later gate needs into each of these runs of one store.

    A private run keeps nothing: the words behind its hashes could be guessed one by one.
    """
    new = [
        run for run in runs if not (run.path / KEPT_STORE).exists() and not run.manifest().private
    ]
    if not new:
        return
    from mnemoscope.analysis.store_bridge import keep_store

    key = fingerprint(new[0].manifest().identity["benchmark"])
    for scenario in dataset.scenarios():
        content = encode_json(keep_store(scenario, key))
        for run in new:
            run.write_files({KEPT_STORE: content})


def kept_memories(run: RunDirectory, data: Path | None) -> KeptStore:
    """What the run kept, or the same from its dataset, if that is still as it was.

    `data` names the dataset; it must have the sha256 that the run recorded.
    """
    from mnemoscope.analysis.store_bridge import KeptStore, keep_store

    manifest = run.manifest()  # an edited file is refused here
    file = run.path / KEPT_STORE
    if data is None and file.exists():
        try:
            return msgspec.json.decode(file.read_bytes(), type=KeptStore)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataError(str(error), file=file) from None
    return keep_store(_scenario(run, data), fingerprint(manifest.identity["benchmark"]))


def question_texts(run: RunDirectory, data: Path | None) -> dict[str, str]:
    """The questions of a private run, from its dataset: the run itself has their ids only."""
    return {question.id: question.text for question in _scenario(run, data).questions}


def _scenario(run: RunDirectory, data: Path | None) -> Scenario:
    """The store of a run as it was."""
    from mnemoscope.analysis.compare import NotComparable
    from mnemoscope.runner.dataset_texts import dataset_of

    manifest = run.manifest()
    dataset = dataset_of(manifest, data)
    if dataset is None:
        why = "it is private" if manifest.private else "an older version made it"
        raise NotComparable(
            f"{run.path} kept nothing of its memories ({why}), and its data are not where they "
            "were, or changed: name a copy with --baseline-data, or run the baseline again"
        )
    (scenario,) = dataset.scenarios()
    return scenario
