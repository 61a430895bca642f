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
    "backend-eng-saas": "875aa79dae610316b4cc5a73d3341bc160a148929a99ba07750c4b6e6030f094",
    "er-physician": "1761f3c55a7c39e4844a16088b962926dc3a83f8207b5d49f691fb8152c9e842",
    "litigation-attorney": "c091b87b892a7ed8bb003a2edffee7e5ace89d63bf53a0c8486e99779ed769f8",
    "research-scientist": "3f15f9ac81bb22089f4dad9f64bcc6a6832df1b17bd0215ea4d31e3f445c4bb1",
    "financial-advisor": "f4d1b063bc23645b9c4c4fc89e7eb0d1411a6654d15ee216b83e1d5fa8ac051f",
    "executive-assistant": "24f114450a21f492999b9090f828e0da0f4a79b286946a23bc797db9a29d4d49",
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
