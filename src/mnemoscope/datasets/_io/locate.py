"""Where to find the files of a dataset: `--data`, $MNEMOSCOPE_DATA/NAME, the user's cache."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from mnemoscope._store.errors import MissingData
from mnemoscope.datasets.base import DatasetInfo


def cache_folder(dataset: str) -> Path:
    """Where `fetch` puts a dataset."""
    return Path(platformdirs.user_cache_dir("mnemoscope")) / "data" / dataset


def locate(dataset: DatasetInfo, data: Path | None) -> Path:
    """The file or folder of the dataset; the error says how to get it."""
    if data is not None:
        if not data.exists():
            raise MissingData(f"--data {data}: no such file or folder")
        return data
    places = [cache_folder(dataset.name)]
    if root := os.environ.get("MNEMOSCOPE_DATA"):
        places.insert(0, Path(root) / dataset.name)
    for place in places:
        if place.exists():
            return place
    fetch = f"mnemoscope datasets fetch {dataset.name}" if dataset.downloadable else ""
    get_it = dataset.how_to_get or fetch
    raise MissingData(
        f"no {dataset.name} data (looked in {', '.join(map(str, places))}): "
        f"{get_it and f'run `{get_it}`, or '}pass its file or folder with --data"
    )
