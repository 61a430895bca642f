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
    "backend-eng-saas": "2cf170ff56c1ccf0482a46054b6285d16b580cbc4da9d34b261409efec73bd14",
    "er-physician": "823025924a5a2d28d5e7dae7a6a0f4bdc570bbdb85732c2248dfcb1266902ef3",
    "litigation-attorney": "8f49766c0d53d07c698ed8b7d3a4068ccdfa87f4d642fd67a924c04687b3473c",
    "research-scientist": "471826eddc9f342fc502a3bdee84fc25c8090dada052fe250ba1126942890b62",
    "financial-advisor": "344ab02ab564490061ccb6bbc0b162b63cf5f53aff68123beefe8e4b755375fa",
    "executive-assistant": "2f5576c1d7ddb946f0fa0d26d8cd3e519f7d13bd4f2602370c7a4f8c54cd1af4",
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
