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


def keep_memories(dataset: Dataset, runs: Sequence[RunDirectory]) -> None:
    """Write what a later gate needs into each of these runs of one store."""
    new = [run for run in runs if not (run.path / KEPT_STORE).exists()]
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
    from mnemoscope.analysis.compare import NotComparable
    from mnemoscope.analysis.store_bridge import KeptStore, keep_store
    from mnemoscope.runner.dataset_texts import dataset_of

    manifest = run.manifest()  # an edited file is refused here
    file = run.path / KEPT_STORE
    if data is None and file.exists():
        try:
            return msgspec.json.decode(file.read_bytes(), type=KeptStore)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataError(str(error), file=file) from None
    dataset = dataset_of(manifest, data)
    if dataset is None:
        raise NotComparable(
            f"{run.path} kept nothing of its memories (an older version made it), and its data "
            "are not where they were: name them with --baseline-data, or run the baseline again"
        )
    (scenario,) = dataset.scenarios()
    return keep_store(scenario, fingerprint(manifest.identity["benchmark"]))
