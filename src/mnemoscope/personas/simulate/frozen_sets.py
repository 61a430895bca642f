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
    "backend-eng-saas": "0c72830d6c863c15bc96f2a108932f9e612df4a98479368cd9a5876ac17da337",
    "er-physician": "d4928067d7309d84065f17b8a0bfa4edd090631f1955f6c0350b14ab00c58afc",
    "litigation-attorney": "7666fc0166a1a3f3efeb1c04211c991fa55852707e050fc5434865e0acf40da3",
    "research-scientist": "9d395de5032f8bcaab2e851a08d68bf9cc5f5b988353934d27aeaaebdda1daeb",
    "financial-advisor": "fb93eecfcc48afb8d6e82fe96c2313d2407ff59981cb7f3268d3a86032111b3a",
    "executive-assistant": "ca36e1a58f12427d35b2708247335a333c95ca7ff19614ef0b53a459aaaa3937",
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
