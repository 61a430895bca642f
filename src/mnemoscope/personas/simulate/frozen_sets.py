"""Frozen sets: simulated histories with fixed parameters, checked against hashes in the package.

A published set never changes. If the simulator changes, a new set gets a new name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from mnemoscope._store.errors import DataError
from mnemoscope.personas.simulate.simulator import WrittenHistory, simulate_personas


@dataclass(frozen=True)
class FrozenSet:
    """The parameters of a set, and the hash of each persona's files."""

    name: str
    edition: int
    days: int
    seed: int
    density: int
    sha256: Mapping[str, str] = field(hash=False)

    def write(self, out: Path, *, jobs: int = 1, force: bool = False) -> Iterator[WrittenHistory]:
        """Write the set; a persona whose files differ from the published ones is an error."""
        for written in simulate_personas(
            list(self.sha256),
            out,
            days=self.days,
            seed=self.seed,
            edition=self.edition,
            density=self.density,
            jobs=jobs,
            force=force,
        ):
            self.check(written.folder)
            yield written

    def check(self, folder: Path) -> None:
        """Compare the files of one persona on disk with the published hash."""
        found = digest_folder(folder, self.days)
        if found != self.sha256.get(folder.name):
            raise DataError(
                f"the files of {folder.name} are not those of {self.name} (sha256 {found}): they "
                "were changed, or this version of mnemoscope writes other texts; write the set "
                "into an empty folder with the version that published it",
                file=folder,
            )


def digest_folder(folder: Path, days: int) -> str:
    """One hash over the files of a simulated history, by name and content."""
    total = sha256()
    span = f"{days}d"
    paths = [folder / "persona.yaml", folder / f"arcs-{span}.yaml"]
    paths += [folder / f"qa-{span}" / name for name in ("questions.yaml", "ledger.jsonl")]
    paths += sorted((folder / f"memories-{span}").glob("*.md"))
    for path in paths:
        content = path.read_bytes() if path.is_file() else b""
        total.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return total.hexdigest()


_LIVES_1 = {
    "backend-eng-saas": "7ab6b69648048121de9ff75ee7302b4e72aa26c61a26295eed084f8a03a05b09",
    "er-physician": "52f7467aa0c403f9f8d9ee7fbaa5c0ad18f658d412f14434104b7df4ec43a261",
    "litigation-attorney": "40ba70258ee5dc8440ae855136f1bc29cc83a00f792e3ebeed817fa5c0b2a421",
    "research-scientist": "3bbacc0b751fc8cfa33102b9fbd27b89eca874eeb3a3366ee86d3cd6b6b33499",
    "financial-advisor": "9ba4bbf6968813a9c715679094a9bb4ae8ea837bb6cdf5ae9ae2d287834f870f",
    "executive-assistant": "102e9a68d50160c73de9c792b0cf606d9261aadb79c5de031d30b71dce6c8563",
}
SETS: Mapping[str, FrozenSet] = {
    "mnemoscope-lives-1": FrozenSet(
        "mnemoscope-lives-1",
        edition=2,
        days=1000,
        seed=1,
        density=1000,
        sha256=_LIVES_1,
    )
}
